"""A channel, a dimension, a statistic, a mechanism and an engine from outside, at every public function.

Each is answered correctly or refused in a sentence, and never left out in silence. What fails today is marked, with the
reason. Reports use the system's randomness: bounds are seven standard errors, a false alarm in about 10^12.
"""

from __future__ import annotations

import importlib
import json
import shutil
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import acme
import numpy as np
import pyarrow as pa
import pytest
from acme.channel import Ladder
from acme.dimension import Agreement, Count
from acme.mechanism import Shy

import hdr4me as hd
from hdr4me import checks
from hdr4me.accounting.poisoning import manipulation_bounds
from hdr4me.cli import main
from hdr4me.engines import ENGINES, Local
from hdr4me.errors import InvalidInput, MissingDependency

N = 20_000
SIGMAS = 7.0
SHARES = (0.1, 0.1, 0.2, 0.2, 0.4)
WORDS = ("not at all", "little", "somewhat", "much", "fully")
NAMES = ("visits", "likes", "pet")


def schema() -> hd.Schema:
    return hd.Schema([Count("visits", 10), Agreement("likes"), hd.Categorical("pet", ["cat", "dog", "none"])])


@pytest.fixture(scope="module")
def survey() -> hd.Survey:
    """Their dimension by their mechanism, their dimension by their channel, and one of ours."""
    plain = hd.Survey(schema(), epsilon=2.0, mechanism="shy")
    questions = [plain.questions[0], hd.Question((1,), Ladder.within(2.0, 5)), plain.questions[2]]
    return hd.Survey.from_questions(schema(), epsilon=2.0, sampled=1, questions=questions)


@pytest.fixture(scope="module")
def records() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "visits": np.minimum(rng.poisson(3, N), 10),
            "likes": np.array(WORDS)[rng.choice(5, N, p=SHARES)],
            "pet": np.array(["cat", "dog", "none"])[rng.choice(3, N, p=[0.5, 0.3, 0.2])],
        }
    )


