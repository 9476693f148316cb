"""The central ε of shuffled reports with two cells, computed without the loss of the privacy blanket.

Let a report be 1 with a probability between q and p that depends on the record. The multiset of reports is then the
number of ones. δ(ε') is a maximum of functions that are affine in each user's law, so the extreme rows are the worst:
two neighboring records have the probabilities p and q, and k of the other m = n − 1 users have p, the rest q. With s
the law of S = Bin(k, p) + Bin(m − k, q), a = p − e^ε'·q and b = e^ε'·(1 − q) − (1 − p),

    δ_k(ε') = Σ_j (a·s(j − 1) − b·s(j))₊,

and the same with zeros and ones exchanged. The largest over k is near all ones or all zeros, but not always there. It
is bounded by branch and bound: if the reports of some users were published, δ could only increase, so for k in
[k₁, k₂] the value with k₁ users at p, m − k₂ users at q and no others is an upper bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len
from scipy.optimize import brentq

LEAST_DELTA = 1e-9  # below it the absolute error of the Fourier transform would matter
_PUBLISHED = 0.002  # at most this share of the users is published in the bound: ε' increases by half of it
_STEP = 5e-4  # the relative step by which ε' is raised until the bound holds


def holds(p: float, q: float, n: int, epsilon: float, target: float) -> bool:
    """Whether δ(ε) ≤ target for n shuffled reports that are 1 with a probability between q and p."""
    return _holds(p, q, n - 1, epsilon, target) and _holds(1.0 - q, 1.0 - p, n - 1, epsilon, target)


def epsilon(p: float, q: float, n: int, target: float) -> float:
    """The smallest ε with δ(ε) ≤ target, at most the local ε."""
    most = max(math.log(p / q), math.log((1.0 - q) / (1.0 - p)))

    def above(e: float) -> float:
        """Whether δ exceeds the target if all other users have the same record, which is nearly the worst case."""
        found = max(_delta(p, q, n - 1, 0, e), _delta(1.0 - q, 1.0 - p, n - 1, 0, e))
        return math.log(max(found, 1e-300) / target)

    found = float(brentq(above, 0.0, most, rtol=1e-5)) * (1.0 + _STEP) if above(0.0) > 0 else 0.0
    while not holds(p, q, n, found, target):
        found = max(found * (1.0 + _STEP), 1e-9)
        if found >= most:
            return most
    return found


def _holds(p: float, q: float, m: int, epsilon: float, target: float) -> bool:
    """Whether δ_k ≤ target for all k: intervals [k₁, k₂] whose bound is above the target are split."""
    intervals = [(0, m)]
    while intervals:
        low, high = intervals.pop()
        if _delta(p, q, low, m - high, epsilon) > target:
            if high - low <= _PUBLISHED * m:
                return False
            middle = (low + high) // 2
            intervals += [
                (low, middle),
                (middle + 1, high),
            ]  # intervals with the largest k, the worst case, come first
    return True


def _delta(p: float, q: float, ones: int, zeros: int, epsilon: float) -> float:
    """δ(ε) if `ones` other users have the probability p and `zeros` have q."""
    factor = math.exp(epsilon)
    a, b = p - factor * q, factor * (1.0 - q) - (1.0 - p)
    if a <= 0:
        return 0.0
    law = np.pad(_law(p, q, ones, zeros), 1)
    return float(np.maximum(a * law[:-1] - b * law[1:], 0.0).sum())


def _law(p: float, q: float, ones: int, zeros: int) -> NDArray[np.float64]:
    """The probabilities of Bin(ones, p) + Bin(zeros, q) in a window around the mean; less than 10⁻²⁰ is outside."""
    mean, variance = ones * p + zeros * q, ones * p * (1 - p) + zeros * q * (1 - q)
    start = math.floor(mean - 10.0 * math.sqrt(variance) - 50.0)
    size = next_fast_len(math.ceil(2 * (mean - start)) + 2, real=True)
    angle = 2.0 * np.pi * np.arange(size // 2 + 1) / size
    turn = np.expm1(-1j * angle)
    centered = ones * (np.log1p(p * turn) + 1j * p * angle) + zeros * (np.log1p(q * turn) + 1j * q * angle)
    return np.maximum(irfft(np.exp(centered - 1j * angle * (mean - start)), size), 0.0)
