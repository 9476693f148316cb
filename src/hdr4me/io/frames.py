"""Frames of other libraries as Arrow batches, through Arrow's C stream interface; none of them is imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hdr4me.errors import InvalidInput
from hdr4me.io.binary import check_names

__all__ = ["is_frame", "read_frame"]


def is_frame(records: object) -> bool:
    """Whether an object has Arrow's C stream interface: pandas and polars frames, DuckDB relations and others.

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
