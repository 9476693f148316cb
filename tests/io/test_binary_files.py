"""Parquet and Arrow files that lie, change or are damaged: an error or the same counts, with bounded memory."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from hdr4me.engines.spark_session import raise_fault
from hdr4me.engines.spark_tally import Split, count_splits
from hdr4me.errors import FormatError
from hdr4me.io import Reason, Rejected, read_reports, write_reports
from hdr4me.io import parquet as parquet_module
from hdr4me.io.arrow import Broken, batches_of, schema_of, valid_bits
from hdr4me.io.blocks import MOST_REJECTED
from hdr4me.io.files import read_blocks
from hdr4me.io.parquet import Chunk, first_chunks, largest_page
from hdr4me.survey import Survey
from hdr4me.tally import Tally

BINARY = ["parquet", "arrow"]


def write(path: Path, survey: Survey, *blocks: np.ndarray) -> Path:
    with write_reports(path, survey) as writer:
        for block in blocks:
            writer.write(block)
    return path


def nullable(survey: Survey, values: list[bytes | None]) -> pa.Table:
    schema = schema_of(survey)
    loose = pa.schema([schema.field(0).with_nullable(True)], metadata=schema.metadata)
    return pa.table({"report": pa.array(values, schema.field(0).type)}, schema=loose)


def write_table(table: pa.Table, path: Path, **options: object) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, **options)  # type: ignore[arg-type]
    else:
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer,  # type: ignore[arg-type]
        ):
            writer.write_table(table)
    return path


# -- a file that changes while it is read ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", BINARY)
def test_what_was_read_is_not_the_file(
    mixed: Survey, some_reports: np.ndarray, tmp_path: Path, suffix: str
) -> None:
    """The bytes that are checked are the bytes that are counted, whatever happens to the file between the two."""
    path = write(tmp_path / f"a.{suffix}", mixed, some_reports)
    blocks = read_reports(path, mixed)
    block = next(blocks)
    before = block.copy()
    with path.open("r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
    assert np.array_equal(block, before)


def test_an_arrow_file_cut_while_it_is_read(mixed: Survey, some_reports: np.ndarray, tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", mixed, *np.array_split(some_reports, 20))
    blocks = read_reports(path, mixed, block_rows=10)
    next(blocks)
    os.truncate(path, 700)
    with pytest.raises(FormatError, match="was truncated"):
        list(blocks)


# -- promises ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", BINARY)
def test_no_flipped_bit_changes_a_count(
    mixed: Survey, some_reports: np.ndarray, tmp_path: Path, suffix: str
) -> None:
    """Every 23rd bit of a small file; benchmarks/fuzz.py flips all of them."""
    path = write(tmp_path / f"a.{suffix}", mixed, some_reports[:40], some_reports[40:50])
    content, whole = path.read_bytes(), Tally(mixed).add_file(path)
    # The flip that made 300 reports into none, without an error, and a spread of others.
    for bit in [40, *range(0, 8 * len(content), 23)]:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found = Tally(mixed).add_file(path)
        except FormatError:
            continue
        assert found == whole, f"bit {bit}"


def test_rows_are_compared_with_the_footer_on_executors_too(
    mixed: Survey, some_reports: np.ndarray, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.parquet", mixed, some_reports)
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    (batch,) = count_splits([Split(str(path), 0, len(content))], mixed, keep=False)
    (fault,) = batch.column("fault").to_pylist()
    with pytest.raises(FormatError, match=r"claims 1,000 reports and has|not a complete Parquet file"):
        raise_fault(fault)


def test_each_row_group_is_in_one_part(
    mixed: Survey, some_reports: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row group that claims to begin outside the file is not lost between the parts."""

    chunks = [Chunk(start, 0, 1) for start in (4, -9, 10**9, 60)]
    parts = [parquet_module._groups_in(chunks, 100, part) for part in ((0, 50), (50, 100))]
    assert parts == [[0], [1, 2, 3]]


@pytest.mark.parametrize("suffix", BINARY)
def test_zero_rows_and_zero_batches_are_empty(mixed: Survey, tmp_path: Path, suffix: str) -> None:
    path = write_table(nullable(mixed, []), tmp_path / f"a.{suffix}")
    with pytest.raises(FormatError, match="contains no reports"):
        Tally(mixed).add_file(path)


