"""The service killed with SIGKILL under load, five times for each store: the short form of the long campaign."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector_crash_service import campaign, the_survey
from hdr4me.collector import open_store
from hdr4me.collector.config import Settings
from hdr4me.collector.serve import bind, run

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["hdr4me.collector.serve", "hdr4me.collector.sqlite", "hdr4me.collector.postgres"]
)


def _serve(settings: Settings, sock: socket.socket) -> None:
    os.setpgrp()
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    run(settings, sock)


class Forked:
    """Processes of the service, forked from one that has everything loaded."""

    def __init__(self, survey: Path, database: str, workers: int) -> None:
        self._database, self._workers = database, workers
        self._processes: list[Any] = []
        self.url = ""
        from datetime import UTC, datetime

        store = open_store(database)
        store.open_round(the_survey(), now=datetime.now(UTC))
        store.close()

    def start(self) -> None:
        with bind("127.0.0.1", 0) as sock:
            sock.listen(512)
            self.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
            settings = Settings(self._database)
            self._processes = [
                CONTEXT.Process(target=_serve, args=(settings, sock)) for _ in range(self._workers)
            ]
            for process in self._processes:
                process.start()
        for _ in range(100):
            try:
                if httpx.get(self.url + "/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the collector is not ready")

    def kill(self) -> None:
        for process in self._processes:
            os.kill(process.pid, signal.SIGKILL)
            process.join()


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_five_times_under_load(where: Any, workers: int, request: pytest.FixtureRequest) -> None:
    """Acknowledged and lost: none. Counted twice: none. The tally is that of the reports."""
    if workers == 2 and not str(where).startswith("postgres"):
        pytest.skip("SQLite has one process")
    found = campaign(str(where), 5, workers=workers, longest=0.4, serving=Forked, say=lambda _: None)
    assert found["acknowledged"] > 100
    assert (found["acknowledged_lost"], found["counted_twice"], found["changed"]) == (0, 0, 0)
    assert found["tally_is_that_of_the_reports"]
    assert found["wrong_answers"] == []
