"""The quarantine: limited, and it says what it left out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from hdr4me.engines import spark_tally
from hdr4me.io import Quarantine, Reason, Rejected
from hdr4me.survey import Survey


def test_beyond_its_limit_a_quarantine_counts(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    with Quarantine(path, limit_bytes=2000) as quarantine:
        for row in range(1000):
            reason = Reason.CODE if row % 10 == 0 else Reason.MISSING
            quarantine(Rejected(reason, f"row {row}", "00"))
    *kept, code, missing = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(kept) == quarantine.n_written < 40
    assert quarantine.n_written + quarantine.left_out.total() == 1000
    assert [code["reason"], missing["reason"]] == [Reason.CODE.text, Reason.MISSING.text]
    assert code["content"] == f"{quarantine.left_out[Reason.CODE.text]} reports"
    assert path.stat().st_size < 2400


def test_one_report_larger_than_the_limit(tmp_path: Path) -> None:
    with Quarantine(tmp_path / "bad.jsonl", limit_bytes=100) as quarantine:
        quarantine(Rejected(Reason.MALFORMED, "row 1", "x" * 1000))
        quarantine(Rejected(Reason.MALFORMED, "row 2", "x"))
    assert quarantine.left_out == Counter({Reason.MALFORMED.text: 2})
    (line,) = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert json.loads(line)["content"] == "2 reports"


def test_an_executor_counts_beyond_the_limit_too(mixed: Survey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tally, "QUARANTINE_BYTES", 2000)
    column = pa.RecordBatch.from_arrays([pa.nulls(10_000, pa.binary())], names=["report"])
    *bad, last = spark_tally.count_batches([column], mixed, keep=True, where="here")
    rows = [row for batch in bad for row in batch.to_pylist()]
    assert len(rows) < 150
    assert rows[-1]["where"] == "beyond the quarantine's limit"
    assert int(rows[-1]["content"].split()[0]) + len(rows) - 1 == 10_000
    assert last.column("partial")[0].is_valid
