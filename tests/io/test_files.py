"""Files of reports: the properties of each format."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.io import Quarantine, Reason, Rejected, read_reports, write_reports
from hdr4me.io.arrow import schema_of
from hdr4me.io.lines import longest_line
from hdr4me.survey import Survey


def test_the_suffix_decides_when_writing(mixed: Survey, tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"\.parquet"), write_reports(tmp_path / "a.txt", mixed):
        pytest.fail("the block must not run")


def test_the_first_bytes_decide_when_reading(mixed: Survey, some_reports: np.ndarray, tmp_path) -> None:
    with write_reports(tmp_path / "a.arrow", mixed) as writer:
        writer.write(some_reports)
    (tmp_path / "a.arrow").rename(tmp_path / "a.jsonl")
    assert np.array_equal(np.concatenate(list(read_reports(tmp_path / "a.jsonl", mixed))), some_reports)
    (tmp_path / "b.parquet").write_bytes(b"plain text")
    with pytest.raises(FormatError, match="not a complete parquet file"):
        read_reports(tmp_path / "b.parquet", mixed)


def bad_files(survey: Survey) -> dict[str, pa.Table]:
    schema = schema_of(survey)
    good = pa.table({"report": pa.array([b"\0" * survey.report_size], schema.field(0).type)}, schema=schema)
    metadata = dict(schema.metadata)
    of_bytes = f"of {survey.report_size} bytes" if survey.fixed_size else "'report', of bytes"
    return {
        "metadata lacks": good.replace_schema_metadata({}),
        "version '9'": good.replace_schema_metadata({**metadata, b"hdr4me.version": b"9"}),
        "version 'none'": good.replace_schema_metadata({b"hdr4me.format": b"hdr4me-reports"}),
        "one column": good.append_column("more", pa.array([1])).replace_schema_metadata(metadata),
        of_bytes: pa.table({"report": pa.array([b"abc"], pa.binary(3))}).replace_schema_metadata(metadata),
        "'report', of": pa.table({"report": pa.array([[1]])}).replace_schema_metadata(metadata),
    }


def write_arrow(table: pa.Table, path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("name", ["mixed", "even"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_files_that_break_a_promise(request: pytest.FixtureRequest, name: str, tmp_path, suffix: str) -> None:
    path, survey = tmp_path / f"a.{suffix}", request.getfixturevalue(name)
    for message, table in bad_files(survey).items():
        (pq.write_table if suffix == "parquet" else write_arrow)(table, path)
        with pytest.raises(FormatError, match=message):
            list(read_reports(path, survey))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_reports_of_a_wrong_length_are_rejected_one_by_one(
    mixed: Survey, some_reports: np.ndarray, wire, tmp_path, suffix: str
) -> None:
    """On the wire a report is as long as its questions say: shorter, longer and empty ones are not counted."""
    first, second = wire(some_reports[:2], mixed)
    rows = [first, first[:-1], second + b"\0", b"", second, first + second]
    schema = schema_of(mixed)
    table = pa.table({"report": pa.array(rows, schema.field(0).type)}, schema=schema)
    path = tmp_path / f"a.{suffix}"
    (pq.write_table if suffix == "parquet" else write_arrow)(table, path)
    seen: list[Rejected] = []
    blocks = list(read_reports(path, mixed, on_rejected=seen.append))
    assert np.array_equal(np.concatenate(blocks), some_reports[:2])
    assert [(r.reason, r.where) for r in seen] == [
        (Reason.SIZE, f"{path}, row {row}") for row in (2, 3, 4, 6)
    ]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_nulls_are_rejected_one_by_one(
    mixed: Survey, some_reports: np.ndarray, wire, tmp_path, suffix: str
) -> None:
    first, second = wire(some_reports[:2], mixed)
    rows = [first, None, second, None]
    schema = schema_of(mixed)
    nullable = pa.schema([schema.field(0).with_nullable(True)], metadata=schema.metadata)
    table = pa.table({"report": pa.array(rows, schema.field(0).type)}, schema=nullable)
    path = tmp_path / f"a.{suffix}"
    (pq.write_table if suffix == "parquet" else write_arrow)(table, path)
    seen: list[Rejected] = []
    blocks = list(read_reports(path, mixed, on_rejected=seen.append, block_rows=3))
    assert np.array_equal(np.concatenate(blocks), some_reports[:2])
    assert [(r.reason, r.where) for r in seen] == [
        (Reason.MISSING, f"{path}, row 2"),
        (Reason.MISSING, f"{path}, row 4"),
    ]
    with pytest.raises(FormatError, match="row 2: missing"):
        list(read_reports(path, mixed))


def test_a_handler_that_fails_is_not_a_broken_file(mixed: Survey, tmp_path) -> None:
    schema = schema_of(mixed)
    nullable = pa.schema([schema.field(0).with_nullable(True)], metadata=schema.metadata)
    pq.write_table(
        pa.table({"report": pa.array([None], schema.field(0).type)}, schema=nullable), tmp_path / "a.parquet"
    )

    def full(_: Rejected) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        list(read_reports(tmp_path / "a.parquet", mixed, on_rejected=full))


def test_flipped_bits_in_parquet_are_noticed(mixed: Survey, some_reports: np.ndarray, tmp_path) -> None:
    """Page checksums: a changed byte inside a page is an error, not another report."""
    path = tmp_path / "a.parquet"
    with write_reports(path, mixed) as writer:
        writer.write(some_reports)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="not a complete Parquet file"):
        list(read_reports(path, mixed))


def test_lines_longer_than_any_report(mixed: Survey, some_reports: np.ndarray, tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    with write_reports(path, mixed) as writer:
        writer.write(some_reports[:2])
    good = path.read_bytes().splitlines(keepends=True)
    limit = longest_line(mixed)
    path.write_bytes(
        good[0] + b"[" * (3 * limit) + b"\n\n" + b" " * (limit + 2) + b"\n" + good[1].rstrip(b"\n")
    )
    seen: list[Rejected] = []
    blocks = list(read_reports(path, mixed, on_rejected=seen.append))
    assert np.array_equal(np.concatenate(blocks), some_reports[:2])
    assert [r.reason for r in seen] == [Reason.MALFORMED]
    assert len(seen[0].content) <= limit


def test_white_space_alone_is_an_empty_file(mixed: Survey, tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text("\n  \n")
    with pytest.raises(FormatError, match="is empty"):
        list(read_reports(tmp_path / "a.jsonl", mixed))


def test_the_longest_report_fits(all_sent: Survey) -> None:
    from hdr4me.io.report import Report

    longest = Report(
        all_sent.fingerprint, tuple((65535, *[255] * (all_sent.slot_size - 2)) for _ in range(4))
    )
    assert 2 * len(longest.to_json()) <= longest_line(all_sent)


def test_a_file_of_another_survey_altogether(
    mixed: Survey, other: Survey, some_reports: np.ndarray, tmp_path
) -> None:
    path = tmp_path / "a.jsonl"
    with write_reports(path, mixed) as writer:
        writer.write(some_reports[:3])
    seen: list[Rejected] = []
    with pytest.raises(FingerprintMismatch, match=mixed.fingerprint[:12]):
        list(read_reports(path, other, on_rejected=seen.append))
    assert len(seen) == 3


def test_no_quarantine_without_bad_reports(tmp_path) -> None:
    with Quarantine(tmp_path / "bad.jsonl") as quarantine:
        pass
    assert quarantine.n_written == 0
    assert not list(tmp_path.iterdir())


def test_a_quarantine_is_written_atomically(tmp_path) -> None:
    def fail() -> None:
        with Quarantine(tmp_path / "bad.jsonl") as quarantine:
            quarantine(Rejected(Reason.CODE, "row 1", "00"))
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert not list(tmp_path.iterdir())
