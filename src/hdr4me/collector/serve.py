"""Running the collector: one process, or several behind one socket with PostgreSQL."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import uvicorn

from hdr4me.collector import open_store
from hdr4me.collector.access import new_token
from hdr4me.collector.app import build_app
from hdr4me.collector.config import Settings
from hdr4me.collector.log import Log, quiet_server
from hdr4me.collector.protocol import DeadlineProtocol, protocol_with
from hdr4me.collector.state import Collector
from hdr4me.errors import InvalidInput

__all__ = ["Server", "bind", "run", "run_workers", "server_of", "with_secrets"]

_GRACE = 20
"""Seconds in which requests that have begun are finished when the collector is told to stop."""


class Server(uvicorn.Server):
    """uvicorn's server, which also ends connections that are too slow and ends without raising its signal again.

    Parameters
    ----------
    config
        uvicorn's.
    started
        Called when connections are taken.
    """

    def __init__(self, config: uvicorn.Config, started: Callable[[], Any] | None = None) -> None:
        super().__init__(config)
        self._on_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_started is not None:
            self._on_started()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, DeadlineProtocol):
                    connection.sweep(now)
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        main = threading.current_thread() is threading.main_thread()
        handled = (signal.SIGINT, signal.SIGTERM) if main else ()
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def with_secrets(settings: Settings) -> Settings:
    """The settings with a new secret, a new dashboard link and a folder of their own."""
    return replace(
        settings,
        secret=secrets.token_bytes(32),
        link_key=new_token(),
        run_folder=tempfile.mkdtemp(prefix="hdr4me-run-"),
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    sock.set_inheritable(True)
    return sock


def server_of(collector: Collector, started: Callable[[], Any] | None = None) -> Server:
    """The HTTP server of a collector."""
    limits = collector.limits
    config = uvicorn.Config(
        build_app(collector),
        http=protocol_with(limits),
        ws="none",
        loop="uvloop" if os.name == "posix" else "asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=_GRACE,
        backlog=2048,
    )
    server = Server(config, started)
    quiet_server(collector.log)
    return server


def run(
    settings: Settings,
    sock: socket.socket,
    *,
    log: Log | None = None,
    started: Callable[[], Any] | None = None,
) -> None:
    """Serve in this process until it is told to stop; everything that was taken is written by then."""
    log = log or Log()
    store = open_store(settings.database)
    collector = Collector(store, settings, log)
    server = server_of(collector, started)
    log.event("started", process=os.getpid())
    try:
        server.run(sockets=[sock])
    finally:
        if settings.run_folder and started is not None:
            shutil.rmtree(settings.run_folder, ignore_errors=True)


def _worker(settings: Settings, sock: socket.socket) -> None:
    run(settings, sock)


def run_workers(
    settings: Settings, sock: socket.socket, workers: int, *, started: Callable[[], Any] | None = None
) -> None:
    """Serve in several processes; one that dies is started again. Needs PostgreSQL."""
    if not settings.is_postgres:
        raise InvalidInput.of("workers", workers, "1 with SQLite: several need --database postgresql://…")
    context = multiprocessing.get_context("spawn")
    log, stopping = Log(), False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    sock.listen(2048)

    def spawn() -> Any:
        process = context.Process(target=_worker, args=(settings, sock))
        process.start()
        return process

    processes = [spawn() for _ in range(workers)]
    if started is not None:
        started()
    try:
        while not stopping:
            time.sleep(0.2)
            for i, process in enumerate(processes):
                if not process.is_alive() and not stopping:
                    log.event("a worker died and is started again", code=process.exitcode)
                    time.sleep(0.5)
                    processes[i] = spawn()
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for process in processes:
            process.join(_GRACE + 5)
            if process.is_alive():
                process.kill()
        for number, handler in before.items():
            signal.signal(number, handler)
        shutil.rmtree(settings.run_folder, ignore_errors=True)
