"""A mechanism, a channel, a dimension kind, a statistic and an engine from outside go the whole way.

Reports use the system's randomness: every bound is seven standard errors, a false alarm in about 10^12.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import acme
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from acme.channel import Ladder
from acme.dimension import Agreement
from acme.family import Window
from acme.mechanism import Shy
from acme.statistic import LARGEST

import hdr4me as hd
from hdr4me import checks
from hdr4me.channels import Draws, KSubset
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.k_subset_response import KSubsetResponse
from hdr4me.channels.response import Marginal, Response
from hdr4me.cli import main
from hdr4me.engines import ENGINES, Local
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.categorical import subset_selection
from hdr4me.simulation.collection import simulate_tally

N = 40_000
SIGMAS = 7.0


@pytest.fixture(scope="module")
def survey() -> hd.Survey:
    """A number by their mechanism, their dimension by their channel, and one of ours."""
    schema = hd.Schema(
        [hd.Numeric("age", 0, 100), Agreement("likes"), hd.Categorical("pet", ["cat", "dog", "none"])]
    )
    plain = hd.Survey(schema, epsilon=2.0, mechanism="shy")
    questions = [plain.questions[0], hd.Question((1,), Ladder.within(2.0, 5)), plain.questions[2]]
    return hd.Survey.from_questions(schema, epsilon=2.0, sampled=1, questions=questions, name="theirs")


@pytest.fixture(scope="module")
def records() -> pa.Table:
    rng = np.random.default_rng(5)
    likes = np.array(["not at all", "little", "somewhat", "much", "fully"])[
        rng.choice(5, N, p=[0.1, 0.1, 0.2, 0.2, 0.4])
    ]
    pets = np.array(["cat", "dog", "none"])[rng.choice(3, N, p=[0.5, 0.3, 0.2])]
    return pa.table({"age": rng.uniform(10, 50, N), "likes": likes, "pet": pets})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, survey: hd.Survey, records: pa.Table) -> Path:
    path = tmp_path_factory.mktemp("plugins")
    survey.save(path / "survey.json")
    pq.write_table(records, path / "records.parquet")
    return path


def test_the_contracts_hold() -> None:
    checks.check_mechanism(Shy(epsilon=1.5))
    checks.check_channel(Ladder.within(1.5, 7))
    checks.check_dimension(Agreement("likes"), ["much", 4, 9, "no word"])


def test_a_broken_contract_is_an_error() -> None:
    class Liar(Shy):
        def variance(self, t: Any) -> Any:
            return super().variance(t) / 2

    with pytest.raises(AssertionError, match="variance"):
        checks.check_mechanism(Liar(epsilon=1.5))


class Copier(Ladder):
    """Its probabilities are private, and its reports are the values."""

    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        draws.bits(32)
        return divmod(x, 2)


class Copies(Response):
    """The batch sampler reports the values; the device does not."""

    def sample(self, inputs: Any, draws: Any) -> Any:
        return np.stack(np.divmod(inputs, 2), axis=1)


class BatchCopier(Ladder):
    response_class = f"{__name__}:Copies"


@pytest.mark.parametrize(("channel", "said"), [(Copier, "draws of sample"), (BatchCopier, "response.sample")])
def test_a_channel_whose_draws_are_not_its_law_is_an_error(channel: type[Ladder], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        checks.check_channel(channel.within(1.5, 7))


def test_a_large_channel_is_attacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outputs are too many to enumerate; the batch sampler spends five times the budget."""
    channel = subset_selection(1.0, 60)
    checks.check_channel(channel)
    monkeypatch.setattr(type(channel.response), "sample", subset_selection(5.0, 60).response.sample)
    with pytest.raises(AssertionError, match="an attack on the samples"):
        checks.check_channel(channel)


def test_the_document_carries_them(survey: hd.Survey) -> None:
    again = hd.Survey.from_json(survey.to_json())
    assert again == survey
    assert isinstance(again.questions[1].channel, Ladder)
    assert isinstance(again.schema["likes"], Agreement)


def test_a_tampered_channel_is_refused(survey: hd.Survey) -> None:
    from hdr4me.survey.canonical import fingerprint

    document = json.loads(survey.to_json())
    document["channels"][1]["epsilon"] = 0.5
    document["fingerprint"] = fingerprint(document)
    with pytest.raises(hd.errors.FormatError, match="leaks"):
        hd.Survey.from_json(json.dumps(document))


