"""Quantiles of a number's values: the median, the 90th percentile, …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.statistics.distribution import SPIKES, Spread, check_kind, no_more, numbers, unknown
from hdr4me.statistics.shapes import Shape, shapes
from hdr4me.statistics.statistic import Counted, Part

__all__ = ["QUANTILE", "ends_of"]

Floats = NDArray[np.float64]
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
            _told(j, labels, found[j], p) if j in found else unknown(counted, j, labels, scaled=True)
            for j in dimensions
        ]


QUANTILE = Quantile()


def _told(j: int, labels: tuple[str, ...], shape: Shape, p: Floats) -> Part:
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

    Parameters
    ----------
    shape
        The counts and the bounds of their table.
    p
        The share.
    level
        The probability that the quantile lies within.
    even
        Whether values are taken as evenly spread within stretches: the short interval.
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
