"""Which ids are stored: sorted arrays of 16 bytes an id, and a set of the latest.

An id costs 16 bytes of memory, 2 to 8 bytes of a bitmap that tells most new ids at once, and 16 bytes more for a moment
when two arrays are merged. The latest 65,536 ids are a Python set of about 8 MB. Senders choose ids: whatever they
choose, an id is found by a binary search over all 16 bytes in each of at most log2(n) arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.exact.ids import mark_known, mark_set, merge, set_bits

__all__ = ["IdSet"]

_RECENT = 1 << 16
_MANY = 16 * 512
"""Bytes of ids from which arrays are quicker than sets."""

Words = NDArray[np.uint64]
Tier = tuple[Words, Words]
"""Sorted ids: the first eight bytes of each, and the last eight, as numbers whose order is that of the bytes."""


class IdSet:
    """A set of ids that only grows.

    >>> ids = IdSet()
    >>> ids.add([b"a" * 16, b"b" * 16])
    >>> ids.find([b"a" * 16, b"c" * 16]).tolist(), len(ids)
    ([True, False], 2)
    """

    def __init__(self, recent: int = _RECENT) -> None:
        self._most_recent = recent
        self._recent: set[bytes] = set()
        self._tiers: list[Tier] = []
        self._bits, self._shift = np.zeros(128, np.uint8), np.uint64(54)

    def __len__(self) -> int:
        return len(self._recent) + sum(len(high) for high, _ in self._tiers)

    def find(self, ids: Sequence[bytes]) -> NDArray[np.bool_]:
        """Which of some ids are in the set; quickest for sorted ids."""
        recent = self._recent
        found = np.fromiter((id in recent for id in ids), bool, len(ids))
        if self._tiers and len(ids):
            words = _words(b"".join(ids))
            order = np.lexsort(words[::-1])
            found[order] |= self._in_tiers(*(column[order] for column in words))
        return found

    def find_bytes(self, ids: bytes) -> NDArray[np.bool_]:
        """The same for sorted ids end to end."""
        if len(ids) < _MANY:
            return self.find(_split(ids))
        if self._recent:  # one search in an array is quicker than many in a set
            self._settle()
        return self._in_tiers(*_words(ids))

    def _in_tiers(self, high: Words, low: Words) -> NDArray[np.bool_]:
        found = np.zeros(len(high), bool)
        mark_set(self._bits, self._shift, high, found)
        if not found.any():  # so it is for most batches of new ids, and almost so for the others
            return found
        maybe = np.flatnonzero(found)
        known = np.zeros(len(maybe), bool)
        for tier in self._tiers:
            mark_known(*tier, high[maybe], low[maybe], known)
        found[maybe] = known
        return found

    def add(self, ids: Sequence[bytes]) -> None:
        """Put in ids that are not in the set."""
        self._recent.update(ids)
        if len(self._recent) >= self._most_recent:
            self._settle()

    def add_bytes(self, ids: bytes) -> None:
        """The same for ids end to end."""
        if len(ids) < _MANY:
            self.add(_split(ids))
        else:
            self._push(_sorted(*_words(ids)))

    def _settle(self) -> None:
        """The latest ids become an array."""
        tier = _sorted(*_words(b"".join(self._recent)))
        self._recent = set()
        self._push(tier)

    def _push(self, tier: Tier) -> None:
        self._mark(tier[0])
        while self._tiers and len(self._tiers[-1][0]) <= len(tier[0]):
            other = self._tiers.pop()
            both = np.empty((2, len(other[0]) + len(tier[0])), np.uint64)
            merge(*other, *tier, *both)
            tier = both[0], both[1]
        self._tiers.append(tier)

    def _mark(self, high: Words) -> None:
        """Set the bits of new ids; with more than one id for 16 bits there are twice as many bits, or more."""
        n = sum(len(tier[0]) for tier in self._tiers) + len(high)
        if 16 * n > 8 * self._bits.size:
            n_bits = max(10, (32 * n).bit_length())
            self._bits, self._shift = np.zeros(1 << (n_bits - 3), np.uint8), np.uint64(64 - n_bits)
            for tier in self._tiers:
                set_bits(self._bits, self._shift, tier[0])
        set_bits(self._bits, self._shift, high)


def _split(ids: bytes) -> list[bytes]:
    return [ids[at : at + 16] for at in range(0, len(ids), 16)]


def _words(ids: bytes) -> Tier:
    both = np.frombuffer(ids, ">u8").astype(np.uint64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def _sorted(high: Words, low: Words) -> Tier:
    order = np.argsort(high, kind="stable")  # sorted runs are merged
    first = high[order]
    if (first[1:] == first[:-1]).any():  # random ids have none, chosen ones may
        order = np.lexsort((low, high))
        first = high[order]
    return first, low[order]
