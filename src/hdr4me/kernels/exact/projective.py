"""Points of a projective space for many users at once; what is computed is said in `hdr4me.channels.projective`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.machine.jit import kernel

__all__ = ["coordinates", "dots", "points"]

Numbers = NDArray[np.int64]


@kernel()
def points(inputs, heavy, inside, outside, powers, starts, products, out):  # type: ignore[no-untyped-def]
    """A point on the hyperplane of each input where `heavy`, else one that is not on it.

    `inside` are uniform points of one dimension less, `outside` uniform numbers below q^(t−1); powers[f] = q^f for f up
    to t, starts[f] = (q^f − 1)/(q − 1) for f up to t. `products` are the products of the field of 4 (q = 4), or empty.
    """
    t = starts.size - 1
    q = powers[1]
    four = products.size > 0
    x = np.empty(t, np.int64)
    y = np.empty(t, np.int64)
    for i in range(inputs.size):
        free = 0
        for f in range(1, t):
            free += inputs[i] >= starts[f]
        number = powers[free] + inputs[i] - starts[free]
        for c in range(t - 1, -1, -1):
            rest = number // q
            x[c] = number - rest * q
            number = rest
        place = t - 1 - free
        free = 0
        for f in range(1, t - 1):
            free += inside[i] >= starts[f]
        number = powers[free] + inside[i] - starts[free] if heavy[i] else outside[i]
        total = 0
        for c in range(t - 1, -1, -1):
            if c == place:
                continue
            rest = number // q
            y[c] = number - rest * q
            number = rest
            if four:
                total ^= products[4 * x[c] + y[c]]
            else:
                total += x[c] * y[c]
        want = 0 if heavy[i] else 1
        y[place] = want ^ total if four else (want + (q - 1) * (total % q)) % q
        first = 0
        while y[first] == 0:
            first += 1
        a = y[first]
        if a != 1:
            if four:
                scale = products[4 * a + a]
                for c in range(first, t):
                    y[c] = products[4 * scale + y[c]]
            else:
                scale, power, exponent = 1, a, q - 2
                while exponent:
                    if exponent & 1:
                        scale = scale * power % q
                    power = power * power % q
                    exponent >>= 1
                for c in range(first, t):
                    y[c] = scale * y[c] % q
        number = 0
        for c in range(t):
            number = number * q + y[c]
        free = t - 1 - first
        out[i] = number - powers[free] + starts[free]


def coordinates(indices: Numbers, order: int, length: int) -> Numbers:
    """The vectors [n, length] of points."""
    starts = np.array([(order**f - 1) // (order - 1) for f in range(1, length)], np.int64)
    free = np.searchsorted(starts, indices, side="right")
    number = order**free + indices - np.concatenate([[0], starts])[free]
    return np.asarray(number[:, None] // order ** np.arange(length - 1, -1, -1) % order)


def dots(first: Numbers, second: Numbers, order: int, products: Numbers) -> Numbers:
    """⟨x, y⟩ of vectors along the last axis, broadcast against each other."""
    if order == 4:
        return np.asarray(np.bitwise_xor.reduce(products[4 * first + second], axis=-1))
    total = np.zeros(np.broadcast_shapes(first.shape, second.shape)[:-1], np.int64)
    for c in range(first.shape[-1]):
        total = (total + first[..., c] * second[..., c]) % order
    return total
