"""What executors do, without a cluster: vectors, batches of any shape, parts of files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.client import Client
from hdr4me.engines.spark_perturb import report_batches, write_part
from hdr4me.engines.spark_session import raise_fault, rows_of
from hdr4me.engines.spark_tally import (
    SCHEMA,
    Split,
    add_partials,
    count_batches,
    count_splits,
    from_vector,
)
from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.io import Reason, write_reports
from hdr4me.io.arrow import schema_of
from hdr4me.io.blocks import to_wire
from hdr4me.survey import Survey
from hdr4me.tally import Tally


def frame(values: list[bytes | None] | list[str | None], kind: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["report"])


def finish(batches: Iterable[pa.RecordBatch], survey: Survey) -> tuple[Tally, list[dict[str, str]]]:
    """The tally and the rejected rows of an executor's output."""
    table = pa.Table.from_batches(list(batches), schema=rows_of(SCHEMA).schema)
    faults = [text for text in table["fault"].to_pylist() if text]
    if faults:
        raise_fault(faults[0])
    (partial,) = [value for value in table["partial"].to_pylist() if value]
    bad = [row for row in table.select(["reason", "where", "content"]).to_pylist() if row["reason"]]
    return from_vector(np.frombuffer(partial, "<i8"), survey), bad


def test_binary_rows_of_any_size_are_sorted_out(mixed: Survey, some_reports: np.ndarray) -> None:
    flat, starts = to_wire(some_reports[:50], mixed)
    good = [flat[a:b].tobytes() for a, b in pairwise(starts.tolist())]
    code = good[0][:2] + b"\xff" + good[0][3:]
    in_memory = some_reports[0].tobytes()[:2] + b"\xff" + some_reports[0].tobytes()[3:]
    values = [None, *good[:20], b"", good[0] + b"\0", *good[20:], good[0][:-1], code]
    batches = [frame(values[:7], pa.binary()), frame([], pa.binary()), frame(values, pa.binary()).slice(7)]
    tally, bad = finish(count_batches(batches, mixed, keep=True, where="here"), mixed)
    expected = Tally(mixed).add_block(some_reports[:50])
    assert np.array_equal(tally.counts, expected.counts)
    assert tally.n_reports == 50
    assert tally.rejected == {Reason.MISSING.text: 1, Reason.SIZE.text: 3, Reason.CODE.text: 1}
    assert {row["where"]: (row["reason"], row["content"]) for row in bad} == {
        "here, row 1": (Reason.MISSING.text, ""),
        "here, row 22": (Reason.SIZE.text, ""),
        "here, row 23": (Reason.SIZE.text, (good[0] + b"\0").hex()),
        "here, row 54": (Reason.SIZE.text, good[0][:-1].hex()),
        "here, row 55": (Reason.CODE.text, in_memory.hex()),
    }


@pytest.mark.parametrize("kind", ["binary", "large_binary", "fixed"])
def test_columns_of_every_binary_type(even: Survey, simulate: Any, kind: str) -> None:
    """Spark uses large types if configured to."""
    reports = simulate(even, 100, lambda j, users: np.zeros(len(users)), np.random.default_rng(3))
    types = {"binary": pa.binary(), "large_binary": pa.large_binary(), "fixed": pa.binary(even.report_size)}
    values = [None, *(row.tobytes() for row in reports)]
    tally, bad = finish(
        count_batches([frame(values, types[kind]).slice(1)], even, keep=True, where="here"), even
    )
    assert (tally, bad) == (Tally(even).add_block(reports), [])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_columns_of_every_text_type(mixed: Survey, kind: Any) -> None:
    reports = [Client(mixed).report({"age": 30 + i}) for i in range(5)]
    rows = [report.to_json() for report in reports]
    tally, _ = finish(count_batches([frame(rows, kind)], mixed, keep=True, where="here"), mixed)
    assert tally == Tally(mixed).add(reports)


def test_json_rows_are_read_as_lines_are(mixed: Survey, other: Survey) -> None:
    reports = [Client(mixed).report({"age": 30 + i}) for i in range(5)]
    foreign = Client(other).report({}).to_json()
    rows = [*(report.to_json() for report in reports), " ", None, "{", foreign, "x" * 10_000]
    tally, bad = finish(count_batches([frame(rows, pa.string())], mixed, keep=True, where="here"), mixed)
    expected = Tally(mixed).add(reports)
    assert np.array_equal(tally.counts, expected.counts)
    assert tally.rejected == {Reason.MISSING.text: 1, Reason.MALFORMED.text: 2, Reason.FOREIGN.text: 1}
    assert [row["where"] for row in bad] == [f"here, row {i}" for i in (7, 8, 9, 10)]
    assert max(len(row["content"]) for row in bad) < 10_000