# -- many bad reports --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", BINARY)
def test_nulls_are_handed_on_as_they_come(mixed: Survey, tmp_path: Path, suffix: str) -> None:
    n = 100_000
    path = write_table(nullable(mixed, [None] * n), tmp_path / f"a.{suffix}")
    seen = 0
    tracemalloc.start()
    for block in read_blocks(path, mixed):
        assert len(block.rejected) <= MOST_REJECTED
        seen += len(block.rejected)
        assert len(block.rows) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == n
    assert peak < 16 << 20


@pytest.mark.parametrize("suffix", BINARY)
def test_row_numbers_after_nulls(
    mixed: Survey, some_reports: np.ndarray, wire, tmp_path: Path, suffix: str
) -> None:
    (good,), bad = wire(some_reports[:1], mixed), b"\xff" * 4  # two questions that nobody asked
    values = [None, good, bad, None, good, bad] * 2000
    path = write_table(nullable(mixed, values), tmp_path / f"a.{suffix}")
    seen: list[Rejected] = []
    tally = Tally(mixed).add_file(path, on_rejected=seen.append)
    assert tally.n_reports == 4000
    expected = {
        f"{path}, row {i}": Reason.MISSING if value is None else Reason.DIMENSION
        for i, value in enumerate(values, start=1)
        if value != good
    }
    assert {one.where: one.reason for one in seen} == expected


# -- bombs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_arrow_bodies_are_refused(mixed: Survey, tmp_path: Path, codec: str) -> None:
    table = nullable(mixed, [b"\0" * mixed.report_size] * 100_000)
    path = write_table(table, tmp_path / "a.arrow", compression=codec)
    with pytest.raises(FormatError, match="compressed"):
        Tally(mixed).add_file(path)


def test_a_parquet_file_may_not_promise_a_thousand_times_its_size(
    mixed: Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_module, "FREE_GROWTH", 0)
    path = write_table(nullable(mixed, [None] * 1_000_000), tmp_path / "a.parquet")
    with pytest.raises(FormatError, match=r"claims 1,000,000 reports in .* bytes"):
        Tally(mixed).add_file(path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_page_that_claims_to_be_large_is_refused(
    even: Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, dictionary: bool
) -> None:
    """The check runs before Arrow allocates memory."""
    rows: list[bytes | None] = [bytes([0, 0, i % 3]) + bytes(even.report_size - 3) for i in range(9000)]
    path = tmp_path / "a.parquet"
    options = {"data_page_version": version, "use_dictionary": dictionary, "compression": "zstd"}
    write_table(nullable(even, rows), path, **options)
    assert sum(len(block) for block in read_reports(path, even)) == 9000
    monkeypatch.setattr(parquet_module, "MOST_PAGE", 20)
    with pytest.raises(FormatError, match="smaller pages"):
        list(read_reports(path, even))


def varint(number: int) -> bytes:
    """A number that is not negative, as Thrift's compact protocol writes it."""
    value, out = number << 1, b""
    while value > 127:
        value, out = value >> 7, out + bytes([value & 127 | 128])
    return out + bytes([value])


def test_a_forged_page_header_is_refused_before_arrow_allocates_it(even: Survey, tmp_path: Path) -> None:
    """A small file with a correct footer and a page header that claims two gigabytes.

    Arrow would allocate them: its limits on Thrift strings and containers say nothing of the sizes of pages.
    """
    path = tmp_path / "a.parquet"
    rows: list[bytes | None] = [bytes(even.report_size)] * 9000
    write_table(nullable(even, rows), path, compression="zstd", use_dictionary=False, write_statistics=False)
    data, chunk = path.read_bytes(), pq.read_metadata(path).row_group(0).column(0)
    start, end = chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size
    assert data[start : start + 3] == b"\x15\x00\x15"  # a data page, and the field of its size
    honest = next(
        n for n in range(chunk.total_uncompressed_size, 0, -1) if data[start + 3 :].startswith(varint(n))
    )
    claimed = varint(2_000_000_000)
    after = start + 3 + len(varint(honest))
    stored = next(n for n in range(end - start, 0, -1) if data[after + 1 :].startswith(varint(n)))
    less = varint(stored - (len(claimed) - len(varint(honest))))
    head = (
        data[: start + 3]
        + claimed
        + data[after : after + 1]
        + less
        + data[after + 1 + len(varint(stored)) : end]
    )
    path.write_bytes(head[:end] + data[end:])
    allocated = pa.default_memory_pool().max_memory()
    with pytest.raises(FormatError, match="smaller pages"):
        list(read_reports(path, even))
    assert (pa.default_memory_pool().max_memory() or 0) < (allocated or 0) + (1 << 28)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\x15",
        b"\x15\x00\x15",
        b"\xff" * 30,
        b"\x1d" * 40,
        b"\x1c" * 40,
        b"\x19\xfc\xff\xff\xff\x7f" + b"\x1c" * 99,
    ],
    ids=lambda header: header[:3].hex(),
)
def test_page_headers_that_are_none(header: bytes) -> None:
    data = b"PAR1" + header
    with pytest.raises(ValueError, match=r"page|number|chunk"):
        largest_page(io.BytesIO(data), Chunk(4, 0, max(1, len(header))), len(data))


