"""The discretization of every mechanism: the integer table that is deployed instead of the continuous law.

* Duchi, Piecewise and Square wave become windows with the continuous mechanism's share of high-probability cells.
* Hybrid becomes the window of Piecewise and the two cells of Duchi, each with its share of the row.
* Laplace, SCDF and Staircase are binned and clamped; binning is post-processing, so it preserves ε-LDP.
* Any other law is binned by `exact` and decoded without bias.

32 bits distinguish about 2^32·ε cells, so that a very small budget has fewer cells, at least two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hdr4me.channels.proof import BITS, check_epsilon
from hdr4me.channels.table.channel import MAX_CELLS
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.law import AdditiveNoise, Floats, Mechanism
from hdr4me.mechanisms.piecewise import Hybrid, Piecewise
from hdr4me.mechanisms.square_wave import SquareWave
from hdr4me.mechanisms.table import (
    TableMechanism,
    binary,
    duchi_table,
    round_rows,
    unbiased_decode,
    unbiased_rows,
    window,
    window_table,
)

_SMALLEST_WINDOW = 1e-9  # below, two weights near 2^31 that differ by one unit violate the privacy bound
_SMALLEST = 1e-6
_TOTAL = 1 << BITS
_TAIL = 1e-4
_UNITS = 64  # the least difference of heavy and light weights with which more than two cells are used


def discretized(mechanism: Mechanism) -> TableMechanism:
    """The table that deploys `mechanism`."""
    epsilon = mechanism.epsilon
    if epsilon < _SMALLEST_WINDOW:
        raise InvalidInput.of("epsilon", epsilon, f"at least 1e-09 for a table of {BITS} bits")
    if isinstance(mechanism, Duchi):
        return duchi_table("duchi", epsilon)
    if isinstance(mechanism, Piecewise):
        return window_table("piecewise", epsilon, *_shape(epsilon, mechanism.half_width / mechanism.bound))
    if isinstance(mechanism, SquareWave):
        b = mechanism.half_width
        return window_table("square_wave", epsilon, *_shape(epsilon, 2 * b / (1 + 2 * b)))
    if isinstance(mechanism, Hybrid):
        return _side_by_side(mechanism)
    if isinstance(mechanism, AdditiveNoise):
        return _binned(mechanism)
    return exact(mechanism)


def _most_cells(epsilon: float) -> int:
    """The number of cells that 32 bits can distinguish under ε."""
    return max(2, min(MAX_CELLS, int(min(epsilon, 1.0) * _TOTAL / _UNITS)))


def _shape(epsilon: float, share: float, most: int = MAX_CELLS) -> tuple[int, int]:
    """(cells, heavy cells) with heavy/cells nearest to `share`, among the larger half of the numbers of cells."""
    most = min(most, _most_cells(epsilon))
    shapes = [(n, min(max(1, round(share * n)), n - 1)) for n in range(max(2, most // 2), most + 1)]
    return min(shapes, key=lambda shape: (abs(Fraction(shape[1], shape[0]) - Fraction(share)), -shape[0]))


def _side_by_side(mechanism: Hybrid) -> TableMechanism:
    """The window of Piecewise on its share of each row, and the two cells of Duchi on the rest."""
    piecewise, duchi = mechanism.components
    if mechanism.piecewise_share == 0:
        return duchi_table("hybrid", duchi.epsilon)
    epsilon = mechanism.epsilon
    n_cells, width = _shape(epsilon, piecewise.half_width / piecewise.bound, MAX_CELLS - 2)
    rest = round(piecewise.background * _TOTAL)
    if rest < _UNITS * (n_cells - width):
        # Duchi's share is below 2^-18, too small for different weights of the levels in 32 bits.
        return window_table("hybrid", epsilon, n_cells, width)
    levels, decode, weights = window(epsilon, n_cells, width, _TOTAL - rest)
    ends, end_weights = binary(epsilon, levels.size, rest)
    both, rows = np.concatenate([decode, ends]), np.concatenate([weights, end_weights], axis=1)
    return TableMechanism("hybrid", epsilon, levels, both, rows)


def _binned(mechanism: AdditiveNoise) -> TableMechanism:
    """Noise in equal bins about the levels; the end bins include the tails."""
    n_cells, n_levels, bin_width = _bins(mechanism)
    levels = np.linspace(-1.0, 1.0, n_levels)
    edges: Floats = (np.arange(n_cells + 1.0) - n_cells / 2) * bin_width
    edges[[0, -1]] = -np.inf, np.inf
    rows = np.stack([_interval_mass(mechanism, edges - t) for t in levels])
    weights = round_rows(rows, mechanism.epsilon)
    decode = unbiased_decode(weights, _bin_means(mechanism, edges, bin_width), levels)
    return TableMechanism(mechanism.name, mechanism.epsilon, levels, decode, weights)


def _bins(mechanism: AdditiveNoise) -> tuple[int, int, float]:
    """(cells, levels, bin width): levels are centers of bins, about a tenth of the standard deviation apart."""
    most = _most_cells(mechanism.epsilon)
    if most < 8:
        return 2, 2, 2.0
    reach = 1.0 + _quantile(lambda z: float(mechanism.noise_tail(np.array(z))), 0.0, steps=41)
    width = 2 * reach / most
    if width >= 2.0:  # the levels ±1 cannot be centers: any even number of bins is possible
        return most - most % 2, 2, width
    spacing = 0.1 * math.sqrt(mechanism.noise_variance)
    bins_apart = max(1, int(spacing / width))
    gaps = min(math.ceil(2 / (bins_apart * width)), (most - 1) // bins_apart)
    width = 2 / (gaps * bins_apart)
    # Centers are at integer or half-integer multiples of the width, so that ±1 are among them.
    n_cells = most - (most % 2 if (gaps * bins_apart) % 2 else 1 - most % 2)
    return n_cells, gaps + 1, width


def _interval_mass(mechanism: AdditiveNoise, edges: Floats) -> Floats:
    """P(edges[k] < N ≤ edges[k+1]) from the tails, which is accurate for small masses."""
    tail = np.where(np.isinf(edges), 0.0, mechanism.noise_tail(np.abs(np.where(np.isinf(edges), 0.0, edges))))
    left, right = tail[:-1], tail[1:]
    return np.where(edges[:-1] >= 0, left - right, np.where(edges[1:] <= 0, right - left, 1 - left - right))


def _bin_means(mechanism: AdditiveNoise, edges: Floats, width: float) -> Floats:
    """The first decoded value of each bin: the mean of t + N within it for t uniform on [-1, 1], tails included."""
    reach = edges[-2] + width
    far = reach + 12 * math.sqrt(mechanism.noise_variance)
    inside = np.linspace(-reach, reach, 16 * (edges.size - 1) + 1)
    outside = np.linspace(reach, far, 400)[1:]
    points = np.concatenate([-outside[::-1], inside, outside])
    middles = (points[:-1] + points[1:]) / 2
    mass = sum(_interval_mass(mechanism, points - t) for t in np.linspace(-1, 1, 21))
    own_bin = np.clip(np.searchsorted(edges, middles) - 1, 0, edges.size - 2)
    count = np.bincount(own_bin, weights=mass, minlength=edges.size - 1)
    total = np.bincount(own_bin, weights=mass * middles, minlength=edges.size - 1)
    centers = np.concatenate([[-reach], edges[1:-1], [reach]])
    centers = (centers[:-1] + centers[1:]) / 2
    return np.where(count > 1e-12, total / np.maximum(count, 1e-300), centers)


# -- any law --------------------------------------------------------------------------------------------------


def exact(law: Any, *, levels: int | None = None, cells: int | None = None) -> TableMechanism:
    """The integer table that deploys `law`, proven to be private at the law's ε and unbiased.

    Parameters
    ----------
    law
        An object with `epsilon`, `name` and `cdf(x, t)`, and optionally a `domain` (default [-1, 1]) and a `support`
        (default: the real line). Values of its domain are mapped to [-1, 1].
    levels
        The number of levels of the table; a value between two levels is rounded to one of them at random. The default
        is the number of least mean variance.
    cells
        The number of bins, at most 256 (the default). Bins that no value reaches are left out.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> table = exact(mechanism("three_outputs", epsilon=2.0))
    >>> table.n_levels, table.n_cells
    (3, 3)
    >>> round(float(table.variance(0.5)), 4)
    0.9448
    """
    if isinstance(law, TableMechanism):
        return law
    for attribute in ("epsilon", "cdf"):
        if not hasattr(law, attribute):
            raise InvalidInput.of("law", law, f"a law with the attribute {attribute}")
    check_epsilon(law.epsilon)
    try:
        law.cdf(np.zeros(1), np.full(1, sum(_domain(law)) / 2))
    except NotImplementedError:
        raise InvalidInput.of(
            "law", _name(law), "a law with a cdf, which the table is computed from"
        ) from None
    if law.epsilon < _SMALLEST:
        raise InvalidInput.of("epsilon", law.epsilon, f"at least {_SMALLEST} for a binned law")
    for name, count in (("levels", levels), ("cells", cells)):
        if count is not None and not (isinstance(count, int) and 2 <= count <= MAX_CELLS):
            raise InvalidInput.of(name, count, f"an integer from 2 to {MAX_CELLS}")
    edges = _edges(law, MAX_CELLS if cells is None else cells)
    choices = (129, 33, 9, 3, 2) if law.epsilon > 6.0 else (65, 17, 5, 3, 2)
    made = []
    for n in choices if levels is None else (levels,):
        table = _binned_table(law, n, edges)
        if table is not None:
            made.append(table)
            # Stop at the finest table with the law's own variance; laws of two or three outputs try all of them.
            if table.n_cells >= n > 3 and _faithful(table, law):
                break
    if not made:
        raise InvalidInput.of(
            "law", law, "32 bits cannot distinguish its values with these levels and cells; use fewer of them"
        )
    least = min(table.mean_variance() for table in made)
    # The fewest levels among the tables of least variance.
    return min((t for t in made if t.mean_variance() <= least * (1 + 1e-6)), key=lambda t: t.n_levels)


def _faithful(table: TableMechanism, law: Any) -> bool:
    """Whether the table's mean variance is within 2 % of that of the calibrated law."""
    if not (hasattr(law, "variance") and hasattr(law, "mean")):
        return False
    t = np.linspace(*_domain(law), 65)
    mean = np.asarray(law.mean(t), dtype=np.float64)
    slope = float(mean[-1] - mean[0]) / 2
    return table.mean_variance() <= 1.02 * float(np.mean(law.variance(t))) / slope**2


