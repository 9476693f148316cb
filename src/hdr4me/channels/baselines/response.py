"""The response of Hadamard response."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hdr4me.channels.k_subset_response import CountedOutputs
from hdr4me.channels.proof import ONE
from hdr4me.channels.response import Floats, Marginal, Mask, Numbers

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


class HadamardResponse(CountedOutputs):
    """The published decoder: an output of the category's block counts ±c, any other output 0."""

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        """As `Hadamard.draw`."""
        family, n = self.channel.family, len(inputs)
        heavy = draws.words(n) < self.channel.weight
        inside, outside = draws.below(family.n_heavy, n), draws.below(family.n_outputs - family.n_heavy, n)
        block, row = family.block_and_row(inputs)
        free = np.where(heavy, inside, outside % family.n_heavy)
        low = (row & -row) - 1
        column = (free & low) | (free & ~low) << 1
        column |= (low + 1) * ((_parity(column & row) + ~heavy) % 2)
        other = outside - family.n_heavy
        elsewhere = other + np.where(other >= block * family.width, family.width, 0)
        found = np.where(heavy | (other < 0), block * family.width + column, elsewhere)
        return np.asarray(found)[:, None]

    def heavy(self, x: int, outputs: Numbers) -> Mask:
        return self._signs(x, outputs[:, 0]) > 0

    def _signs(self, x: int, numbers: Numbers) -> Numbers:
        """+1 or −1 for the outputs of the category's block, and 0 for the others."""
        family = self.channel.family
        block, row = family.block_and_row(x)
        sign = 1 - 2 * _parity(numbers % family.width & row)
        return np.where(numbers // family.width == block, sign, 0)

    @cached_property
    def shared(self) -> Marginal:
        """Three cells: +, − and other blocks; those of absent categories are averaged over the other categories."""
        family, p = self.channel.family, self.channel.weight / ONE
        light = (1 - p) / (family.n_outputs - family.n_heavy) * family.n_heavy  # of one half of a block
        q = self.channel.shares[1]
        value = 1 / (p - light)
        law = np.array([[q, q, 1 - 2 * q], [p, light, 1 - p - light]])[:, None, :]
        levels = np.array([0.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": np.array([value, -value, 0.0])}, levels, unary=True)

    def cells(self, counts: Numbers, position: int = 0) -> Numbers:
        family = self.channel.family
        rows = counts.reshape(family.blocks, family.width)
        found, half = rows, 1
        while half < family.width:  # the fast Walsh–Hadamard transform of each block
            a, b = np.moveaxis(found.reshape(family.blocks, -1, 2, half), 2, 0)
            found, half = np.stack([a + b, a - b], axis=2).reshape(rows.shape), 2 * half
        block, row = family.block_and_row(np.arange(family.size))
        total, difference = rows.sum(axis=1)[block], found[block, row]
        up, down = (total + difference) // 2, (total - difference) // 2
        return np.stack([up, down, counts.sum() - total], axis=1)

    def decoded(self, outputs: Numbers, position: int = 0) -> Floats:
        value = self.shared.decoders["value"][0]
        signs = [self._signs(x, outputs[:, 0]) for x in range(self.channel.family.size)]
        return np.asarray(value * np.stack(signs, axis=1))

    def classes(self, position: int = 0, coordinate: int = 0) -> tuple[Floats, Numbers, bool]:
        every = np.arange(self.channel.n_counters)
        return self.shared.decoders["value"][0] * self._signs(coordinate, every), every, False


def _parity(numbers: Numbers) -> Numbers:
    """Whether the number of ones in the binary digits is odd."""
    for shift in (16, 8, 4, 2, 1):
        numbers = numbers ^ (numbers >> shift)
    return numbers & 1
