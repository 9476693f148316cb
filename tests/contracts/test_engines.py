"""One suite for every engine: a new engine joins by a line in the fixture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from hdr4me.channels import KSubset, Table
from hdr4me.channels.subset import Subset
from hdr4me.errors import FingerprintMismatch
from hdr4me.io import write_reports
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey
from hdr4me.tally import Tally

HALF = 1 << 31


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Any:
    """Every engine: an object with perturb(survey, records, target) and tally(survey, sources)."""
    from hdr4me.engines import Local, spark

    if request.param == "spark":
        return spark(request.getfixturevalue("spark_session"))
    return Local(threads=2)


@pytest.fixture(scope="module")
def survey() -> Survey:
    """Three numbers and one category, two sent by each user, by coins at ratio 3."""
    coin = ((3 * HALF // 2, HALF // 2), (HALF // 2, 3 * HALF // 2))
    number = Table("coin", 1.1, {"value": (-2.0, 2.0)}, coin)
    category = KSubset("grr", 1.1, Subset(2, 1), coin[0][0])
    schema = Schema([*(Numeric(f"x{j}", 0, 1) for j in range(3)), Categorical("c", ["a", "b"])])
    questions = [Question((j,), category if j == 3 else number) for j in range(4)]
    return Survey.from_questions(schema, epsilon=2.2, sampled=2, questions=questions)


def records(n: int) -> pa.Table:
    """Constant columns, so that the law of every count is known; x1 is missing and has its default, 1/2."""
    return pa.table({"x0": [0.9] * n, "x1": pa.nulls(n, pa.float64()), "x2": [-5.0] * n, "c": ["b"] * n})


def test_records_become_reports_become_counts(engine: Any, survey: Survey, tmp_path: Path) -> None:
    n = 20_000
    pq.write_table(records(n), tmp_path / "records.parquet", row_group_size=3_000)
    engine.perturb(
        tmp_path / "records.parquet", survey, tmp_path / "reports.parquet", on_quality=lambda quality: None
    )
    tally = engine.tally([tmp_path / "reports.parquet"], survey)
    assert (tally.n_reports, tally.rejected) == (n, {})
    totals = tally.counts.reshape(4, 2).sum(1)
    assert totals.sum() == 2 * n
    # Nine exact tests at 1e-9 each: false alarm once in a hundred million runs (an engine has no seed, by design).
    for total in totals.tolist():
        assert stats.binomtest(total, n, 0.5).pvalue > 1e-9
    high = [0.25 + 0.5 * u for u in (0.9, 0.5, 0.0, 1.0)]
    for j, p in enumerate(high):
        assert stats.binomtest(int(tally.counts[2 * j + 1]), int(totals[j]), p).pvalue > 1e-9


def test_any_split_into_files_gives_the_same_tally(engine: Any, survey: Survey, tmp_path: Path) -> None:
    n = 3_000
    engine.perturb(records(n), survey, tmp_path / "all.parquet", on_quality=lambda quality: None)
    column = pq.read_table(tmp_path / "all.parquet")["report"]
    rows = np.array([list(row) for row in column.to_pylist()], np.uint8)
    parts = []
    for i, part in enumerate(np.array_split(rows, 5)):
        parts.append(tmp_path / f"part{i}.parquet")
        with write_reports(parts[-1], survey) as writer:
            writer.write(part)
    whole = engine.tally([tmp_path / "all.parquet"], survey)
    assert engine.tally(parts, survey) == whole
    assert engine.tally(parts[::-1], survey) == whole
    assert whole == Tally(survey).add_block(rows)


def test_bad_reports_are_counted_by_reason(engine: Any, survey: Survey, tmp_path: Path) -> None:
    good = [0, 0, 1, 3, 0, 0]
    bad = [[0, 0, 7, 3, 0, 0], [3, 0, 0, 0, 0, 1], [9, 0, 0, 10, 0, 0]]
    with write_reports(tmp_path / "r.parquet", survey) as writer:
        writer.write(np.array([good, *bad, good], np.uint8))
    tally = engine.tally([tmp_path / "r.parquet"], survey)
    assert tally.n_reports == 2
    assert sum(tally.rejected.values()) == 3
    assert len(tally.rejected) == 3
    assert tally.counts.tolist() == [0, 2, 0, 0, 0, 0, 2, 0]


def test_nothing_gives_the_identity(engine: Any, survey: Survey) -> None:
    assert engine.tally([], survey) == Tally(survey)


def test_another_surveys_reports_are_refused(engine: Any, survey: Survey, tmp_path: Path) -> None:
    other = Survey.from_questions(
        survey.schema, epsilon=survey.epsilon, sampled=2, questions=survey.questions, name="another"
    )
    engine.perturb(records(10), other, tmp_path / "other.parquet", on_quality=lambda quality: None)
    with pytest.raises(FingerprintMismatch) as caught:
        engine.tally([tmp_path / "other.parquet"], survey)
    assert survey.fingerprint[:12] in str(caught.value)
    assert other.fingerprint[:12] in str(caught.value)
