"""Exact shortcuts for sums of many reports, if only sums are needed and every user reports.

- A sum of n Laplace(λ) draws is λ(Γ - Γ') with two independent Gamma(n) variates: O(1) for a dimension.
- In a mixture of a background that does not depend on t and a band about a multiple of t, only the band's reports need
  t: their users are found by geometric skipping, O(n · share), and the uniform parts are sums of uniforms.
- A sum of K uniforms of b bits is Σ_l 2^{-l} Bin(K, ½), l = 1..b, exactly: the bits of independent uniforms are
  independent coins, so each bit's column is a binomial.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.machine.jit import kernel

Floats = NDArray[np.float64]
_UNIFORM_BITS = 53


def laplace_noise_sums(scale: float, n: int, d: int, rng: np.random.Generator) -> Floats:
    """d independent sums of n Laplace(scale) draws."""
    return np.asarray(scale * (rng.standard_gamma(n, d) - rng.standard_gamma(n, d)))


def uniform_sums(counts: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """For each K in counts a sum of K uniforms on [0, 1), each of 53 bits and taken at the middle of its step."""
    total = np.zeros(counts.shape)
    for bit in range(_UNIFORM_BITS, 0, -1):  # the small terms first
        total += np.ldexp(rng.binomial(counts, 0.5).astype(np.float64), -bit)
    return total + counts * 2.0 ** -(_UNIFORM_BITS + 1)


@kernel()
def _skip(values, log_miss, exponentials, chosen, sums):  # type: ignore[no-untyped-def]
    """Add the values of each column at geometric gaps; False if the exponentials ran out."""
    n, d = values.shape
    used = 0
    for j in range(d):
        at = np.int64(-1)
        total = 0.0
        number = 0
        while True:
            if used == exponentials.size:
                return False
            gap = exponentials[used] / log_miss
            used += 1
            if gap >= n - 1 - at:
                break
            at += 1 + np.int64(gap)
            total += values[at, j]
            number += 1
        sums[j] = total
        chosen[j] = number
    return True


def band_sums(values: Floats, share: float, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    """Per column: the sum of the values of users who fall in the band (each with probability `share`), and how many.

    The gap to the next such user is ⌊E / -log(1 - share)⌋ with E exponential: the cost is n · share, not n.
    """
    n, d = values.shape
    sums, chosen = np.zeros(d), np.zeros(d, np.int64)
    if share >= 1.0:
        return values.sum(0), np.full(d, n)
    if share <= 0.0 or n == 0:
        return sums, chosen
    expected = n * share + 1
    size = int(d * expected + 10 * np.sqrt(d * expected) + 64)
    while not _skip(values, -np.log1p(-share), rng.standard_exponential(size), chosen, sums):
        size *= 2  # ten standard deviations were not sufficient: start again with twice as many new ones
    return sums, chosen
