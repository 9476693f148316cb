"""Statistics of the distribution of a number: shares in bins, cdf, quantiles, variance and standard deviation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

from hdr4me.channels import Channel
from hdr4me.channels.response import Marginal
from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import SIGNIFICANT
from hdr4me.framework.small_samples import ratio_interval, skew_size, weighted_interval
from hdr4me.statistics.calibrate import sample_variance
from hdr4me.statistics.intervals import Floats, effective_answers, is_small, quantile
from hdr4me.statistics.shapes import Shape, least_reach, shapes, shows_shape, why_no_shape
from hdr4me.statistics.statistic import Part, Statistic, TallyLike, counts_of, marginal_of
from hdr4me.survey import Dimension

# The labels of the rows, and the function that computes them.
Wanted = tuple[tuple[str, ...], Callable[[int, tuple[str, ...], Shape], Part]]
# Conservative intervals hold for every distribution, approximate ones for distributions without atoms.
KINDS = ("conservative", "approximate")
SPIKES = "the distribution seems to have atoms, which the approximate interval assumes absent"
EDGE = "near an end of the range, where the approximate interval may have low coverage"
# Intervals of quantiles end on this grid, rounded outwards; a coarse grid is searched first.
_GRID, _COARSE, _AT_ONCE = np.linspace(-1.0, 1.0, 257), 8, 8
# A quantile has a note if it is nearer to an end than this share of the range, or if fewer values lie beyond it.
_EDGE, _TAIL = 0.05, 0.1
# A variance must be this many standard errors above 0 before its root has a standard error. Where the mean is not
# known well, its interval has this share of the error probability of a variance: from 0.05 to 0.3 the interval of the
# variance keeps its length within 1.5 %.
_SIGNIFICANT, _SHARE_OF_MEAN = 2.0, 0.2
# V̂ is linear in the error of the mean while the squared error of the mean is below this share of V̂'s own error; beyond
# it the delta method covers as little as 86 % (benchmarks/interval_coverage.py). Shares up to 0.1 would do, because it
# covers 95 % there; the union is up to a sixth longer.
_CURVED = 0.05


class Spread(Statistic):
    """A statistic of a fitted distribution; `wanted` turns its options into the rows of each dimension."""

    def __init__(self, name: str, wanted: Callable[[dict[str, Any]], Callable[[Dimension], Wanted]]) -> None:
        self.name, self.wanted = name, wanted

    def supports(self, dimension: Dimension, channel: Channel) -> bool:
        return shows_shape(dimension, channel)

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        return why_no_shape(self.name, dimension, channel)

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        progress = options.pop("progress", None)
        rows_of = self.wanted(options)
        self.check_options(options)
        rows = {j: rows_of(tally.survey.schema.dimensions[j]) for j in dimensions}
        found = shapes(tally, dimensions, progress)
        parts = [
            part(j, labels, found[j]) if j in found else _unknown(tally, j, labels, self.name == "quantile")
            for j, (labels, part) in rows.items()
        ]
        return [
            part if has_values(tally, part.dimension) else replace(part, not_significant=True)
            for part in parts
        ]


def _histogram(options: dict[str, Any]) -> Callable[[Dimension], Wanted]:
    """The share of values in each bin between given edges, in the dimension's own units."""
    edges = _numbers("edges", options.pop("edges", None), "two or more increasing numbers in the range")
    if edges.size < 2 or (np.diff(edges) <= 0).any():
        raise InvalidInput.of("edges", edges.tolist(), "two or more increasing numbers")
    return lambda dimension: _between(dimension, edges)


def _distribution(options: dict[str, Any]) -> Callable[[Dimension], Wanted]:
    """The share of values in equal bins of the range."""
    bins = options.pop("bins", 20)
    if type(bins) is not int or not 2 <= bins <= 1000:
        raise InvalidInput.of("bins", bins, "an integer from 2 to 1000")
    return lambda dimension: _between(dimension, np.linspace(*dimension.bounds, bins + 1))


def _cumulative(options: dict[str, Any]) -> Callable[[Dimension], Wanted]:
    """The share of values up to each x, in the dimension's own units."""
    x = _numbers("x", options.pop("x", None), "numbers in the range")
    labels = tuple(f"≤ {value:.6g}" for value in x)
    low = np.full_like(x, -1.0)
    return lambda dimension: (labels, partial(_shares, low=low, high=_scaled(dimension, x, "x")))


