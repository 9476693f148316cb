"""Data sets of values in [−1, 1]: synthetic (section VI, and a stand-in for COV-19), or read from files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import replacing, write_text
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.simulation.sums import generator

Floats = NDArray[np.float64]
Column = NDArray[np.float32]
# The paper does not state how it normalizes a dimension. `fixed`: one known range for all dimensions, with values
# outside clipped. `min-max`: the smallest and largest value of each dimension. `auto`: `fixed` where the values are
# already in [−1, 1] (Gaussian, Uniform), otherwise `min-max` (Poisson, COV-19).
NORMALIZATIONS = ("auto", "fixed", "min-max")


@dataclass(frozen=True)
class Dataset:
    """`users` users by `dims` dimensions in [−1, 1] after `normalization`; `column(j)` is the j-th dimension."""

    name: str
    title: str
    users: int
    dims: int
    normalization: str
    column: Callable[[int], Column]
    stand_in: bool = False

    @cached_property
    def moments(self) -> Moments:
        """Mean and mean square of each dimension."""
        return moments(self.column(j) for j in range(self.dims))


def check_normalization(way: str) -> str:
    """`way`, if it is one of `NORMALIZATIONS`."""
    if way not in NORMALIZATIONS:
        raise InvalidInput.of("normalize", way, f"use one of {', '.join(NORMALIZATIONS)}")
    return way


def normalize(values: NDArray[np.floating], way: str, low: float, high: float) -> Column:
    """2(x − low)/(high − low) − 1, clipped to [−1, 1]; `min-max` uses the extremes of the column."""
    if way == "min-max":
        low, high = float(values.min()), float(values.max())
        if low == high:
            return np.zeros(values.shape, dtype=np.float32)
    scaled = 2.0 * ((values - low) / (high - low)) - 1.0
    return np.asarray(np.clip(scaled, -1.0, 1.0), dtype=np.float32)


def chosen_dimensions(available: int, wanted: int, seed: int) -> NDArray[np.int64]:
    """`wanted` of `available` columns: the first ones of a random order, then columns drawn again."""
    order = generator(seed, "order of dimensions", available).permutation(available)
    if wanted <= available:
        return order[:wanted]
    again = generator(seed, "dimensions drawn again", available).integers(0, available, wanted - available)
    return np.concatenate([order, again])


@dataclass(frozen=True, eq=False)
class Moments:
    """Each dimension's mean and mean square over its users."""

    mean: Floats
    square: Floats

    def two_points(self) -> tuple[Floats, Floats]:
        """For each dimension, two values in [−1, 1] and their shares with the same mean and mean square.

        If E[t*|t] is affine and Var(t*|t) quadratic in t, these two values have the same predicted bias and variance as
        all n values. The upper value is mean + sd, at most 1; the lower one solves
        (upper − mean)(mean − lower) = variance.
        """
        flip = np.where(self.mean < 0, -1.0, 1.0)
        mean = np.abs(self.mean)
        variance = np.maximum(self.square - mean**2, 0.0)
        above = np.maximum(np.minimum(np.sqrt(variance), 1 - mean), 1e-12)
        below = np.minimum(variance / above, 1 + mean)
        share = below / (above + below)
        values = flip[:, None] * np.stack([np.minimum(mean + above, 1.0), mean - below], axis=1)
        return values, np.stack([share, 1 - share], axis=1)


def moments(columns: Iterable[Column]) -> Moments:
    """The moments of single-precision columns, summed in double precision."""
    wide = (np.asarray(column, dtype=np.float64) for column in columns)
    mean, square = np.array([(c.mean(), np.dot(c, c) / c.size) for c in wide]).T
    return Moments(mean, square)


def store(dataset: Dataset, path: Path) -> None:
    """Write the columns as float32, one after the other, for workers to map; then write the description."""
    with replacing(path) as temporary, temporary.open("wb") as out:
        for j in range(dataset.dims):
            out.write(dataset.column(j).tobytes())
    described = ("name", "title", "users", "dims", "normalization", "stand_in")
    about = {name: getattr(dataset, name) for name in described}
    write_text(path.with_suffix(".json"), json.dumps(about))


