"""Records in any format as a stream of Arrow batches with bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.arrow import BROKEN, binary_format, file_errors
from hdr4me.io.excel import MAGIC as EXCEL
from hdr4me.io.excel import read_sheet
from hdr4me.io.forms import in_plain_form, sets_forms, with_types
from hdr4me.io.source import STANDARD_INPUT, RecordFiles, open_text
from hdr4me.io.text import (
    batches_of_rows,
    is_header,
    is_lines,
    read_delimited,
    read_lines,
    read_objects,
    table_of,
)
from hdr4me.survey import Schema, Survey
from hdr4me.survey.columns import is_text

_BATCH_BYTES = _COLUMN_BYTES = 1 << 25
_MOST_ROWS = 1 << 17
_UNREADABLE = (
    pa.ArrowException,
    TypeError,
    ValueError,
    OverflowError,
)  # errors of frames, whose messages may contain a value
_KINDS = {"parquet": "Parquet", "arrow": "Arrow IPC", "excel": "Excel", "text": "text"}


@dataclass(frozen=True)
class Part:
    """A file of records, or some row groups of a Parquet file, and the options with which it is read."""

    path: str
    options: RecordFiles
    row_groups: tuple[int, ...] | None = None
    n_bytes: int = 0


def batch_rows(survey: Survey) -> int:
    """The number of records in memory at once: about 32 MiB of numbers and of reports."""
    widest = max(8 * sum(getattr(x, "length", 1) for x in survey.schema), survey.report_size)
    return max(1, min(_MOST_ROWS, _BATCH_BYTES // widest))


def as_files(records: Any) -> RecordFiles | None:
    """The files of `records` if it is a path, several paths, or `RecordFiles`; otherwise None."""
    if isinstance(records, RecordFiles):
        return records
    listed = records if isinstance(records, list | tuple) else [records]
    return RecordFiles(listed) if all(isinstance(item, str | os.PathLike) for item in listed) else None


def record_batches(records: Any, survey: Survey) -> Iterator[pa.RecordBatch]:
    """Batches of at most `batch_rows` records with the columns of the survey's schema, in order.

    Records are a path, several paths, `RecordFiles`, an Arrow table or batch, a list of dictionaries, or a frame with
    `__arrow_c_stream__` (pandas, polars, also lazy, and others). A dimension without a column is an error, so that
    misspelled names are found.
    """
    return read_records(records, survey.schema, batch_rows(survey))


def read_records(records: Any, schema: Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of at most `rows` records with the columns of the schema; `records` as for `record_batches`."""
    files = as_files(records)
    names = list(schema.columns)
    if files is not None:
        for part in _parts(files):
            yield from read_part(part, schema, rows)
    elif isinstance(records, list | tuple) and all(isinstance(row, Mapping) for row in records):
        yield from bounded(
            batches_of_rows([[dict(row) for row in records]], schema.readers, "the list"), rows
        )
    elif isinstance(records, pa.Table | pa.RecordBatch):
        _check_names("the table", records.schema.names, names, in_memory=True)
        yield from bounded(pa.table(records.select(names)).to_batches(), rows)
    else:
        yield from bounded(_read_frame(records, names), rows)


def read_table(records: Any) -> pa.Table:
    """All columns of the records, with their types, decimals as floats; `records` as for `record_batches`."""
    table = _read_table(records)
    _check_names("the table", table.column_names, ())
    for j, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(pa.float64()))
    return table


def _read_table(records: Any) -> pa.Table:
    files = as_files(records)
    if files is not None:
        tables = [_typed(part) for part in _parts(files)]
        return pa.concat_tables(tables, promote_options="default")
    if isinstance(records, list | tuple) and all(isinstance(row, Mapping) for row in records):
        return table_of([dict(row) for row in records])
    frame = _eager(records)
    names = [] if isinstance(frame, pa.Table | pa.RecordBatch) else list(getattr(frame, "columns", ()))
    return _stream(frame, names).read_all()


