"""Estimates and standard errors from counts; nothing is clipped.

The estimand is the mean over the n users who reported. A random sample of r of them answers dimension j. With y the
decoded reports, s² their sample variance and S² the variance (divisor n − 1) of the users' values,

    Var θ̂ = S²·(1/r − 1/n) + V̄/r = E[s²]/r − S²/n,

where V̄ is the mean variance that the randomizer adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.response import Marginal

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Functional:
    """A number `decode` for each cell, whose mean over the reports is an estimate.

    `rows` are P(cell | input), and `target` is the mean of `decode` at each input; `rows` is empty where only moments
    are known. `rounding` is the largest variance of the random rounding to a level, Δ²/4, with Δ the distance between
    two levels.
    """

    decode: Floats
    rows: Floats
    target: Floats
    rounding: float

    @cached_property
    def row_variances(self) -> Floats:
        """Var[decode | input]."""
        centered = self.decode[None, :] - (self.rows @ self.decode)[:, None]
        return np.asarray((self.rows * centered**2).sum(axis=1))

    @cached_property
    def decoders(self) -> tuple[Floats, Floats] | None:
        """(g, h) with E[g(cell) | input] = target² and E[h(cell) | input] = Var[decode | input], or None.

        Both are least-norm solutions, weighted by the mean probability of a cell, which keeps their variance small.
        """
        if not self.rows.size:
            return None
        targets = np.stack([self.target**2, self.row_variances], axis=1)
        mass = self.rows.mean(axis=0)
        scale = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
        solution = np.linalg.lstsq(self.rows * scale, targets, rcond=1e-12)[0] * scale[:, None]
        gap = np.abs(self.rows @ solution - targets).max(axis=0)
        exact = (gap < 1e-7 * (1.0 + np.abs(targets).max(axis=0))).all()
        return (solution[:, 0], solution[:, 1]) if exact else None


@lru_cache(maxsize=256)
def functional(marginal: Marginal, name: str = "value", less: float = 0.0) -> Functional:
    """The decoder "value" or "present" of a marginal; with `less`, the residual value − less·present of a mean."""
    decode, target = marginal.decoders[name], marginal.target(name) if marginal.law.size else np.empty(0)
    if less:
        decode = decode - less * marginal.decoders["present"]
        target = target - less * marginal.target("present")
    rounding = 1.0 / (marginal.levels.size - 1) ** 2 if name == "value" and not marginal.indicator else 0.0
    return Functional(decode, marginal.rows, target, rounding)


def value_moments(counts: NDArray[np.int64], n: int, decoder: Functional) -> tuple[Floats, Floats]:
    """Means and their variances; `counts` is (rows, cells), each row with two reports or more.

    The decoders g and h give the unbiased estimates ḡ of the mean square of the (rounded) values and h̄ of V̄; then

        Ŝ² = r/(r−1)·(ḡ − θ̂² + h̄/r),    Var θ̂ = h̄/r + Ŝ²/r − (Ŝ² − Δ²/4)₊/n,

    where h̄ is clipped to the range of the row variances and Ŝ² to [0, n/(n−1)], which contain the true values. Δ²/4
    bounds the variance of rounding in Ŝ². The last term is left out where ḡ has a standard error above 1. Without such
    decoders the variance is s²/r, which is valid for a larger population.
    """
    weights = counts.astype(np.float64)
    r = weights.sum(axis=1)
    mean = weights @ decoder.decode / r
    if decoder.decoders is None:
        least = decoder.row_variances.min() if decoder.rows.size else 0.0
        return mean, np.maximum(_variances(weights, r, decoder.decode), least) / r
    g, h = decoder.decoders
    noise = np.clip(weights @ h / r, decoder.row_variances.min(), decoder.row_variances.max())
    spread = np.clip((weights @ g / r - mean**2 + noise / r) * r / (r - 1), 0.0, n / max(n - 1, 1))
    informative = _variances(weights, r, g) < r
    known = np.where(informative, np.maximum(spread - decoder.rounding, 0.0), 0.0)
    return mean, (noise + spread) / r - known / n


def indicator_moments(counts: NDArray[np.int64], n: int, marginal: Marginal) -> tuple[Floats, Floats]:
    """Frequencies and their variances, from the cells of each category's indicator.

    S² = n/(n−1)·f(1−f) and V̄ = f·V₁ + (1−f)·V₀ with V₁ and V₀ the variances of one report about a category. In S² the
    estimate of f is clipped to [0, 1]. In V̄ it is clipped for unary encoding only, where V̄ could be negative. For
    other channels clipping would bias V̄, because estimates below 0 are frequent among many categories.
    """
    decode, (absent, present) = marginal.decoders["value"], functional(marginal).row_variances
    r = float(counts[0].sum())
    if not marginal.unary:
        frequency = decode[0] + (decode[1] - decode[0]) * counts[:, 1] / r
    else:
        frequency = counts.astype(np.float64) @ decode / r
    inside = np.clip(frequency, 0.0, 1.0)
    share = inside if marginal.unary else frequency
    noise = share * present + (1 - share) * absent
    return frequency, noise / r + inside * (1 - inside) * (1 / r - 1 / n) * n / max(n - 1, 1)


def sample_variance(weights: Floats, decode: Floats) -> float:
    """The sample variance (divisor r − 1) of a decoder over reports with the counts `weights`."""
    r = float(weights.sum())
    centered = decode - float(weights @ decode) / r
    return float(weights @ (centered * centered)) / (r - 1)


def _variances(weights: Floats, r: Floats, values: Floats) -> Floats:
    """Sample variances for several rows of weights."""
    centered = values - values.mean()  # a center near the values avoids cancellation
    first, second = weights @ centered / r, weights @ centered**2 / r
    return np.asarray(np.maximum(second - first**2, 0.0) * r / (r - 1))