def _quantile(options: dict[str, Any]) -> Callable[[Dimension], Wanted]:
    """The value that a share p of the values lies below."""
    p = _numbers("p", options.pop("p", (0.25, 0.5, 0.75)), "numbers between 0 and 1, such as 0.5")
    if p.min() <= 0.0 or p.max() >= 1.0:
        raise InvalidInput.of("p", p.tolist(), "numbers between 0 and 1, such as 0.5")
    labels = tuple(f"{share:.6g}" for share in p)
    return lambda _: (labels, partial(_quantiles, p=p))


class Variance(Spread):
    """The variance of the values (for an optional number, among users who have one), or its root.

    With g the decoder of the squared level, V̂ = ḡ − θ̂² − ρ, where ρ is the variance of the random rounding to a
    level. The estimate uses ρ = Δ²/6, which is correct for values spread evenly between levels. The conservative
    interval allows for 0 to Δ²/4, which covers any values.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def supports(self, dimension: Dimension, channel: Channel) -> bool:
        return shows_shape(dimension, channel) and channel.response.marginal().square is not None

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        self.check_options(options)
        return [_variance(tally, j, root=self.name == "sd") for j in dimensions]


HISTOGRAM, DISTRIBUTION = Spread("histogram", _histogram), Spread("distribution", _distribution)
CDF, QUANTILE = Spread("cdf", _cumulative), Spread("quantile", _quantile)
VARIANCE, SD = Variance("variance"), Variance("sd")


def check_kind(kind: str) -> None:
    """One of `KINDS`."""
    if kind not in KINDS:
        raise InvalidInput.of("kind", kind, f"one of {', '.join(KINDS)}")


def _numbers(name: str, given: Any, allowed: str) -> Floats:
    """An array of finite numbers, or InvalidInput that names the option."""
    try:
        found = np.atleast_1d(np.asarray(given, np.float64))
    except (TypeError, ValueError):
        raise InvalidInput.of(name, given, allowed) from None
    if given is None or found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise InvalidInput.of(name, given, allowed)
    return found


def _scaled(dimension: Dimension, values: Floats, name: str) -> Floats:
    low, high = dimension.bounds
    if values.min() < low or values.max() > high:
        allowed = f"inside the range of {dimension.name!r}, {low:g} to {high:g}"
        raise InvalidInput.of(name, values.tolist(), allowed)
    return np.clip((values - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0)


def _between(dimension: Dimension, edges: Floats) -> Wanted:
    at = _scaled(dimension, edges, "edges")
    labels = tuple(f"{a:.6g} to {b:.6g}" for a, b in pairwise(edges.tolist()))
    return labels, partial(_shares, low=at[:-1], high=at[1:])


def _unknown(tally: TallyLike, j: int, labels: tuple[str, ...], scaled: bool) -> Part:
    """Rows of a dimension with fewer than two reports."""
    nothing = np.full(len(labels), np.nan)
    answers = int(counts_of(tally, j).sum())
    return Part(j, labels, nothing, nothing, answers, scaled, intervals=lambda *_: (nothing, nothing))


def _with_intervals(
    j: int,
    labels: tuple[str, ...],
    shape: Shape,
    value: Floats,
    ends: Callable[[float, bool, int], Any],
    **more: Any,
) -> Part:
    """A part with both kinds of intervals; `ends` maps (level, whether values are spread evenly, row) to them."""

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        check_kind(kind)
        low, high = np.array([ends(level, kind == "approximate", i) for i in range(value.size)]).T
        return np.minimum(low, value), np.maximum(high, value)

    nothing = np.full(value.size, np.nan)
    return Part(j, labels, value, nothing, int(shape.counts.sum()), intervals=intervals, **more)


def _shares(j: int, labels: tuple[str, ...], shape: Shape, low: Floats, high: Floats) -> Part:
    """The shares of intervals under the fitted distribution."""

    def ends(level: float, even: bool, i: int) -> tuple[float, float]:
        return shape.bounds.share(shape.counts, float(low[i]), float(high[i]), level, even=even)

    notes = (SPIKES if shape.spiky else "",) * low.size
    return _with_intervals(j, labels, shape, shape.cdf(high) - shape.cdf(low), ends, notes=notes)


def _quantiles(j: int, labels: tuple[str, ...], shape: Shape, p: Floats) -> Part:
    def flag(x: float, p: float) -> str:
        if shape.spiky:
            return SPIKES
        near = min(1.0 + x, 1.0 - x) / 2 < _EDGE or min(p, 1.0 - p) < _TAIL
        return EDGE if near else ""

    def ends(level: float, even: bool, i: int) -> tuple[float, float]:
        return ends_of(shape, float(p[i]), level, even)

    value = shape.quantile(p)
    notes = tuple(flag(x, share) for x, share in zip(value.tolist(), p.tolist(), strict=True))
    return _with_intervals(j, labels, shape, value, ends, scaled=True, notes=notes)


def ends_of(shape: Shape, p: float, level: float, even: bool) -> tuple[float, float]:
    """All x that the bounds on the share up to x do not exclude as the quantile of p.

    If the upper bound is below p, the quantile lies above x; if the lower bound is above p, it lies at x or below.
    """

    def kept(at: range, upper: bool) -> list[int]:
        excluded = shape.bounds.excludes(
            shape.counts, _GRID[at.start : at.stop : at.step], p, level, upper, even
        )
        return [i for i, out in zip(at, excluded.tolist(), strict=True) if not out]

    def first(grid: range, upper: bool, otherwise: int) -> int:
        chunks = (grid[i : i + _AT_ONCE] for i in range(0, len(grid), _AT_ONCE))
        return next((found[0] for chunk in chunks if (found := kept(chunk, upper))), otherwise)

    # Where no values lie, the bounds are flat and noise may move them above p and back. Every x that is not excluded
    # belongs to the interval, so a coarse grid is searched from either end for the first such x.
    last = len(_GRID) - 1
    low = first(range(_COARSE, last, _COARSE), True, last) - _COARSE
    high = first(range(last - _COARSE, 0, -_COARSE), False, 0) + _COARSE
    inside = range(1, _COARSE)
    low += bisect_left(inside, True, key=lambda step: bool(kept(range(low + step, low + step + 1), True)))
    high -= bisect_left(inside, True, key=lambda step: bool(kept(range(high - step, high - step + 1), False)))
    return float(_GRID[low]), float(_GRID[high])


def has_values(tally: TallyLike, j: int) -> bool:
    """Whether the share of users with a value is significantly above 0; true for numbers that are not optional."""
    marginal, counts = marginal_of(tally, j), counts_of(tally, j).astype(np.float64)
    if not marginal.optional or counts.sum() < 2:
        return True
    present, r = marginal.decoders["present"], float(counts.sum())
    return bool(counts @ present / r > SIGNIFICANT * np.sqrt(sample_variance(counts, present) / r))


def _variance(tally: TallyLike, j: int, *, root: bool) -> Part:
    """The variance or its root.

    With m the mean, V = E[(x − m)²]: for a known m it is a mean of decoded reports, and m is known up to its own
    interval. In small samples, and where the mean is not known well, the interval of V is therefore the union of those
    of E[(x − m)²] over an interval of m.
    """
    marginal, counts = marginal_of(tally, j), counts_of(tally, j).astype(np.float64)
    low, high = tally.survey.schema.dimensions[j].bounds
    unit = (high - low) / 2
    r = float(counts.sum())
    if r < 2:
        return Part(j, (None,), np.array([np.nan]), np.array([np.nan]), int(r))
    value, square = marginal.decoders["value"], marginal.square
    assert square is not None
    present = marginal.decoders.get("present", np.ones(value.size))
    share = float(counts @ present) / r
    if not has_values(tally, j):
        return Part(j, (None,), np.array([np.nan]), np.array([np.nan]), int(r), not_significant=True)
    mean, second = (float(counts @ decode) / r / share for decode in (value, square))
    # To first order V̂ is the mean of `influence` over the reports, divided by the share of users with a value.
    influence = (square - 2 * mean * value - (second - 2 * mean**2) * present) / share
    error = float(np.sqrt(_finite_variance(counts, influence, marginal, tally.n_reports)))
    noise_of_mean = sample_variance(counts, (value - mean * present) / share) / r
    found = (second - mean**2 + noise_of_mean) - marginal.step**2 / 6
    effective = effective_answers(r, error, max(skew_size(marginal.rows, influence), 1e-12))
    linear = noise_of_mean <= _CURVED * error

    def normal(decoders: Floats, level: float) -> tuple[Floats, Floats]:
        """The normal intervals of means among users with a value."""
        ratio = decoders @ counts / r / share
        rest = (decoders - np.outer(ratio, present)) / share
        squared = [_finite_variance(counts, one, marginal, tally.n_reports) for one in rest]
        reach = float(quantile(level, r)) * np.sqrt(squared)
        return ratio - reach, ratio + reach

    def small_sample(decoders: Floats, level: float) -> tuple[Floats, Floats]:
        """The same in small samples."""
        if not marginal.optional:
            return weighted_interval(decoders, counts, level)
        low, high = np.array([ratio_interval(one, present, counts, level) for one in decoders]).T
        return low, high

    def in_units(variance: float) -> float:
        inside = min(max(variance, 0.0), 1.0)
        return float(np.sqrt(inside)) * unit if root else inside * unit**2

    spread = error * unit**2
    if root:
        spread = error / 2 / np.sqrt(found) * unit if found > _SIGNIFICANT * error else np.nan

    def ends(level: float, kind: str) -> tuple[Floats, Floats]:
        check_kind(kind)
        # Rounding may bias V̂ by −Δ²/6 to Δ²/12, so the conservative interval covers [V̂ − Δ²/12, V̂ + Δ²/6].
        below, above = (marginal.step**2 / 12, marginal.step**2 / 6) if kind == "conservative" else (0.0, 0.0)
        small = is_small(effective, level)
        if small or not linear:
            least, most = _over_means(marginal, counts, level, small_sample if small else normal)
            rounding = marginal.step**2 / 6
            least, most = least - rounding - below, most - rounding + above
        else:
            reach = reach_beyond(level, int(r), (below + above) / error if error > 0 else 0.0) * error
            least, most = found - below - reach, found + above + reach
        # An estimate below 0 would leave a narrow interval, or none, above 0: its reach counts from 0 on.
        least, most = min(least, found), max(most, found)
        most = max(most - min(found, 0.0), least_reach(counts, level))
        least -= max(found - 1.0, 0.0)
        return np.array([in_units(least)]), np.array([in_units(most)])

    rows = np.array([in_units(found)]), np.array([spread])
    return Part(j, (None,), *rows, int(r), intervals=ends)


def _over_means(
    marginal: Marginal,
    counts: Floats,
    level: float,
    interval: Callable[[Floats, float], tuple[Floats, Floats]],
) -> tuple[float, float]:
    """Ends for the variance of the rounded values on [−1, 1]: the union of those of E[(x − m)²] over all m.

    `interval` maps decoders and a level to the ends of their means among users with a value.
    """
    value, square = marginal.decoders["value"], marginal.square
    assert square is not None
    present = marginal.decoders.get("present", np.ones(value.size))
    (least,), (most,) = interval(value[None], 1.0 - _SHARE_OF_MEAN * (1.0 - level))
    rest = 1.0 - (1.0 - _SHARE_OF_MEAN) * (1.0 - level)
    middle = float(counts @ value / (counts @ present))
    m = np.clip([[least], [middle], [most]], -1.0, 1.0)
    low, high = interval(square - 2 * m * value + m**2 * present, rest)
    return float(low.min()), float(high.max())


def reach_beyond(level: float, r: float, width: float) -> float:
    """The distance c, in standard errors, between an identified set of the given width and the ends of its interval.

    A truth at one end of the set is missed on that side with probability F(−c) and on the other with F(−c − width),
    where F is Student's t with r − 1 degrees of freedom. c makes the sum 1 − level (Imbens and Manski 2004).
    """
    full, freedom = float(quantile(level, r)), max(r - 1.0, 1.0)

    def missed(c: float) -> float:
        return float(stdtr(freedom, -c) + stdtr(freedom, -c - width)) - (1.0 - level)

    return float(brentq(missed, 0.0, full)) if width > 0.0 and missed(0.0) > 0.0 > missed(full) else full


def _finite_variance(counts: Floats, values: Floats, marginal: Marginal, n: int) -> float:
    """The variance of the mean of `values` over r reports about the n users who reported.

    It is s²/r − (s² − h̄)₊/n with h̄ an estimate of the noise variance of the channel. Where no decoder has the row
    variances as means, nothing is subtracted.
    """
    r = float(counts.sum())
    total = sample_variance(counts, values)
    law = marginal.rows
    variances = law @ values**2 - (law @ values) ** 2
    decoder = marginal.decoder(variances)
    if decoder is None:
        return max(total, float(variances.min())) / r
    noise = float(np.clip(counts @ decoder / r, variances.min(), variances.max()))
    total = max(total, noise)
    return total / r - (total - noise) / max(n, r)
