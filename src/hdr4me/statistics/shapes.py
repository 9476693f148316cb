"""The fitted distribution of a number on a grid of bins, and bounds on shares that hold for every distribution.

Give each cell a weight u. The mean weight of the reports estimates ∫ w(t) dF(t), w(t) = Σ_y P(y | t)·u_y. If w is at
least 1 inside an interval and at least 0 outside, the mean weight is an upper bound of the share in expectation,
whatever F is. The weights minimize the upper confidence limit for evenly spread values. They do not depend on the
counts: weights chosen from the counts would give bounds that are too small. Lower bounds have w at most 1 inside and
at most 0 outside. w is linear between levels, so checking the levels and the ends of the interval checks all values.
Approximate bounds assume values spread evenly within each of `STRETCHES` equal subintervals: w must satisfy the
inequality on average over each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from hdr4me.channels import Channel
from hdr4me.channels.response import Marginal
from hdr4me.framework.em import LADDER, climb
from hdr4me.framework.small_samples import gamma_tail, skew_size, weighted_interval
from hdr4me.statistics.intervals import Floats, effective_answers, is_small, quantile
from hdr4me.statistics.statistic import TallyLike, channel_of, counts_of, marginal_of
from hdr4me.survey import Dimension

# The number of bins of a fitted distribution. Neighboring cells are joined until there are at most _CELLS: EM is then
# faster with almost no loss of accuracy (medians of 20,000 values have the same error with 48 to 256 cells).
BINS, _CELLS = 64, 96
# Approximate bounds assume values spread evenly within each of this many equal subintervals of the range.
STRETCHES = 32
# For optional numbers weights are designed for this share of users without a value.
_ABSENT = 0.2
# A design stops after _ROUNDS, or when its error changes by less than the fraction _SETTLED.
_RIDGE, _ROUNDS, _FLAT, _SETTLED = 1e-10, 4, 1e-3, 0.1
# If the rows of a table differ by less than this from those of its mirror image, both sides share their designs.
_MIRROR = 1e-8


def has_law(channel: Channel) -> bool:
    """Whether a report is a single cell whose distribution depends on the value alone."""
    return channel.per_report == 1 and bool(channel.response.marginal().law.size)


def shows_shape(dimension: Dimension, channel: Channel) -> bool:
    """Whether reports carry more information on a number than its mean."""
    # A table of rank 2 carries the mean and nothing else.
    return "mean" in dimension.statistics and has_law(channel) and channel.response.marginal().rank > 2


def why_no_shape(what: str, dimension: Dimension, channel: Channel) -> str:
    """Why `what` cannot be estimated, and what to do instead."""
    refused = f"the {what} of {dimension.name!r} cannot be estimated"
    if dimension.is_category:
        return f"{refused}: it is a category; ask for its frequency"
    return (
        f"{refused} from reports by {channel.mechanism!r}: its "
        f"{getattr(channel, 'n_cells', 'many')} outputs contain information on the mean only. Create the survey with "
        "the mechanism square_wave (best for distributions), piecewise or optimal, at ε above 0.05"
    )


@dataclass
class Bounds:
    """Bounds on shares for one dimension of a table; designed weights are cached."""

    marginal: Marginal
    _kept: dict[tuple[float, float, int, float, bool, bool], tuple[Floats, float]] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        rows = self.marginal.law
        self._mirrored = (
            not self.marginal.optional
            and rows.shape[1] == 1
            and bool(np.allclose(rows, rows[::-1, :, ::-1], rtol=0.0, atol=_MIRROR))
        )

    def share(
        self, counts: Floats, low: float, high: float, level: float = 0.95, *, even: bool = False
    ) -> tuple[float, float]:
        """Bounds on the share of users, among those who have a value, whose value is in [low, high] on [−1, 1]."""
        ends = [self.side(counts, low, high, level, upper, even) for upper in (False, True)]
        least, middle = least_reach(counts, level), sum(ends) / 2
        return max(min(*ends, middle - least / 2), 0.0), min(max(*ends, middle + least / 2), 1.0)

    def side(
        self, counts: Floats, low: float, high: float, level: float, upper: bool, even: bool = False
    ) -> float:
        """One of the two bounds; each fails with probability at most (1 − level)/2."""
        if not self.marginal.optional:
            found = self._bound(counts, low, high, level, upper, even)
        else:
            # The ratio of the share with a value in the interval to the share with a value; each bound has half of the
            # error probability.
            half = (1.0 + level) / 2
            inside = self._bound(counts, low, high, half, upper, even)
            present = self._bound(counts, -1.0, 1.0, half, not upper, even)
            found = inside / min(present, 1.0) if present > 0.0 else float(upper)
        least = least_reach(counts, level)
        return min(max(found, least), 1.0) if upper else max(min(found, 1.0 - least), 0.0)

    def excludes(
        self, counts: Floats, x: Floats, p: float, level: float, upper: bool, even: bool = False
    ) -> NDArray[np.bool_]:
        """Whether the upper bound on the share up to each x is below p, or the lower one above p."""
        r, sign = float(counts.sum()), 1.0 if upper else -1.0
        if not least_reach(counts, level) < (p if upper else 1.0 - p):
            return np.zeros(x.size, bool)
        made = [self._designed(-1.0, at, r, level, upper, even) for at in x.tolist()]
        size = np.array([size for _, size in made])
        present: ArrayLike = 1.0
        if self.marginal.optional:
            present, more = self._designed(-1.0, 1.0, r, level, not upper, even)
            size += p * more
        # With w the weights of users with a value up to x, x is excluded if the mean of w − p·present is below 0.
        gap = sign * (np.stack([u for u, _ in made]) - p * np.asarray(present))
        mean = gap @ counts / r
        error = np.sqrt((gap - mean[:, None]) ** 2 @ counts / (r - 1) / r)
        found = mean + float(quantile(level, r)) * error < 0.0
        small = is_small((r * error / size) ** 2, level) & (mean < 0.0)
        if small.any():
            used, largest = counts > 0, gap[small].max(axis=1, keepdims=True)
            values = np.concatenate([gap[small][:, used], largest], axis=1)
            shapes = np.broadcast_to(np.append(counts[used], 1.0), values.shape)
            tail = gamma_tail(values, shapes, np.zeros(len(values)))[0] < (1.0 - level) / 2
            found[small] = tail | (largest[:, 0] <= 0.0)
        return np.asarray(found)

    def _bound(self, counts: Floats, low: float, high: float, level: float, upper: bool, even: bool) -> float:
        r = float(counts.sum())
        u, size = self._designed(low, high, r, level, upper, even)
        mean = float(counts @ u) / r
        error = float(np.sqrt(counts @ (u - mean) ** 2 / (r - 1) / r))
        # A mean weight below 0 would leave a narrow interval above 0, so the reach counts from 0 on (from 1 down).
        inside = max(mean, 0.0) if upper else min(mean, 1.0)
        if is_small(effective_answers(r, error, size), level):
            return inside - mean + float(weighted_interval(u, counts, level)[upper][0])
        reach = float(quantile(level, r)) * error
        return inside + reach if upper else inside - reach

    def _weights(self, low: float, high: float, r: float, level: float, upper: bool, even: bool) -> Floats:
        """The weights of a bound for about r reports."""
        return self._designed(low, high, r, level, upper, even)[0]

    def _designed(
        self, low: float, high: float, r: float, level: float, upper: bool, even: bool
    ) -> tuple[Floats, float]:
        """Weights for about r reports and their `skew_size`; numbers of reports within a factor of 1.19 share them.

        Any weights that satisfy the inequalities give a valid bound, so sharing costs a little width and no coverage.
        """
        scale = round(2 * np.log2(r))
        key = (low, high, scale, level, upper, even)
        if key in self._kept:
            return self._kept[key]
        law, target = self._target(low, high, upper, even)
        sign, r = 1.0 if upper else -1.0, 2.0 ** (scale / 2)
        if self._mirrored and low == -1.0 and -1.0 < high < 1.0 and not upper:
            # The share up to x is 1 less the share beyond x, which is the share up to −x in the mirror image.
            u = 1.0 - self._weights(-1.0, -high, r, level, True, even)[::-1]
            found = np.asarray(u - max(0.0, float((law @ u - target).max())))
        else:
            found = sign * _design(law, sign * target, self._reference(), r, float(quantile(level, r)))
        self._kept[key] = found, max(skew_size(self.marginal.rows, found), 1e-12)
        return self._kept[key]

    def _target(self, low: float, high: float, upper: bool, even: bool) -> tuple[Floats, Floats]:
        """Rows of the law, and the values that w must reach there (for a lower bound: must not exceed)."""
        marginal = self.marginal
        if even:
            edges = np.linspace(-1.0, 1.0, STRETCHES + 1)
            law = marginal.in_bins(edges)
            inside = np.clip(high, edges[:-1], edges[1:]) - np.clip(low, edges[:-1], edges[1:])
            target = np.repeat(inside / np.diff(edges), law.shape[1])
        else:
            at = np.unique(np.concatenate([marginal.levels, [low, high]]))
            within = (at >= low) & (at <= high)
            if not upper:
                within &= ((at > low) | (low <= -1.0)) & ((at < high) | (high >= 1.0))
            law = marginal.at(at)
            target = np.repeat(within.astype(np.float64), law.shape[1])
        law = law.reshape(-1, law.shape[-1])
        if marginal.optional:
            law = np.concatenate([law, marginal.law[-1]])
            target = np.concatenate([target, np.zeros(len(marginal.law[-1]))])
        return law, target

    def _reference(self) -> Floats:
        """The distribution of a report if values are spread evenly."""
        marginal = self.marginal
        even = marginal.in_bins(np.array([-1.0, 1.0])).mean(axis=(0, 1))
        if not marginal.optional:
            return np.asarray(even)
        return np.asarray((1.0 - _ABSENT) * even + _ABSENT * marginal.law[-1].mean(axis=0))


def least_reach(counts: Floats, level: float) -> float:
    """The Clopper–Pearson bound of a share that no report shows: no bound from as many noisy reports is smaller."""
    return -float(np.expm1(np.log((1.0 - level) / 2) / counts.sum()))


def _design(law: Floats, target: Floats, reference: Floats, r: float, reach: float) -> Floats:
    """Weights u with law @ u ≥ target that minimize mean + reach·error/√r under the reference distribution.

    For a fixed trade-off λ the problem min b·u + λ/2·Σ b(u − m)², m near the mean, is a quadratic program whose dual is
    a non-negative least squares problem. λ = reach/(√r·error) is found by iteration. The solution is shifted by its
    largest violation, so the inequality holds whatever the accuracy of the solver.
    """
    used = reference > 0
    a, b = law[:, used], reference[used]
    gram = (a / b) @ a.T
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram)
    root = cholesky(gram)
    best = np.full(b.size, max(float(target.max()), 0.0))  # always valid, and ignores the reports
    least, mean, error = float(best[0]), 0.5, 1.0
    for _ in range(_ROUNDS):
        trade = reach / (np.sqrt(r) * max(error, _FLAT))
        residual = solve_triangular(root, trade * (target - mean) + 1.0, trans="T")
        dual = nnls(root, residual, maxiter=50 * len(residual))[0]
        u = ((dual @ a) / b - 1.0) / trade + mean
        u += max(0.0, float((target - a @ u).max()))
        mean, before = float(b @ u), error
        error = float(np.sqrt(max(b @ (u - mean) ** 2, 0.0)))
        found = mean + reach * error / np.sqrt(r)
        if found < least:
            best, least = u, found
        if abs(error - before) <= _SETTLED * before:
            break
    weights = np.zeros(reference.size)
    weights[used] = best
    return weights


@dataclass(frozen=True)
class Shape:
    """The distribution of the values of one dimension on [−1, 1], fitted to its counts.

    `states` are the fitted probabilities: bins × inputs of the other dimensions of the question, then "no value".
    `strength` is the smoothing, from 0 to 1.
    """

    counts: Floats
    bounds: Bounds
    grid: Grid
    states: Floats
    strength: float

    @cached_property
    def cumulative(self) -> Floats:
        """The share of values up to each edge of the grid."""
        return np.asarray(self.grid.cumulative(self.states[None, :])[0])

    def cdf(self, x: ArrayLike) -> Floats:
        """The share of values up to x on [−1, 1]."""
        return np.interp(np.asarray(x, np.float64), self.grid.edges, self.cumulative)

    def quantile(self, p: ArrayLike) -> Floats:
        """The value that a share p of the values lies below."""
        p, total, edges = np.asarray(p, np.float64), self.cumulative, self.grid.edges
        left = np.searchsorted(total, p, side="left").clip(1, len(edges) - 1)
        gap = total[left] - total[left - 1]
        # Where the cdf is flat the quantile is the middle of the flat part.
        share = np.divide(p - total[left - 1], gap, out=np.full(np.shape(p), 0.5), where=gap > 0)
        return np.asarray(edges[left - 1] + share * (edges[left] - edges[left - 1]))

    @property
    def spiky(self) -> bool:
        """Whether (almost) unsmoothed fits are best: a sign of atoms, which approximate intervals assume absent."""
        return self.strength <= LADDER[-2]


@dataclass(frozen=True)
class Grid:
    """The grid and the joined cells that all fits of one table share."""

    edges: Floats
    law: Floats
    shape: tuple[int, int]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, marginal: Marginal, bins: int = BINS) -> Grid:
        """The distribution of joined cells given a bin of values, or "no value", and the other dimensions' inputs."""
        edges = np.linspace(-1.0, 1.0, bins + 1)
        own = marginal.in_bins(edges)
        law = own.reshape(-1, own.shape[-1])
        if marginal.optional:
            law = np.concatenate([law, marginal.law[-1]])
        n_cells = law.shape[1]
        starts = np.arange(0, n_cells, -(-n_cells // _CELLS))
        return cls(edges, np.add.reduceat(law, starts, axis=1), (own.shape[0], own.shape[1]), starts)

    def joined(self, counts: Floats) -> Floats:
        """Counts of the joined cells."""
        return np.asarray(np.add.reduceat(counts, self.starts, axis=-1))

    def cumulative(self, states: Floats) -> Floats:
        """Cumulative shares among users who have a value, of shape (rows, edges)."""
        bins, others = self.shape
        own = states[:, : bins * others].reshape(len(states), bins, others).sum(axis=2)
        total = np.cumsum(own, axis=1)
        return np.concatenate([np.zeros((len(own), 1)), total / total[:, -1:]], axis=1)


_bounds = lru_cache(maxsize=64)(Bounds)


def shapes(
    tally: TallyLike, dimensions: Sequence[int], progress: Callable[[int, int], None] | None = None
) -> dict[int, Shape]:
    """The fitted distributions of dimensions with two or more reports; equal tables are fitted together."""
    alike: dict[tuple[int, int], list[int]] = {}
    counts = {j: counts_of(tally, j).astype(np.float64) for j in dimensions}
    for j in dimensions:
        if counts[j].sum() >= 2:
            channel, position = channel_of(tally.survey, j)
            alike.setdefault((id(channel), position), []).append(j)
    fitted: dict[int, Shape] = {}
    n_all = sum(map(len, alike.values()))
    for group in alike.values():
        marginal = marginal_of(tally, group[0])
        grid, bounds, done = Grid.of(marginal), _bounds(marginal), len(fitted)
        joined = grid.joined(np.stack([counts[j] for j in group]))

        def say(n: int, _: int, done: int = done) -> None:
            if progress is not None:
                progress(done + n, n_all)

        fits = climb(joined, grid.law, grid.shape, progress=say)
        for i, j in enumerate(group):
            fitted[j] = Shape(counts[j], bounds, grid, fits.p[i], float(fits.strength[i]))
    return fitted
