"""Points of a projective space for many users at once; what is computed is said in `hdr4me.channels.projective`."""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.machine.jit import kernel


@kernel()
def points(inputs, heavy, inside, outside, powers, starts, products, differences, inverses, out):  # type: ignore[no-untyped-def]
    """A point on the hyperplane of each input where `heavy`, else one that is not on it.

    `inside` are uniform points of one dimension less, `outside` uniform numbers below q^(t−1); powers[f] = q^f for f up
    to t, starts[f] = (q^f − 1)/(q − 1) for f up to t. `products` and `differences` are the field's tables, a·b and
    a − b at place a·q + b, if q is a power of a prime, and empty if q is a prime. `inverses` are empty if q is a large
    prime.
    """
    t = starts.size - 1
    q = powers[1]
    power = products.size > 0
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
        left = 0 if heavy[i] else 1  # what ⟨x, y⟩ still lacks
        for c in range(t - 1, -1, -1):
            if c == place:
                continue
            rest = number // q
            y[c] = number - rest * q
            number = rest
            if power:
                left = differences[left * q + products[x[c] * q + y[c]]]
            else:
                left -= x[c] * y[c]
        y[place] = left if power else left % q
        first = 0
        while y[first] == 0:
            first += 1
        a = y[first]
        if a != 1:
            if power:
                scale = np.int64(inverses[a])
                for c in range(first, t):
                    y[c] = products[scale * q + y[c]]
            elif inverses.size:
                scale = np.int64(inverses[a])
                for c in range(first, t):
                    y[c] = scale * y[c] % q
            else:
                scale, power_of_a, exponent = np.int64(1), a, q - 2
                while exponent:
                    if exponent & 1:
                        scale = scale * power_of_a % q
                    power_of_a = power_of_a * power_of_a % q
                    exponent >>= 1
                for c in range(first, t):
                    y[c] = scale * y[c] % q
        number = 0
        for c in range(t):
            number = number * q + y[c]
        free = t - 1 - first
        out[i] = number - powers[free] + starts[free]
