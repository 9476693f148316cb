"""Integer tables as mechanisms: the law of a deployed table, and the construction of such tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels import Table as TableChannel
from hdr4me.channels.proof import BITS, check_epsilon, exp_lower
from hdr4me.channels.response import probabilities
from hdr4me.channels.table.response import Cells
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import Floats, Mechanism

_CHUNK = 1 << 14


@dataclass(frozen=True)
class Certificate:
    """The certificate of a designed table: no ε-LDP mechanism with an unbiased report has a variance below `bound`.

    `achieved` is the table's own variance: for the objective "max" the largest over all inputs, for "mean" the mean
    over inputs uniform on [-1, 1]. The bound follows from `proof`, whose rows are the dual's levels, μ, ν and π.
    """

    objective: str
    bound: float
    achieved: float
    proof: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """achieved/bound − 1; infinite if nothing is proven (bound 0)."""
        return self.achieved / self.bound - 1.0 if self.bound > 0 else math.inf


@dataclass(frozen=True, eq=False)
class TableMechanism(Mechanism):
    """An integer table: input level i is reported as cell y with probability weights[i, y] / 2^32.

    The levels are equally spaced on [-1, 1], and a cell is decoded as the number `decode[y]`. A value t between two
    levels is first rounded to one of them at random, with expectation t; the rows' means are the levels, hence
    E[decode | t] = t exactly.
    """

    name: str
    epsilon: float
    levels: Floats
    decode: Floats
    weights: NDArray[np.int64]
    certificate: Certificate | None = None
    likelihood_ratio: Fraction = field(init=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        for attribute, dtype in (("levels", np.float64), ("decode", np.float64), ("weights", np.int64)):
            array = np.array(getattr(self, attribute), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, attribute, array)
        name = f"table {self.name!r}"
        if self.weights.ndim != 2:
            raise InvalidInput(f"{name}: weights of shape {self.weights.shape}; rows and cells are expected")
        if self.levels.shape != (self.n_levels,) or self.decode.shape != (self.n_cells,):
            sizes = f"{self.levels.size} levels and {self.decode.size} decoded values"
            raise InvalidInput(f"{name}: {sizes} for {self.n_levels} rows and {self.n_cells} cells")
        if np.abs(self.levels - np.linspace(-1, 1, self.n_levels)).max() > 1e-12:
            raise InvalidInput(f"{name}: levels must be equally spaced from -1 to 1")
        object.__setattr__(self, "likelihood_ratio", self.channel().likelihood_ratio)

    def channel(self) -> TableChannel:
        """The channel of this table, whose constructor verifies privacy and unbiasedness."""
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
        """(row i, fraction f): t uses row i+1 with probability f and row i otherwise."""
        low, high = self.domain
        position = (self._values(t) - low) / (high - low) * (self.n_levels - 1)
        row = np.minimum(position.astype(np.int64), self.n_levels - 2)
        return row, position - row

    def law_at(self, t: ArrayLike) -> Floats:
        """P(cell | t), shape t.shape + (n_cells,): a mixture of the two neighboring rows."""
        row, fraction = self._rounding(t)
        p = self.probabilities
        return p[row] + fraction[..., None] * (p[row + 1] - p[row])

    def density(self, x: ArrayLike, t: ArrayLike) -> Floats:
        return np.zeros(np.broadcast_shapes(np.shape(x), self._values(t).shape))

    def atoms(self, t: ArrayLike) -> tuple[Floats, Floats]:
        """The decoded cells and their probabilities, along the first axis."""
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
        """E|decode − t|^power given t; the mean of the report is t to 1e-12."""
        values = np.asarray(t, dtype=np.float64)
        flat = values.reshape(-1)
        out = np.empty_like(flat)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            distance = np.abs(self.decode - flat[part, None])
            out[part] = (self.law_at(flat[part]) * distance**power).sum(axis=-1)
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

        Reports reject 64-bit integers, so that a seeded cell is never counted as a report.
        """
        row, fraction = self._rounding(t)
        threshold = np.rint(fraction * 65536.0).astype(np.int64)
        row = np.asarray(row + (rng.integers(0, 1 << 16, size=row.shape) < threshold))
        return self._cells.pick(row, rng.integers(0, 1 << BITS, size=row.shape, dtype=np.int64))

    def sample(self, t: ArrayLike, rng: np.random.Generator) -> Floats:
        return self.decode[self.sample_cells(t, rng)]

    def exact(self) -> TableMechanism:
        return self


# -- integer rows with proven ratios and an unbiased decoding, rounded from real rows ----------------------------

_INDEPENDENT = 1e-6  # singular values below this share of the largest are treated as 0
_EXACT, _MOVES, _CELLS = 1e-14, 100, 64

Integers = NDArray[np.int64]


