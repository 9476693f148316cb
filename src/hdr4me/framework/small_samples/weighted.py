"""An interval for a mean behind bounded reports that holds for few reports and any skewness (Gaffke 2005).

Reports took the values y_k, c_k times. For the upper end one more report is imagined at the largest value that a report
can take, and the reports are given random weights, uniform among all weights that sum to 1: a Dirichlet law with the
parameters c_k. The upper end at α/2 is the weighted mean's upper quantile; the lower end is the same, turned round.

With two values the ends are Clopper's and Pearson's. That the interval holds for any law on a bounded
range is proved for two values, and supported by every case examined otherwise (Learned-Miller and Thomas 2020);
`benchmarks/few_reports.py` measures it for the tables used here.

A weighted mean exceeds m if Σ g_k·(y_k − m) > 0 with g_k ~ Gamma(c_k) independent. The probability is Lugannani's and
Rice's (1980) at the saddlepoint of −Σ c_k·log(1 − s(y_k − m)), whose error is some thousandths of the probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from hdr4me.framework.small_samples.intervals import share_interval

Floats = NDArray[np.float64]
_NEWTON, _OUTER, _HALVINGS = 80, 60, 20
_ROWS = 1024


def above_zero(values: Floats, shapes: Floats) -> Floats:
    """P(Σ g_k·z_k > 0) for each row, g_k ~ Gamma(shape_k); each row has values of both signs with shapes above 0.

    >>> probability = above_zero(np.array([[-1.0, 1.0]]), np.array([[3.0, 3.0]]))
    >>> probability.round(6).tolist()
    [0.5]
    """
    return _tail(values, shapes, np.zeros(len(values)))[0]


def _tail(values: Floats, shapes: Floats, start: Floats) -> tuple[Floats, Floats]:
    """The probability and the saddlepoint, which is searched from `start`."""
    used = shapes > 0
    low = 1 / np.where(used, values, np.inf).min(axis=1)
    high = 1 / np.where(used, values, -np.inf).max(axis=1)
    span = high - low
    s = np.where((start > low) & (start < high), start, 0.0)
    for _ in range(_NEWTON):
        term = values / (1 - s[:, None] * values)
        part = shapes * term
        slope, curve = part.sum(axis=1), (part * term).sum(axis=1)
        low, high = np.where(slope < 0, s, low), np.where(slope > 0, s, high)
        step = s - slope / curve
        moved = np.where((step > low) & (step < high), step, (low + high) / 2)
        near = np.abs(moved - s) <= 1e-9 * span
        s = np.where(slope == 0, s, moved)
        if (near | (slope == 0)).all():
            break
    left = 1 - s[:, None] * values
    height = (shapes * np.log(left)).sum(axis=1)
    curve = (shapes * (values / left) ** 2).sum(axis=1)
    w = np.sign(s) * np.sqrt(2 * np.maximum(height, 0.0))
    u = s * np.sqrt(curve)
    middle = np.abs(w) < 1e-5  # at the mean itself the formula is 0/0, and its limit is near one half
    safe = np.where(middle, 1.0, w)
    tail = np.where(middle, 0.5, ndtr(-(safe + np.log(np.where(middle, 1.0, u) / safe) / safe)))
    return np.asarray(tail), s


def weighted_interval(decode: ArrayLike, counts: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper ends for the mean behind each row of cell counts.

    The smallest and the largest value of a cell bound a report; each row has at least one report.

    >>> low, high = weighted_interval([-2.0, 0.0, 2.0], [[10, 0, 30], [3, 34, 3]])
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.35, -0.31], [1.49, 0.31])
    """
    y, n = np.asarray(decode, np.float64), np.atleast_2d(np.asarray(counts, np.float64))
    if y.size == 2:
        low, high = share_interval(n[:, 1], n.sum(axis=1), level)
        ends = np.sort(y[0] + (y[1] - y[0]) * np.stack([low, high]), axis=0)
        return ends[0], ends[1]
    α = (1 - level) / 2
    chunks = [n[i : i + _ROWS] for i in range(0, len(n), _ROWS)] or [n]
    high = np.concatenate([_upper(y, part, α) for part in chunks])
    low = np.concatenate([-_upper(-y, part, α) for part in chunks])
    return low, high


def _upper(y: Floats, n: Floats, α: float) -> Floats:
    """m with P(weighted mean > m) = α, one report imagined at the largest value."""
    largest = float(y.max())
    shapes = n + (y == largest) / np.count_nonzero(y == largest)
    total = shapes.sum(axis=1)
    mean = shapes @ y / total
    found = np.full(len(n), largest)
    open_ = np.flatnonzero((n > 0) @ (y < largest))
    if not open_.size:
        return found
    mean, total = mean[open_], total[open_]
    values, shapes = _used(y, shapes[open_])
    sd = np.sqrt(np.maximum((shapes * values**2).sum(axis=1) / total - mean**2, 0.0) / (total + 1))
    target = -float(ndtri(α))
    below, above = mean.copy(), np.full(open_.size, largest)
    m, s = np.minimum(mean + target * sd, (below + above) / 2), np.zeros(open_.size)
    for _ in range(_OUTER):
        p, s = _tail(values - m[:, None], shapes, s)
        below, above = np.where(p > α, m, below), np.where(p > α, above, m)
        normal = -ndtri(np.clip(p, 1e-300, 0.4999999))
        guess = mean + (m - mean) * target / normal
        moved = np.where((guess > below) & (guess < above), guess, (below + above) / 2)
        near = np.abs(moved - m) <= 1e-4 * sd
        m = moved
        if near.all():
            break
    found[open_] = m
    return found


def _used(y: Floats, shapes: Floats) -> tuple[Floats, Floats]:
    """Each row's values and shapes where the shape is not 0; rows with fewer are filled up with shapes of 0."""
    used = shapes > 0
    order = np.argsort(~used, axis=1, kind="stable")[:, : int(used.sum(axis=1).max())]
    return y[order], np.take_along_axis(shapes, order, axis=1)


def ratio_interval(
    first: ArrayLike, second: ArrayLike, counts: ArrayLike, level: float = 0.95
) -> tuple[float, float]:
    """Lower and upper ends in [−1, 1] for a ratio of two means: of E[first] over E[second] > 0.

    `first` and `second` are what each cell counts for in the numerator and in the denominator.

    >>> low, high = ratio_interval([-2.0, 2.0, 0.0], [1.0, 1.0, 0.0], [10, 20, 30])
    >>> -1 <= low < 2 / 3 < high <= 1
    True
    """
    a, b, n = (np.asarray(x, np.float64) for x in (first, second, counts))
    α = (1 - level) / 2

    def refused(m: float, side: float) -> bool:
        """Is a mean of side·(first − m·second) of 0 or more (side 1: less) refused?"""
        z: Any = side * (a - m * b)
        largest = z.max()
        if largest <= 0:
            return True
        shapes = n + (z == largest) / np.count_nonzero(z == largest)
        if not ((shapes > 0) & (z < 0)).any():
            return False
        used = shapes > 0
        return bool(above_zero(z[None, used], shapes[None, used])[0] < α)

    ends = []
    centre = float(np.clip((n @ a) / (n @ b), -1.0, 1.0)) if n @ b > 0 else 0.0
    for side in (-1.0, 1.0):
        far = side
        if not refused(far, side):
            ends.append(far)
            continue
        near = centre
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            near, far = (near, middle) if refused(middle, side) else (middle, far)
        ends.append(far)
    return ends[0], ends[1]
