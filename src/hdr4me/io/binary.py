"""Parquet and Arrow IPC files of records as Arrow batches; the rows read are those that the file promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from hdr4me.errors import FormatError

__all__ = ["check_names", "parquet_metadata", "read_arrow", "read_parquet"]

_COLUMN_BYTES = 1 << 25


def open_binary(path: str, stack: ExitStack) -> Any:
    """What pyarrow opens: the path, or an open file where the path has no UTF-8 form."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return stack.enter_context(Path(path).open("rb"))
    return path


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
    """Batches of at most `rows` records with the columns `names`.

    Parameters
    ----------
    path
        A Parquet file.
    names
        The columns, in the order in which they come.
    texts
        Those of them that are read as dictionaries where the file has them so.
    rows
        Records held at once.
    row_groups
        The row groups to read; all of them unless given.

    Raises
    ------
    FormatError
        If a column is missing, or the rows read are not as many as the footer says.
    """
    # Without pre-buffering a row group is streamed, not held; each column has its own small buffer.
    buffer = max(1 << 14, min(1 << 20, _COLUMN_BYTES // len(names)))
    with ExitStack() as stack:
        check_names(path, pq.read_schema(open_binary(path, stack)).names, names)
        file: Any = stack.enter_context(
            pq.ParquetFile(
                open_binary(path, stack),
                pre_buffer=False,
                buffer_size=buffer,
                read_dictionary=list(texts),
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
        opened = open_binary(path, stack)
        source: Any = stack.enter_context(
            pa.OSFile(opened, "r") if isinstance(opened, str) else pa.PythonFile(opened, "r")
        )
        reader = pa.ipc.open_file(source)
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