def round_rows(rows: Floats, epsilon: float, total: int = 1 << BITS) -> Integers:
    """Integer rows near total·rows that sum to `total` and whose column ratios are proven to be at most e^ε.

    Each column y has the floor f_y = max(1, ⌈total·min_i P(y|i)⌉) and the ceiling c_y = ⌊r·f_y⌋ with r ≤ e^ε rational,
    so that f_y ≤ w_iy ≤ c_y implies a column ratio of at most r. A row with sum `total` exists if and only if
    Σ f_y ≤ total ≤ Σ c_y. If Σ f_y > total, floors are lowered (never below 1). If Σ c_y < total, floors are raised by
    one; for ε-private rows twice is sufficient, since f_y ≥ total·min + 1 implies
    Σ c_y ≥ Σ (r·f_y − 1) ≥ total·r·Σ min ≥ total. Rows that are not private are an error. Each row is its rounded
    target clamped between floors and ceilings; the difference to `total` is distributed over the cells with slack.
    """
    ratio = exp_lower(epsilon)
    target = rows * float(total)
    floors = np.maximum(1, np.ceil(target.min(axis=0))).astype(np.int64)
    if floors.size > total:
        raise InvalidInput(f"{floors.size} cells are not allowed: at most {total} fit into a row of that sum")
    excess = int(floors.sum()) - total
    if excess > 0:
        floors -= _deal(excess, floors - 1)
    ceilings = _ceilings(floors, ratio, total)
    for _ in range(3):
        if int(ceilings.sum()) >= total:
            break
        floors[: total - int(floors.sum())] += 1
        ceilings = _ceilings(floors, ratio, total)
    else:
        raise InvalidInput(
            f"the rows are not private at epsilon = {epsilon}: no integer rows keep that ratio"
        )
    return np.stack([_fit(row, floors, ceilings, total) for row in target])


