"""The loader of COV-19: the CORD-19 release's embeddings file (CSV, an id and then floats; plain or gzip)."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.paper.datasets.dataset import Column, Dataset
from hdr4me.paper.datasets.normalise import normalise
from hdr4me.paper.datasets.stand_in import FIXED_RANGE

__all__ = ["load_cov19", "rows_of"]


def rows_of(path: Path) -> Iterator[NDArray[np.float32]]:
    """The file's vectors, one at a time; memory does not grow with the file.

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
    """The first `n_users` vectors and `n_dims` dimensions of the file (all, where it has fewer).

    The vectors are gathered in `scratch`, a file of float32 on disk, so that memory stays small.
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
