"""The exact twin of every mechanism: the table of integers that is deployed in its place.

* Duchi, Piecewise and Square wave are windows (`windows.py`) with the continuous mechanism's share of heavy cells;
  the decoding calibrates Square wave, whose twin is unbiased on [-1, 1].
* Hybrid is Piecewise's window and Duchi's two cells side by side, each with its share of the row.
* Laplace, SCDF and Staircase are binned and clamped: a bin's weight is the noise's mass in it, an end bin takes the
  tail. Binning is post-processing, so it keeps ε-LDP; integers are made by `rounding.py`.
* Any other law is binned by `binned.py`.

32 bits hold N cells under ε only if light and heavy weights differ by some units, that is N ≲ 2^32·ε: with a tiny
budget the twin has fewer cells, in the end two.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hdr4me.channels.proof import BITS
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.hybrid import Hybrid
from hdr4me.mechanisms.law import AdditiveNoise, Floats, Mechanism
from hdr4me.mechanisms.piecewise import Piecewise
from hdr4me.mechanisms.rounding import round_rows, unbiased_decode
from hdr4me.mechanisms.square_wave import SquareWave
from hdr4me.mechanisms.table import MAX_CELLS, Table
from hdr4me.mechanisms.windows import binary, duchi_table, window, window_table

__all__ = ["SMALLEST_EPSILON", "exact_twin"]

SMALLEST_EPSILON = 1e-9
"""Below it, two weights of 2^31 that differ by one unit already differ by too much."""

_TOTAL = 1 << BITS
_UNITS = 64  # the least difference of heavy and light weights that more than two cells are used with


def exact_twin(mechanism: Mechanism) -> Table:
    """The table that deploys `mechanism`.

    >>> exact_twin(Duchi(1.0)).weights.tolist()
    [[3139872686, 1155094610], [1155094610, 3139872686]]
    """
    if isinstance(mechanism, Table):
        return mechanism
    epsilon = mechanism.epsilon
    if epsilon < SMALLEST_EPSILON:
        raise InvalidInput.of(
            "epsilon", epsilon, f"a table of {BITS} bits expresses {SMALLEST_EPSILON} or more"
        )
    if isinstance(mechanism, Duchi):
        return duchi_table("duchi", epsilon)
    if isinstance(mechanism, Piecewise):
        return window_table("piecewise", epsilon, *_shape(epsilon, _piecewise_share(mechanism)))
    if isinstance(mechanism, SquareWave):
        b = mechanism.half_width
        return window_table("square_wave", epsilon, *_shape(epsilon, 2 * b / (1 + 2 * b)))
    if isinstance(mechanism, Hybrid):
        return _side_by_side(mechanism)
    if isinstance(mechanism, AdditiveNoise):
        return _binned(mechanism)
    from hdr4me.mechanisms.binned import exact

    return exact(mechanism)


def _most_cells(epsilon: float) -> int:
    """How many cells 32 bits can tell apart under ε."""
    return max(2, min(MAX_CELLS, int(min(epsilon, 1.0) * _TOTAL / _UNITS)))


def _piecewise_share(mechanism: Piecewise) -> float:
    """The band's share of the support, (Q−1)/2Q."""
    return mechanism.half_width / mechanism.bound


