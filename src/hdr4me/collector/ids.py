"""Which ids are stored: sorted arrays of 16 bytes an id, and a set of the latest.

An id costs 16 bytes of memory, and 40 bytes more for a moment when two arrays are merged. The latest 65,536 ids are a
Python set of about 8 MB. Senders choose ids: every search is a binary search over all 16 bytes, whatever they choose.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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

    def __len__(self) -> int:
        return len(self._recent) + sum(len(high) for high, _ in self._tiers)

    def find(self, ids: Sequence[bytes]) -> NDArray[np.bool_]:
        """Which of some ids are in the set; quickest for sorted ids."""
        recent = self._recent
        found = np.fromiter((id in recent for id in ids), bool, len(ids))
        if self._tiers and len(ids):
            high, low = _words(b"".join(ids))
            for tier in self._tiers:
                found |= _in_tier(tier, high, low)
        return found

    def find_bytes(self, ids: bytes) -> NDArray[np.bool_]:
        """The same for ids end to end."""
        if len(ids) < _MANY:
            return self.find(_split(ids))
        if self._recent:  # one search in an array is quicker than many in a set
            self._settle()
        found = np.zeros(len(ids) // 16, bool)
        high, low = _words(ids)
        for tier in self._tiers:
            found |= _in_tier(tier, high, low)
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
        while self._tiers and len(self._tiers[-1][0]) <= 2 * len(tier[0]):
            other = self._tiers.pop()
            tier = _sorted(*(np.concatenate(pair) for pair in zip(other, tier, strict=True)))
        self._tiers.append(tier)


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


def _in_tier(tier: Tier, high: Words, low: Words) -> NDArray[np.bool_]:
    there, rest = tier
    at = np.searchsorted(there, high)
    inside = at < len(there)
    inside[inside] = there[at[inside]] == high[inside]
    for i in np.flatnonzero(inside).tolist():
        end = int(np.searchsorted(there, high[i], side="right"))
        part = rest[int(at[i]) : end]
        place = int(np.searchsorted(part, low[i]))
        inside[i] = place < len(part) and part[place] == low[i]
    return inside