@pytest.fixture(scope="module")
def tally(survey: hd.Survey, records: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> hd.Tally:
    """Perturbed and counted by their engine."""
    path = tmp_path_factory.mktemp("reports") / "r.parquet"
    with ENGINES["halves"](None) as engine:
        assert engine.perturb(records, survey, path) == N
        return engine.tally([path], survey)


def attempt(name: str, call: Any, *arguments: Any, **options: Any) -> Any:
    """What a call returns; None if it is refused in a sentence that has this name in it."""
    try:
        return call(*arguments, **options)
    except InvalidInput as refusal:
        if name not in str(refusal):
            raise
        return None


def check_visits(answer: hd.Answer, records: pa.Table) -> None:
    truth = float(np.mean(np.asarray(records["visits"])))
    assert abs(answer["visits"].value[0] - truth) < SIGMAS * answer["visits"].standard_error[0]


def check_likes(answer: hd.Answer, records: pa.Table) -> None:
    likes = answer["likes"]
    truth = [np.mean(np.asarray(records["likes"]) == word) for word in likes.categories]
    assert np.all(np.abs(likes.value - truth) < SIGMAS * likes.standard_error)


# -- the dimension -----------------------------------------------------------------------------------------------------


def test_the_contract_of_the_dimension() -> None:
    checks.check_dimension(Count("visits", 10), [3, None, "x", 99, -1, 2.5, float("nan"), True])


def test_a_survey_of_counts_is_designed_written_and_read() -> None:
    every: list[dict[str, Any]] = [{}, {"pair_questions": [("a", "b")]}, {"block_questions": [("a", "b")]}]
    for options in every:
        made = hd.Survey(hd.Schema([Count("a", 3), Count("b", 5)]), epsilon=4.0, **options)
        assert hd.Survey.from_json(made.to_json()) == made


def test_a_plan_for_counts_is_that_for_numbers() -> None:
    """A count on the scale [−1, 1] is a number, and the tolerance is in the count's own unit."""
    theirs = hd.plan(schema=hd.Schema([Count("a", 10)]), epsilon=1.0, tolerance={"a": 0.5})
    ours = hd.plan(schema=hd.Schema([hd.Numeric("a", 0, 10)]), epsilon=1.0, tolerance={"a": 0.5})
    assert theirs.best.users == ours.best.users
    assert theirs.best.survey().schema["a"] == Count("a", 10)


def test_a_plan_from_values_of_counts() -> None:
    options: dict[str, Any] = {"users": 1000, "epsilon": 1.0, "prior": {"a": [1, 2, 3, 10]}}
    theirs = hd.plan(schema=hd.Schema([Count("a", 10)]), **options)
    assert theirs.best.mse == pytest.approx(
        hd.plan(schema=hd.Schema([hd.Numeric("a", 0, 10)]), **options).best.mse
    )


def test_a_comparison_includes_counts_or_says_why_not(records: pa.Table) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = hd.compare(
            records, schema=schema(), epsilon=1.0, mechanisms=["duchi", "grr"], repeats=2, recalibrate=False
        )
    assert "categories" in {row.kind for row in found.rows}
    assert "numbers" in {row.kind for row in found.rows} or any("visits" in note for note in found.notes)


def test_the_client_and_memoized_answers(survey: hd.Survey, tmp_path: Path) -> None:
    record = {"visits": 3, "likes": "fully", "pet": "dog"}
    fresh = hd.Tally(survey).add(hd.Client(survey).report(record) for _ in range(100))
    assert fresh.n_reports == 100
    assert not fresh.rejected
    client = hd.MemoizedClient(survey, hd.Ledger(tmp_path / "ledger.json"))
    assert client.report(record) == client.report(record)


def test_what_was_not_usable_is_counted(survey: hd.Survey) -> None:
    odd = pa.table(
        {
            "visits": [1, 2, 50, None],
            "likes": ["much", "no word", None, "fully"],
            "pet": ["cat", "cat", "cat", "cat"],
        }
    )
    rows = {row["column"]: row for row in Local(threads=1).data_quality(odd, survey).rows()}
    assert (rows["visits"]["missing"], rows["visits"]["high"]) == (1, 1)
    assert (rows["likes"]["missing"], rows["likes"]["unknown"]) == (1, 1)


# -- the channel -------------------------------------------------------------------------------------------------------


def test_the_default_answer_has_the_count_and_ours(tally: hd.Tally, records: pa.Table) -> None:
    check_visits(tally.estimate(), records)
    check_visits(hd.estimate(tally), records)


def test_the_default_answer_has_the_channels_dimension(tally: hd.Tally, records: pa.Table) -> None:
    answer = tally.estimate()
    if "likes" not in answer.dimensions:
        assert any("likes" in note for note in (*answer.notes, *answer.advice))
    else:
        check_likes(answer, records)


@pytest.mark.parametrize(
    "statistic", ["frequency", "largest", "mean", "quantile", "variance", "distribution"]
)
def test_a_statistic_of_the_channel_is_answered_or_refused(
    statistic: str, tally: hd.Tally, records: pa.Table
) -> None:
    answer = attempt("likes", hd.ask, tally, statistic, "likes")
    if answer is not None:
        assert statistic in ("frequency", "largest")
        if statistic == "frequency":
            check_likes(answer, records)
        else:
            assert answer.categories == ("fully",)


def test_statistics_of_the_count(tally: hd.Tally, records: pa.Table) -> None:
    visits = np.asarray(records["visits"])
    variance = hd.ask(tally, "variance", "visits")
    low, high = variance.interval(1 - 1e-9)
    assert low[0] <= np.var(visits) <= high[0]
    low, high = hd.ask(tally, "quantile", "visits", p=[0.5]).interval(1 - 1e-9)
    assert low[0] <= np.median(visits) <= high[0]


def test_recalibration_keeps_the_count(tally: hd.Tally, records: pa.Table) -> None:
    answer = tally.estimate()
    better = answer.recalibrate()
    truth = float(np.mean(np.asarray(records["visits"])))
    assert abs(better["visits"].value[0] - truth) < 2 * SIGMAS * answer["visits"].standard_error[0]


def test_an_earlier_tally_is_a_prior(tally: hd.Tally) -> None:
    assert "pet" in tally.priors()
    assert hd.plan(users=1000, epsilon=1.0, prior=tally).best.mse > 0


def test_the_audit_proves_and_attacks_everything(survey: hd.Survey) -> None:
    found = hd.audit(survey, draws=20_000)
    assert found.passed
    assert [finding.mechanism for finding in found.findings] == ["shy", "ladder", "grr"]


def test_shuffling_is_accounted_for(survey: hd.Survey) -> None:
    found = hd.amplification(survey, 10_000, 1e-6)
    assert 0 < found.epsilon < survey.epsilon
    only = hd.Schema([Agreement("likes")])
    channel = Ladder.within(2.0, 5)
    alone = hd.Survey.from_questions(only, epsilon=2.0, sampled=1, questions=[hd.Question((0,), channel)])
    # Randomized response is the worst channel of its ε.
    assert found.closed_form is not None
    assert 0 < hd.amplification(alone, 10_000, 1e-6).epsilon <= found.closed_form


def test_another_epsilon_keeps_the_channel_or_is_refused(survey: hd.Survey) -> None:
    from hdr4me.accounting.shuffling import redesigned

    made = attempt("ladder", redesigned, survey, 1.0)
    assert made is None or isinstance(made.questions[1].channel, Ladder)


def test_the_manipulation_bound_has_every_dimension(survey: hd.Survey) -> None:
    found = attempt("likes", manipulation_bounds, survey)
    assert found is None or [each.dimension for each in found] == list(NAMES)


@pytest.mark.parametrize("audience", ["user", "dpo"])
def test_the_survey_is_explained(audience: str, survey: hd.Survey) -> None:
    text = hd.explain(survey, audience).markdown()
    assert all(name in text for name in NAMES)


def test_the_explained_record_has_every_value(survey: hd.Survey) -> None:
    line = next(line for line in hd.explain(survey).markdown().splitlines() if "with these values" in line)
    assert set(json.loads(line[line.index("{") : line.rindex("}") + 1])) == set(NAMES)


def test_the_collector_accepts_and_counts_them(survey: hd.Survey, tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    from collector_service import Service, serving

    from hdr4me.collector import open_store
    from hdr4me.collector.stores.protocol import ANYONE

    client = hd.Client(survey)
    reports = [client.report({"visits": i % 11, "likes": WORDS[i % 5], "pet": "dog"}) for i in range(60)]
    store = open_store(tmp_path / "reports.db")
    store.open_round(survey, now=datetime.now(UTC))
    store.add_token(ANYONE, "send")

    async def work(service: Service) -> None:
        lines = [
            {"id": f"{i:032x}", "report": json.loads(report.to_json())} for i, report in enumerate(reports)
        ]
        body = "\n".join(map(json.dumps, lines)).encode()
        headers = {"content-type": "application/x-ndjson"}
        answer = await service.call("POST", "/v1/rounds/1/reports", body, headers)
        assert answer.json() == {"stored": 60, "duplicates": 0, "rejected": []}
        assert store.tally(1) == hd.Tally(survey).add(reports)

    serving(store, work)


def test_one_call_collects_and_answers(survey: hd.Survey, records: pa.Table) -> None:
    answer = hd.collect(records, survey).estimate()
    check_visits(answer, records)
    check_likes(answer, records)
    planned = hd.run(records, schema(), 2.0)
    check_visits(planned, records)
    check_likes(planned, records)
    both = hd.combine([hd.collect(records, survey) for _ in range(2)])
    check_visits(both, records)
    check_likes(both, records)


def test_enhancement_accepts_estimates_of_the_channel(tally: hd.Tally) -> None:
    likes = tally.estimate()["likes"]
    found = hd.enhance(likes.value, likes.standard_error**2)
    assert np.all(np.abs(found) <= np.abs(likes.value) + 1e-12)


def test_tables_accept_the_dimension_with_categories_and_refuse_the_count(records: pa.Table) -> None:
    parts = [Agreement("likes"), hd.Categorical("pet", ["cat", "dog", "none"])]
    survey = hd.Survey(hd.table_schema(hd.Schema(parts)), epsilon=4.0)
    tally = hd.collect(records, survey)
    truth = np.mean((np.asarray(records["likes"]) == "fully") & (np.asarray(records["pet"]) == "cat"))
    cell = tally.estimate()
    at = list(cell.categories).index("fully × cat")
    assert abs(cell.value[at] - truth) < SIGMAS * cell.standard_error[at]
    rows = hd.tables(tally).table("likes", "pet").rows()
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    assert [row["design"] for row in hd.plan_tables(hd.Schema(parts), users=10_000, epsilon=2.0)]
    with pytest.raises(InvalidInput, match="dimension 'visits' is a number"):
        hd.table_schema(schema())


def test_a_second_round_is_designed_or_refused(tally: hd.Tally) -> None:
    found = attempt("range", hd.refine, tally)
    assert found is None or [dimension.name for dimension in found.survey.schema] == list(NAMES)


def test_a_study_accepts_counts_and_refuses_words(records: pa.Table) -> None:
    options: dict[str, Any] = {"mechanisms": ["shy"], "epsilon": 2.0, "repeats": 2}
    assert hd.study(records.select(["visits"]), **options).table
    with pytest.raises(InvalidInput, match="data must be finite numbers") as refusal:
        hd.study(records, **options)
    assert "fully" not in str(refusal.value)


def test_a_drafted_schema_has_every_column(records: pa.Table) -> None:
    drafted = hd.draft_schema(records)
    assert all(f'name = "{name}"' in drafted for name in NAMES)
    again = hd.Schema.from_dict(schema().to_dict())
    assert again == schema()


@pytest.mark.spark
def test_spark_perturbs_and_counts_them(
    survey: hd.Survey, records: pa.Table, spark_session: Any, tmp_path: Path
) -> None:
    package = Path(acme.__file__).parent
    archive = shutil.make_archive(str(tmp_path / "acme"), "zip", package.parent, package.name)
    spark_session.sparkContext.addPyFile(archive)
    engine = hd.engines.spark(spark_session)
    assert engine.perturb(records, survey, tmp_path / "reports") == N
    answer = engine.tally(tmp_path / "reports", survey).estimate()
    check_visits(answer, records)
    check_likes(answer, records)
    quality = engine.data_quality(records, survey)
    assert quality.counts.tolist() == Local(threads=1).data_quality(records, survey).counts.tolist()


@pytest.mark.spark
def test_spark_names_a_package_that_executors_lack(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text(
        "from acme.dimension import Count\n\n\nclass Steps(Count):\n    kind = 'steps'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    steps = importlib.import_module("only_here").Steps("steps", 10)
    survey = hd.Survey(hd.Schema([steps]), epsilon=1.0)
    engine, table = hd.engines.spark(spark_session), pa.table({"steps": [1, 2]})
    lacking = pytest.raises(MissingDependency, match=r"cannot import '\w+': install the package there")
    with lacking:
        engine.perturb(table, survey)
    with lacking:
        engine.perturb(table, survey, tmp_path / "reports")
    with lacking:
        engine.data_quality(table, survey)
    Local(threads=1).perturb(table, survey, tmp_path / "local.parquet")
    with lacking:
        engine.tally(tmp_path / "local.parquet", survey)
    assert not (tmp_path / "reports").exists()


# -- the mechanism -----------------------------------------------------------------------------------------------------


def test_the_mechanism_is_planned_analysed_and_simulated() -> None:
    found = hd.plan(schema=hd.Schema([Count("a", 3)]), users=5000, epsilon=2.0, mechanisms=["shy"]).best
    assert found.mechanism == "shy"
    predicted = hd.deviation(Shy(epsilon=2.0), users=1000, dims=1, values=[[0.5]], probabilities=[[1.0]])
    assert float(np.ravel(predicted.variance)[0]) == pytest.approx(
        float(Shy(epsilon=2.0).variance(0.5)) / 1000
    )


def test_the_mechanism_is_compared_or_refused() -> None:
    numbers = pa.table({"a": np.random.default_rng(1).uniform(0, 1, 500)})
    options: dict[str, Any] = {"epsilon": 2.0, "repeats": 2, "recalibrate": False}
    found = attempt("shy", hd.compare, numbers, mechanisms=["shy"], **options)
    assert found is None or {row.mechanism for row in found.rows} == {"shy"}


def test_the_study_of_the_paper_accepts_the_mechanism(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["uniform", "--users", "300", "--dims", "3", "--epsilon", "2", "--mechanism", "shy"]
    code = main(["study", *options, "--workers", "1", "--output", str(tmp_path / "study")])
    printed = "".join(capsys.readouterr())
    assert code == 0 or "shy" in printed
    if code == 0:
        assert any("shy" in path.read_text("utf-8") for path in (tmp_path / "study").rglob("*.md"))


# -- the statistic and the engine --------------------------------------------------------------------------------------


def test_the_statistic_is_asked_of_what_it_supports_and_refused_of_the_rest(tally: hd.Tally) -> None:
    assert hd.ask(tally, "largest", "pet").categories == ("cat",)
    with pytest.raises(InvalidInput, match="visits"):
        hd.ask(tally, "largest", "visits")
    with pytest.raises(InvalidInput, match="largest"):
        hd.plan(schema=schema(), users=1000, epsilon=1.0, statistic="largest")


def test_the_contract_of_the_engine(survey: hd.Survey, records: pa.Table) -> None:
    with ENGINES["halves"](None) as engine:
        checks.check_engine(engine, survey, records.slice(0, 500))
