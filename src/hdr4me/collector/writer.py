"""The writer: writes all batches that wait in one transaction, and only then acknowledges them.

While one transaction is on its way to the disk, arriving batches wait and form the next: the slower the disk, the
larger the transactions.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor

from hdr4me.collector.batch import Batch, hour_now
from hdr4me.collector.errors import Refusal, StoreFull, StoreReadOnly, StoreUnavailable
from hdr4me.collector.log import Log
from hdr4me.collector.stores.protocol import Store

MOST_AT_ONCE = 200_000  # reports in a transaction, beyond which the rest waits for the next


class Writer:
    """One writer for a store; `submit` is called in the event loop, the store in a thread of its own.

    If more than `most_waiting` reports wait, `submit` refuses with 503.
    """

    def __init__(self, store: Store, most_waiting: int, log: Log) -> None:
        self.store, self.most_waiting, self.log = store, most_waiting, log
        self.waiting = self.commits = 0
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
        """Queue a batch; the future is done when the batch is on the disk and holds its result."""
        if self._stop:
            raise Refusal(503, "the collector is stopping: try again", retry_after=5)
        if self.waiting + len(batch) > self.most_waiting and self.waiting:
            raise Refusal(503, "too many reports wait to be written: try again later", retry_after=2)
        batch.written = asyncio.get_running_loop().create_future()
        self._queue.append(batch)
        self.waiting += len(batch)
        self._wake.set()
        return batch.written

    def reject(self, round: int, reason: str, count: int = 1) -> None:
        """Count a rejected upload; the count is written within a second when no batch waits."""
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
                self.waiting -= sum(map(len, group))
        await self._flush_rejected()

    def _take(self) -> list[Batch]:
        """All batches that wait, up to the maximum of one transaction."""
        group: list[Batch] = []
        n = 0
        while self._queue and (not group or n + len(self._queue[0]) <= MOST_AT_ONCE):
            group.append(self._queue.popleft())
            n += len(group[-1])
        return group

    def _write(self, group: list[Batch]) -> list[tuple[Batch, Exception]]:
        """Write a group in one transaction, in the writer's thread; the batches that failed, with the error.

        If the contents of a batch make the store fail, which a parsed batch should not, each batch is written alone,
        so that one cannot affect the others.
        """
        try:
            self.store.write(group)
            return []
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(group) == 1:
                raise
            self.log.failure("a group failed and is written one by one", error, requests=len(group))
        failed = []
        for batch in group:
            try:
                self.store.write([batch])
            except Exception as error:
                failed.append((batch, error))
        return failed

    def _fail(self, group: list[Batch], error: BaseException) -> None:
        """Acknowledge nothing of a group; the senders may send it again under the same ids."""
        self.log.failure("write failed", error, reports=sum(map(len, group)))
        status, sentence, wait = 503, "the store does not answer: nothing was stored, try again", 2
        if isinstance(error, StoreFull):
            status, sentence, wait = 507, "the disk is full: nothing was stored", 60
        elif isinstance(error, StoreReadOnly):
            status, sentence, wait = 507, "the store is read-only: nothing was stored", 60
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
