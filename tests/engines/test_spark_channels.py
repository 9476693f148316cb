"""Every channel kind on Spark beside one machine: the same reports give the same counts, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.engines import Local, Spark, spark
from hdr4me.io import DataQuality, write_reports
from hdr4me.survey import Categorical, Numeric, Question, Schema, Selection, Survey, Vector, category_file

pytestmark = pytest.mark.spark

N = 3000
LONG = [f"w{i}" for i in range(5000)]
_RNG = np.random.default_rng(5)
SELECTED: list[list[str]] = [["de", "en"] if i % 3 else [] for i in range(N)]
SELECTED[1::30] = [["de", "en", "fr"]] * len(SELECTED[1::30])  # one choice too many
SELECTED[2::30] = [["xx", "de", "en"]] * len(SELECTED[2::30])  # one that is no category
VECTORS: list[list[float] | None] = [[0.6, -0.3, 0.0] if i % 2 else [3.0, 4.0, 0.0] for i in range(N)]
VECTORS[0::30] = [[0.6, float("nan"), 0.0]] * len(VECTORS[0::30])
VECTORS[10::30] = [[1.0]] * len(VECTORS[10::30])  # of a wrong length
VECTORS[20::60] = [None] * len(VECTORS[20::60])
RECORDS = pa.table(
    {
        "x": ["nowhere" if i % 50 == 9 else f"c{c}" for i, c in enumerate(_RNG.integers(0, 40, N))],
        "large": _RNG.integers(0, 300, N).astype(str),
        "larger": _RNG.integers(0, 300, N).astype(str),
        "word": [LONG[i] for i in _RNG.integers(0, 20, N)],
        "spoken": SELECTED,
        "age": pa.array([float(a) if i % 4 else None for i, a in enumerate(_RNG.integers(0, 100, N))]),
        "a": _RNG.random(N),
        "b": _RNG.random(N),
        **{f"s{j}": _RNG.choice([-1.0, 1.0], N, p=[0.2, 0.8]) for j in range(70)},
        "direction": VECTORS,
        "move": VECTORS,
    }
)
BLOCK = [f"s{j}" for j in range(70)]
X = Categorical("x", [f"c{i}" for i in range(40)])
LARGE = Categorical("large", range(300))
SURVEYS = {
    "subset": Survey(Schema([X]), epsilon=1.0, categorical="subset"),
    "projective": Survey(Schema([LARGE]), epsilon=2.0, categorical="projective"),
    "large randomized response": Survey(
        Schema([Categorical("larger", range(300))]), epsilon=8.0, categorical="grr"
    ),
    "PrivSet": Survey(Schema([Selection("spoken", ["de", "en", "fr", "it"], 2)]), epsilon=2.0),
    "optional": Survey(Schema([Numeric("age", 0, 100, optional=True)]), epsilon=1.0),
    "pair": Survey(
        Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), epsilon=1.0, pair_questions=[("a", "b")]
    ),
    "block": Survey(Schema([Numeric(x, -1, 1) for x in BLOCK]), epsilon=8.0, block_questions=[BLOCK]),
    "vector": Survey(Schema([Vector("direction", 3)]), epsilon=4.0),
    "optional vector": Survey(Schema([Vector("move", 3, optional=True)]), epsilon=4.0),
    "list kept by hash": Survey(Schema([Categorical("word", LONG, file="words.txt")]), epsilon=4.0),
}


@pytest.fixture(scope="module")
def engine(spark_session: Any) -> Spark:
    return spark(spark_session)


def together() -> Survey:
    """One survey with a question of each kind, one of which is asked of each user."""
    dimensions = [dimension for survey in SURVEYS.values() for dimension in survey.schema]
    questions, at = [], 0
    for survey in SURVEYS.values():
        size = len(survey.schema)
        questions.append(Question(tuple(range(at, at + size)), survey.questions[0].channel))
        at += size
    return Survey.from_questions(Schema(dimensions), epsilon=8.0, sampled=1, questions=questions)


def test_the_same_counts_from_the_same_reports(engine: Spark, tmp_path: Path) -> None:
    """Every kind in one file, one report in seven with codes that are no output."""
    survey = together()
    rows = np.concatenate(list(Local().reports(RECORDS, survey, on_quality=lambda quality: None)))
    rows[::7, 2:] = 255
    path = tmp_path / "r.parquet"
    with write_reports(path, survey) as writer:
        writer.write(rows)
    here, there = Local(threads=1).tally([path], survey), engine.tally(path, survey)
    assert sum(here.rejected.values()) > N // 10
    assert N // 2 < here.n_reports < N
    assert there == here
    assert there.counts.tobytes() == here.counts.tobytes()


def test_reports_made_on_spark_answer_the_survey(
    engine: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records become reports in workers, which have no file of categories; estimates within 7 sigma of the truth.

    Values that are wrong are cleaned as on a device and counted as on one machine: an unknown category, an empty
    selection, too many choices, a choice that is none, vectors with NaN, of a wrong length, too long or missing.
    """
    monkeypatch.setattr(category_file, "_known", {})
    survey = together()
    source = tmp_path / "records.parquet"
    pq.write_table(RECORDS, source)
    accounts: list[DataQuality] = []
    frame = engine.perturb(engine.session.read.parquet(str(source)), survey, on_quality=accounts.append)
    assert accounts[0].rows() == Local(threads=1).data_quality(RECORDS, survey).rows()
    counted = {row["column"]: row for row in accounts[0].rows()}
    assert counted["x"]["unknown"] == 60
    assert counted["spoken"] == {
        "column": "spoken",
        "read": N,
        "missing": 0,
        "unknown": 0,
        "low": 100,
        "high": 100,
    }
    assert counted["direction"]["missing"] == 50
    assert counted["direction"]["unknown"] == 200  # NaN, and a wrong length
    assert counted["direction"]["high"] == 1250  # a norm above the limit
    assert counted["move"] == counted["direction"] | {"column": "move"}
    assert counted["age"]["missing"] == 750
    tally = engine.tally(frame, survey)
    assert tally.n_reports == N
    answer = tally.estimate()
    rows = list(zip(answer.statistics, answer.dimensions, answer.categories, strict=True))
    for kind in SURVEYS:
        for row, value in _truth(kind).items():
            at = rows.index(row)
            assert abs(answer.value[at] - value) < 7 * answer.standard_error[at]


