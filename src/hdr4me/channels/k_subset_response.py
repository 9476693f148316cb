"""The response of k-subset channels, whose outputs are either heavy for an input or not."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from sys import float_info
from typing import TYPE_CHECKING

import numpy as np

from hdr4me.channels.blanket import Blanket, heavy_blanket, table_blanket
from hdr4me.channels.proof import BITS, ONE
from hdr4me.channels.response import Contrast, Floats, Marginal, Mask, Numbers, Response, gram

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


class KSubsetResponse(Response):
    """The response of a family; the default enumerates the outputs."""

    def heavy(self, x: int, outputs: Numbers) -> Mask:
        """Which outputs are heavy for input x."""
        distinct, where = np.unique(outputs, axis=0, return_inverse=True)
        found = [self.channel.family.is_heavy(x, output) for output in distinct.tolist()]
        return np.array(found, bool)[where.ravel()]

    def contrast(self, first: int, second: int) -> Contrast:
        """Class 0: heavy for the first input only; 2: for the second only; 1: for both or neither."""

        def classify(outputs: Numbers) -> Numbers:
            return np.asarray(1 - self.heavy(first, outputs).astype(np.int64) + self.heavy(second, outputs))

        return self._three(classify)

    def likeliest(self) -> float:
        family, w = self.channel.family, self.channel.weight
        k, n = family.n_heavy, family.n_outputs
        # N may exceed the range of floats.
        found = max(Fraction(w, ONE * k), Fraction(ONE - w, ONE * (n - k)))
        return max(float(found), float_info.min)

    def blanket(self) -> Blanket:
        if self.channel.rows is not None:
            return table_blanket(self.channel.rows, alike=True)
        family = self.channel.family
        return heavy_blanket(family.n_outputs, family.n_heavy, self.channel.weight)


class CountedOutputs(KSubsetResponse):
    """A report increments the counter of its output."""

    in_order: bool | None = False

    def counters(self, outputs: Numbers) -> Numbers:
        return outputs

    def bounds(self) -> tuple[Floats, Floats]:
        n, k, p = self.channel.n_counters, self.channel.family.n_heavy, self.channel.weight / ONE
        return np.full(n, (1 - p) / (n - k)), np.full(n, p / k)

    @cached_property
    def joint(self) -> tuple[Floats, Floats]:
        decoded = self.decoded(np.arange(self.channel.n_counters)[:, None]).T
        light, heavy = (bound[0] for bound in self.bounds())
        return np.where(decoded > 0, heavy, light), decoded


class NamingResponse(KSubsetResponse):
    """A report supports a category with probability p if the user has it, and with probability q otherwise."""

    in_order: bool | None = True

    def counters(self, outputs: Numbers) -> Numbers:
        return outputs

    def bounds(self) -> tuple[Floats, Floats]:
        low, high = sorted(self.channel.shares)
        return np.full(self.channel.n_counters, low), np.full(self.channel.n_counters, high)

    @cached_property
    def shared(self) -> Marginal:
        p, q = self.channel.shares
        equal, other = self.channel.decode
        law = np.array([[1 - q, q], [1 - p, p]])[:, None, :]
        levels = np.array([0.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": np.array([other, equal])}, levels)

    def covariance(self, values: Floats, shares: Floats, *, optional: bool = False) -> Floats:
        p, q = self.channel.shares
        either, neither = map(float, self.channel.family.pair_shares(Fraction(self.channel.weight, ONE)))
        f, both = shares @ values, gram(values, shares)
        has = f[:, None] + f - both  # the share of users with at least one of two categories
        named = either * has + neither * (1.0 - has)
        np.fill_diagonal(named, q + (p - q) * f)
        means = q * q + q * (p - q) * (f[:, None] + f) + (p - q) ** 2 * both
        return np.asarray((named - means) / (p - q) ** 2)

    def cells(self, counts: Numbers, position: int = 0) -> Numbers:
        named = self.supports(counts)
        answers = int(counts.sum()) // self.channel.per_report
        return np.stack([answers - named, named], axis=1)

    def classes(self, position: int = 0, coordinate: int = 0) -> tuple[Floats, Numbers, bool]:
        return np.array(self.channel.decode), np.array([coordinate]), True


_FAST_SUBSETS = 65537  # up to this many categories, a compiled kernel draws subsets
# Beyond, sets of less than one in 40 categories are drawn one by one.
_BYTE_SETS, _SPARSE = 256, 40


class SubsetResponse(NamingResponse):
    """Each category has a counter."""

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        """As `Subset.draw`, in the integer type of a report."""
        from hdr4me.kernels.exact.sets import MOST, with_member

        family = self.channel.family
        if family.size > _FAST_SUBSETS and family.chosen > 1:
            return super().sample(inputs, draws)
        n = len(inputs)
        heavy = draws.words(n) < self.channel.weight
        most = min(MOST, max(_BYTE_SETS, _SPARSE * family.chosen))
        if 2 < 2 * family.chosen < family.size <= most:
            return draws.sets(family.size, family.chosen, inputs, heavy)
        places = draws.below(family.chosen, n)
        output = np.empty((n, family.chosen), f"u{family.fields[0].size}")
        short = 1 < family.chosen < family.size - 1
        others = (draws.short_subsets if short else draws.subsets)(n, family.size - 1, family.chosen)
        with_member(np.ascontiguousarray(others), inputs, heavy, places, output)
        return output

    def heavy(self, x: int, outputs: Numbers) -> Mask:
        return np.asarray((outputs == x).any(axis=1))


def below_steps(ends: tuple[int, ...], draws: SecureDraws, n: int) -> Numbers:
    """For n uniform integers below ends[-1], which may be large: the number of other ends at or below each.

    The first 32 bits decide unless they equal those of an end. Then more bits are drawn until they differ.
    """
    total = ends[-1]
    cuts = [(end << BITS) // total for end in ends[:-1]]
    words = draws.words(n).astype(np.int64)
    found = np.searchsorted(np.array(cuts, np.int64), words, side="left") if cuts else np.zeros(n, np.int64)
    for row in np.flatnonzero(np.isin(words, cuts)).tolist():
        bits, size = int(words[row]), BITS
        while any((end << size) // total == bits for end in ends[:-1]):
            bits, size = bits << BITS | draws.bits(BITS), size + BITS
        found[row] = sum((end << size) // total < bits for end in ends[:-1])
    return np.asarray(found)
