"""How a number's values are spread: shares in bins, and cumulative shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.statistics.shapes import Shape, shapes, shows_shape, why_no_shape
from hdr4me.statistics.statistic import Counted, Intervals, Part, Statistic
from hdr4me.survey import Dimension

Floats = NDArray[np.float64]
KINDS = ("honest", "short")
"""Intervals that hold for every distribution, and shorter ones that assume a distribution without spikes."""
SPIKES = "the values seem to have spikes: the short interval, which assumes none, may miss"


class Spread(Statistic):
    """What statistics of a fitted shape have in common."""

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return shows_shape(dimension, channel)

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        return why_no_shape(self.name, dimension, channel)


class Histogram(Spread):
    """The share of values in each bin between given edges, in the dimension's own units."""

    name = "histogram"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        edges = numbers("edges", options.pop("edges", None), "two or more increasing numbers in the range")
        if edges.size < 2 or (np.diff(edges) <= 0).any():
            raise InvalidInput.of("edges", edges.tolist(), "two or more increasing numbers")
        return _shares(counted, dimensions, lambda j: edges, **options)


class Distribution(Spread):
    """The share of values in equal bins of the range."""

    name = "distribution"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        bins = options.pop("bins", 20)
        if type(bins) is not int or not 2 <= bins <= 1000:
            raise InvalidInput.of("bins", bins, "a whole number from 2 to 1000")

        def edges(j: int) -> Floats:
            low, high = counted.survey.schema.dimensions[j].bounds
            return np.linspace(low, high, bins + 1)

        return _shares(counted, dimensions, edges, **options)


class Cumulative(Spread):
    """The share of values up to each x, in the dimension's own units."""

    name = "cdf"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        x = numbers("x", options.pop("x", None), "numbers in the range")
        no_more(options)
        found = shapes(counted, dimensions, options.get("progress"))
        made = []
        for j in dimensions:
            at = _scaled(counted, j, x, "x")
            labels = tuple(f"≤ {value:.6g}" for value in x)
            shape = found.get(j)
            if shape is None:
                made.append(unknown(counted, j, labels))
                continue
            made.append(_told(j, labels, shape, np.full_like(at, -1.0), at))
        return made


HISTOGRAM, DISTRIBUTION, CDF = Histogram(), Distribution(), Cumulative()


def _shares(
    counted: Counted, dimensions: Sequence[int], edges_of: Callable[[int], Floats], **options: Any
) -> list[Part]:
    no_more(options)
    found = shapes(counted, dimensions, options.get("progress"))
    made = []
    for j in dimensions:
        edges = edges_of(j)
        at = _scaled(counted, j, edges, "edges")
        labels = tuple(f"{a:.6g} to {b:.6g}" for a, b in pairwise(edges.tolist()))
        shape = found.get(j)
        made.append(
            unknown(counted, j, labels) if shape is None else _told(j, labels, shape, at[:-1], at[1:])
        )
    return made


def _told(j: int, labels: tuple[str, ...], shape: Shape, low: Floats, high: Floats) -> Part:
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

    notes = (SPIKES if shape.spiky else "",) * value.size
    return Part(j, labels, value, np.full(value.size, np.nan), r, intervals=intervals, notes=notes)


def unknown(counted: Counted, j: int, labels: tuple[str, ...], *, scaled: bool = False) -> Part:
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


def numbers(name: str, given: Any, allowed: str) -> Floats:
    """An array of finite numbers, or InvalidInput that names the option."""
    try:
        found = np.atleast_1d(np.asarray(given, np.float64))
    except (TypeError, ValueError):
        raise InvalidInput.of(name, given, allowed) from None
    if given is None or found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise InvalidInput.of(name, given, allowed)
    return found


def _scaled(counted: Counted, j: int, values: Floats, name: str) -> Floats:
    dimension = counted.survey.schema.dimensions[j]
    low, high = dimension.bounds
    if values.min() < low or values.max() > high:
        raise InvalidInput.of(
            name, values.tolist(), f"inside the range of {dimension.name!r}, {low:g} to {high:g}"
        )
    return np.clip((values - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0)


def no_more(options: dict[str, Any]) -> None:
    """Refuse options that are left over; `progress` is one of every statistic of a shape."""
    more = set(options) - {"progress"}
    if more:
        raise InvalidInput(f"option {min(more)!r} is not one of this statistic")


_GRID = np.linspace(-1.0, 1.0, 257)
"""Intervals end on this grid, rounded outwards."""
_COARSE = 8
EDGE = 0.05
"""A quantile nearer to an end of the range than this share of the range is flagged."""
TAIL = 0.1
"""So is one with less than this share of the values between it and the end."""


class Quantile(Spread):
    """The value that a share p of the values lies below.

    The honest interval, which is the default, holds for every distribution. The short one assumes that there are no
    spikes; rows where it is known to mislead are flagged in their notes.
    """

    name = "quantile"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        p = numbers("p", options.pop("p", (0.25, 0.5, 0.75)), "shares strictly between 0 and 1")
        if p.min() <= 0.0 or p.max() >= 1.0:
            raise InvalidInput.of("p", p.tolist(), "shares strictly between 0 and 1")
        no_more(options)
        labels = tuple(f"{share:.6g}" for share in p)
        found = shapes(counted, dimensions, options.get("progress"))
        return [
            _quantiles(j, labels, found[j], p) if j in found else unknown(counted, j, labels, scaled=True)
            for j in dimensions
        ]


QUANTILE = Quantile()


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
        return SPIKES
    near = min(1.0 + x, 1.0 - x) / 2 < EDGE
    if near or min(p, 1.0 - p) < TAIL:
        return "near an edge: the short interval may miss"
    return ""