def _shape(epsilon: float, share: float, most: int = MAX_CELLS) -> tuple[int, int]:
    """(cells, heavy cells) with heavy/cells nearest to `share`, among the finer half of what is possible."""
    most = min(most, _most_cells(epsilon))
    candidates = []
    for n in range(max(2, most // 2), most + 1):
        width = min(max(1, round(share * n)), n - 1)
        candidates.append((abs(Fraction(width, n) - Fraction(share)), -n, width))
    _, minus_n, width = min(candidates)
    return -minus_n, width


def _side_by_side(mechanism: Hybrid) -> Table:
    """Piecewise's window on its share of each row, Duchi's two cells on the rest."""
    piecewise, duchi = mechanism.components
    if mechanism.piecewise_share == 0:
        return duchi_table("hybrid", duchi.epsilon)
    epsilon = mechanism.epsilon
    n_cells, width = _shape(epsilon, _piecewise_share(piecewise), MAX_CELLS - 2)
    rest = round(piecewise.background * _TOTAL)
    if rest < _UNITS * (n_cells - width):
        # Duchi's share is then below 2^-18: too small for 32 bits to step through the levels
        return window_table("hybrid", epsilon, n_cells, width)
    levels, decode, weights = window(epsilon, n_cells, width, _TOTAL - rest)
    ends, end_weights = binary(epsilon, levels.size, rest)
    return Table(
        "hybrid",
        epsilon,
        levels,
        np.concatenate([decode, ends]),
        np.concatenate([weights, end_weights], axis=1),
    )


def _binned(mechanism: AdditiveNoise) -> Table:
    """Noise in equal bins about the levels, the tails in the end bins."""
    n_cells, n_levels, bin_width = _bins(mechanism)
    levels = np.linspace(-1.0, 1.0, n_levels)
    edges: Floats = (np.arange(n_cells + 1.0) - n_cells / 2) * bin_width
    edges[[0, -1]] = -np.inf, np.inf
    rows = np.stack([_interval_mass(mechanism, edges - t) for t in levels])
    weights = round_rows(rows, mechanism.epsilon)
    decode = unbiased_decode(weights, _bin_means(mechanism, edges, bin_width), levels)
    return Table(mechanism.name, mechanism.epsilon, levels, decode, weights)


def _bins(mechanism: AdditiveNoise) -> tuple[int, int, float]:
    """(cells, levels, bin width): levels are bins' centres, about a tenth of the standard deviation apart.

    The range holds all but 1e-4 of the noise at either end: a bin is then a small part of a standard deviation.
    """
    most = _most_cells(mechanism.epsilon)
    if most < 8:
        return 2, 2, 2.0
    reach = 1.0 + _quantile(mechanism, 1e-4)
    width = 2 * reach / most
    if width >= 2.0:  # the levels ±1 cannot be centres: any even number of bins will do
        return most - most % 2, 2, width
    spacing = 0.1 * math.sqrt(mechanism.noise_variance)
    bins_apart = max(1, int(spacing / width))
    gaps = min(math.ceil(2 / (bins_apart * width)), (most - 1) // bins_apart)
    width = 2 / (gaps * bins_apart)
    # centres at whole or half multiples of the width, so that ±1 are among them
    even = (gaps * bins_apart) % 2
    return _parity(most, even), gaps + 1, width


def _parity(most: int, even: int) -> int:
    """The largest odd (or even) number up to `most`."""
    return most - (most % 2 if even else 1 - most % 2)


def _quantile(mechanism: AdditiveNoise, tail: float) -> float:
    """z with P(N > z) about `tail`, by doubling and bisection."""

    def beyond(z: float) -> float:
        return float(mechanism.noise_tail(np.array(z)))

    low, high = 0.0, 1.0
    while beyond(high) > tail:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > tail else (low, middle)
    return high


def _interval_mass(mechanism: AdditiveNoise, edges: Floats) -> Floats:
    """P(edges[k] < N ≤ edges[k+1]) from the tails, so that small masses keep their digits."""
    tail = np.where(np.isinf(edges), 0.0, mechanism.noise_tail(np.abs(np.where(np.isinf(edges), 0.0, edges))))
    low, high = edges[:-1], edges[1:]
    left, right = tail[:-1], tail[1:]
    return np.where(low >= 0, left - right, np.where(high <= 0, right - left, 1 - left - right))


def _bin_means(mechanism: AdditiveNoise, edges: Floats, width: float) -> Floats:
    """What a report from each bin means: the mean of t + N within it, t uniform on [-1, 1]; ends included."""
    reach = edges[-2] + width
    far = reach + 12 * math.sqrt(mechanism.noise_variance)
    inside = np.linspace(-reach, reach, 16 * (edges.size - 1) + 1)
    outside = np.linspace(reach, far, 400)[1:]
    points = np.concatenate([-outside[::-1], inside, outside])
    middles = (points[:-1] + points[1:]) / 2
    mass = sum(_interval_mass(mechanism, points - t) for t in np.linspace(-1, 1, 21))
    home = np.clip(np.searchsorted(edges, middles) - 1, 0, edges.size - 2)
    count = np.bincount(home, weights=mass, minlength=edges.size - 1)
    total = np.bincount(home, weights=mass * middles, minlength=edges.size - 1)
    centres = np.concatenate([[-reach], edges[1:-1], [reach]])
    centres = (centres[:-1] + centres[1:]) / 2
    return np.where(count > 1e-12, total / np.maximum(count, 1e-300), centres)
