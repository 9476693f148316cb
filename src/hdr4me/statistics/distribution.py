"""How a number's values are spread: shares in bins, cumulative shares, and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.statistics.readings import shows_shape, why_no_shape
from hdr4me.statistics.shapes import Shape, shapes
from hdr4me.statistics.statistic import Counted, Intervals, Part, Statistic, no_more
from hdr4me.survey import Dimension

__all__ = [
    "CDF",
    "DISTRIBUTION",
    "HISTOGRAM",
    "KINDS",
    "QUANTILE",
    "Spread",
    "check_kind",
    "ends_of",
]

Floats = NDArray[np.float64]
Bins = tuple[tuple[str, ...], Floats, Floats]
"""Labels, and both ends of each bin on [−1, 1]."""
KINDS = ("honest", "short")
"""Intervals that hold for every distribution, and shorter ones that assume a distribution without spikes."""
_SPIKES = "the values seem to have spikes: the short interval, which assumes none, may miss"


_GRID = np.linspace(-1.0, 1.0, 257)
"""Intervals end on this grid, rounded outwards."""
_COARSE = 8
_EDGE = 0.05
"""A quantile nearer to an end of the range than this share of the range is flagged."""
_TAIL = 0.1
"""So is one with less than this share of the values between it and the end."""


class Spread(Statistic):
    """What statistics of a fitted shape have in common."""

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return shows_shape(dimension, channel)

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        return why_no_shape(self.name, dimension, channel)

    def shares(
        self,
        counted: Counted,
        dimensions: Sequence[int],
        bins_of: Callable[[Dimension], Bins],
        **options: Any,
    ) -> list[Part]:
        """The shares of the values in the bins of each dimension."""
        no_more(self, options)
        bins = {j: bins_of(counted.survey.schema.dimensions[j]) for j in dimensions}
        found = shapes(counted, dimensions, options.get("progress"))
        return [
            _part(j, labels, found[j], low, high) if j in found else _unknown(counted, j, labels)
            for j, (labels, low, high) in bins.items()
        ]


class Histogram(Spread):
    """The share of values in each bin between given edges, in the dimension's own units."""

    name = "histogram"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        edges = _numbers("edges", options.pop("edges", None), "two or more increasing numbers in the range")
        if edges.size < 2 or (np.diff(edges) <= 0).any():
            raise InvalidInput.of("edges", edges.tolist(), "two or more increasing numbers")
        return self.shares(counted, dimensions, lambda dimension: _between(dimension, edges), **options)


class Distribution(Spread):
    """The share of values in equal bins of the range."""

    name = "distribution"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        bins = options.pop("bins", 20)
        if type(bins) is not int or not 2 <= bins <= 1000:
            raise InvalidInput.of("bins", bins, "an integer from 2 to 1000")

        def equal(dimension: Dimension) -> Bins:
            return _between(dimension, np.linspace(*dimension.bounds, bins + 1))

        return self.shares(counted, dimensions, equal, **options)


class Cumulative(Spread):
    """The share of values up to each x, in the dimension's own units."""

    name = "cdf"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        x = _numbers("x", options.pop("x", None), "numbers in the range")

        def up_to(dimension: Dimension) -> Bins:
            at = _scaled(dimension, x, "x")
            return tuple(f"≤ {value:.6g}" for value in x), np.full_like(at, -1.0), at

        return self.shares(counted, dimensions, up_to, **options)


class Quantile(Spread):
    """The value that a share p of the values lies below.

    The honest interval, which is the default, holds for every distribution. The short one assumes that there are no
    spikes; rows where it is known to mislead are flagged in their notes.
    """

    name = "quantile"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        p = _numbers("p", options.pop("p", (0.25, 0.5, 0.75)), "shares strictly between 0 and 1")
        if p.min() <= 0.0 or p.max() >= 1.0:
            raise InvalidInput.of("p", p.tolist(), "shares strictly between 0 and 1")
        no_more(self, options)
        labels = tuple(f"{share:.6g}" for share in p)
        found = shapes(counted, dimensions, options.get("progress"))
        return [
            _quantiles(j, labels, found[j], p) if j in found else _unknown(counted, j, labels, scaled=True)
            for j in dimensions
        ]


