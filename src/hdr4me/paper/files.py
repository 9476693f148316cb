"""Data sets read from files: the CORD-19 release's embeddings, and every column of numbers in anybody's own file."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.paper.datasets import FIXED_RANGE, Column, Dataset, normalise

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(path: Path) -> Iterator[NDArray[np.float32]]:
    """The vectors of an embeddings file (CSV, plain or gzip), one at a time; memory does not grow with the file.

    Every line is an id and the same number of finite floats; a first line whose second field is no number
    is taken as a heading. Anything else is an error that names the line.
    """
    width = 0
    try:
        with _open(path) as lines:
            for number, fields in enumerate(csv.reader(lines), start=1):
                if not fields:
                    continue
                if number == 1 and len(fields) > 1 and not _is_number(fields[1]):
                    continue
                width = width or len(fields) - 1
                yield _vector(path, number, fields, width)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path.name}: not a readable CSV or CSV.gz file ({error})") from error


def _open(path: Path) -> io.TextIOBase:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return io.TextIOWrapper(
        gzip.open(path, "rb") if packed else path.open("rb"), encoding="utf-8", newline=""
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _vector(path: Path, number: int, fields: list[str], width: int) -> NDArray[np.float32]:
    where = f"{path.name}, line {number}"
    if len(fields) < 2:
        raise FormatError(f"{where}: an id and at least one number are needed, found {len(fields)} field")
    if len(fields) - 1 != width:
        raise FormatError(f"{where}: {len(fields) - 1} numbers, but the lines before have {width}")
    try:
        vector = np.array(fields[1:], dtype=np.float32)
    except ValueError:
        bad = next(field for field in fields[1:] if not _is_number(field))
        raise FormatError(f"{where}: {bad!r} is not a number") from None
    if not np.all(np.isfinite(vector)):
        raise FormatError(f"{where}: every number must be finite")
    return vector


def load_cov19(path: Path, n_users: int, n_dims: int, scratch: Path, way: str = "auto") -> Dataset:
    """The first `n_users` vectors and `n_dims` dimensions of an embeddings file (all, where it has fewer).

    The vectors are gathered in `scratch`, a file of float32 that can be removed after use, so that memory stays small.
    """
    way = "min-max" if way == "auto" else way
    if not path.is_file():
        raise InvalidInput(f"cov19 = '{path}' is not allowed: there is no such file")
    gathered, width = 0, 0
    with scratch.open("wb") as out:
        for vector in rows_of(path):
            width = min(n_dims, vector.size)
            out.write(vector[:width].tobytes())
            gathered += 1
            if gathered == n_users:
                break
    if gathered < 2:
        raise FormatError(f"{path.name}: at least two vectors are needed, found {gathered}")
    whole = np.memmap(scratch, dtype=np.float32, mode="r", shape=(gathered, width))

    def column(j: int) -> Column:
        return normalise(np.ascontiguousarray(whole[:, j]), way, -FIXED_RANGE, FIXED_RANGE)

    # Under its own name: whether a file holds the paper's data is for its owner to say.
    return Dataset("cov19", path.name, gathered, width, way, column)


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
    return _described(_table(path), path)


def _described(table: pa.Table, path: Path) -> OwnFile:
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
        bad = int(np.sum(~np.isfinite(_floats(table, name))))
        if bad:
            raise FormatError(
                f"{path.name}, column {name!r}: {bad} of {table.num_rows} values are missing or not finite; fill "
                "them in or leave the column out of the file"
            )
    return OwnFile(table.num_rows, used, others)


def load_own(path: Path, n_users: int, way: str = "auto") -> Dataset:
    """The first `n_users` rows of every column of numbers in a CSV, TSV (also .gz) or Parquet file.

    `way` is `min-max` (or `auto`): each column's own smallest and largest value become −1 and 1; or `fixed`: the
    values are on [−1, 1] already, and what lies outside is clipped.
    """
    way = "min-max" if way == "auto" else way
    table = _table(path)
    found = _described(table, path)
    if n_users > found.n_rows:
        raise InvalidInput.of("users", n_users, f"at most {found.n_rows}, the rows of {path.name}")

    def column(j: int) -> Column:
        return normalise(_floats(table, found.columns[j])[:n_users], way, -1.0, 1.0)

    return Dataset("data", path.name, n_users, len(found.columns), way, column)


def _floats(table: pa.Table, name: str) -> NDArray[np.float64]:
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
        reason, kind = str(error).splitlines()[0], name.rpartition(".")[2].upper()
        raise FormatError(f"{path.name}: not a readable {kind} file ({reason})") from error
    raise InvalidInput.of("data", path.name, "a file that ends in .csv, .tsv (also .gz) or .parquet")
