"""The running collector: its store, its writer, and the cached data that every request needs."""

from __future__ import annotations

import asyncio
import os
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import TypeVar
from weakref import WeakValueDictionary

from prometheus_client.core import HistogramMetricFamily

from hdr4me.collector.access import Access, Rates, Shares
from hdr4me.collector.answers import Answers
from hdr4me.collector.batch import Batch, hour_now
from hdr4me.collector.clock import CLOCK
from hdr4me.collector.config import Limits, Settings
from hdr4me.collector.errors import Log, Refusal, StoreError, StoreUnavailable
from hdr4me.collector.forms import Forms
from hdr4me.collector.stores.protocol import Round, Store, finalize_due
from hdr4me.errors import HDR4MEError

# Reports and bytes in a transaction, beyond which the rest waits for the next.
MOST_AT_ONCE, MOST_BYTES = 200_000, 16 << 20


class Writer:
    """One writer for a store; `submit` is called in the event loop, the store in a thread of its own."""

    def __init__(self, store: Store, limits: Limits, log: Log) -> None:
        self.store, self.limits, self.log = store, limits, log
        self.commits = 0
        self.waiting, self.waiting_bytes = Shares(limits.waiting_reports), Shares(limits.waiting_bytes)
        self.commit_seconds = 0.0
        self._queue: deque[Batch] = deque()
        self._rejected: Counter[tuple[int, str, int]] = Counter()
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._stop = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hdr4me-writer")

    def start(self) -> None:
        """Begin to write."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def submit(self, batch: Batch) -> asyncio.Future[None]:
        """Queue a batch, or refuse it; the future is done when the batch is on the disk and contains its result."""
        if self._stop:
            raise Refusal(503, "the collector is stopping: try again", retry_after=5)
        taken = self.waiting.take(batch.sender, len(batch))
        if not taken or not self.waiting_bytes.take(batch.sender, batch.size):
            if taken:
                self.waiting.give_back(batch.sender, len(batch))
            raise Refusal(503, "too many reports are waiting to be written: try again later", retry_after=2)
        batch.written = asyncio.get_running_loop().create_future()
        self._queue.append(batch)
        self._wake.set()
        return batch.written

    def reject(self, round: int, reason: str, count: int = 1) -> None:
        """Count rejected reports; the count is written within a second when no batch waits."""
        self._rejected[round, reason, hour_now()] += count

    async def drain(self) -> None:
        """Write everything that waits, and stop."""
        self._stop = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue or not self._stop:
            if not self._queue:
                self._wake.clear()
                try:
                    await asyncio.wait_for(self._wake.wait(), 1.0)
                except TimeoutError:
                    await self._flush_rejected()
                continue
            await asyncio.sleep(0)  # answers are sent first, and requests that have arrived join the group
            group = self._take()
            started = loop.time()
            try:
                failed = await loop.run_in_executor(self._thread, self._write, group)
            except BaseException as error:
                self._fail(group, error)
            else:
                self.commits += 1
                self.commit_seconds += loop.time() - started
                for batch, reason in failed:
                    self._fail([batch], reason)
                for batch in group:
                    if batch.written and not batch.written.done():
                        batch.written.set_result(None)
            finally:
                for batch in group:
                    self.waiting.give_back(batch.sender, len(batch))
                    self.waiting_bytes.give_back(batch.sender, batch.size)
        await self._flush_rejected()

    def _take(self) -> list[Batch]:
        """All batches that wait, up to the maximum of one transaction."""
        group: list[Batch] = []
        n = size = 0
        while self._queue and (not group or (n <= MOST_AT_ONCE and size <= MOST_BYTES)):
            batch = self._queue.popleft()
            group.append(batch)
            n += len(batch)
            size += batch.size
        return group

    def _write(self, group: list[Batch]) -> list[tuple[Batch, Exception]]:
        """Write a group in one transaction, in the writer's thread; the batches that failed, with the error."""
        try:
            self.store.write(group)
            return []
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(group) == 1:
                raise
            # The contents of one batch made the store fail, although it was parsed without an error.
            self.log.failure("a group failed and is written one by one", error, requests=len(group))
        failed = []
        for batch in group:
            try:
                self.store.write([batch])
            except Exception as error:
                failed.append((batch, error))
        return failed

    def _fail(self, group: list[Batch], error: BaseException) -> None:
        """Refuse all batches of a group; the senders may send them again under the same ids."""
        self.log.failure("write failed", error, reports=sum(map(len, group)))
        status, sentence, wait = error.answer if isinstance(error, StoreError) else StoreError.answer
        for batch in group:
            if batch.written and not batch.written.done():
                batch.written.set_exception(Refusal(status, sentence, retry_after=wait))

    async def _flush_rejected(self) -> None:
        if not self._rejected:
            return
        counted, self._rejected = self._rejected, Counter()

        def write() -> None:
            for (round, reason, hour), count in sorted(counted.items()):
                self.store.rejected(round, reason, hour, count)

        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, write)
        except StoreUnavailable:
            self._rejected.update(counted)
            if self._stop:
                self.log.event("counts of rejected uploads were not written", kinds=len(counted))


T = TypeVar("T")
_STEPS = 16  # of maintenance in a second
_FINALIZE_EVERY = 600.0  # seconds between two searches for rounds to finalize


