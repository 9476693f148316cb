"""Somebody's own file: every column of numbers in a CSV, TSV or Parquet file, under the file's own name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.paper.datasets.dataset import Column, Dataset
from hdr4me.paper.datasets.normalise import normalise

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OwnFile", "describe", "load_own"]


class OwnFile(NamedTuple):
    """What a file holds: rows, the names of its columns of numbers, and those of the columns left out."""

    n_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]


def describe(path: Path) -> OwnFile:
    """Read the file and say what of it can be used; an error names the column that cannot.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "mine.csv")
    ...     _ = place.write_text("who,height,weight\\na,1.7,60\\nb,1.8,71\\n")
    ...     describe(place)
    OwnFile(n_rows=2, columns=('height', 'weight'), left_out=('who',))
    """
    table = _table(path)
    import pyarrow.types as kinds

    def is_number(kind: pa.DataType) -> bool:
        return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind))

    used = tuple(field.name for field in table.schema if is_number(field.type))
    others = tuple(field.name for field in table.schema if not is_number(field.type))
    if not used:
        raise FormatError(f"{path.name}: no column of numbers, only {', '.join(others) or 'nothing'}")
    if table.num_rows < 2:
        raise FormatError(f"{path.name}: at least two rows are needed, found {table.num_rows}")
    for name in used:
        column = table.column(name)
        values = _floats(table, name)
        bad = int(np.sum(~np.isfinite(values)))
        if bad:
            raise FormatError(
                f"{path.name}, column {name!r}: {bad} of {len(column)} values are missing or not finite; fill them "
                "in or leave the column out of the file"
            )
    return OwnFile(table.num_rows, used, others)


def load_own(path: Path, n_users: int, way: str = "auto") -> Dataset:
    """The first `n_users` rows of every column of numbers."""
    way = "min-max" if way == "auto" else way
    table, found = _table(path), describe(path)
    if n_users > found.n_rows:
        raise InvalidInput.of("users", n_users, f"at most {found.n_rows}, the rows of {path.name}")

    def column(j: int) -> Column:
        return normalise(_floats(table, found.columns[j])[:n_users], way, -1.0, 1.0)

    return Dataset("data", path.name, n_users, len(found.columns), way, column)


def _floats(table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    import pyarrow as pa

    return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)


def _table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InvalidInput.of("data", str(path), "there is no such file")
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith((".parquet", ".pq")):
            return pq.read_table(path)
        if name.endswith((".csv", ".tsv", ".txt")):
            options = pc.ParseOptions(delimiter="\t" if name.endswith(".tsv") else ",")
            return pc.read_csv(path, parse_options=options)
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise FormatError(
            f"{path.name}: not a readable {name.rpartition('.')[2].upper()} file ({reason})"
        ) from error
    raise InvalidInput.of("data", path.name, "a file that ends in .csv, .tsv (also .gz) or .parquet")