HISTOGRAM, DISTRIBUTION, CDF, QUANTILE = Histogram(), Distribution(), Cumulative(), Quantile()


def _between(dimension: Dimension, edges: Floats) -> Bins:
    at = _scaled(dimension, edges, "edges")
    return tuple(f"{a:.6g} to {b:.6g}" for a, b in pairwise(edges.tolist())), at[:-1], at[1:]


def _part(j: int, labels: tuple[str, ...], shape: Shape, low: Floats, high: Floats) -> Part:
    """The shares of intervals by the fit, with both kinds of intervals."""
    value = shape.cdf(high) - shape.cdf(low)
    r = int(shape.counts.sum())

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        check_kind(kind)
        pairs = [
            shape.bounds.share(shape.counts, a, b, level, even=kind == "short")
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ]
        lower, upper = np.array(pairs).T
        return np.minimum(lower, value), np.maximum(upper, value)

    notes = (_SPIKES if shape.spiky else "",) * value.size
    return Part(j, labels, value, np.full(value.size, np.nan), r, intervals=intervals, notes=notes)


def _unknown(counted: Counted, j: int, labels: tuple[str, ...], *, scaled: bool = False) -> Part:
    """Rows of a dimension with fewer than two reports."""
    nothing = np.full(len(labels), np.nan)
    q = counted.survey.question_of(j)
    answers = int(counted.layout.of_question(counted.counts, q).sum())
    return Part(j, labels, nothing, nothing, answers, scaled=scaled, intervals=_nowhere(len(labels)))


def _nowhere(size: int) -> Intervals:
    return lambda level, kind: (np.full(size, np.nan), np.full(size, np.nan))


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


def _quantiles(j: int, labels: tuple[str, ...], shape: Shape, p: Floats) -> Part:
    value = shape.quantile(p)
    r = int(shape.counts.sum())

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        check_kind(kind)
        pairs = [ends_of(shape, float(share), level, kind == "short") for share in p]
        low, high = np.array(pairs).T
        return np.minimum(low, value), np.maximum(high, value)

    notes = tuple(_flag(shape, float(x), float(share)) for x, share in zip(value, p, strict=True))
    nothing = np.full(p.size, np.nan)
    return Part(j, labels, value, nothing, r, scaled=True, intervals=intervals, notes=notes)


def ends_of(shape: Shape, p: float, level: float, even: bool) -> tuple[float, float]:
    """All x that the bounds on the share up to x do not rule out as the quantile of p.

    If the quantile is at most x, a share of at least p lies up to x. So an upper bound below p puts the quantile above
    x, and a lower bound above p puts it at x or below. The bounds rise with x, or nearly: between two places of a
    coarse grid bisection finds where they cross p.

    If `even`, values are assumed to be evenly spread within stretches: the short interval.
    """

    def side(at: int, upper: bool) -> float:
        return shape.bounds.side(shape.counts, -1.0, float(_GRID[at]), level, upper, even)

    # Where nobody has a value the bounds are flat, and chance may carry them over p and back. Every place that is not
    # ruled out belongs to the interval: a coarse grid is walked from either end to the first such place.
    last = len(_GRID) - 1
    low = next((at for at in range(_COARSE, last, _COARSE) if not side(at, True) < p), last) - _COARSE
    high = next((at for at in range(last - _COARSE, 0, -_COARSE) if not side(at, False) > p), 0) + _COARSE
    past = low + _COARSE
    while past - low > 1:
        middle = (low + past) // 2
        low, past = (middle, past) if side(middle, True) < p else (low, middle)
    first = high - _COARSE
    while high - first > 1:
        middle = (first + high) // 2
        first, high = (first, middle) if side(middle, False) > p else (middle, high)
    return float(_GRID[low]), float(_GRID[high])


def _flag(shape: Shape, x: float, p: float) -> str:
    if shape.spiky:
        return _SPIKES
    near = min(1.0 + x, 1.0 - x) / 2 < _EDGE
    if near or min(p, 1.0 - p) < _TAIL:
        return "near an edge: the short interval may miss"
    return ""
