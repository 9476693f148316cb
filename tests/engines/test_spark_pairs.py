"""Two answers of one report counted together: the same bits on Spark, by its executors and on one machine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.engines.spark_tally import Split, add_partials, count_batches, count_splits
from hdr4me.engines.spark_tally import pairs_from_vector as from_vector
from hdr4me.errors import FormatError, InvalidInput

PAIRS = [("a", "b"), ("b", "c")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of reports of one survey, in three formats."""
    schema = hd.Schema([hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1), hd.Categorical("c", ["x", "y", "z"])])
    survey = hd.Survey(schema, 4.0, sampled=2)
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(1)
    paths = []
    for name in ("one.parquet", "two.arrow", "three.jsonl"):
        records = pa.table({"a": rng.random(400), "b": rng.random(400), "c": rng.choice(list("xyz"), 400)})
        Local(threads=1).perturb(records, survey, folder / name)
        paths.append(folder / name)
    return survey, paths


def partial(batches, survey):
    (row,) = list(add_partials(batches))
    return from_vector(np.frombuffer(row.column("partial")[0].as_py(), "<i8"), survey, PAIRS)


def test_executors_count_what_one_machine_counts(files):
    survey, paths = files
    one = Local(threads=1).pair_counts(paths, survey, PAIRS)
    parts = [
        batch for path in paths for batch in count_splits([Split(str(path), 0, 10**9)], survey, names=PAIRS)
    ]
    assert partial(parts, survey).to_bytes() == one.to_bytes()
    assert one.n_answers("a", "b") + one.n_answers("b", "c") < 1200
    table = Local(threads=1).table(
        pa.table({"a": [0.5], "b": [0.1], "c": ["x"]}), survey, on_quality=lambda _: None
    )
    (batch,) = table.select(["report"]).to_batches()
    assert (
        sum(
            int(c[-1, -1])
            for c in partial(count_batches([batch], survey, names=PAIRS), survey).counts.values()
        )
        <= 1
    )


def test_a_folder_is_counted_and_a_broken_file_is_a_fault(files, tmp_path):
    survey, paths = files
    whole = Local(threads=1).pair_counts(paths[0].parent, survey, PAIRS)
    assert whole == Local(threads=1).pair_counts(paths, survey, PAIRS)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(paths[0].read_bytes()[:-20])
    (row,) = list(count_splits([Split(str(broken), 0, 10**9)], survey, names=PAIRS))
    assert "not a complete Parquet file" in row.column("fault")[0].as_py()
    with pytest.raises(FormatError):
        Local(threads=1).pair_counts(broken, survey, PAIRS)


@pytest.mark.spark
def test_spark_counts_the_same_bits(files, spark_session):
    survey, paths = files
    engine = hd.engines.spark(spark_session)
    one = Local(threads=1).pair_counts(paths, survey, PAIRS)
    assert engine.pair_counts(paths, survey, PAIRS).to_bytes() == one.to_bytes()
    frame = spark_session.read.parquet(str(paths[0])).repartition(3)
    assert engine.pair_counts(frame, survey, PAIRS) == Local(threads=1).pair_counts(paths[0], survey, PAIRS)
    assert engine.pair_counts([], survey, PAIRS).n_answers("a", "b") == 0
    with pytest.raises(InvalidInput, match="no dimension is called"):
        engine.pair_counts(paths, survey, [("a", "nobody")])