def test_the_footer_parser_agrees_with_arrow(mixed: Survey, some_reports: np.ndarray, tmp_path: Path) -> None:
    """Where the column chunks stand, for a file of several row groups with and without dictionaries."""
    for dictionary in (False, True):
        table = nullable(mixed, [bytes([0, 0, 1, 1, 0, 0])] * 900)
        path = write_table(table, tmp_path / "a.parquet", row_group_size=200, use_dictionary=dictionary)
        with path.open("rb") as file:
            found = first_chunks(file, path.stat().st_size)
        footer = pq.read_metadata(path)
        stated = [footer.row_group(i).column(0) for i in range(footer.num_row_groups)]
        assert found == [
            (c.data_page_offset, c.dictionary_page_offset or 0, c.total_compressed_size) for c in stated
        ]


def test_a_damaged_footer_does_not_end_the_process(
    mixed: Survey, some_reports: np.ndarray, tmp_path: Path
) -> None:
    """Every bit of the footer flipped, some of which ended the process inside Arrow: an error or the same tally."""
    path = write(tmp_path / "a.parquet", mixed, some_reports[:20])
    content, whole = path.read_bytes(), Tally(mixed).add_file(path)
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for bit in range(8 * (len(content) - footer), 8 * len(content), 3):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert Tally(mixed).add_file(path) == whole
        except FormatError:
            continue


def test_a_batch_listed_twice_is_refused(mixed: Survey, some_reports: np.ndarray, tmp_path: Path) -> None:
    """A footer that names one batch again and again would multiply the cost of its bytes."""
    path = write(tmp_path / "a.arrow", mixed, some_reports[:8], some_reports[8:16])
    content = path.read_bytes()
    first, second = (
        batch.columns[0].values[0] for batch in list(batches_of(io.BytesIO(content), len(content)))[:2]
    )
    length = second - first
    at = next(
        i
        for i in range(len(content) - 8, 0, -1)
        if struct.unpack_from("<q", content, i)[0] + length
        == struct.unpack_from("<q", content.ljust(i + 40, b"\0"), i + 24)[0]
        and 8 <= struct.unpack_from("<q", content, i)[0] < first
    )
    doubled = bytearray(content)
    doubled[at + 24 : at + 48] = content[at : at + 24]
    path.write_bytes(doubled)
    with pytest.raises(FormatError, match="overlaps another batch"):
        list(read_reports(path, mixed))


@pytest.mark.parametrize("size", [0, 5, 17, 18, 40])
def test_no_footer(size: int) -> None:
    with pytest.raises(Broken, match=r"end is missing|is impossible"):
        list(batches_of(io.BytesIO(b"ARROW1" * 10), size))


def test_arrow_files_of_other_writers_have_no_checksum(
    mixed: Survey, some_reports: np.ndarray, wire, tmp_path: Path
) -> None:
    rows = wire(some_reports, mixed)
    path = write_table(nullable(mixed, rows), tmp_path / "a.arrow")
    assert Tally(mixed).add_file(path) == Tally(mixed).add_block(some_reports)


def test_an_arrow_file_is_read_by_arrow_itself(
    mixed: Survey, some_reports: np.ndarray, wire, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.arrow", mixed, some_reports[:600], some_reports[600:])
    with pa.OSFile(str(path), "rb") as file:
        column = pa.ipc.open_file(file).read_all().column(0)
    assert column.to_pylist() == wire(some_reports, mixed)


def test_a_pipe_is_not_a_file_of_reports(mixed: Survey, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    with pytest.raises(FormatError, match="not a regular file"):
        read_reports(tmp_path / "a.parquet", mixed)


def test_valid_bits_are_arrows_own() -> None:
    values = pa.array([None if i % 3 == 0 else b"x" for i in range(100)], pa.binary())
    for start, length in ((0, 100), (1, 99), (7, 9), (8, 8), (13, 0), (63, 30)):
        part = values.slice(start, length)
        assert valid_bits(part).tolist() == [value.is_valid for value in part]
    assert valid_bits(pa.array([b"x"])).tolist() == [True]
