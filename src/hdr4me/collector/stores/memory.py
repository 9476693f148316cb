"""The state of a store in memory: stored ids, running tallies, and the blocks of each round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from hdr4me.collector.batch import FRESH, ID_SIZE, Block, Mask, split_ids
from hdr4me.collector.stores.protocol import Round, State
from hdr4me.kernels.exact.ids import mark_known, mark_set, merge, set_bits
from hdr4me.survey import Survey
from hdr4me.tally import Tally

_RECENT = 1 << 16
_MANY = 16 * 512  # bytes of ids from which arrays are faster than sets
# Reports that wait before they are counted: a count passes over all counters of a survey, which may be a million.
_ENOUGH = 1 << 16
# A block of fewer reports and bytes is small. This many small blocks of an hour and a source are merged into one, which
# has at most 1 MiB and 4,032 reports; larger blocks are never merged, since a merge writes every report again.
SMALL, SMALL_BYTES = 64, 1 << 14

Words = NDArray[np.uint64]
Owners = NDArray[np.uint32]
# Sorted ids: the first eight bytes of each, and the last eight, as integers in the order of the bytes; their owners.
Tier = tuple[Words, Words, Owners]


class IdSet:
    """A set of ids that only grows, each with the number of its owner; ids are passed end to end, 16 bytes each.

    An id costs 20 bytes of memory, 2 to 8 bytes of a bitmap that excludes most new ids at once, and 20 bytes more while
    two arrays are merged. The latest 65,536 ids are a Python set of about 8 MB. Senders choose ids, so an id
    is always found by a binary search over all 16 bytes in each of at most log2(n) arrays.
    """

    def __init__(self, recent: int = _RECENT) -> None:
        self._most_recent = recent
        self._recent: dict[bytes, int] = {}
        self._tiers: list[Tier] = []
        self._bits, self._shift = np.zeros(128, np.uint8), np.uint64(54)

    def __len__(self) -> int:
        return len(self._recent) + sum(len(tier[0]) for tier in self._tiers)

    def find(self, ids: bytes) -> Mask:
        """Which of some sorted ids are in the set."""
        if len(ids) < _MANY:
            found = np.array([id in self._recent for id in split_ids(ids)], bool)
            if self._tiers:
                found |= self._in_tiers(*_words(ids))
            return found
        if self._recent:  # one search in an array is faster than many in a set
            self._settle()
        return self._in_tiers(*_words(ids))

    def _in_tiers(self, high: Words, low: Words) -> Mask:
        found = np.zeros(len(high), bool)
        mark_set(self._bits, self._shift, high, found)
        if not found.any():  # the usual case for new ids
            return found
        maybe = np.flatnonzero(found)
        known = np.zeros(len(maybe), bool)
        for tier in self._tiers:
            mark_known(tier[0], tier[1], high[maybe], low[maybe], known)
        found[maybe] = known
        return found

    def owner(self, id: bytes) -> int | None:
        """The owner of an id; None if the id is not in the set. A binary search in each array."""
        if id in self._recent:
            return self._recent[id]
        (wanted,), (rest,) = _words(id)
        for high, low, owner in self._tiers:
            first, last = np.searchsorted(high, wanted), np.searchsorted(high, wanted, "right")
            at = first + np.searchsorted(low[first:last], rest)
            if at < last and low[at] == rest:
                return int(owner[at])
        return None

    def add(self, ids: bytes, owner: int | Owners = 0) -> None:
        """Add ids that are not in the set, in any order; of equal ids one is added."""
        if len(ids) >= _MANY:
            owners = np.full(len(ids) // ID_SIZE, owner, np.uint32) if isinstance(owner, int) else owner
            self._push(_sorted(*_words(ids), owners))
            return
        owned = repeat(owner) if isinstance(owner, int) else owner.tolist()
        self._recent.update(zip(split_ids(ids), owned, strict=False))
        if len(self._recent) >= self._most_recent:
            self._settle()

    def _settle(self) -> None:
        """Move the latest ids into an array."""
        tier = _sorted(*_words(b"".join(self._recent)), np.array([*self._recent.values()], np.uint32))
        self._recent = {}
        self._push(tier)

    def _push(self, tier: Tier) -> None:
        self._mark(tier[0])
        while self._tiers and len(self._tiers[-1][0]) <= len(tier[0]):
            other = self._tiers.pop()
            n = len(other[0]) + len(tier[0])
            both = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint32)
            merge(*other, *tier, *both)
            tier = both
        self._tiers.append(tier)

    def _mark(self, high: Words) -> None:
        """Set the bits of new ids; the bitmap grows when there is more than one id for 16 bits."""
        n = sum(len(tier[0]) for tier in self._tiers) + len(high)
        if 16 * n > 8 * self._bits.size:
            n_bits = max(10, (32 * n).bit_length())
            self._bits, self._shift = np.zeros(1 << (n_bits - 3), np.uint8), np.uint64(64 - n_bits)
            for tier in self._tiers:
                set_bits(self._bits, self._shift, tier[0])
        set_bits(self._bits, self._shift, high)


def _words(ids: bytes) -> tuple[Words, Words]:
    both = np.frombuffer(ids, ">u8").astype(np.uint64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def _sorted(high: Words, low: Words, owner: Owners) -> Tier:
    order = np.argsort(high, kind="stable")  # sorted runs are merged
    first = high[order]
    if (first[1:] == first[:-1]).any():  # chosen ids may begin alike, or be equal
        order = np.lexsort((low, high))
        first, last = high[order], low[order]
        order = order[np.append(True, (first[1:] != first[:-1]) | (last[1:] != last[:-1]))]
        first = high[order]
    return first, low[order], owner[order]


def count(blocks: Iterable[Block], survey: Survey) -> Tally:
    """The tally of some blocks."""
    running = Running(survey)
    for block in blocks:
        running.add(block.rows(survey))
    return running.total()


def minus(total: Tally, part: Tally) -> Tally:
    """The tally of the reports in `total` that are not in its part `part`: exact, since counts are integers."""
    rest = Tally(total.survey)
    np.subtract(total.counts, part.counts, out=rest.counts)
    rest.n_reports = total.n_reports - part.n_reports
    rest._rejected = total._rejected - part._rejected
    return rest


class Running:
    """A tally that is kept while reports are added and deleted."""

    def __init__(self, survey: Survey) -> None:
        self._tally = Tally(survey)
        self._waiting: list[NDArray[np.uint8]] = []
        self._n = 0

    def add(self, rows: NDArray[np.uint8]) -> None:
        """Count rows [n, report_size], now or later."""
        self._waiting.append(rows)
        self._n += len(rows)
        if self._n >= _ENOUGH:
            self._count()

    def subtract(self, tally: Tally) -> None:
        """Subtract a tally of rows that were added before."""
        self._count()
        self._tally = minus(self._tally, tally)

    def total(self) -> Tally:
        """A copy of the tally of everything that was added."""
        self._count()
        return self._tally + Tally(self._tally.survey)

    def _count(self) -> None:
        if self._waiting:
            self._tally.add_block(np.concatenate(self._waiting))
            self._waiting, self._n = [], 0


def is_small(block: Block) -> bool:
    """Whether a block is merged with others like it."""
    return len(block) < SMALL and len(block.data) < SMALL_BYTES


@dataclass
class Live:
    """A round and its blocks, as the SQLite store holds them in memory."""

    number: int
    survey: Survey
    state: State
    opened: date
    closed: date | None
    finalized_reports: int = 0
    ids: IdSet = field(default_factory=IdSet)
    stored: Counter[tuple[int, int]] = field(default_factory=Counter)  # reports by hour and source
    blocks: set[int] = field(default_factory=set)  # the numbers of all blocks
    fresh: dict[tuple[int, int], set[int]] = field(default_factory=dict)  # numbered in the order of arrival
    owners: list[int] = field(default_factory=list)  # for each owner of ids the number of its block
    owned: dict[int, list[int]] = field(default_factory=dict)  # for each block its owners
    running: Running = field(init=False)

    def __post_init__(self) -> None:
        self.running = Running(self.survey)

    def public(self) -> Round:
        """The round as the store returns it."""
        n = self.finalized_reports if self.state == "finalized" else sum(self.stored.values())
        survey = self.survey
        return Round(self.number, survey.fingerprint, survey.series, self.state, self.opened, self.closed, n)

    def place(self, block: Block) -> None:
        """Register a block."""
        key = (block.hour, block.source)
        self.blocks.add(block.number)
        self.stored[key] += len(block)
        if block.number >= FRESH:
            self.fresh.setdefault(key, set()).add(block.number)

    def own(self, number: int) -> int:
        """A new owner of ids, for a block."""
        self.owners.append(number)
        self.owned.setdefault(number, []).append(len(self.owners) - 1)
        return len(self.owners) - 1

    def move(self, source: int, target: int | None) -> None:
        """The ids of a block are in another block now, or deleted."""
        for owner in self.owned.pop(source, []):
            self.owners[owner] = -1 if target is None else target
            if target is not None:
                self.owned.setdefault(target, []).append(owner)

    def displace(self, block: Block) -> None:
        """Remove a block."""
        key = (block.hour, block.source)
        self.blocks.discard(block.number)
        self.stored[key] -= len(block)
        if rest := self.fresh.pop(key, set()) - {block.number}:
            self.fresh[key] = rest
