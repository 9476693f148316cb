"""Quantiles of a number's values: the median, the 90th percentile, …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.statistics.distribution import Spread, check_kind, no_more, numbers, unknown
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.shapes import Shape, shapes
from hdr4me.statistics.statistic import Counted, Part

__all__ = ["QUANTILE"]

Floats = NDArray[np.float64]
_GRID = np.linspace(-1.0, 1.0, 257)
"""Honest intervals end on this grid, rounded outwards."""
EDGE = 0.05
"""A quantile nearer to an end of the range than this share of the range is flagged."""
TAIL = 0.1
"""So is one with less than this share of the values between it and the end."""


class Quantile(Spread):
    """The value that a share p of the values lies below.

    The honest interval, which is the default, holds for every distribution; the short one comes from the fitted
    shape and is flagged in the rows' notes where the fit is known to mislead.
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
        if kind == "short":
            reach = shape.short_quantile(p, float(quantile(level, r)))
            return np.maximum(value - reach, -1.0), np.minimum(value + reach, 1.0)
        pairs = [_honest(shape, float(share), level) for share in p]
        low, high = np.array(pairs).T
        return np.minimum(low, value), np.maximum(high, value)

    notes = tuple(_flag(float(x), float(share)) for x, share in zip(value, p, strict=True))
    nothing = np.full(p.size, np.nan)
    return Part(j, labels, value, nothing, r, scaled=True, intervals=intervals, notes=notes)


def _honest(shape: Shape, p: float, level: float) -> tuple[float, float]:
    """All x that the bounds on the share up to x do not rule out as the quantile of p.

    If the quantile is below x, a share p or more lies up to x, which the upper bound at x then allows: x with an upper
    bound below p are below the quantile, and x with a lower bound above p are above it.
    """

    def upper(x: float) -> float:
        return shape.bounds.share(shape.counts, -1.0, x, level)[1]

    def lower(x: float) -> float:
        return shape.bounds.share(shape.counts, -1.0, x, level)[0]

    last = len(_GRID) - 1
    first, past = 0, last  # upper(first) < p is not known at 0, which is the range's end
    while past - first > 1:
        middle = (first + past) // 2
        first, past = (middle, past) if upper(float(_GRID[middle])) < p else (first, middle)
    low = first
    first, past = low, last
    while past - first > 1:
        middle = (first + past) // 2
        first, past = (first, middle) if lower(float(_GRID[middle])) > p else (middle, past)
    return float(_GRID[low]), float(_GRID[past])


def _flag(x: float, p: float) -> str:
    near = min(1.0 + x, 1.0 - x) / 2 < EDGE
    if near or min(p, 1.0 - p) < TAIL:
        return "near an edge: the short interval may miss"
    return ""
