"""What the SQLite store knows of its rounds without asking the file: ids, tallies, and which blocks there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date

from hdr4me.collector.blocks import Block
from hdr4me.collector.counting import Running
from hdr4me.collector.ids import IdSet
from hdr4me.collector.store import Round, State
from hdr4me.survey import Survey

__all__ = ["FRESH", "MERGED", "Live", "Memory", "level_of"]

FRESH = 1 << 61
"""From here on blocks are numbered as they come, until they are merged; below it numbers are random."""

MERGED = 64
"""So many small blocks of an hour and a source become one."""


def level_of(n: int) -> int:
    """0 for small blocks, below 64 reports; others are never merged, since a merge writes every report again."""
    return 0 if n < MERGED else 1


@dataclass
class Live:
    """A round and what is known of its blocks."""

    number: int
    survey: Survey
    state: State
    opened: date
    closed: date | None
    n_sealed: int = 0
    ids: IdSet = field(default_factory=IdSet)
    stored: Counter[tuple[int, int]] = field(default_factory=Counter)
    levels: dict[tuple[int, int, int], set[int]] = field(default_factory=dict)
    """Block numbers by hour, source and level."""
    fresh: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    """Block numbers that tell an order, by hour and source."""
    running: Running = field(init=False)

    def __post_init__(self) -> None:
        self.running = Running(self.survey)

    def public(self) -> Round:
        """The round as others see it."""
        n = self.n_sealed if self.state == "sealed" else sum(self.stored.values())
        survey = self.survey
        return Round(self.number, survey.fingerprint, survey.series, self.state, self.opened, self.closed, n)

    def numbers(self) -> set[int]:
        """The numbers of all its blocks."""
        return set().union(*self.levels.values()) if self.levels else set()

    def place(self, block: Block) -> None:
        """Know a block."""
        key = (block.hour, block.source)
        self.level(*key, len(block)).add(block.number)
        self.stored[key] += len(block)
        if block.number >= FRESH:
            self.fresh.setdefault(key, set()).add(block.number)

    def displace(self, block: Block) -> None:
        """Forget a block."""
        key = (block.hour, block.source)
        self.level(*key, len(block)).discard(block.number)
        self.stored[key] -= len(block)
        if block.number >= FRESH and key in self.fresh:
            self.fresh[key].discard(block.number)
            if not self.fresh[key]:
                del self.fresh[key]

    def level(self, hour: int, source: int, n: int) -> set[int]:
        """The numbers of the blocks of a level."""
        return self.levels.setdefault((hour, source, level_of(n)), set())


@dataclass
class Memory:
    """Every round of a store, and the number that the next fresh block gets."""

    rounds: dict[int, Live] = field(default_factory=dict)
    next_fresh: int = FRESH

    def place(self, block: Block) -> None:
        """Know a block of a known round."""
        self.rounds[block.round].place(block)
        if block.number >= FRESH:
            self.next_fresh = max(self.next_fresh, block.number + 1)

    def displace(self, block: Block) -> None:
        """Forget a block of a known round."""
        self.rounds[block.round].displace(block)
