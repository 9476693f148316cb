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

from hdr4me.estimate.moments import Moments

__all__ = ["frequency_moments", "value_moments"]

Floats = NDArray[np.float64]


def value_moments(counts: NDArray[np.int64], n: int, moments: Moments) -> tuple[Floats, Floats]:
    """Means on [-1, 1] and their variances; `counts` is (dimensions, cells), each with two reports or more.

    S² is estimated by n/(n−1)·(ḡ − θ̂² + Var θ̂), g the square decoder; solved for Var θ̂ this gives

        Var θ̂ = (n−1)/n·s²/r − (ḡ − θ̂²)/n.

    S² lies in [0, n/(n−1)], so ḡ − θ̂² is kept in [0, 1], and where ḡ's own standard error exceeds 1 it says nothing and
    is left out. V̄/r is never below the smallest row variance over r, and neither is the result.
    """
    weights = counts.astype(np.float64)
    r = weights.sum(axis=1)
    mean = weights @ moments.decode / r
    sample = _sample_variance(weights, r, moments.decode, mean)
    spread = np.zeros_like(mean)
    g = moments.square_decoder
    if g is not None:
        square = weights @ g / r
        informative = _sample_variance(weights, r, g, square) < r
        spread = np.where(informative, np.clip(square - mean**2, 0.0, 1.0), 0.0)
    variance = (n - 1) / n * sample / r - spread / n
    return mean, np.maximum(variance, moments.row_variances.min() / r)


def frequency_moments(counts: NDArray[np.int64], n: int, moments: Moments) -> tuple[Floats, Floats]:
    """Frequencies and their variances; `counts` is (entries, cells) for entries, (categories,) for categories.

    A category is there or not, so a value is its own square: S² = n/(n−1)·f(1−f) and V̄ = f·V₁ + (1−f)·V₀ with V₁ and V₀
    the variances of the table's rows, f being the estimate kept in [0, 1] for this purpose alone.
    """
    if moments.randomizer.kind == "category":
        equal, other = moments.decode
        r = float(counts.sum())
        frequency = other + (equal - other) * counts / r
    else:
        weights = counts.astype(np.float64)
        r = float(weights[0].sum())
        frequency = weights @ moments.decode / r
    inside = np.clip(frequency, 0.0, 1.0)
    absent, present = moments.row_variances
    noise = inside * present + (1 - inside) * absent
    variance = noise / r + inside * (1 - inside) * (1 / r - 1 / n) * n / max(n - 1, 1)
    return frequency, variance


def _sample_variance(weights: Floats, r: Floats, values: Floats, mean: Floats) -> Floats:
    centre = float(
        values.mean()
    )  # any number near the values would do: it keeps the difference from cancelling
    second = weights @ (values - centre) ** 2 / r
    return np.asarray(np.maximum(second - (mean - centre) ** 2, 0.0) * r / (r - 1))
