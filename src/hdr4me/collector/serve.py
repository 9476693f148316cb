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
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hdr4me.collector import open_store
from hdr4me.collector.access import Shares, new_token, sender_of
from hdr4me.collector.app import build_app
from hdr4me.collector.config import Limits, Settings
from hdr4me.collector.errors import Log, error_body, quiet_server
from hdr4me.collector.state import Collector
from hdr4me.errors import InvalidInput

_GRACE = 20  # seconds in which started requests are finished when the collector stops
_SLOW_READER = 60.0  # seconds in which a client must read some of a waiting answer


def _last_answer(status: str, sentence: str) -> bytes:
    body = error_body(sentence)
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body


_TOO_SLOW = _last_answer("408 Request Timeout", "the request took too long")
_BAD = _last_answer("400 Bad Request", "this is not an HTTP request")
_BUSY = _last_answer("503 Service Unavailable", "too many connections at once: try again later")
_LONG_HEAD = _last_answer("431 Request Header Fields Too Large", "the headers are too long")


class DeadlineProtocol(HttpToolsProtocol):
    """A connection with a deadline from the first byte of a request to its last; uvicorn has no setting for it.

    A sweep, once a second, ends every connection whose client sends a request or reads an answer too slowly.
    """

    limits: Limits = Limits()
    open: Shares = Shares(limits.connections)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # The time since which the server waits for the client; None while the client waits for the server.
        self._since: float | None = self.loop.time()
        self._head = self._bytes = self._buffered = self._segment = 0
        self._stuck: float | None = None
        self._ended = self._too_long = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._sender = sender_of(0, self.client)
        self._shared = self.open.take(self._sender, 1)
        if not self._shared:
            self._end(_BUSY)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._shared:
            self.open.give_back(self._sender, 1)

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        if self._since is None and (self.cycle is None or self.cycle.response_complete):
            self._since = self.loop.time()
        self._segment = len(data)
        self._head += self._segment
        self._bytes += self._segment
        super().data_received(data)
        if self._head > self.limits.header_bytes and not self.transport.is_closing():
            self._end(_LONG_HEAD)
        elif self._bytes > 3 * self.limits.body_bytes + (1 << 20):  # endless chunks and trailers
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._since is None:
            self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        if self._bytes > self.limits.header_bytes:  # otherwise the headers are shorter, too
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self.limits.header_bytes:
                self._too_long = True
                raise ValueError("the headers are too long")  # ends the parsing of this connection
        self._head = -(1 << 62)  # until the request is complete, only its body follows
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head, self._bytes = 0, self._segment  # some of these bytes may be of the next request
        self._since = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._end(_LONG_HEAD if self._too_long else _BAD)

    def sweep(self, now: float) -> None:
        """End the connection if its client is too slow."""
        if self.flow is not None and self.flow.write_paused:
            size = self.transport.get_write_buffer_size()
            if self._stuck is None or size != self._buffered:
                self._stuck, self._buffered = now, size
            elif now - self._stuck > _SLOW_READER:
                self.transport.abort()
                return
        else:
            self._stuck = None
        if self._since is not None and now - self._since > self.limits.seconds:
            if self._ended or self.transport.is_closing() or not self._bytes:
                self.transport.abort()
            else:
                self._end(_TOO_SLOW)

    def _end(self, answer: bytes) -> None:
        """Send a last answer, unless another one is being sent, and close."""
        self._ended = True
        started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not started:
            self.transport.write(answer)
        self.transport.close()


def with_secrets(settings: Settings) -> Settings:
    """The settings with a new secret, a new dashboard link and a folder of their own."""
    folder = tempfile.mkdtemp(prefix="hdr4me-run-")
    return replace(settings, secret=secrets.token_bytes(32), link_key=new_token(), run_folder=folder)


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 chooses a free port."""
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


def server_of(collector: Collector, started: Callable[[], Any] | None = None) -> uvicorn.Server:
    """The HTTP server of a collector; `started` is called when it accepts connections."""
    limits, waiting = collector.limits, [started] if started is not None else []

    async def every_second() -> None:
        while waiting:
            waiting.pop()()
        now = asyncio.get_running_loop().time()
        for connection in list(server.server_state.connections):
            if isinstance(connection, DeadlineProtocol):
                connection.sweep(now)

    config = uvicorn.Config(
        build_app(collector),
        http=type("Protocol", (DeadlineProtocol,), {"limits": limits, "open": collector.connections}),
        ws="none",
        loop="uvloop" if os.name == "posix" else "asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=_GRACE,
        callback_notify=every_second,
        timeout_notify=0,
        backlog=2048,
    )
    server = uvicorn.Server(config)
    quiet_server(collector.log)
    return server


@contextmanager
def _on_stop(handler: Callable[..., None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM in the main thread."""
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def run(settings: Settings, sock: socket.socket, *, started: Callable[[], Any] | None = None) -> None:
    """Serve in this process until it is stopped; all accepted reports are written by then."""
    log = Log()
    collector = Collector(open_store(settings.database), settings, log)
    server = server_of(collector, started)
    log.event("started", process=os.getpid())
    try:
        with _on_stop(lambda *_: None):  # uvicorn raises the signal again after a clean stop
            server.run(sockets=[sock])
    finally:
        if settings.run_folder and started is not None:
            shutil.rmtree(settings.run_folder, ignore_errors=True)


def run_workers(
    settings: Settings, sock: socket.socket, workers: int, *, started: Callable[[], Any] | None = None
) -> None:
    """Serve as `run` in several processes; one that ends is started again. Needs PostgreSQL."""
    context = multiprocessing.get_context("spawn")
    log, stopping = Log(), threading.Event()
    sock.listen(2048)

    def spawn() -> Any:
        process = context.Process(target=run, args=(settings, sock))
        process.start()
        return process

    with _on_stop(lambda *_: stopping.set()):
        processes = [spawn() for _ in range(workers)]
        if started is not None:
            started()
        try:
            while not stopping.is_set():
                time.sleep(0.2)
                for i, process in enumerate(processes):
                    if not process.is_alive() and not stopping.is_set():
                        log.event("a worker died and is started again", code=process.exitcode)
                        time.sleep(0.5)
                        processes[i] = spawn()
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join(_GRACE + 5)
                process.kill()  # if it has not ended by now
            shutil.rmtree(settings.run_folder, ignore_errors=True)
