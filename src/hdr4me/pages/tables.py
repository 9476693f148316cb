"""Rows of an answer as files for other programs: CSV and Parquet, with what they were made from."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def as_csv(rows: Sequence[Row], columns: Sequence[str], made: Mapping[str, Any]) -> str:
    """A CSV file whose last columns are the stamp, the same in every row.

    Comment lines would be shorter, but many readers take them for the header.

    >>> print(as_csv([{"a": 1, "b": 2}], ["a"], {"epsilon": 1.0}), end="")
    a,epsilon
    1,1.0
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [*columns, *made], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, **made} for row in rows)
    return buffer.getvalue()


def as_parquet(rows: Sequence[Row], columns: Sequence[str], made: Mapping[str, Any]) -> bytes:
    """A Parquet file whose schema has the stamp in its metadata, under keys such as `hdr4me.survey`.

    >>> import io, pyarrow.parquet as pq
    >>> made = pq.read_schema(io.BytesIO(as_parquet([{"estimate": 1.5}], ["estimate"], {"epsilon": 1.0}))).metadata
    >>> made[b"hdr4me.epsilon"]
    b'1.0'
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = {"estimate", "standard_error", "lower", "upper"}
    schema = pa.schema(
        [
            (name, pa.float64() if name in numbers else pa.int64() if name == "answers" else pa.string())
            for name in columns
        ],
        metadata={f"hdr4me.{key}": str(value) for key, value in made.items()},
    )
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), buffer)
    return buffer.getvalue()
