"""The response of agreement blocks."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.k_subset_response import KSubsetResponse, below_steps
from hdr4me.channels.proof import ONE
from hdr4me.channels.response import Floats, Marginal, Mask, Numbers, Records, gram
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.kernels.exact.perturb import Columns
    from hdr4me.kernels.exact.secure import SecureDraws


# Users whose random bits are generated together, so that they fit into the second-level cache.
_CHUNK = 1 << 12


class AgreementResponse(KSubsetResponse):
    """A number is rounded randomly to a sign, and the reported sign agrees with it with probability (1 + c)/2."""

    wide = True
    in_order = False

    def encode(
        self, records: Records, dimensions: Sequence[int], users: Numbers, draws: SecureDraws
    ) -> Numbers:
        """The signs of each block as the fields of an output; each number is rounded randomly to −1 or 1."""
        from hdr4me.kernels.exact.blocks import BOTTOM, DEFAULT, LOW, SCALE, TOP
        from hdr4me.kernels.exact.channels import row_signs, signs

        found = np.empty((len(users), len(self.channel.fields)), np.int64)
        done = 0
        for field, width in enumerate(self.channel.family.widths):
            dims = np.array(dimensions[done : done + width], np.int64)
            done += width
            rows = _side_by_side(records.columns, dims, users)
            lines = np.ascontiguousarray(records.ranges[dims][:, [LOW, SCALE, BOTTOM, TOP, DEFAULT]].T)
            for start in range(0, len(users), _CHUNK):
                part = users[start : start + _CHUNK]
                halves = draws.halves(width * len(part))
                block = np.empty(len(part), np.uint64)
                if rows is not None:
                    row_signs(*rows, lines, part, halves.reshape(len(part), width), block)
                else:
                    halves = halves.reshape(width, len(part))
                    signs(records.columns, records.ranges, dims, part, halves, block)
                found[start : start + _CHUNK, field] = block.view(np.int64)
        return found

    def inputs_of(self, x: int, n: int) -> Numbers:
        return np.tile(self._fields(x), (n, 1))

    def _fields(self, x: int) -> Numbers:
        """The fields of a block as bit patterns."""
        return np.array(self.channel.family.split(x), np.uint64).view(np.int64)

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        from hdr4me.kernels.exact.channels import MOST, differ

        family = self.channel.family
        blocks = inputs.reshape(len(inputs), len(family.fields)).copy()
        heavy = draws.words(len(inputs)) < self.channel.weight
        if family.size > MOST:
            self._flip_many(blocks, heavy, draws)
            return blocks
        numbers = draws.below_either(heavy, family.n_heavy, family.n_outputs - family.n_heavy)
        ends = np.array(family.ends[:-1], np.uint64)
        differ(numbers, ends, family.size, _binomials(), blocks[:, 0].view(np.uint64))
        return blocks

    def _flip_many(self, blocks: Numbers, heavy: Mask, draws: SecureDraws) -> None:
        """Flip signs of blocks of more than 64; users with equally many flips are processed together."""
        from hdr4me.kernels.exact.channels import flip

        family, n = self.channel.family, len(blocks)
        most = family.size - family.agreeing
        inside = family.ends[: most + 1]
        outside = tuple(end - family.n_heavy for end in family.ends[most + 1 :])
        t = np.where(heavy, below_steps(inside, draws, n), most + 1 + below_steps(outside, draws, n))
        ends = np.cumsum(family.widths)
        for count in np.unique(t[t > 0]).tolist():
            users = np.flatnonzero(t == count)
            flip(users, draws.subsets(users.size, family.size, count), ends, blocks.view(np.uint64))

    def counters(self, outputs: Numbers) -> Numbers:
        parts = [
            outputs[:, column, None] >> np.arange(width - 1, -1, -1) & 1
            for column, width in enumerate(self.channel.family.widths)
        ]
        return np.asarray(np.concatenate(parts, axis=1) + 2 * np.arange(self.channel.family.size))

    def count(self, outputs: Numbers, good: Mask, counts: Numbers) -> None:
        from hdr4me.kernels.exact.channels import count_signs

        first = 0
        for column, width in enumerate(self.channel.family.widths):
            blocks = np.ascontiguousarray(outputs[:, column]).view(np.uint64)
            count_signs(blocks, good, width, counts[2 * first : 2 * (first + width)])
            first += width

    def heavy(self, x: int, outputs: Numbers) -> Mask:
        differ = (outputs ^ self._fields(x)).view(np.uint64)
        family = self.channel.family
        return np.asarray(np.bitwise_count(differ).sum(axis=1) <= family.size - family.agreeing)

    def bounds(self) -> tuple[Floats, Floats]:
        law, size = self.shared.law[:, 0], self.channel.family.size
        return np.tile(law.min(axis=0), size), np.tile(law.max(axis=0), size)

    def simulate(self, values: Floats, rng: np.random.Generator) -> Floats:
        """Decoded signs ±1/c of users with these values [n, size] on [−1, 1]; not private."""
        if not np.all(np.abs(values) <= 1.0):
            raise InvalidInput("values must lie in the domain [-1, 1] of an agreement block")
        family, n = self.channel.family, len(values)
        signs = np.where(rng.random(values.shape) < (1 + values) / 2, 1.0, -1.0)
        k, most = family.n_heavy, family.size - family.agreeing
        heavy = rng.random(n) < self.channel.weight / ONE
        inside = np.array([float(Fraction(end, k)) for end in family.ends[: most + 1]])
        outside = np.array(
            [float(Fraction(end - k, family.n_outputs - k)) for end in family.ends[most + 1 :]]
        )
        u = rng.random(n)
        t = np.where(
            heavy,
            np.searchsorted(inside, u, side="right"),
            most + 1 + np.searchsorted(outside, u, side="right"),
        )
        places = rng.random(values.shape).argsort(axis=1).argsort(axis=1)
        return np.asarray(np.where(places < t[:, None], -signs, signs) / self.contrast_c)

    @cached_property
    def contrast_c(self) -> float:
        """c: a reported sign has mean c times the number."""
        agree, differ = self.channel.family.shares(Fraction(self.channel.weight, ONE))
        return float(agree - differ)

    @cached_property
    def shared(self) -> Marginal:
        agree, differ = map(float, self.channel.family.shares(Fraction(self.channel.weight, ONE)))
        law = np.array([[agree, differ], [differ, agree]])[:, None, :]
        levels = np.array([-1.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": levels / self.contrast_c}, levels)

    def covariance(self, values: Floats, shares: Floats, *, optional: bool = False) -> Floats:
        """Two reported signs are both right or both wrong more often than independent ones."""
        both = gram(values, shares)
        mean = float(self.channel.family.pair_mean(Fraction(self.channel.weight, ONE)))
        second = mean * both
        np.fill_diagonal(second, 1.0)
        return np.asarray(second / self.contrast_c**2 - both)

    def cells(self, counts: Numbers, position: int = 0) -> Numbers:
        return counts[None, 2 * position : 2 * position + 2]


@lru_cache(maxsize=1)
def _binomials() -> NDArray[np.uint64]:
    from hdr4me.kernels.exact.channels import ways

    return ways()


def _side_by_side(columns: Columns, dims: Numbers, users: Numbers) -> tuple[NDArray[Any], int] | None:
    """The address of floats that are adjacent in rows, and the distance of rows in elements.

    None for other layouts: separate columns, integers, or validity bitmaps.
    """
    from hdr4me.kernels.machine.intrinsics import DTYPES

    dtype = DTYPES[columns.dtype[dims[0]]]
    size, stride, address = dtype.itemsize, int(columns.stride[dims[0]]), columns.address[dims]
    if not columns.step or dtype.kind != "f" or stride < size * len(dims) or stride % size or not users.size:
        return None
    if (address != address[0] + np.arange(len(dims), dtype=np.uint64) * np.uint64(size)).any():
        return None
    elements = int(users.max()) * (stride // size) + len(dims)
    memory = (ctypes.c_char * (elements * size)).from_address(int(address[0]))
    return np.frombuffer(memory, dtype), stride // size
