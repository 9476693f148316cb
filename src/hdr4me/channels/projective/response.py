"""The response of projective spaces: the number of reports that support each category, from the counters of points.

This is the finite Radon transform, the sum over each hyperplane. With y = (1, y') the
sum over {d·y' = b} for all b at once is one inverse Fourier transform along the line of multiples of d (the projection
theorem), so all hyperplanes take O(N log N). The points (0, y') are a space of one dimension less, and so on down.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.k_subset_response import CountedOutputs, KSubsetResponse, NamingResponse
from hdr4me.channels.projective.channel import n_points
from hdr4me.channels.projective.field import MODULI, characteristic, tables
from hdr4me.channels.response import Floats, Mask, Numbers

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


# Bits of counts that are transformed together; rounding errors stay below 1/100, so sums are exact.
_PART = 24
_INVERSES_UP_TO = 4096  # largest prime with a stored table of inverses


@lru_cache(maxsize=16)
def field_arrays(order: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], Numbers]:
    """The `Tables` of a field as arrays: products and differences are empty for a prime, inverses for a large one."""
    products, differences, inverses = tables(order) if order in MODULI else ((), (), ())
    if order not in MODULI and order <= _INVERSES_UP_TO:
        inverses = (0, *(pow(a, -1, order) for a in range(1, order)))
    return np.array(products, np.uint8), np.array(differences, np.uint8), np.array(inverses, np.int64)


class ProjectiveResponse(CountedOutputs, NamingResponse):
    """A report supports the categories on the hyperplane of its point."""

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        from hdr4me.kernels.exact.channels import points

        family = self.channel.family
        n, q, t = len(inputs), family.order, family.length
        heavy = draws.words(n) < self.channel.weight
        inside, outside = draws.below(family.n_heavy, n), draws.below(q ** (t - 1), n)
        powers = np.array([q**f for f in range(t + 1)], np.int64)
        starts = np.array([n_points(q, f) for f in range(t + 1)], np.int64)
        out = np.empty(n, np.int64)
        points(inputs, heavy, inside, outside, powers, starts, *field_arrays(q), out)
        return out[:, None]

    def heavy(self, x: int, outputs: Numbers) -> Mask:
        q, t = self.channel.family.order, self.channel.family.length
        distinct, where = np.unique(outputs[:, 0], return_inverse=True)
        point, dots = _coordinates(np.array([x]), q, t)[0], np.zeros_like(distinct)  # up to the sign
        for c, column in enumerate(_coordinates(distinct, q, t).T):
            dots = _minus(dots, _times(column, point[c], q), q)
        return np.asarray(dots == 0)[where]

    def decoded(self, outputs: Numbers, position: int = 0) -> Floats:
        other, equal = self.marginal().decoders["value"]
        named = [self.heavy(x, outputs) for x in range(self.channel.family.size)]
        return np.asarray(np.where(np.stack(named, axis=1), equal, other))

    def covariance(self, values: Floats, shares: Floats, *, optional: bool = False) -> Floats:
        """From the distribution of the points: two hyperplanes share more points with those of some categories."""
        return KSubsetResponse.covariance(self, values, shares)

    def supports(self, counts: Numbers) -> Numbers:
        family = self.channel.family
        total = np.zeros(family.size, np.int64)
        rest, shift = counts, 0
        while rest.any():
            part = rest & ((1 << _PART) - 1)
            total += hyperplane_sums(part, family.order, family.length)[: family.size] << shift
            rest, shift = rest >> _PART, shift + _PART
        return total


def hyperplane_sums(counts: Numbers, order: int, length: int) -> Numbers:
    """The sum of counts over the hyperplane of each point of PG(length − 1, order)."""
    q, sums = order, np.zeros(1, np.int64)  # the only point of the space of length 1 is on no hyperplane
    for t in range(2, length + 1):
        n_less = n_points(q, t - 1)
        slices = _slices(counts[n_less : n_less + q ** (t - 1)], q, t - 1)
        made = np.empty(n_points(q, t), np.int64)
        made[:n_less] = slices[:, 0] + sums  # x = (0, d): every b = d·y' = 0
        made[n_less] = counts[:n_less].sum()  # x = (1, 0): all points (0, y')
        number = np.arange(1, q ** (t - 1))  # x = (1, x') with x' = s·d: d·y' = −1/s
        direction, scale = _directions(number, q, t - 1)
        made[n_less + 1 :] = (
            slices[direction, _minus(np.zeros(q, np.int64), _inverses(q), q)[scale]] + sums[direction]
        )
        sums = made
    return sums


def _slices(affine: Numbers, q: int, n: int) -> Numbers:
    """Σ of a function of n field elements over d·y = b, for each direction d (row) and element b (column)."""
    if n == 1:
        return affine[None, :].copy()
    values: NDArray[np.inexact] = affine.astype(np.float64)
    characters = _characters(q)
    for _ in range(n):  # the first axis is transformed and becomes the last
        values = values.reshape(q, -1)
        values = (np.fft.fft(values, axis=0) if characters is None else characters @ values).T
    lines = values.ravel()[_line_places(q, n)]
    back = np.fft.ifft(lines, axis=1) if characters is None else lines @ characters.conj() / q
    return np.rint(back.real).astype(np.int64)


@lru_cache(maxsize=8)
def _characters(q: int) -> NDArray[np.inexact] | None:
    """χ(ab) for the elements of a field and an additive character χ; None if a Fourier transform is faster.

    In a field of p^k elements χ(a) = e^(2πi·c/p) with c the first digit of a: addition is digit by digit modulo p.
    """
    if q not in MODULI and q >= 16:
        return None
    p = characteristic(q)
    numbers = np.arange(q)
    digit = _times(numbers[:, None], numbers, q) % p
    return 1.0 - 2.0 * digit if p == 2 else np.exp(-2j * np.pi * digit / p)


def _line_places(q: int, n: int) -> Numbers:
    """The index of a·d among all vectors of n elements, for each direction d (row) and element a (column)."""
    vectors = _coordinates(np.arange(n_points(q, n)), q, n)
    position = np.zeros((len(vectors), q), np.int64)
    for c in range(n):
        position = position * q + _times(vectors[:, c, None], np.arange(q), q)
    return position


def _directions(number: Numbers, q: int, n: int) -> tuple[Numbers, Numbers]:
    """The direction d and the element s of each vector s·d, which is given by its digits in base q."""
    free = np.searchsorted(np.array([q**f for f in range(1, n)], np.int64), number, side="right")
    scale = number // q**free
    back = _inverses(q)[scale]
    scaled = np.zeros_like(number)
    for c in range(n - 1, -1, -1):
        scaled = scaled * q + _times(number // q**c % q, back, q)
    starts = np.array([n_points(q, f) for f in range(n)], np.int64)
    return scaled - q**free + starts[free], scale


def _coordinates(indices: Numbers, q: int, length: int) -> Numbers:
    """The vectors [n, length] of points."""
    starts = np.array([n_points(q, f) for f in range(1, length)], np.int64)
    free = np.searchsorted(starts, indices, side="right")
    number = q**free + indices - np.concatenate([[0], starts])[free]
    return np.asarray(number[:, None] // q ** np.arange(length - 1, -1, -1) % q)


def _times(a: Numbers, b: Numbers, q: int) -> Numbers:
    products = field_arrays(q)[0]
    return np.asarray(products[a * q + b].astype(np.int64) if products.size else a * b % q)


def _minus(a: Numbers, b: Numbers, q: int) -> Numbers:
    differences = field_arrays(q)[1]
    return np.asarray(differences[a * q + b].astype(np.int64) if differences.size else (a - b) % q)


def _inverses(q: int) -> Numbers:
    """1/a for all elements of the field, and 0 for 0: from a table, or a^(q − 2) by repeated squaring."""
    if (known := field_arrays(q)[2]).size:
        return known
    power, found, exponent = np.arange(q), np.minimum(np.arange(q), 1), q - 2
    while exponent:
        found = _times(found, power, q) if exponent & 1 else found
        power, exponent = _times(power, power, q), exponent >> 1
    return found