def is_stored(path: Path) -> bool:
    """Whether both files of a stored data set are complete."""
    try:
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return bool(path.stat().st_size == 4 * about["dims"] * about["users"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def open_stored(path: Path) -> Dataset:
    """The data set that `store` wrote."""
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    whole = np.memmap(path, dtype=np.float32, mode="r", shape=(about["dims"], about["users"]))
    return Dataset(**about, column=lambda j: np.asarray(whole[j]))


_FACTORS = 4
# Document embeddings of this kind lie within about ±10: the `fixed` range of COV-19 and of the stand-in.
_EMBEDDINGS = (-10.0, 10.0)


# The three synthetic data sets of the paper, and a stand-in for COV-19 of the same size with strongly correlated
# dimensions: title, the normalization that `auto` means, and the range of `fixed`.
SYNTHETIC = {
    "gaussian": ("Gaussian", "fixed", (-1.0, 1.0)),
    # Five standard deviations above the largest expectation.
    "poisson": ("Poisson", "min-max", (0.0, 149.0)),
    "uniform": ("Uniform", "fixed", (-1.0, 1.0)),
    "cov19": ("COV-19 (stand-in)", "min-max", _EMBEDDINGS),
}


def synthetic(name: str, users: int, dims: int, seed: int, way: str = "auto") -> Dataset:
    """A data set of `SYNTHETIC`; each column has its own random stream, and `way` is one of `NORMALIZATIONS`."""
    title, auto, fixed = SYNTHETIC[name]
    way = auto if way == "auto" else way

    def column(j: int) -> Column:
        return normalize(_values(name, users, dims, seed, j), way, *fixed)

    return Dataset(name, title, users, dims, way, column, stand_in=name == "cov19")


def _values(name: str, users: int, dims: int, seed: int, j: int) -> NDArray[np.floating]:
    """The j-th column before normalization."""
    stream = "cov19 stand-in" if name == "cov19" else name
    rng = generator(seed, stream, users, dims, j)
    if name == "gaussian":  # σ = 1/16; expectation 0.9 in the first tenth of the dimensions, rounded up
        noise = rng.standard_normal(users, dtype=np.float32)
        return noise / 16 + (0.9 if j < math.ceil(dims / 10) else 0.0)
    if name == "poisson":  # expectation drawn uniformly from the integers 1 … 99
        return rng.poisson(rng.integers(1, 100), users).astype(np.float32)
    if name == "uniform":
        return 2 * rng.random(users, dtype=np.float32) - 1
    # x_j = center_j + spread_j(weights_j·f + noise): four shared factors f have about 85 % of the variance of every
    # dimension. The first factor is skewed, as embeddings of clustered documents are, so that min–max normalization
    # gives means that differ from zero.
    weights = rng.normal([0.0] * _FACTORS, [1.0, 0.6, 0.4, 0.3])
    weights[0] += np.sign(weights[0])
    weights *= np.sqrt(0.85) / np.linalg.norm(weights)
    center, spread = rng.normal(0.0, 1.0), rng.uniform(0.6, 1.2)
    own = rng.standard_normal(users, dtype=np.float32) * np.float32(np.sqrt(0.15))
    signal = weights.astype(np.float32) @ _factors(users, seed)
    return np.float32(center) + np.float32(spread) * (signal + own)


@lru_cache(maxsize=1)
def _factors(users: int, seed: int) -> Column:
    """The factors of all dimensions: one skewed (Gamma of shape 6, standardized), three normal."""
    rng = generator(seed, "cov19 stand-in", users, "factors")
    shared = rng.standard_normal((_FACTORS, users), dtype=np.float32)
    shared[0] = (rng.standard_gamma(6.0, users, dtype=np.float32) - 6) / np.sqrt(6)
    return shared


# -- files: the embeddings of the CORD-19 release, and the numeric columns of a file of one's own ------------------


def load_cov19(path: Path, users: int, dims: int, scratch: Path, way: str = "auto") -> Dataset:
    """The first `users` vectors and `dims` dimensions of an embeddings file, or all if it has fewer.

    Every line of the file (CSV, plain or compressed) is an id and the same number of finite floats. A first line whose
    second field is not a number is a header. The file `scratch` stores the vectors, so that memory stays small.
    """
    import pyarrow as pa
    import pyarrow.csv as pc

    from hdr4me.io.source import open_text

    way = "min-max" if way == "auto" else way
    gathered = 0
    try:
        with scratch.open("wb") as out, open_text(str(path)) as text:
            fields = text.head.split(b"\n", 1)[0].split(b",")
            names = [str(place) for place in range(len(fields))]
            kept = names[1 : dims + 1]
            if not kept:
                raise FormatError(f"{path.name}, line 1: an id and at least one number are needed")
            skipped = 1
            with suppress(ValueError):
                float(fields[1])
                skipped = 0
            # One thread, so that an error message has the row.
            lines = pc.ReadOptions(column_names=names, skip_rows=skipped, use_threads=False)
            floats = dict.fromkeys(kept, pa.float64())
            options = pc.ConvertOptions(include_columns=kept, column_types=floats, null_values=[])
            reader = pc.open_csv(text.stream, lines, convert_options=options)
            for batch in reader:
                rows = np.stack([column.to_numpy() for column in batch.columns], axis=1)
                rows = rows[: users - gathered].astype(np.float32)
                faulty = np.flatnonzero(~np.isfinite(rows).all(axis=1))
                if faulty.size:
                    where = f"{path.name}, vector {gathered + faulty[0] + 1}"
                    raise FormatError(f"{where}: every number must be finite")
                out.write(rows.tobytes())
                gathered += len(rows)
                if gathered == users:
                    break
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).partition("\n")[0]
        raise FormatError(f"{path.name}: not a readable CSV or CSV.gz file ({reason})") from error
    if gathered < 2:
        raise FormatError(f"{path.name}: at least two vectors are needed, found {gathered}")
    whole = np.memmap(scratch, dtype=np.float32, mode="r", shape=(gathered, len(kept)))

    def column(j: int) -> Column:
        return normalize(np.ascontiguousarray(whole[:, j]), way, *_EMBEDDINGS)

    # The title is the name of the file: the program cannot know whether it contains the data of the paper.
    return Dataset("cov19", path.name, gathered, len(kept), way, column)


class OwnFile(NamedTuple):
    """The rows of a file, its numeric columns by name, and the names of the other columns."""

    n_rows: int
    columns: dict[str, Floats]
    left_out: tuple[str, ...]


def load_own(path: Path, users: int | None = None, way: str = "auto") -> Dataset:
    """The first `users` rows, or all, of every numeric column of a file; `auto` is `min-max`."""
    way = "min-max" if way == "auto" else way
    found = describe(path)
    columns, users = list(found.columns.values()), users or found.n_rows

    def column(j: int) -> Column:
        return normalize(columns[j][:users], way, -1.0, 1.0)

    return Dataset("data", path.name, users, len(columns), way, column)


def describe(path: Path) -> OwnFile:
    """The numeric columns of a file; an error names a column with missing values."""
    import pyarrow as pa
    import pyarrow.types as kinds

    from hdr4me.io.reading import read_table
    from hdr4me.io.text import is_header

    if not path.is_file():
        raise InvalidInput.of("data", str(path), "there is no such file")
    table = read_table(path)
    numbers = (kinds.is_integer, kinds.is_floating, kinds.is_boolean)
    used = {
        field.name: table.column(field.name).cast(pa.float64(), safe=False).to_numpy()
        for field in table.schema
        if any(test(field.type) for test in numbers)
    }
    names = table.column_names
    if not is_header(names, list(used), ()):  # the first line may be a record
        names = [f"column {j}" for j in range(1, len(names) + 1)]
    shown = dict(zip(table.column_names, names, strict=True))
    others = tuple(shown[name] for name in table.column_names if name not in used)
    if not used:
        raise FormatError(f"{path.name} has no numeric column among {len(names)}")
    if table.num_rows < 2:
        raise FormatError(f"{path.name}: at least two rows are needed, found {table.num_rows}")
    for name, values in used.items():
        bad = int(np.sum(~np.isfinite(values)))
        if bad:
            raise FormatError(
                f"{path.name}, column {shown[name]!r}: {bad} of {table.num_rows} values are missing or not finite; "
                "fill them in or leave the column out of the file"
            )
    return OwnFile(table.num_rows, used, others)
