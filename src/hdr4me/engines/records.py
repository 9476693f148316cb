"""Files of records, as a stream of Arrow batches with bounded memory: Parquet, Arrow IPC and CSV."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.ipc
import pyarrow.parquet as pq

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.reports.arrow import binary_format
from hdr4me.survey import Categorical, Survey

__all__ = ["batch_rows", "check_survey", "count_records", "read_records", "table_batches"]

_BATCH_BYTES = 1 << 25
_MOST_ROWS = 1 << 17
_CSV_BLOCK = 1 << 24
"""A record of a CSV file must fit into a block."""


def check_survey(survey: object) -> None:
    """Every engine's methods take the data first and the survey second: the wrong way round is named."""
    if not isinstance(survey, Survey):
        raise InvalidInput(f"survey = {survey!r} must be a Survey")


def batch_rows(survey: Survey) -> int:
    """Records held at once: about 32 MiB of them.

    >>> from hdr4me.survey import Numeric, Schema
    >>> batch_rows(Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi"))
    131072
    """
    return max(256, min(_MOST_ROWS, _BATCH_BYTES // (8 * len(survey.schema))))


def read_records(path: str | os.PathLike[str], survey: Survey) -> Iterator[pa.RecordBatch]:
    """Batches whose columns are the survey's dimensions in its order; the format is told by the first bytes.

    A dimension without a column is an error, not a column of defaults: a misspelt name must not go unseen.
    """
    kind = _kind(path)
    batches = {"Parquet": _parquet, "Arrow IPC": _arrow, "CSV": _csv}[kind](path, survey)
    try:
        yield from batches
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        # Arrow quotes the line of a CSV file that it could not read: a record, which no message may hold.
        reason = _odd_line(path) if kind == "CSV" else str(error).partition("\n")[0] or type(error).__name__
        raise FormatError(f"{path} is not a whole {kind} file: {reason}") from None


def count_records(path: str | os.PathLike[str]) -> int | None:
    """How many records a file says it has, for a progress bar; None when only reading it would tell."""
    try:
        if _kind(path) == "Parquet":
            return int(pq.read_metadata(str(path)).num_rows)
    except (pa.ArrowException, OSError, FormatError):
        return None  # reading it will say what is wrong
    return None


def table_batches(table: pa.Table | pa.RecordBatch, survey: Survey) -> Iterator[pa.RecordBatch]:
    """A table in memory, as batches of the survey's dimensions."""
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise InvalidInput(
            f"records of type {type(table).__name__}: expected a file, an Arrow table or a matrix"
        )
    _check_names("the table", table.schema.names, survey)
    chosen = table.select(list(survey.schema.names))
    if isinstance(chosen, pa.RecordBatch):
        chosen = pa.Table.from_batches([chosen])
    yield from chosen.to_batches(max_chunksize=batch_rows(survey))


def _kind(path: str | os.PathLike[str]) -> str:
    return {"parquet": "Parquet", "arrow": "Arrow IPC", None: "CSV"}[binary_format(path)]


def _odd_line(path: str | os.PathLike[str]) -> str:
    """Which line of a CSV file is unlike its header, in numbers alone."""
    with Path(path).open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file)
        try:
            width = len(next(reader))
            for row in reader:
                if row and len(row) != width:
                    return f"line {reader.line_num:,} has {len(row)} columns, the header has {width}"
        except csv.Error:
            return f"line {reader.line_num:,} cannot be read"
    return "a record is too long, or a quote is left open"


def _check_names(what: str | os.PathLike[str], found: list[str], survey: Survey) -> None:
    missing = [name for name in survey.schema.names if name not in set(found)]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        there = ", ".join(map(repr, found[:8])) + (", ..." if len(found) > 8 else "")
        raise FormatError(f"{what} has no column {shown}: its columns are {there}")
    if len(set(found)) < len(found):
        raise FormatError(f"{what} has two columns of the same name")


def _parquet(path: str | os.PathLike[str], survey: Survey) -> Iterator[pa.RecordBatch]:
    names = list(survey.schema.names)
    texts = [x.name for x in survey.schema if isinstance(x, Categorical)]
    _check_names(path, pq.read_schema(str(path)).names, survey)
    # Without pre-buffering a row group is streamed, not held; each column has its own small buffer.
    buffer = max(1 << 14, min(1 << 20, _BATCH_BYTES // len(names)))
    with pq.ParquetFile(
        str(path),
        pre_buffer=False,
        buffer_size=buffer,
        read_dictionary=texts,
        page_checksum_verification=True,
    ) as file:
        for batch in file.iter_batches(batch_size=batch_rows(survey), columns=names):
            yield batch.select(names)


def _arrow(path: str | os.PathLike[str], survey: Survey) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        _check_names(path, reader.schema.names, survey)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index).select(list(survey.schema.names))
            batch.validate(full=True)
            for start in range(0, batch.num_rows, batch_rows(survey)):
                yield batch.slice(start, batch_rows(survey))


def _csv(path: str | os.PathLike[str], survey: Survey) -> Iterator[pa.RecordBatch]:
    """Every column is read as bytes and understood as the client would, so that no value can stop the file."""
    names = list(survey.schema.names)
    with Path(path).open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = next(csv.reader(file))
    _check_names(path, header, survey)
    texts: Any = {name: pa.binary() for name in names}
    convert = pv.ConvertOptions(column_types=texts, include_columns=names, strings_can_be_null=False)
    # In a file of one column an empty line is a record whose value is missing.
    parse = pv.ParseOptions(ignore_empty_lines=len(header) > 1)
    read = pv.ReadOptions(block_size=_CSV_BLOCK)
    with pv.open_csv(str(path), read_options=read, parse_options=parse, convert_options=convert) as reader:
        for batch in reader:
            if batch.num_rows:
                yield batch
