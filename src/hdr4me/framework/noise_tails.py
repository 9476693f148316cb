"""How far the noise of a table moves the mean of few reports: exact tails, at the value where they are widest.

Where every user answered, the truth is the mean of the users' own values and the error is noise alone. The noise of a
report at one value has a known law, with the characteristic function φ(u) = Σ_k P_k·exp(iu(y_k − mean)); the sum of r
reports at the same value has φ^r, which is inverted. The interval takes the widest tail over the values: the levels of
the table, and the middles between two levels, where the random rounding adds most.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["noise_reach", "skew_size", "widest_variance"]

Floats = NDArray[np.float64]
_VALUES, _MOST_FREQUENCIES = 24, 4096
_SMOOTH = 0.05
"""A normal error of this many standard deviations is added to the sum: it makes the tails no lighter."""


def _at_values(probabilities: Floats) -> Floats:
    """The rows of the levels and of the middles between two levels."""
    middles = (probabilities[:-1] + probabilities[1:]) / 2
    return np.concatenate([probabilities, middles])


def _moments(rows: Floats, decode: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and third central moment of each row."""
    mean = rows @ decode
    centred = decode - mean[:, None]
    return mean, (rows * centred**2).sum(axis=1), (rows * centred**3).sum(axis=1)


def widest_variance(probabilities: Floats, decode: Floats) -> float:
    """The largest variance of one report, rounding to a level included."""
    return float(_moments(_at_values(probabilities), decode)[1].max())


def skew_size(probabilities: Floats, decode: Floats) -> float:
    """The largest |third central moment| over variance of one report, among populations of one or two values.

    It is a length on the decoder's scale: the mean of r reports of variance v has a skewness of at most this length
    over √(r·v). For two cells it is their distance, which bounds it and stands for the steps of a count as well.

    >>> skew_size(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([-2.0, 2.0]))
    4.0
    """
    if decode.size == 2:
        return float(abs(decode[1] - decode[0]))
    few = np.unique(np.linspace(0, len(probabilities) - 1, _VALUES).astype(int))
    power = (decode - decode.mean()) ** np.arange(1, 4)[:, None]
    raw = probabilities[few] @ power.T  # the moments of a mixture are mixtures of the moments
    share = np.array([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5])[:, None, None, None]
    first, second, third = np.moveaxis((1 - share) * raw[:, None] + share * raw[None], -1, 0)
    variance = np.maximum(second - first**2, 1e-300)
    return float(np.max(np.abs(third - 3 * first * second + 2 * first**3) / variance))


def noise_reach(probabilities: Floats, decode: Floats, reports: int, level: float) -> tuple[float, float]:
    """How far below and above its true value the mean of the reports may lie.

    Parameters
    ----------
    probabilities
        The table's rows.
    decode
        What each cell counts for; a row's mean is its level.
    reports
        How many there are; all have been asked.
    level
        The probability of staying within both.

    Returns
    -------
    tuple
        Two lengths, on the decoder's scale.

    Examples
    --------
    >>> below, above = noise_reach(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([-2.0, 2.0]), 400, 0.95)
    >>> round(below, 2), round(above, 2)
    (0.2, 0.2)
    """
    return _reach(probabilities.tobytes(), decode.tobytes(), reports, level)


@lru_cache(maxsize=256)
def _reach(table: bytes, cells: bytes, reports: int, level: float) -> tuple[float, float]:
    decode = np.frombuffer(cells)
    rows = _at_values(np.frombuffer(table).reshape(-1, decode.size))
    _, variance, third = _moments(rows, decode)
    chosen = set(np.linspace(0, len(rows) - 1, _VALUES).astype(int).tolist())
    chosen |= {int(np.argmax(variance)), int(np.argmax(third)), int(np.argmin(third))}
    ends = [_quantiles(rows[i], decode, reports, level) for i in sorted(chosen)]
    return -min(low for low, _ in ends), max(high for _, high in ends)


def _quantiles(row: Floats, decode: Floats, reports: int, level: float) -> tuple[float, float]:
    """The outer quantiles of the mean's error at one value."""
    used = row > 0
    mass, error = row[used], decode[used] - float(row @ decode)
    sd = float(np.sqrt(reports * (mass @ error**2)))
    if sd == 0.0:
        return 0.0, 0.0
    half = 10 * sd + 10 * float(error.max() - error.min())
    frequencies = int(min(_MOST_FREQUENCIES, np.ceil(5 / (_SMOOTH * sd) * half / np.pi)))
    u = np.arange(frequencies + 1) * np.pi / half
    with np.errstate(divide="ignore"):
        log = np.log(np.exp(1j * np.outer(u, error)) @ mass)
    density = np.fft.irfft(np.exp(reports * log - (_SMOOTH * sd * u) ** 2 / 2).conj())
    size = density.size
    at = (np.arange(size) - size // 2) * (2 * half / size)
    below = np.cumsum(np.maximum(np.roll(density, size // 2), 0.0))
    below /= below[-1]
    α = (1 - level) / 2
    low = at[int(np.searchsorted(below, α))] - half / size
    high = at[min(int(np.searchsorted(below, 1 - α)), size - 1)] + half / size
    return float(low) / reports, float(high) / reports