def check_answer(tally: hd.Tally, records: pa.Table) -> None:
    answer = tally.estimate()
    age = answer["age"]
    truth = np.mean(np.asarray(records["age"]))
    assert abs(age.value[0] - truth) < SIGMAS * age.standard_error[0]
    largest = hd.ask(tally, "largest", "pet")
    assert largest.categories == ("cat",)
    assert abs(largest.value[0] - 0.5) < SIGMAS * largest.standard_error[0] + 0.02


@pytest.mark.parametrize("engine", ["local", "halves"])
def test_engines_perturb_tally_and_answer(
    engine: str, survey: hd.Survey, records: pa.Table, tmp_path: Path
) -> None:
    with ENGINES[engine](None) as worker:
        assert worker.perturb(records, survey, tmp_path / "r.parquet") == N
        tally = worker.tally([tmp_path / "r.parquet"], survey)
    assert tally == Local(threads=1).tally(tmp_path / "r.parquet", survey)
    check_answer(tally, records)
    channel = survey.questions[1].channel
    counts = tally.layout.of_question(tally.counts, 1)
    shares = [0.1, 0.1, 0.2, 0.2, 0.4]
    for y in range(5):
        p = float(sum(w * channel.probability(x, divmod(y, 2)) for x, w in enumerate(shares)))
        assert abs(counts[y] / counts.sum() - p) < SIGMAS * (p / counts.sum()) ** 0.5 + 0.01


def test_their_engine_keeps_the_contract(survey: hd.Survey, records: pa.Table) -> None:
    with ENGINES["halves"](None) as worker:
        checks.check_engine(worker, survey, records.slice(0, 300))
    checks.check_statistic(LARGEST, survey)


@pytest.mark.spark
def test_spark_accepts_them(spark_session: Any, survey: hd.Survey, records: pa.Table, tmp_path: Path) -> None:
    from hdr4me.engines import spark

    package = Path(acme.__file__).parent
    archive = shutil.make_archive(str(tmp_path / "acme"), "zip", package.parent, package.name)
    spark_session.sparkContext.addPyFile(archive)  # as any package that executors need
    engine = spark(spark_session)
    assert engine.perturb(records.slice(0, 500), survey, tmp_path / "reports") == 500
    assert engine.tally(tmp_path / "reports", survey) == Local().tally(tmp_path / "reports", survey)


def test_the_client_answers(survey: hd.Survey) -> None:
    client = hd.Client(survey)
    tally = hd.Tally(survey).add(
        client.report({"age": 30, "likes": "fully", "pet": "dog"}) for _ in range(300)
    )
    assert tally.n_reports == 300
    assert not tally.rejected


def test_the_audit_attacks_them(survey: hd.Survey) -> None:
    found = hd.audit(survey, draws=20_000)
    assert found.passed
    assert [finding.mechanism for finding in found.findings][:2] == ["shy", "ladder"]


def test_the_plan_tries_their_mechanism() -> None:
    plan = hd.plan(
        schema=hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(4)]), epsilon=2.0, users=10_000
    )
    # Private from ε = 0.6 on: an option with four questions, of ε = 0.5 each, is not made.
    assert {option.sampled for option in plan.options if option.mechanism == "shy"} == {1, 2}


def test_the_framework_predicts_it() -> None:
    found = hd.deviation(Shy(epsilon=2.0), users=1000, dims=1, values=[[0.5]], probabilities=[[1.0]])
    assert float(np.ravel(found.variance)[0]) * 1000 == pytest.approx(
        float(Shy(epsilon=2.0).variance(0.5)), rel=1e-6
    )
    simulated = hd.simulate(Shy(epsilon=2.0), np.full((200_000, 1), 0.5), seed=1)
    variance = simulated.squares[0] / 200_000 - simulated.mean[0] ** 2
    assert variance == pytest.approx(float(Shy(epsilon=2.0).variance(0.5)), rel=0.03)


