"""The running collector: its store, its writer, and the parts of the store that every request needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from hdr4me.collector.access import Access, Rates
from hdr4me.collector.answers import Answers
from hdr4me.collector.config import Settings
from hdr4me.collector.errors import Refusal, StoreError
from hdr4me.collector.forms import Forms
from hdr4me.collector.log import Log
from hdr4me.collector.stores.protocol import Round, Store
from hdr4me.collector.stores.shared import seal_due
from hdr4me.collector.writer import Writer
from hdr4me.errors import HDR4MEError, InvalidInput
from hdr4me.survey import Survey

T = TypeVar("T")
_SEAL_EVERY = 600.0  # seconds between two searches for rounds to seal


class Collector:
    """Everything that requests share: a `store`, the `settings` and a `log`.

    `forms` parses the uploads of each round by its number, and `open_rounds` holds the numbers of open rounds. Both are
    renewed every second, since another worker may change the store.
    """

    def __init__(self, store: Store, settings: Settings, log: Log | None = None) -> None:
        self.store, self.settings, self.log = store, settings, log or Log()
        self.limits = settings.limits
        self.writer = Writer(store, self.limits.waiting_reports, self.log)
        self.access = Access(settings)
        self.rates = Rates(self.limits.rate)
        self.answers = Answers(store, settings.min_reports, settings.snapshots)
        self.forms: dict[int, Forms] = {}
        self.open_rounds: frozenset[int] = frozenset()
        self.body_bytes = 0
        self.full = False
        self.ready = False
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="hdr4me-reader")
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="hdr4me-parser")
        self._watch: asyncio.Task[None] | None = None
        self._next_seal = time.monotonic()

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
        waiting = self.writer.waiting
        await self.writer.drain()
        self._readers.shutdown()
        self._parser.shutdown()
        self.store.close()
        self.log.event("stopped", written_at_the_end=waiting)

    async def _keep_fresh(self) -> None:
        """Renew every second, and seal rounds from time to time."""
        while True:
            await asyncio.sleep(1.0)
            try:
                await self.read(self._renew)
            except StoreError as error:
                if self.ready:
                    self.log.failure("the store does not answer", error)
                self.ready = False
            except Exception as error:
                self.log.failure("unforeseen error", error)
            else:
                self.ready = True
            if time.monotonic() >= self._next_seal:
                self._next_seal = time.monotonic() + _SEAL_EVERY
                await self._seal()

    async def _seal(self) -> None:
        """Keep only the tallies of rounds whose grace period is over."""
        now, days = datetime.now(UTC), self.settings.retain_days
        try:
            kept = await self.read(lambda: seal_due(self.store, now=now, grace_days=days))
        except HDR4MEError as error:
            self.log.failure("rounds were not sealed", error)
            return
        for number in kept.sealed:
            self.log.event("round sealed: only its tally is kept", round=number)
        if kept.clock is not None:
            self.log.event("the clock cannot be trusted: no round is sealed", said=kept.clock)

    def _renew(self) -> None:
        """Read what every request needs, in a thread."""
        self.access.renew(self.store.tokens())
        rounds, forms = self.store.rounds(), dict(self.forms)
        known = {one.survey.fingerprint for one in forms.values()}
        for round in rounds:
            if round.number not in forms:
                survey = self.store.survey(round.fingerprint)
                forms[round.number] = Forms(round.number, survey, self.limits.reports)
                if round.fingerprint not in known:
                    forms[round.number].warm()
        self.forms = forms
        self.open_rounds = frozenset(round.number for round in rounds if round.state == "open")
        free = self.store.free_space()
        self.full = free is not None and free < self.limits.free_bytes

    async def read(self, work: Callable[..., T], *arguments: object) -> T:
        """Call a function that uses the store in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, partial(work, *arguments))

    async def parse(self, work: Callable[..., T], *arguments: object) -> T:
        """Call a function that needs a processor for a while in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._parser, partial(work, *arguments))

    async def open_round(self, survey: Survey) -> Round:
        """Open a round and accept its uploads."""
        round = await self.read(lambda: self.store.open_round(survey, now=datetime.now(UTC)))
        await self.read(self._renew)
        self.log.event("round opened", round=round.number, survey=round.fingerprint[:12])
        return round

    async def close_round(self, number: int) -> Round:
        """Close a round and accept no more uploads."""
        round = await self.read(lambda: self.store.close_round(number, now=datetime.now(UTC)))
        await self.read(self._renew)
        self.log.event("round closed", round=number)
        return round

    async def find_survey(self, fingerprint: str) -> Survey:
        """A survey by its fingerprint, or a refusal."""
        try:
            return await self.read(self.store.survey, fingerprint)
        except InvalidInput:
            raise Refusal(404, "there is no survey of this fingerprint") from None
