"""Parquet files, Arrow IPC files and frames of records as Arrow batches; a file holds as many rows as it promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey.texts import is_text

__all__ = [
    "check_names",
    "is_frame",
    "open_arrow",
    "open_binary",
    "parquet_metadata",
    "read_arrow",
    "read_frame",
    "read_parquet",
]

_COLUMN_BYTES = 1 << 25


def open_binary(path: str, stack: ExitStack) -> Any:
    """What pyarrow opens: the path, or an open file where the path has no UTF-8 form."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return stack.enter_context(Path(path).open("rb"))
    return path


def open_arrow(path: str, stack: ExitStack) -> Any:
    """The same as a source of an Arrow IPC file, which is read, not mapped."""
    opened = open_binary(path, stack)
    return stack.enter_context(
        pa.OSFile(opened, "r") if isinstance(opened, str) else pa.PythonFile(opened, "r")
    )


def parquet_metadata(path: str) -> Any:
    """The footer of a Parquet file."""
    with ExitStack() as stack:
        return pq.read_metadata(open_binary(path, stack))


def read_parquet(
    path: str,
    names: Sequence[str],
    *,
    texts: Sequence[str] = (),
    rows: int,
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of at most `rows` records with the columns `names`; of `texts`, those with texts as dictionaries.

    All row groups are read unless some are given.
    """
    # Without pre-buffering a row group is streamed, not held; each column has its own small buffer.
    buffer = max(1 << 14, min(1 << 20, _COLUMN_BYTES // len(names)))
    with ExitStack() as stack:
        schema = pq.read_schema(open_binary(path, stack))
        check_names(path, schema.names, names)
        file: Any = stack.enter_context(
            pq.ParquetFile(
                open_binary(path, stack),
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
                f"{path} is damaged: its footer says {file.metadata.num_rows:,} rows, "
                f"its row groups say {promised:,}"
            )
        if not promised:
            raise FormatError(f"{path} holds no records")
        n = 0
        for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(names)):
            n += batch.num_rows
            yield batch.select(list(names))
        if n != promised:
            raise FormatError(f"{path} is damaged: {n:,} rows were read where its footer says {promised:,}")


def read_arrow(path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow IPC file, with the columns `names`; it is read, not mapped, and may change meanwhile."""
    n = 0
    with ExitStack() as stack:
        reader = pa.ipc.open_file(open_arrow(path, stack))
        check_names(path, reader.schema.names, names)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index).select(list(names))
            batch.validate(full=True)
            n += batch.num_rows
            yield batch
    if not n:
        raise FormatError(f"{path} holds no records")


def check_names(what: str, found: Sequence[str], names: Sequence[str]) -> None:
    """Every name is there, and no name is there twice."""
    missing = [name for name in names if name not in set(found)]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        there = ", ".join(map(repr, found[:8])) + (", ..." if len(found) > 8 else "")
        raise FormatError(f"{what} has no column {shown}: its columns are {there}")
    if len(set(found)) < len(found):
        raise FormatError(f"{what} has two columns of the same name")


def is_frame(records: object) -> bool:
    """Whether an object has Arrow's C stream interface, as pandas and polars frames, DuckDB relations and others do.

    >>> is_frame(pa.table({"age": [31]})), is_frame([31])
    (True, False)
    """
    return hasattr(records, "__arrow_c_stream__")


def read_frame(frame: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of a frame, with the columns `names`."""
    what = f"the {type(frame).__name__}"
    columns = getattr(frame, "columns", None)
    if columns is not None and hasattr(frame, "__getitem__"):
        check_names(what, [str(name) for name in columns], names)
        frame = frame[list(names)]  # so that columns which are not asked for are not converted
    try:
        reader = pa.RecordBatchReader.from_stream(frame)
    except (pa.ArrowException, TypeError, ValueError):  # the message may hold a value
        raise InvalidInput(
            f"{what} cannot be read as Arrow columns: a column mixes types; convert it to numbers or texts"
        ) from None
    check_names(what, reader.schema.names, names)
    for batch in reader:
        yield batch.select(list(names))