def _truth(kind: str) -> dict[tuple[str, str, str | None], float]:
    columns = {name: RECORDS.column(name).to_pylist() for name in RECORDS.column_names}
    share = {name: columns[name].count(columns[name][0]) / N for name in ("x", "large", "larger", "word")}
    if kind in ("subset", "projective", "large randomized response", "list kept by hash"):
        name = SURVEYS[kind].schema.names[0]
        return {("frequency", name, columns[name][0]): share[name]}
    if kind == "PrivSet":
        two = sum(1 for i in range(N) if i % 3) / N
        return {("chosen", "spoken", "de"): two, ("number chosen", "spoken", None): 2 * two}
    if kind == "optional":
        ages = [a for a in columns["age"] if a is not None]
        return {("mean", "age", None): sum(ages) / len(ages)}
    if kind == "vector":  # as a device cleans them
        cleaned = np.array([Vector("direction", 3).clean(value) for value in VECTORS])
        return {("mean", "direction", str(j)): value for j, value in enumerate(cleaned.mean(axis=0).tolist())}
    if kind == "optional vector":
        points = np.array([Vector("move", 3, optional=True).point(value) for value in VECTORS])
        there = points[:, 3] == 0
        truth: dict[tuple[str, str, str | None], float] = {("share", "move", None): float(there.mean())}
        means = points[there, :3].mean(axis=0).tolist()
        return truth | {("mean", "move", str(j)): value for j, value in enumerate(means)}
    names = BLOCK if kind == "block" else ["a", "b"]
    return {("mean", name, None): sum(columns[name]) / N for name in names}
