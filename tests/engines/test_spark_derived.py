"""Joint questions and buckets on Spark: the same law as on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2_contingency

import hdr4me as hd

pytestmark = pytest.mark.spark


def test_spark_and_local_have_the_same_law(spark_session: Any, tmp_path: Path) -> None:
    """50,000 reports of each: chi-square of all cells; the randomness is the system's, a false alarm in 10⁶ runs."""
    schema = hd.Schema([hd.Categorical("sex", ["f", "m"]), hd.Bucket("age", [0, 18, 65, 120])])
    survey = hd.Survey(hd.table_schema(schema), epsilon=1.0)
    rng = np.random.default_rng(1)
    people = pa.table(
        {"age": rng.uniform(0, 120, 50_000), "sex": rng.choice(["f", "m"], 50_000, p=[0.3, 0.7])}
    )
    pq.write_table(people, tmp_path / "people.parquet")
    counts = []
    for engine, name in ((hd.engines.Local(), "local.parquet"), (hd.engines.spark(spark_session), "spark")):
        engine.perturb(tmp_path / "people.parquet", survey, tmp_path / name)
        counts.append(np.asarray(engine.tally(tmp_path / name, survey).counts).ravel())
    assert chi2_contingency(np.array(counts)[:, counts[0] > 0]).pvalue > 1e-6
