"""The fastest plain-NumPy versions of the same work that we could write.

All are chunked to stay in the second-level cache, write into buffers made beforehand and use NumPy's fastest bit
generator. The Piecewise one needs a single uniform a value, the trick of our kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms import mechanism
from hdr4me.simulation.laws import fused_law

__all__ = [
    "laplace_difference",
    "laplace_library",
    "laplace_sign",
    "law_of",
    "mixture",
    "numba_random",
    "per_user",
]

Floats = NDArray[np.float64]
_CHUNK = 1 << 14


def law_of(name: str, epsilon: float) -> tuple[int, Floats]:
    """The fused kernel's family and parameters of a mechanism that has them."""
    found = fused_law(mechanism(name, epsilon=epsilon))
    assert found is not None
    return found


def _rows(values: Floats) -> int:
    return max(1, _CHUNK // int(values.shape[1]))


def mixture(name: str, epsilon: float, values: Floats) -> tuple[Floats, Floats]:
    """Sums and squares of Piecewise or Square wave reports, by one uniform each."""
    (a0, b0, _, end, _), (a1, b1, c1, _, _) = law_of(name, epsilon)[1]
    rng = np.random.Generator(np.random.SFC64())
    n, d = values.shape
    rows = _rows(values)
    sums, squares = np.zeros(d), np.zeros(d)
    u, x, y = (np.empty((rows, d)) for _ in range(3))
    first = np.empty((rows, d), bool)
    for start in range(0, n, rows):
        t = values[start : start + rows]
        k = len(t)
        rng.random(out=u)
        np.less(u, end - 1, out=first)
        np.multiply(u, b1, out=x)
        x += a1 + b1
        np.multiply(t, c1, out=y[:k])
        x += y
        u *= b0
        u += a0 + b0
        np.copyto(x, u, where=first)
        sums += x[:k].sum(0)
        squares += np.einsum("ij,ij->j", x[:k], x[:k])
    return sums, squares


def _laplace(values: Floats, noise: Any) -> tuple[Floats, Floats]:
    n, d = values.shape
    rows = _rows(values)
    sums, squares = np.zeros(d), np.zeros(d)
    for start in range(0, n, rows):
        t = values[start : start + rows]
        x = noise(rows)[: len(t)]
        x += t
        sums += x.sum(0)
        squares += np.einsum("ij,ij->j", x, x)
    return sums, squares


def laplace_library(epsilon: float, values: Floats) -> tuple[Floats, Floats]:
    """By NumPy's own Laplace variates."""
    rng, scale = np.random.Generator(np.random.SFC64()), 2 / epsilon
    return _laplace(values, lambda rows: rng.laplace(0.0, scale, (rows, values.shape[1])))


def laplace_difference(epsilon: float, values: Floats) -> tuple[Floats, Floats]:
    """By the difference of two exponential variates."""
    rng, scale = np.random.Generator(np.random.SFC64()), 2 / epsilon
    a, b = (np.empty((_rows(values), values.shape[1])) for _ in range(2))

    def noise(rows: int) -> Floats:
        rng.standard_exponential(out=a)
        rng.standard_exponential(out=b)
        np.subtract(a, b, out=a)
        return np.multiply(a, scale, out=a)

    return _laplace(values, noise)


def laplace_sign(epsilon: float, values: Floats) -> tuple[Floats, Floats]:
    """By an exponential variate with a random sign."""
    rng, scale = np.random.Generator(np.random.SFC64()), 2 / epsilon
    a, b = (np.empty((_rows(values), values.shape[1])) for _ in range(2))

    def noise(rows: int) -> Floats:
        rng.standard_exponential(out=a)
        rng.random(out=b)
        np.subtract(b, 0.5, out=b)
        np.copysign(a, b, out=a)
        return np.multiply(a, scale, out=a)

    return _laplace(values, noise)


def per_user(epsilon: float, values: NDArray[np.floating], sampled: int) -> tuple[Floats, Floats]:
    """Piecewise, user by user, each sampling m of d dimensions: the natural loop."""
    (a0, b0, _, end, _), (a1, b1, c1, _, _) = law_of("piecewise", epsilon)[1]
    rng = np.random.Generator(np.random.SFC64())
    d = values.shape[1]
    sums, counts = np.zeros(d), np.zeros(d)
    for record in values:
        dims = rng.choice(d, sampled, replace=False) if sampled < d else slice(None)
        u = 1 + rng.random(sampled)
        sums[dims] += np.where(u < end, a0 + b0 * u, a1 + b1 * u + c1 * record[dims])
        counts[dims] += 1
    return sums, counts


def numba_random(epsilon: float) -> Any:
    """Piecewise by numba's np.random in a plain compiled loop; returns the compiled function of values."""
    from numba import njit

    (a0, b0, _, end, _), (a1, b1, c1, _, _) = law_of("piecewise", epsilon)[1].tolist()

    @njit
    def loop(values: Floats) -> tuple[Floats, Floats]:
        n, d = values.shape
        sums, squares = np.zeros(d), np.zeros(d)
        for i in range(n):
            for j in range(d):
                u = 1 + np.random.random()  # noqa: NPY002 (what is measured)
                x = a0 + b0 * u if u < end else a1 + b1 * u + c1 * values[i, j]
                sums[j] += x
                squares[j] += x * x
        return sums, squares

    return loop
