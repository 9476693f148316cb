"""A store in memory that keeps the protocol, for tests of the service: it can be slow, or fail on request."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from hdr4me.collector.batch import Batch, Block, block_of, split_ids
from hdr4me.collector.errors import Damage, UnknownRound
from hdr4me.collector.stores.protocol import (
    ANYONE,
    Act,
    Quarantine,
    Rejection,
    Round,
    Scope,
    Stored,
    Token,
    covered,
)
from hdr4me.errors import InvalidInput
from hdr4me.io.blocks import from_wire
from hdr4me.survey import Survey
from hdr4me.tally import Tally


class Arrival(NamedTuple):
    """One report of a request of its own."""

    round: int
    id: bytes
    payload: bytes
    hour: int
    source: int = 0


class Written(NamedTuple):
    """For each report: whether it was stored now, and whether it was refused because its round is not open."""

    stored: tuple[bool, ...]
    refused: tuple[bool, ...]
    duplicates: tuple[bool, ...]

    @property
    def n_stored(self) -> int:
        return sum(self.stored)


def write(store: Any, arrivals: Sequence[Arrival]) -> Written:
    """Write reports together, each as a batch of its own; what became of each."""
    batches = [Batch(a.round, a.source, a.id, a.payload, hour=a.hour) for a in arrivals]
    store.write(batches)
    return Written(
        tuple(bool(batch.stored) for batch in batches),
        tuple(batch.refused for batch in batches),
        tuple(bool(batch.duplicates) for batch in batches),
    )


def reports_of(batch: Batch) -> Iterator[Arrival]:
    """The reports of a batch one by one."""
    sizes = batch.sizes or [len(batch.data) // len(batch)] * len(batch)
    ends = np.cumsum(sizes).tolist()
    for id, size, end in zip(split_ids(batch.ids), sizes, ends, strict=True):
        yield Arrival(batch.round, id, batch.data[end - size : end], batch.hour, batch.source)


class MemoryStore:
    """Reports in dictionaries; `fail` is raised by the next writes, `delay` seconds pass in each."""

    schema_version = 1

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rounds: dict[int, Round] = {}
        self._surveys: dict[str, Survey] = {}
        self.reports: dict[int, dict[bytes, Arrival]] = {}
        self._rejected: Counter[tuple[int, str, int]] = Counter()
        self._quarantines: dict[int, list[Quarantine]] = {}
        self._tokens: list[Token] = []
        self._token = 0
        self._acts: list[Act] = []
        self.id = "memory"
        self.fail: Exception | None = None
        self.delay = 0.0
        self.free: int | None = None
        self.batches: list[int] = []
        self.closed = False

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        number = len(self._rounds) + 1
        self._surveys[survey.fingerprint] = survey
        self._rounds[number] = Round(number, survey.fingerprint, survey.series, "open", now.date(), None, 0)
        self.reports[number] = {}
        return self._rounds[number]

    def close_round(self, number: int, *, now: datetime) -> Round:
        self._rounds[number] = replace(self.round(number), state="closed", closed=now.date())
        return self._rounds[number]

    def rounds(self) -> list[Round]:
        return [self.round(number) for number in self._rounds]

    def round(self, number: int) -> Round:
        if number not in self._rounds:
            raise UnknownRound(number)
        return replace(self._rounds[number], stored=len(self.reports[number]))

    def survey(self, fingerprint: str) -> Survey:
        if fingerprint not in self._surveys:
            raise InvalidInput.of("fingerprint", fingerprint, "one of a round")
        return self._surveys[fingerprint]

    def write(self, batches: Sequence[Batch]) -> None:
        if self.delay:
            time.sleep(self.delay)
        if self.fail is not None:
            raise self.fail
        self.batches.append(sum(map(len, batches)))
        with self._lock:
            for batch in batches:
                reports = self.reports[batch.round]
                batch.refused = self._rounds[batch.round].state != "open"
                before = len(reports)
                if not batch.refused:
                    for arrival in reports_of(batch):
                        reports.setdefault(arrival.id, arrival)
                batch.stored = len(reports) - before

    def delete(self, round: int, id: bytes) -> bool:
        with self._lock:
            return self.reports[round].pop(id, None) is not None

    def blocks(self, round: int, *, on_damage: object = None) -> Iterator[Block]:
        groups: dict[tuple[int, int], list[tuple[bytes, bytes]]] = {}
        for arrival in list(self.reports[round].values()):
            groups.setdefault((arrival.hour, arrival.source), []).append((arrival.id, arrival.payload))
        for (hour, source), pairs in groups.items():
            yield block_of(round, hour, source, pairs)

    def arrivals(self, round: int) -> list[Stored]:
        counted = Counter((a.hour, a.source) for a in self.reports[round].values())
        return [Stored(hour, source, n) for (hour, source), n in sorted(counted.items())]

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        survey = self.survey(self._rounds[round].fingerprint)
        with self._lock:
            payloads = [
                a.payload for a in self.reports[round].values() if not covered(without, a.hour, a.source)
            ]
        offsets = np.cumsum([0, *map(len, payloads)])
        rows, good = from_wire(np.frombuffer(b"".join(payloads), np.uint8), offsets, survey)
        assert good.all()
        return Tally(survey).add_block(rows)

    def damage(self) -> list[Damage]:
        return []

    def rejected(self, round: int, reason: str, hour: int, count: int = 1) -> None:
        self._rejected[round, reason, hour] += count

    def rejections(self, round: int) -> list[Rejection]:
        return [Rejection(r, h, n) for (number, r, h), n in sorted(self._rejected.items()) if number == round]

    def set_quarantine(self, round: int, quarantine: Quarantine, *, on: bool = True) -> None:
        held = [q for q in self._quarantines.get(round, []) if q != quarantine]
        self._quarantines[round] = [*held, quarantine] if on else held

    def quarantines(self, round: int) -> list[Quarantine]:
        return list(self._quarantines.get(round, []))

    def add_token(self, sha256: bytes, scope: Scope, label: str = "", *, expires: int = 1 << 40) -> Token:
        self._token += 1
        token = Token(self._token, sha256, scope, label, expires)
        self._tokens.append(token)
        return token

    def remove_token(self, number: int) -> bool:
        before = len(self._tokens)
        self._tokens = [token for token in self._tokens if token.number != number]
        return len(self._tokens) < before

    def tokens(self) -> list[Token]:
        return list(self._tokens)

    def record(self, act: str, who: str) -> None:
        self._acts.append(Act("now", act, who))

    def acts(self) -> list[Act]:
        return list(self._acts)

    def correct_dates(self, day: object) -> None:
        raise NotImplementedError

    def maintain(self) -> bool:
        return False

    def finalize(self, round: int, *, despite_damage: bool = False) -> Round:
        raise NotImplementedError

    def free_space(self) -> int | None:
        return self.free

    def ping(self) -> None:
        if self.fail is not None:
            raise self.fail

    def close(self) -> None:
        self.closed = True


def memory_store(*surveys: Survey, open_uploads: bool = True) -> MemoryStore:
    """A store with an open round for each survey; anyone may send reports."""
    store = MemoryStore()
    if open_uploads:
        store.add_token(ANYONE, "send")
        store._token = 0
    for survey in surveys:
        store.open_round(survey, now=datetime.now(UTC))
    return store
