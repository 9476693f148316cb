"""The exact mechanism: a table of integers that IS the mechanism, its proof and its sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels import Table as TableChannel
from hdr4me.channels.proof import BITS, check_epsilon
from hdr4me.channels.response import probabilities
from hdr4me.channels.table.response import Cells
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import Floats, Mechanism

_CHUNK = 1 << 14


@dataclass(frozen=True)
class Certificate:
    """What is proven about a designed table: no ε-LDP mechanism with an unbiased report has a variance below `bound`.

    `achieved` is the table's own variance (rounding to a level and to integers included), for the objective
    "max" the largest over all inputs, for "mean" the mean over inputs uniform on [-1, 1]; `gap` is
    achieved/bound − 1. `proof` holds the multipliers of the programme's dual (levels, μ, ν, π as rows) from which
    the bound follows by arithmetic, if they were kept.
    """

    objective: str
    bound: float
    achieved: float
    proof: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """Infinite where nothing is proven (bound 0)."""
        return self.achieved / self.bound - 1.0 if self.bound > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Table(Mechanism):
    """An integer table: input level i is reported as cell y with probability weights[i, y] / 2^32.

    The levels are equally spaced on [-1, 1], and `decode` is what a cell counts for. A value t between two levels is
    first rounded to one of them at random, so that its expectation is t; the rows' means are the levels, hence
    E[decode | t] = t exactly.

    >>> import numpy as np
    >>> half = 1 << 31
    >>> table = Table("coin", 1.5, np.array([-1.0, 1.0]), np.array([-2.0, 2.0]),
    ...               np.array([[half + half // 2, half // 2], [half // 2, half + half // 2]]))
    >>> table.privacy_loss
    Fraction(3, 1)
    >>> float(table.mean(0.25)), float(table.variance(0.0))
    (0.25, 4.0)
    """

    name: str
    epsilon: float
    levels: Floats
    decode: Floats
    weights: NDArray[np.int64]
    certificate: Certificate | None = None
    privacy_loss: Fraction = field(init=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        put = object.__setattr__
        for attribute, dtype in (("levels", np.float64), ("decode", np.float64), ("weights", np.int64)):
            array = np.array(getattr(self, attribute), dtype=dtype)
            array.flags.writeable = False
            put(self, attribute, array)
        name = f"table {self.name!r}"
        if self.weights.ndim != 2:
            raise InvalidInput(f"{name}: weights of shape {self.weights.shape}; rows and cells are expected")
        if self.levels.shape != (self.n_levels,) or self.decode.shape != (self.n_cells,):
            raise InvalidInput(
                f"{name}: {self.levels.size} levels and {self.decode.size} decoded values "
                f"for {self.n_levels} rows and {self.n_cells} cells"
            )
        if np.abs(self.levels - np.linspace(-1, 1, self.n_levels)).max() > 1e-12:
            raise InvalidInput(f"{name}: levels must be equally spaced from -1 to 1")
        put(self, "privacy_loss", self.channel().loss)

    def channel(self) -> TableChannel:
        """The deployed form of this table, which proves its privacy and its decoding."""
        rows = tuple(map(tuple, self.weights.tolist()))
        return TableChannel(self.name, float(self.epsilon), {"value": tuple(self.decode.tolist())}, rows)

    @property
    def n_levels(self) -> int:
        return int(self.weights.shape[0])

    @property
    def n_cells(self) -> int:
        return int(self.weights.shape[1])

    @cached_property
    def probabilities(self) -> Floats:
        """weights / 2^32, exact in floating point."""
        return probabilities(self.weights)

    @property
    def support(self) -> tuple[float, float]:
        return float(self.decode.min()), float(self.decode.max())

    def _rounding(self, t: ArrayLike) -> tuple[NDArray[np.int64], Floats]:
        """(row i, fraction f): t is reported by row i+1 with probability f and by row i otherwise."""
        low, high = self.domain
        position = (self._values(t) - low) / (high - low) * (self.n_levels - 1)
        row = np.minimum(position.astype(np.int64), self.n_levels - 2)
        return row, position - row

    def law_at(self, t: ArrayLike) -> Floats:
        """P(cell | t), shape t.shape + (n_cells,): the two neighbouring rows, mixed."""
        row, fraction = self._rounding(t)
        p = self.probabilities
        return p[row] + fraction[..., None] * (p[row + 1] - p[row])

    def density(self, x: ArrayLike, t: ArrayLike) -> Floats:
        return np.zeros(np.broadcast_shapes(np.shape(x), self._values(t).shape))

    def atoms(self, t: ArrayLike) -> tuple[Floats, Floats]:
        """The decoded cells and their probabilities, first axis = the cells."""
        mass = np.moveaxis(self.law_at(t), -1, 0)
        place = np.broadcast_to(self.decode.reshape(-1, *[1] * (mass.ndim - 1)), mass.shape)
        return place.copy(), mass

    def cdf(self, x: ArrayLike, t: ArrayLike) -> Floats:
        points, values = np.broadcast_arrays(np.asarray(x, dtype=np.float64), self._values(t))
        place, mass = self.atoms(values)
        return np.asarray(np.where(place <= points, mass, 0.0).sum(axis=0))

    def variance(self, t: ArrayLike) -> Floats:
        """Var[decode | t], with the random rounding to a level: the rows' variances plus (t − level)(next − t)."""
        return self._moment(t, 2)

    def abs_third_moment(self, t: ArrayLike) -> Floats:
        return self._moment(t, 3)

    def _moment(self, t: ArrayLike, power: int) -> Floats:
        """E|decode − t|^power given t; the rows' means agree with t to 1e-12, so no mean is lost to cancellation."""
        values = np.asarray(t, dtype=np.float64)
        flat = values.reshape(-1)
        out = np.empty_like(flat)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            out[part] = (self.law_at(flat[part]) * np.abs(self.decode - flat[part, None]) ** power).sum(
                axis=-1
            )
        return out.reshape(values.shape)

    def max_variance(self) -> float:
        """sup over t of Var[decode | t]: between two levels the variance is a parabola in t, so this is exact."""
        means = self.probabilities @ self.decode
        second = self.probabilities @ self.decode**2
        slope = np.diff(second) / np.diff(means)
        peak = np.clip(slope / 2, means[:-1], means[1:])
        inner = second[:-1] + slope * (peak - means[:-1]) - peak * peak
        return float(max(inner.max(), (second - means * means).max()))

    def mean_variance(self) -> float:
        """Var[decode | t] averaged over t uniform on the domain, in closed form."""
        second = self.probabilities @ self.decode**2
        return float(np.mean((second[:-1] + second[1:]) / 2) - 1.0 / 3.0)

    @cached_property
    def _cells(self) -> Cells:
        return Cells(self.weights)

    def sample_cells(self, t: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        """One cell per value, from the same integers as a deployed client but with `rng`, for simulation.

        The cells are 64-bit numbers of NumPy, which neither a report nor a block of reports accepts: what was seeded is
        never counted as a report.
        """
        row, fraction = self._rounding(t)
        threshold = np.rint(fraction * 65536.0).astype(np.int64)
        row = np.asarray(row + (rng.integers(0, 1 << 16, size=row.shape) < threshold))
        return self._cells.pick(row, rng.integers(0, 1 << BITS, size=row.shape, dtype=np.int64))

    def sample(self, t: ArrayLike, rng: np.random.Generator) -> Floats:
        return self.decode[self.sample_cells(t, rng)]

    def exact(self) -> Table:
        return self