def test_rejected_rows_are_handed_on_in_batches(mixed: Survey) -> None:
    batches = list(count_batches([frame([None] * 10_000, pa.binary())], mixed, keep=True, where="here"))
    assert max(batch.num_rows for batch in batches) == 4096
    assert len(finish(batches, mixed)[1]) == 10_000


def test_without_a_quarantine_bad_rows_are_only_counted(mixed: Survey) -> None:
    tally, bad = finish(count_batches([frame([None] * 9, pa.binary())], mixed, keep=False, where=""), mixed)
    assert (tally.rejected, bad) == ({Reason.MISSING.text: 9}, [])


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 50])
def test_any_cut_of_a_file_gives_its_tally(
    mixed: Survey, some_reports: np.ndarray, tmp_path: Path, pieces: int
) -> None:
    path = tmp_path / "r.parquet"
    bad = some_reports.copy()
    bad[::100, 2] = 255
    with write_reports(path, mixed) as writer:
        for block in np.array_split(bad, 10):
            writer.write(block)
    assert pq.read_metadata(path).num_row_groups == 10
    cuts = np.linspace(0, path.stat().st_size, pieces + 1).astype(int).tolist()
    outputs, kept = [], []
    for start, stop in itertools.pairwise(cuts):
        output = list(count_splits([Split(str(path), start, stop)], mixed, keep=True))
        kept += finish(output, mixed)[1]
        outputs += output
    tally, _ = finish(add_partials(outputs), mixed)
    assert tally == Tally(mixed).add_file(path)
    # The place is the row's in its file, wherever the file was cut.
    assert sorted(int(row["where"].rpartition(" ")[2]) for row in kept) == list(range(1, 1001, 100))


def test_a_text_file_is_read_by_its_first_part_alone(
    mixed: Survey, some_reports: np.ndarray, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    with write_reports(path, mixed) as writer:
        writer.write(some_reports)
    halves = [Split(str(path), 0, 1000), Split(str(path), 1000, 10**9)]
    first, _ = finish(count_splits(halves[:1], mixed, keep=False), mixed)
    second, _ = finish(count_splits(halves[1:], mixed, keep=False), mixed)
    assert first == Tally(mixed).add_block(some_reports)
    assert second == Tally(mixed)


def test_faults_come_back_as_the_errors_they_are(mixed: Survey, other: Survey, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    with write_reports(path, other) as writer:
        writer.write(np.zeros((0, other.report_size), np.uint8))
    foreign = list(count_splits([Split(str(path), 0, 10**6)], mixed, keep=False))
    path.write_bytes(path.read_bytes()[:-9])
    broken = list(count_splits([Split(str(path), 0, 10**6)], mixed, keep=False))
    with pytest.raises(FingerprintMismatch, match=r"r\.parquet belongs to survey") as caught:
        finish(add_partials(foreign), mixed)
    assert (caught.value.expected, caught.value.found) == (mixed.fingerprint, other.fingerprint)
    with pytest.raises(FormatError, match="not a complete Parquet file"):
        finish(add_partials(broken), mixed)


def test_no_partials_add_to_nothing() -> None:
    assert list(add_partials([])) == []


def test_reports_leave_as_a_binary_column(mixed: Survey) -> None:
    records = pa.RecordBatch.from_pydict(
        {"age": [20.0, None], "debt": [-3, 4], "colour": ["red", "no such"], "pet": ["cat", None]}
    )
    (batch,) = report_batches([records], mixed)
    assert batch.column(0).type == pa.binary()
    tally, bad = finish(count_batches([batch], mixed, keep=True, where=""), mixed)
    assert (tally.n_reports, bad) == (2, [])


def test_each_attempt_writes_a_file_of_its_own(mixed: Survey, tmp_path: Path) -> None:
    records = pa.RecordBatch.from_pydict({"age": [20.0], "debt": [-3], "colour": ["red"], "pet": ["cat"]})
    names = [next(iter(write_part([records], mixed, str(tmp_path), 7))).to_pylist()[0] for _ in range(2)]
    assert names[0]["name"] != names[1]["name"]
    assert {row["name"] for row in names} == {path.name for path in tmp_path.iterdir()}
    assert pq.read_schema(tmp_path / names[0]["name"]).equals(schema_of(mixed), check_metadata=True)
    assert list(write_part([records.slice(0, 0)], mixed, str(tmp_path), 8)) == []
    assert len(list(tmp_path.iterdir())) == 2
