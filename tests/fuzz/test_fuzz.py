"""A short run of every fuzzer, with fixed seeds: benchmarks/fuzz.py is the long one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import fuzz
from fuzzing import documents, mutate, reports

SEEDS = {
    "json": range(6),
    "parquet": range(2),
    "arrow": range(2),
    "tables": range(25),
    "survey": range(150),
    "tally": range(5),
    "ledger": range(6),
    "csv": range(4),
}


def test_every_fuzzer_is_run() -> None:
    assert set(SEEDS) == set(fuzz.TARGETS)


@pytest.mark.parametrize("target", SEEDS)
def test_several_hundred_mutants(target: str, tmp_path: Path) -> None:
    """No exception but the package's own, no wrong count; a hang or a signal would end the test run."""
    assert sum(fuzz.run_seed(target, 1000 + seed, tmp_path) for seed in SEEDS[target]) > 20


def test_a_seed_makes_the_same_mutants() -> None:
    made = [[mutate.change_bytes(bytes(100), Random(7)), reports.some_line(Random(7))] for _ in range(2)]
    assert made[0] == made[1]


# -- the fuzzers find what they look for ---------------------------------------------------------------------------


def test_a_reader_that_loses_reports_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that does not look at the row count of the footer, and a flip that makes all rows vanish."""
    from hdr4me.engines import spark_tally
    from hdr4me.io import parquet

    def as_before(path: Path, survey: object, block_rows: int, *, part: object = None) -> object:
        import pyarrow.parquet as pq

        with (
            parquet.file_errors(path, "Parquet"),  # type: ignore[attr-defined]
            pq.ParquetFile(str(path), page_checksum_verification=True) as file,
        ):
            parquet.check_schema(path, file.schema_arrow, survey)  # type: ignore[attr-defined]
            for batch in file.iter_batches(batch_size=block_rows):
                batch.validate(full=True)
                yield from parquet._column_blocks(path, batch.column(0), survey, 0)  # type: ignore[arg-type]

    def flip_in_the_page_header(data: bytes, _: Random) -> bytes:
        return data[:5] + bytes([data[5] ^ 1]) + data[6:]

    monkeypatch.setattr(reports, "flip", flip_in_the_page_header)
    fuzz.run_seed("parquet", 1, tmp_path)
    monkeypatch.setattr(parquet, "read_parquet", as_before)
    monkeypatch.setattr(spark_tally, "read_parquet", as_before)
    with pytest.raises(reports.Wrong, match="one flipped bit"):
        fuzz.run_seed("parquet", 1, tmp_path)


def test_a_leaking_survey_is_found() -> None:
    class Leaky:
        kind = "table"
        rows = ((3 << 30, 1 << 30), (1 << 30, 3 << 30))

    class Question:
        channel = Leaky()

    class Leaking:
        sampled, epsilon, questions = 1, 1.0, (Question(),)

    with pytest.raises(reports.Wrong, match=r"ratio 3\.0"):
        documents._prove(Leaking())  # type: ignore[arg-type]