def bounded(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[Any]:
    """The same records in batches of at most `rows`."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch if batch.num_rows <= rows else batch.slice(start, rows)


def read_part(part: Part, schema: Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of at most `rows` records of one file or part of a file, with the columns of the schema."""
    kind = file_kind(part.path)
    names = list(schema.columns)
    batches: Iterator[pa.RecordBatch]
    if kind == "parquet":
        texts = [name for name, reader in schema.readers.items() if reader.is_text]
        batches = _read_parquet(part.path, names, texts, rows, part.row_groups)
    elif kind == "arrow":
        batches = _read_arrow(part.path, names)
    elif kind == "excel":
        records = read_sheet(part.path, part.options.sheet, names)
        batches = batches_of_rows([records], schema.readers, part.path)
    else:
        batches = _read_text(part, schema)
    with file_errors(part.path, _KINDS[kind], quoted=kind in ("parquet", "arrow")):
        yield from bounded((in_plain_form(batch, part.options, schema) for batch in batches), rows)


def _read_text(part: Part, schema: Schema) -> Iterator[pa.RecordBatch]:
    with open_text(part.path, part.options.encoding) as text:
        if is_lines(text):
            yield from read_lines(text, schema.readers)
        else:
            filled = [name for name, reader in schema.readers.items() if reader.accepts_blank]
            yield from read_delimited(text, schema.columns, part.options.delimiter, filled=filled)


def _typed(part: Part, names: Sequence[str] = (), *, head: bool = False) -> pa.Table:
    """A file with the types of its columns: all of it, or enough to determine the types."""
    kind, options = file_kind(part.path), part.options
    with file_errors(part.path, _KINDS[kind], quoted=kind in ("parquet", "arrow")), ExitStack() as stack:
        if kind == "parquet":
            opened = _open_binary(part.path, stack)
            table = pq.read_schema(opened).empty_table() if head else pq.read_table(opened)
        elif kind == "arrow":
            file = pa.ipc.open_file(_open_binary(part.path, stack))
            table = file.schema.empty_table() if head else file.read_all()
        elif kind == "excel":
            table = table_of(read_sheet(part.path, options.sheet, names))
        else:
            text = stack.enter_context(open_text(part.path, options.encoding))
            if not is_lines(text):
                batches = read_delimited(text, None, options.delimiter, hints=names)
                return with_types(pa.Table.from_batches([next(batches)] if head else list(batches)), options)
            pieces = read_objects(text)
            table = table_of(next(pieces) if head else [row for piece in pieces for row in piece])
    return with_types(table, options) if sets_forms(options) else table


def column_types(files: RecordFiles, names: Sequence[str]) -> pa.Schema:
    """The columns of the first file; `names` are some of them, which determine the delimiter of a CSV file."""
    part = _parts(files)[0]
    schema = _typed(part, names, head=True).schema
    _check_names(part.path, schema.names, ())
    return schema


def file_kind(path: str) -> str:
    """The format by a file's first bytes: parquet, arrow, excel or text; standard input is always text."""
    if path == STANDARD_INPUT:
        return "text"
    with suppress(OSError), Path(path).open("rb") as file:  # reading the file raises the error
        if file.read(4) in EXCEL:
            return "excel"
    return binary_format(path) or "text"


def count_records(path: str | os.PathLike[str]) -> int | None:
    """The number of records in the metadata of a file, for a progress bar; None if it has no such metadata."""
    with suppress(*BROKEN, FormatError):  # reading the file raises the error
        if file_kind(os.fspath(path)) == "parquet":
            return int(_parquet_metadata(os.fspath(path)).num_rows)
    return None


def _parts(files: RecordFiles) -> list[Part]:
    return [Part(path, files) for path in files.files()]


def plan_parts(files: RecordFiles, step: int) -> list[Part]:
    """The files in parts of about `step` bytes: row groups of Parquet files, and whole text files."""
    parts: list[Part] = []
    for part in _parts(files):
        if part.path == STANDARD_INPUT:
            raise InvalidInput("Spark cannot read standard input: save the records to a file")
        file = replace(part, path=str(Path(part.path).absolute()), n_bytes=Path(part.path).stat().st_size)
        parts += _row_groups(file, step) if file_kind(part.path) == "parquet" else [file]
    return parts


def _row_groups(file: Part, step: int) -> list[Part]:
    try:
        metadata = _parquet_metadata(file.path)
    except BROKEN:
        return [file]  # reading the file raises the error
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    # The share of a row group in the file; an inconsistent footer is refused when the file is read.
    scale = file.n_bytes / max(1, sum(sizes))
    if sum(metadata.row_group(i).num_rows for i in range(len(sizes))) != metadata.num_rows or not sizes:
        return [file]
    parts: list[Part] = []
    first, size = 0, 0.0
    for i, own in enumerate(sizes, 1):
        size += scale * own
        if size >= step or i == len(sizes):
            parts.append(replace(file, row_groups=tuple(range(first, i)), n_bytes=round(size)))
            first, size = i, 0.0
    return parts


# -- Parquet, Arrow and frames ---------------------------------------------------------------------------------------


def _open_binary(path: str, stack: ExitStack) -> Any:
    """A file for Arrow to read without memory mapping, whatever bytes its name has."""
    name: Any = os.fsencode(path)
    return stack.enter_context(pa.OSFile(name, "r"))


def _parquet_metadata(path: str) -> Any:
    with ExitStack() as stack:
        return pq.read_metadata(_open_binary(path, stack))


def _read_parquet(
    path: str, names: Sequence[str], texts: Sequence[str], rows: int, row_groups: Sequence[int] | None
) -> Iterator[pa.RecordBatch]:
    """Batches of at most `rows` records with the columns `names`; string columns among `texts` are dictionaries."""
    # Without pre-buffering a row group is streamed; each column has its own small buffer.
    buffer = max(1 << 14, min(1 << 20, _COLUMN_BYTES // len(names)))
    with ExitStack() as stack:
        source = _open_binary(path, stack)
        schema = pq.read_schema(source)
        _check_names(path, schema.names, names)
        file: Any = stack.enter_context(
            pq.ParquetFile(
                source,
                pre_buffer=False,
                buffer_size=buffer,
                read_dictionary=[name for name in texts if is_text(schema.field(name).type)],
                page_checksum_verification=True,
            )
        )
        groups = list(range(file.metadata.num_row_groups)) if row_groups is None else list(row_groups)
        promised = sum(file.metadata.row_group(i).num_rows for i in groups)
        if row_groups is None and promised != file.metadata.num_rows:
            raise FormatError(
                f"{path} is damaged: its footer claims {file.metadata.num_rows:,} rows, "
                f"its row groups {promised:,}"
            )
        if not promised:
            raise FormatError(f"{path} contains no records")
        n = 0
        for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(names)):
            n += batch.num_rows
            yield batch.select(list(names))
        if n != promised:
            raise FormatError(f"{path} is damaged: it has {n:,} rows, but its footer claims {promised:,}")


def _read_arrow(path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow IPC file with the columns `names`; read without memory mapping, since it may change."""
    n = 0
    with ExitStack() as stack:
        reader = pa.ipc.open_file(_open_binary(path, stack))
        _check_names(path, reader.schema.names, names)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index).select(list(names))
            batch.validate(full=True)
            n += batch.num_rows
            yield batch
    if not n:
        raise FormatError(f"{path} contains no records")


def _check_names(what: str, present: Sequence[str], names: Sequence[str], *, in_memory: bool = False) -> None:
    """Raise an error if a name is absent or duplicated."""
    missing = [name for name in names if name not in set(present)]
    if missing:
        names_of_missing = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        there = ", ".join(map(repr, present[:8])) + (", ..." if len(present) > 8 else "")
        if in_memory and not is_header(present, (), names):  # they may be a record that was read as a header
            there = f"{len(present):,} with other names"
        raise FormatError(f"{what} has no column {names_of_missing}: its columns are {there}")
    if len(set(present)) < len(present):
        raise FormatError(f"{what} has two columns of the same name; rename one of them")


def is_frame(records: object) -> bool:
    """Whether an object has Arrow's C stream interface, as Arrow tables, pandas and polars frames do."""
    return hasattr(records, "__arrow_c_stream__")


def _eager(records: Any) -> Any:
    """The records if they are a frame; a lazy frame is collected."""
    if type(records).__module__.startswith("polars") and hasattr(records, "collect"):
        try:
            records = records.collect()
        except Exception as error:  # its message may contain a value
            raise InvalidInput(
                f"the LazyFrame cannot be collected ({type(error).__name__}): its collect() shows why"
            ) from None
    if not is_frame(records):
        raise InvalidInput(
            f"records of type {type(records).__name__}: expected files, an Arrow table, a frame, "
            "a list of dictionaries or a matrix"
        )
    return records


def _read_frame(frame: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of a frame, with the columns `names`."""
    frame = _eager(frame)
    what = f"the {type(frame).__name__}"
    columns = getattr(frame, "columns", None)
    if columns is not None and hasattr(frame, "__getitem__"):
        _check_names(what, [str(name) for name in columns], names, in_memory=True)
        frame = frame[list(names)]  # so that other columns are not converted
    reader = _stream(frame, names)
    _check_names(what, reader.schema.names, names, in_memory=True)
    for batch in reader:
        yield batch.select(list(names))


def _stream(frame: Any, names: Sequence[Any]) -> pa.RecordBatchReader:
    """A frame as a stream of batches; an error names those of its columns that cannot be read."""
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except _UNREADABLE:
        _check_names(f"the {type(frame).__name__}", [str(name) for name in names], ())
        mixed = ", ".join(repr(name) for name in names if not _is_readable(frame, name))
        raise InvalidInput(
            f"the {type(frame).__name__} cannot be read as Arrow columns: {mixed or 'a column'} mixes types; convert "
            "it to numbers or strings (also integers of 128 bits, which Arrow lacks)"
        ) from None


def _is_readable(frame: Any, name: str) -> bool:
    """Whether one column of a frame can be read."""
    try:
        pa.RecordBatchReader.from_stream(frame[[name]])
    except _UNREADABLE:
        return False
    return True