def test_the_command_line_accepts_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: Any) -> int:
        return main([str(argument) for argument in arguments])

    assert (
        run(
            "perturb",
            folder / "survey.json",
            folder / "records.parquet",
            "-o",
            folder / "r.parquet",
            "--engine",
            "halves",
        )
        == 0
    )
    assert (
        run(
            "tally",
            folder / "survey.json",
            folder / "r.parquet",
            "-o",
            folder / "t.tally",
            "--engine",
            "halves",
        )
        == 0
    )
    assert run("estimate", folder / "t.tally", "--json") == 0
    assert run("audit", folder / "survey.json", "--draws", "20000") == 0
    assert run("analyze", "--mechanism", "shy", "--epsilon", "2", "--users", "1000", "--dims", "2") == 0
    assert (
        run(
            "perturb",
            folder / "survey.json",
            folder / "records.parquet",
            "-o",
            folder / "x.parquet",
            "--engine",
            "cloud",
        )
        == 2
    )
    assert "halves" in capsys.readouterr().err


def test_names_that_are_taken_are_refused() -> None:
    with pytest.raises(InvalidInput, match="a name that no other item has"):
        hd.channels.CHANNELS.register("table", Ladder)


def test_a_channel_without_decoding_is_not_asked_for_a_mean(survey: hd.Survey) -> None:
    with pytest.raises(InvalidInput, match="likes"):
        hd.ask(hd.Tally(survey), "mean", "likes")


def test_what_its_counters_do_not_determine_has_no_estimate() -> None:
    class Constant(Ladder):
        """Its reports are private and useless: every one of them has the same counter."""

        def counters(self, output: Sequence[int]) -> Iterator[int]:
            return iter((0,))

    schema = hd.Schema([Agreement("likes")])
    questions = [hd.Question((0,), Constant.within(2.0, 5))]
    useless = hd.Survey.from_questions(schema, epsilon=2.0, sampled=1, questions=questions)
    answer = hd.Tally(useless).add([hd.Client(useless).report({"likes": "much"})] * 3).estimate()
    assert set(answer.status) == {"no estimate"}
    assert "its counters do not determine the answer" in answer.notes[0]


def test_an_installed_package_is_found_by_its_entry_points(tmp_path: Path) -> None:
    """A package that is installed and never imported by hand: its names are known all the same."""
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    groups = ("channels", "dimensions", "statistics", "engines")
    text = "".join(f"[hdr4me.{group}]\nacme = acme\n" for group in groups)
    (info / "entry_points.txt").write_text(text + "[hdr4me.mechanisms]\nshy = acme.mechanism:Shy\n")
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(Path(acme.__file__).parents[1])!r}]\n"
        "import hdr4me as hd\n"
        "from hdr4me.channels import CHANNELS\n"
        "from hdr4me.engines import ENGINES\n"
        "assert 'ladder' in CHANNELS and 'halves' in ENGINES\n"
        "assert hd.mechanism('shy', epsilon=1.0).name == 'shy'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class OwnMarginal(KSubsetResponse):
    """Its marginals are its own, and different for each category."""

    def marginal(self, position: int = 0, coordinate: int = 0) -> Marginal:
        return super().marginal(position, coordinate)


class OwnWindow(Window):
    response_class = f"{__name__}:OwnMarginal"


@pytest.mark.parametrize("kind", [Window, OwnWindow])
def test_a_family_without_a_response_is_answered_category_by_category(kind: type[Window]) -> None:
    """The shares of its report are different for each category, so that each has a decoder of its own.

    Seven frequencies within 4.5 standard errors: a false alarm with a probability of less than 5e-5.
    """
    family = kind(7, 3)
    channel = KSubset("window", 2.0, family, heaviest(2.0, family))
    checks.check_channel(channel)
    labels = [f"c{k}" for k in range(7)]
    schema = hd.Schema([hd.Categorical("c", labels)])
    survey = hd.Survey.from_questions(schema, epsilon=2.0, sampled=1, questions=[hd.Question((0,), channel)])
    frequencies = np.array([5, 10, 15, 20, 25, 15, 10])
    records = pa.table({"c": np.repeat(labels, 200 * frequencies)})
    answer = simulate_tally(records, survey, seed=7).estimate()
    assert np.abs((answer.value - frequencies / 100) / answer.standard_error).max() < 4.5