class Requests:
    """Counts and latencies of requests, by route and status."""

    _BOUNDS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, float("inf"))

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int], list[float]] = {}

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (method, route, status)
        row = self._seen.get(key) or self._seen.setdefault(key, [0.0] * (len(self._BOUNDS) + 1))
        row[bisect_left(self._BOUNDS, seconds)] += 1
        row[-1] += seconds

    def metric(self) -> HistogramMetricFamily:
        """The counts since the start of this worker."""
        labels = ["worker", "method", "route", "status"]
        found = HistogramMetricFamily("hdr4me_request_seconds", "Seconds of requests", labels=labels)
        for (method, route, status), row in sorted(self._seen.items()):
            names = [str(bound) if bound < float("inf") else "+Inf" for bound in self._BOUNDS]
            buckets = list(zip(names, accumulate(row[:-1]), strict=True))
            found.add_metric([str(os.getpid()), method, route, str(status)], buckets, row[-1])
        return found


class Collector:
    """The data that requests share; it is renewed every second, because another worker may change the store."""

    def __init__(self, store: Store, settings: Settings, log: Log | None = None) -> None:
        self.store, self.settings, self.log = store, settings, log or Log()
        self.limits = settings.limits
        self.writer = Writer(store, self.limits, self.log)
        self.access = Access(settings)
        self.rates, self.deletions = Rates(self.limits.rate), Rates(self.limits.deletions)
        self.requests = Requests()
        self.body_bytes, self.connections = Shares(self.limits.waiting_bytes), Shares(self.limits.connections)
        self.answers = Answers(store, settings.min_reports, settings.snapshots, settings.data_quality)
        self.forms: dict[int, Forms] = {}  # by the number of the round
        self.rounds: list[Round] = []
        self.open_rounds: frozenset[int] = frozenset()
        self._turns: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()
        self.full = self.ready = self._jumped = False
        self.clock = CLOCK
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="hdr4me-reader")
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="hdr4me-parser")
        self._watch: asyncio.Task[None] | None = None
        self._next_finalize = time.monotonic()

    async def start(self) -> None:
        """Read rounds and tokens, compile what uploads need, and begin to write."""
        await self.read(self._renew)
        self.writer.start()
        self._watch = asyncio.get_running_loop().create_task(self._keep_fresh())
        self.ready = True

    async def stop(self) -> None:
        """Write everything that waits, then close the store."""
        self.ready = False
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        waiting = self.writer.waiting.held
        await self.writer.drain()
        self._readers.shutdown()
        self._parser.shutdown()
        self.store.close()
        self.log.event("stopped", written_at_the_end=waiting)

    async def _keep_fresh(self) -> None:
        """Renew the cached data every second, and finalize rounds every ten minutes."""
        while True:
            await asyncio.sleep(1.0)
            try:
                await self.read(self._renew)
            except StoreError as error:
                if self.ready:
                    self.log.failure("the store does not answer", error)
                self.ready = False
            except Exception as error:
                self.log.failure("unexpected error", error)
            else:
                self.ready = True
            await self._maintain()
            if (jump := self.clock.jump) and not self._jumped:
                self.log.event("the system's clock has jumped: no round is finalized", seconds=round(jump))
            self._jumped = bool(jump)
            if time.monotonic() >= self._next_finalize and self.clock.steady:
                self._next_finalize = time.monotonic() + _FINALIZE_EVERY
                await self._finalize()

    async def _maintain(self) -> None:
        """Do some steps of the store's maintenance."""
        try:
            for _ in range(_STEPS):
                if not await self.read(self.store.maintain):
                    return
        except HDR4MEError as error:
            self.log.failure("the store was not maintained", error)

    async def _finalize(self) -> None:
        """Keep only the tallies of rounds whose grace period is over."""
        now, days = datetime.fromtimestamp(self.clock.now(), UTC), self.settings.retain_days
        try:
            kept = await self.read(finalize_due, self.store, now=now, grace_days=days)
        except HDR4MEError as error:
            self.log.failure("rounds were not finalized", error)
            return
        for number in kept.finalized:
            await self.read(self.store.record, f"round {number} finalized", "the retention period")
            self.log.event("round finalized: only its tally is kept", round=number)
        if kept.clock is not None:
            self.log.event("dates in the future were corrected", said=kept.clock)

    def _renew(self) -> None:
        """Read the data that every request needs; called in a thread."""
        self.access.renew(self.store.tokens())
        rounds, forms = self.store.rounds(), dict(self.forms)
        known = {one.survey.fingerprint for one in forms.values()}
        for round in rounds:
            if round.number not in forms:
                survey = self.store.survey(round.fingerprint)
                forms[round.number] = Forms(round.number, survey, self.limits.reports)
                if round.fingerprint not in known:
                    forms[round.number].warm()
        self.forms, self.rounds = forms, rounds
        self.open_rounds = frozenset(round.number for round in rounds if round.state == "open")
        free = self.store.free_space()
        self.full = free is not None and free < self.limits.free_bytes

    async def read(self, work: Callable[..., T], *arguments: object, **named: object) -> T:
        """Call a function that uses the store in a thread."""
        call = partial(work, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._readers, call)

    async def parse(self, work: Callable[..., T], *arguments: object, sender: object = None) -> T:
        """Call a function that needs much processor time in a thread; a sender has one call at a time in its queue."""
        turn = self._turns.setdefault(sender, asyncio.Lock())
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self._parser, partial(work, *arguments))

    def damaged(self, number: int) -> int:
        """The number of damaged blocks that a round may be missing."""
        return len([damage for damage in self.store.damage() if damage.round in (None, number)])

    async def change_round(self, change: Callable[..., Round], what: object, done: str, who: object) -> Round:
        """Open or close a round, record it, and accept uploads accordingly."""
        round = await self.read(change, what, now=datetime.fromtimestamp(self.clock.now(), UTC))
        await self.read(self.store.record, f"round {round.number} {done}", str(who))
        await self.read(self._renew)
        self.log.event(f"round {done}", round=round.number, survey=round.fingerprint[:12])
        return round