def _name(law: Any) -> str:
    return str(getattr(law, "name", type(law).__name__))


def _domain(law: Any) -> tuple[float, float]:
    low, high = getattr(law, "domain", (-1.0, 1.0))
    return float(low), float(high)


def _edges(law: Any, n_cells: int) -> Floats:
    """Equal bins over the support, or over all but 1e-4 of the reports at either end."""
    low, high = getattr(law, "support", (-math.inf, math.inf))
    first, last = _domain(law)
    if not math.isfinite(low):
        low = -_quantile(lambda x: float(law.cdf(-x, first)), -first)
    if not math.isfinite(high):
        high = _quantile(lambda x: 1.0 - float(law.cdf(x, last)), last)
    edges = np.linspace(low, high, n_cells + 1)
    edges[[0, -1]] = -np.inf, np.inf
    return edges


def _quantile(beyond: Callable[[float], float], start: float, steps: int = 40) -> float:
    """x with `beyond(x)` about 1e-4, by doubling steps from `start` and bisection."""
    low, step = start, 1.0
    while beyond(low + step) > _TAIL:
        step *= 2
    high = low + step
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > _TAIL else (low, middle)
    return high


def _binned_table(law: Any, n_levels: int, edges: Floats) -> TableMechanism | None:
    """The table with these levels; None if its rows cannot be decoded without bias."""
    rows, places = _binned_rows(law, n_levels, edges)
    least, most = rows.min(axis=0), rows.max(axis=0)
    # Differences of the cdf have a rounding error of about 1e-16.
    if (most > math.exp(min(law.epsilon, 700.0)) * (least + 1e-14) * (1 + 1e-9)).any():
        raise InvalidInput.of("law", law, f"it is not private at its epsilon = {law.epsilon}")
    levels = np.linspace(-1.0, 1.0, n_levels)
    means = rows @ places
    slope = (means[-1] - means[0]) / 2
    if slope == 0:
        raise InvalidInput.of("law", law, "its reports have the same mean at both ends of its domain")
    start = (places - (means[0] + means[-1]) / 2) / slope
    weights, decoders = unbiased_rows(rows, law.epsilon, levels[:, None], start[:, None])
    try:
        return TableMechanism(_name(law), law.epsilon, levels, decoders[:, 0], weights)
    except InvalidInput as refusal:
        if "biased" not in str(refusal):
            raise
        return None


def _binned_rows(law: Any, n_levels: int, edges: Floats) -> tuple[Floats, Floats]:
    """P(bin | level) and the midpoints of the bins; bins that no level reaches are left out."""
    t = np.linspace(*_domain(law), n_levels)
    inner = np.asarray(law.cdf(edges[None, 1:-1], t[:, None]), dtype=np.float64)
    if inner.shape != (n_levels, edges.size - 2) or not ((inner >= -1e-12) & (inner <= 1 + 1e-12)).all():
        raise InvalidInput.of(
            "law", law, "its cdf(x, t) must return probabilities and broadcast over x and t"
        )
    rows = np.diff(inner, axis=1, prepend=0.0, append=1.0)
    half = (edges[2] - edges[1] if edges.size > 3 else 1.0) / 2
    places = np.concatenate([[edges[1] - half], (edges[1:-2] + edges[2:-1]) / 2, [edges[-2] + half]])
    reached = rows.max(axis=0) > 1e-12
    rows = np.clip(rows[:, reached], 0.0, None)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True)), np.asarray(places[reached])
