"""The probabilities of Theorems 3 and 4: as the paper states them, and as its proofs need them.

Both theorems promise that re-calibration brings the mean closer with probability at least
1 − ∫…∫_{[−τ, τ]^d} f, with τ = 1 for L1 and τ = 2 for L2. That expression is P(SOME dimension deviates by
more than τ). The proofs use the premise that EVERY dimension does, whose probability Π_j P(|dev_j| > τ)
is far smaller. The two are named apart here, and nothing in the package calls the first a guarantee.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from hdr4me.framework.supremum import Floats, log_probability_exceed, log_probability_within

__all__ = [
    "L1_THRESHOLD",
    "L2_THRESHOLD",
    "log_probability_all_exceed",
    "log_probability_some_exceed",
    "probability_all_exceed",
    "probability_some_exceed",
]

L1_THRESHOLD = 1.0
"""Lemma 4's premise |θ̂_j − θ̄_j| > 1."""
L2_THRESHOLD = 2.0
"""Lemma 5's premise |θ̂_j − θ̄_j| > 2."""


def _total(logs: Floats, counts: ArrayLike) -> float:
    return float(np.sum(np.asarray(counts, dtype=np.float64) * logs))


def log_probability_some_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """Logarithm of P(at least one |dev_j| > threshold_j), dimensions independent.

    log(1 − exp Σ_j log P(|dev_j| ≤ τ_j)); once that sum is too small for a float, the union
    Σ_j P(|dev_j| > τ_j) is the same number to all digits. `counts` repeats a dimension.

    >>> round(log_probability_some_exceed(0.0, 1.0, 40.0, counts=100), 3)  # far below the smallest float
    -799.31
    """
    within = _total(log_probability_within(bias, sd, threshold), counts)
    if within > -1e-300:
        exceed = np.atleast_1d(log_probability_exceed(bias, sd, threshold))
        repeats = np.broadcast_to(np.asarray(counts, dtype=np.float64), exceed.shape)
        return float(logsumexp(exceed, b=repeats))
    return math.log(-math.expm1(within)) if within > -math.log(2) else math.log1p(-math.exp(within))


def probability_some_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """P(SOME dimension deviates by more than the threshold): what Theorems 3 and 4 print.

    1 − Π_j P(|dev_j| ≤ τ_j), dev_j ~ N(bias_j, sd_j²). It is not a probability that re-calibration helps.

    >>> round(probability_some_exceed(0.0, np.full(100, 0.45), 1.0), 6)
    0.930188
    """
    return math.exp(log_probability_some_exceed(bias, sd, threshold, counts=counts))


def log_probability_all_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """Logarithm of P(every |dev_j| > threshold_j) = Σ_j log P(|dev_j| > τ_j).

    >>> round(log_probability_all_exceed(0.0, np.full(100, 0.45), 1.0), 1)
    -363.9
    """
    return _total(log_probability_exceed(bias, sd, threshold), counts)


def probability_all_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """P(EVERY dimension deviates by more than the threshold): the premise of the proofs of Theorems 3 and 4.

    Π_j P(|dev_j| > τ_j); it underflows to 0.0 honestly, and its logarithm is
    `log_probability_all_exceed`.

    >>> probability_all_exceed(0.0, np.full(100, 0.45), 1.0) < 1e-150
    True
    """
    return math.exp(log_probability_all_exceed(bias, sd, threshold, counts=counts))
