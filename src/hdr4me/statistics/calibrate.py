"""From counts to means and frequencies with standard errors; nothing is clipped, whatever the noise made of it.

The truth is a finite one: the mean over the n users who reported. Dimension j is answered by r of them, drawn at
random, so with y the decoded reports, s² their sample variance and S² the variance (divisor n − 1) of the users' own
values

    Var θ̂ = S²·(1/r − 1/n) + V̄/r = E[s²]/r − S²/n,

V̄ being the mean variance that the randomizer adds. Dropping S²/n would answer for a larger, imagined population.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, Entries, HeavySet
from hdr4me.statistics.moments import Moments, row_variances

__all__ = ["frequency_moments", "sample_covariance", "value_moments"]

Floats = NDArray[np.float64]


def value_moments(counts: NDArray[np.int64], n: int, moments: Moments) -> tuple[Floats, Floats]:
    """Means on [-1, 1] and their variances; `counts` is (dimensions, cells), each with two reports or more.

    The table's decoders g and h give unbiased ḡ for the mean square of the (rounded) values and h̄ for V̄; then

        Ŝ² = r/(r−1)·(ḡ − θ̂² + h̄/r),    Var θ̂ = h̄/r + Ŝ²/r − (Ŝ² − Δ²/4)₊/n,

    h̄ kept between the smallest and the largest row variance and Ŝ² in [0, n/(n−1)], where the truth is. Ŝ² holds the
    variance of rounding, at most Δ²/4; without subtracting it the last term could be too large and the error too small.
    Where ḡ has a standard error above 1 it says nothing, and the last term is left out.
    """
    weights = counts.astype(np.float64)
    r = weights.sum(axis=1)
    mean = weights @ moments.decode / r
    if (
        moments.decoders is None
    ):  # cells that carry a mean and nothing else: s²/r, for an imagined larger population
        return mean, np.maximum(_variance(weights, r, moments.decode), moments.row_variances.min()) / r
    g, h = moments.decoders
    noise = np.clip(weights @ h / r, moments.row_variances.min(), moments.row_variances.max())
    spread = np.clip((weights @ g / r - mean**2 + noise / r) * r / (r - 1), 0.0, n / max(n - 1, 1))
    informative = _variance(weights, r, g) < r
    known = np.where(informative, np.maximum(spread - moments.rounding, 0.0), 0.0)
    return mean, (noise + spread) / r - known / n


def frequency_moments(
    counts: NDArray[np.int64], n: int, answers: int, channel: Channel
) -> tuple[Floats, Floats]:
    """Frequencies and their variances, from the counters of a channel for categories.

    A category is there or not, so a value is its own square: S² = n/(n−1)·f(1−f) and V̄ = f·V₁ + (1−f)·V₀ with V₁ and V₀
    the variances of one report about a category. In S² the estimate of f is kept in [0, 1]. In V̄ it is not: V̄ then lies
    between pq/(p−q)² and (1−p)(1−q)/(p−q)², and is unbiased, which it would not be if estimates below 0, frequent
    among many categories, were raised to 0. Unary encoding keeps f in [0, 1] here too: its answers stay to the last bit
    what they were in version 0.1.
    """
    r = float(answers)
    if isinstance(channel, Entries):
        weights = counts.reshape(channel.size, channel.n_cells).astype(np.float64)
        frequency = weights @ np.array(channel.decode) / r
        absent, present = row_variances(channel.weights, np.array(channel.decode))
        share = inside = np.clip(frequency, 0.0, 1.0)
    else:
        equal, other = channel.decode  # type: ignore[attr-defined]  # every other channel of categories has the pair
        supports = channel.response.supports(counts) if isinstance(channel, HeavySet) else counts  # type: ignore[attr-defined]
        frequency = other + (equal - other) * supports / r
        absent, present = channel.indicator_variances  # type: ignore[attr-defined]
        share, inside = frequency, np.clip(frequency, 0.0, 1.0)
    noise = share * present + (1 - share) * absent
    variance = noise / r + inside * (1 - inside) * (1 / r - 1 / n) * n / max(n - 1, 1)
    return frequency, variance


def sample_covariance(weights: Floats, first: Floats, second: Floats | None = None) -> float:
    """The sample covariance (divisor r − 1) of two decoders over reports counted `weights` times; or a variance."""
    r = float(weights.sum())
    a = first - float(weights @ first) / r
    b = a if second is None else second - float(weights @ second) / r
    return float(weights @ (a * b)) / (r - 1)


def _variance(weights: Floats, r: Floats, values: Floats) -> Floats:
    """The sample variance of values, each counted `weights` times."""
    centred = (
        values - values.mean()
    )  # any number near the values would do: it keeps the difference from cancelling
    first, second = weights @ centred / r, weights @ centred**2 / r
    return np.asarray(np.maximum(second - first**2, 0.0) * r / (r - 1))