def _ceilings(floors: Integers, ratio: Fraction, total: int) -> Integers:
    """⌊ratio·f⌋ in exact arithmetic, at most `total`."""
    top, bottom = ratio.numerator, ratio.denominator
    return np.array([min(total, int(f) * top // bottom) for f in floors.tolist()], dtype=np.int64)


def _fit(target: Floats, floors: Integers, ceilings: Integers, total: int) -> Integers:
    """One row: the rounded target within its limits, with the difference to `total` distributed."""
    row = np.clip(np.rint(target), floors, ceilings).astype(np.int64)
    lack = total - int(row.sum())
    return row + _deal(lack, ceilings - row) if lack >= 0 else row - _deal(-lack, row - floors)


def _deal(units: int, slack: Integers) -> Integers:
    """`units` distributed in proportion to `slack`, at most `slack` each; needs units ≤ Σ slack."""
    if units == 0:
        return np.zeros_like(slack)
    available = int(slack.sum())
    shares = np.array([units * r // available for r in slack.tolist()], dtype=np.int64)
    # Each share is less than one below units·slack/available ≤ slack, so enough cells have slack for the remainder.
    shares[np.flatnonzero(shares < slack)[: units - int(shares.sum())]] += 1
    return shares


def unbiased_decode(
    weights: Integers, decode: Floats, levels: Floats, prior: Floats | None = None, *, rcond: float = 1e-14
) -> Floats:
    """`decode` with the smallest change, in the norm of the average row, after which every row's mean is its level.

    With P the rows, D the diagonal of their average (over `prior`) and r = levels − P·decode, the change is
    D⁻¹Pᵀ(P·D⁻¹·Pᵀ)⁻¹·r, by the pseudo-inverse of P·D^(−1/2) with cut-off `rcond`, refined to rounding level. From a
    `decode` of zeros this gives the decoding of least mean square over the prior.
    """
    rows = probabilities(weights)
    average = rows.mean(axis=0) if prior is None else prior @ rows
    root = np.sqrt(np.maximum(average, 2.0**-BITS))
    solve = np.linalg.pinv(rows / root, rcond=rcond)
    for _ in range(3):
        decode = decode + (solve @ (levels - rows @ decode)) / root
    return decode


def unbiased_rows(
    rows: Floats, epsilon: float, inputs: Floats, decoders: Floats, prior: Floats | None = None
) -> tuple[Integers, Floats]:
    """Integer rows near `rows`, and decoders near `decoders`, whose means are the inputs.

    If rows are linearly dependent, no decoder gives all rounded rows the right mean. Then single units are moved
    between the cells of a row until its means are right.
    """
    weights = round_rows(rows, epsilon)
    for _ in range(3):
        pairs = zip(decoders.T, inputs.T, strict=True)
        columns = [unbiased_decode(weights, y, x, prior, rcond=_INDEPENDENT) for y, x in pairs]
        decoders = np.stack(columns, axis=1)
        if np.abs(probabilities(weights) @ decoders - inputs).max() < _EXACT:
            break
        weights = _moved(weights, decoders, inputs, epsilon)
    return weights, decoders


def _moved(weights: Integers, decoders: Floats, inputs: Floats, epsilon: float) -> Integers:
    """The rows with single units moved between cells; each move is the one that reduces the bias most.

    Columns keep their smallest weight f and stay at or below ⌊r·f⌋ with r ≤ e^ε rational, which preserves privacy.
    """
    floors = weights.min(axis=0)
    ceilings = _ceilings(floors, exp_lower(epsilon), 1 << BITS)
    some = np.unique(np.linspace(0, weights.shape[1] - 1, _CELLS).astype(np.int64))
    step = np.ldexp(decoders[None, some, :] - decoders[some, None, :], -BITS)  # from a to b
    moved = weights.copy()
    for row, wanted in zip(moved, inputs, strict=True):
        for _ in range(_MOVES):
            miss = probabilities(row) @ decoders - wanted
            if np.abs(miss).max() < _EXACT:
                break
            after = np.abs(miss + step).max(axis=2)
            after[(row <= floors)[some], :] = np.inf
            after[:, (row >= ceilings)[some]] = np.inf
            a, b = np.unravel_index(int(after.argmin()), after.shape)
            if after[a, b] >= np.abs(miss).max():
                break
            row[some[a]] -= 1
            row[some[b]] += 1
    return moved


# -- windows --------------------------------------------------------------------------------------------------


def window(
    epsilon: float, n_cells: int, width: int, total: int = 1 << BITS
) -> tuple[Floats, Floats, Integers]:
    """(levels, decode, weights) of a window of `width` heavy cells among `n_cells`, with rows that sum to `total`.

    Light cells weigh B, heavy ones A, and the first ρ heavy ones A + 1, so that (N−W)·B + W·A + ρ = total with
    0 ≤ ρ < W. B is the least integer with A + 1 ≤ r·B (A ≤ r·B if ρ = 0), r ≤ e^ε rational. The pattern moves by one
    cell per level, so that the mean of an equally spaced decoding is affine in the level.
    """
    if not 1 <= width < n_cells:
        raise InvalidInput.of("width", width, f"it must be at least 1 and below n_cells = {n_cells}")
    ratio = exp_lower(epsilon)
    top, bottom = ratio.numerator, ratio.denominator
    light = -(-total * bottom // ((n_cells - width) * bottom + width * top))  # (N−W)·B + W·r·B ≥ total
    while True:
        heavy, rest = divmod(total - (n_cells - width) * light, width)
        if (heavy + (rest > 0)) * bottom <= top * light:
            break
        light += 1
    moved = (heavy - light) * width + rest
    if heavy < light or moved <= 0:
        more = (
            f"{BITS} bits cannot represent it with {n_cells} cells; use more than {2 * n_cells / total:.1e}"
        )
        raise InvalidInput(f"epsilon = {epsilon} is not allowed: {more}")
    n_levels = n_cells - width + 1
    weights = np.full((n_levels, n_cells), light, dtype=np.int64)
    for i in range(n_levels):
        weights[i, i : i + width] = heavy
        weights[i, i : i + rest] += 1
    step = 2.0 / (n_levels - 1) * (total / moved)
    # The mean of the cell numbers in the first row, with integers until the last division.
    center = sum(int(w) * y for y, w in enumerate(weights[0].tolist()))
    decode = np.array([-1.0 + step * ((y * total - center) / total) for y in range(n_cells)])
    return np.linspace(-1.0, 1.0, n_levels), decode, weights


def window_table(name: str, epsilon: float, n_cells: int, width: int) -> TableMechanism:
    """The window as a table."""
    levels, decode, weights = window(epsilon, n_cells, width)
    return TableMechanism(name, epsilon, levels, decode, weights)


def duchi_table(name: str, epsilon: float) -> TableMechanism:
    """Duchi's mechanism as a window of one heavy cell among two."""
    return window_table(name, epsilon, n_cells=2, width=1)


def binary(epsilon: float, n_levels: int, total: int) -> tuple[Floats, Integers]:
    """(decode, weights) of Duchi's two cells for many levels, with equal integer steps between the levels."""
    _, _, ends = window(epsilon, 2, 1, total)
    low, high = int(ends[0, 1]), int(ends[0, 0])
    step = (high - low) // (n_levels - 1)
    if step < 1:
        raise InvalidInput.of(
            "epsilon",
            epsilon,
            f"use a larger budget: rows that sum to {total} cannot have {n_levels} different levels",
        )
    middle = (low + high - step * (n_levels - 1)) // 2
    first = middle + step * np.arange(n_levels, dtype=np.int64)
    weights = np.stack([total - first, first], axis=1)
    bound = total / (step * (n_levels - 1))
    shift = bound * (2 * middle + step * (n_levels - 1) - total) / total
    return np.array([-bound - shift, bound - shift]), weights
