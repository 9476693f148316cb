"""The writer: takes all reports that wait, writes them in one transaction, and only then acknowledges them.

While one transaction is on its way to the disk, arriving reports wait and make up the next: the slower the disk, the
larger the transactions.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hdr4me.collector.forms import Checked
from hdr4me.collector.loads import Load
from hdr4me.collector.log import Log
from hdr4me.collector.refusals import Refusal
from hdr4me.collector.store import Store, StoreFull, StoreReadOnly, StoreUnavailable

__all__ = ["Receipt", "Writer", "hour_now"]

MOST_AT_ONCE = 200_000
"""Reports in a transaction, beyond which the rest waits for the next."""


def hour_now() -> int:
    """Whole hours since 1970: nothing finer is kept."""
    return int(time.time() // 3600)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the reports of one request, all of it durable."""

    stored: int
    duplicates: int
    refused: int


@dataclass(slots=True)
class _Waiting:
    """The reports of one request."""

    round: int
    source: int
    hour: int
    reports: Checked
    done: asyncio.Future[Receipt]


@dataclass
class Writer:
    """One writer for a store; `submit` is called in the event loop, the store in a thread of its own.

    Parameters
    ----------
    store
        Where reports are written.
    most_waiting
        Reports that may wait; beyond it `submit` refuses with 503.
    log
        Where failures are told.
    """

    store: Store
    most_waiting: int
    log: Log
    waiting: int = 0
    commits: int = 0
    commit_seconds: float = 0.0
    _queue: deque[_Waiting] = field(default_factory=deque)
    _rejected: Counter[tuple[int, str, int]] = field(default_factory=Counter)
    _task: asyncio.Task[None] | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _stop: bool = False
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="hdr4me-writer")
    )

    def start(self) -> None:
        """Begin to write."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def submit(self, round: int, source: int, reports: Checked) -> asyncio.Future[Receipt]:
        """Queue the reports of a request; the future is done when they are on the disk."""
        n = len(reports)
        if self._stop:
            raise Refusal(503, "the collector is stopping: try again", retry_after=5)
        if self.waiting + n > self.most_waiting and self.waiting:
            raise Refusal(503, "too many reports wait to be written: try again later", retry_after=2)
        done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(round, source, hour_now(), reports, done))
        self.waiting += n
        self._wake.set()
        return done

    def reject(self, round: int, reason: str, count: int = 1) -> None:
        """Count what was no report; written with the next transaction, or within a second."""
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
            group = self._take()
            started = loop.time()
            try:
                receipts = await loop.run_in_executor(self._thread, self._write, group)
            except BaseException as error:
                self._failed(group, error)
            else:
                self.commits += 1
                self.commit_seconds += loop.time() - started
                for waiting, receipt in zip(group, receipts, strict=True):
                    if isinstance(receipt, BaseException):
                        self._failed([waiting], receipt)
                    elif not waiting.done.done():
                        waiting.done.set_result(receipt)
            finally:
                self.waiting -= sum(len(waiting.reports) for waiting in group)
        await self._flush_rejected()

    def _take(self) -> list[_Waiting]:
        """All that waits, up to the most for one transaction."""
        group: list[_Waiting] = []
        n = 0
        while self._queue and (not group or n + len(self._queue[0].reports) <= MOST_AT_ONCE):
            group.append(self._queue.popleft())
            n += len(group[-1].reports)
        return group

    def _write(self, group: list[_Waiting]) -> list[Receipt | BaseException]:
        """Write a group in one transaction; the store sorts it by id and drops twins. In the writer's thread.

        If something about the reports themselves fails, which should not be, each request is written alone: one
        cannot sink the others.
        """
        try:
            return list(self._written(group))
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(group) == 1:
                raise
            self.log.failure("a group failed and is written one by one", error, requests=len(group))
        found: list[Receipt | BaseException] = []
        for waiting in group:
            try:
                found += self._written([waiting])
            except Exception as error:
                found.append(error)
        return found

    def _written(self, group: list[_Waiting]) -> list[Receipt]:
        outcomes = self.store.write_loads(
            [
                Load(waiting.round, waiting.hour, waiting.source, reports.ids, reports.data, reports.sizes)
                for waiting in group
                for reports in (waiting.reports,)
            ]
        )
        return [
            Receipt(stored, len(waiting.reports) - stored - refused, refused)
            for (stored, refused), waiting in zip(outcomes, group, strict=True)
        ]

    def _failed(self, group: list[_Waiting], error: BaseException) -> None:
        """Nothing of the group is acknowledged; whoever sent it may send it again under the same ids."""
        self.log.failure("write failed", error, reports=sum(len(waiting.reports) for waiting in group))
        refusal: Callable[[], Refusal]
        if isinstance(error, StoreFull):
            refusal = lambda: Refusal(507, "the disk is full: nothing was stored", retry_after=60)  # noqa: E731
        elif isinstance(error, StoreReadOnly):
            refusal = lambda: Refusal(507, "the store is read-only: nothing was stored", retry_after=60)  # noqa: E731
        else:
            refusal = lambda: Refusal(  # noqa: E731
                503, "the store does not answer: nothing was stored, try again", retry_after=2
            )
        for waiting in group:
            if not waiting.done.done():
                waiting.done.set_exception(refusal())

    async def _flush_rejected(self) -> None:
        if not self._rejected:
            return
        counted, self._rejected = self._rejected, Counter()
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write_rejected, counted)
        except StoreUnavailable:
            self._rejected.update(counted)
            if self._stop:
                self.log.event("counts of rejected uploads were not written", kinds=len(counted))

    def _write_rejected(self, counted: Counter[tuple[int, str, int]]) -> None:
        for (round, reason, hour), count in sorted(counted.items()):
            self.store.rejected(round, reason, hour, count)
