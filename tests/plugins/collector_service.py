"""A collector's application called in this process, without a network: what tests of the service share."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hdr4me.collector.app import build_app
from hdr4me.collector.config import Settings
from hdr4me.collector.errors import Log
from hdr4me.collector.serve import bind, server_of
from hdr4me.collector.state import Collector


@dataclass
class Answer:
    """What a request got."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Service:
    """A running application; `call` sends one request."""

    collector: Collector
    app: Any = None
    answers: list[Answer] = field(default_factory=list)

    async def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        chunks: int = 1,
    ) -> Answer:
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
            "headers": [
                (k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in (headers or {}).items()
            ],
            "state": {},
        }
        size = -(-len(body) // chunks) or 1
        parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        found = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(m.get("body", b"") for m in sent[1:]))


def serving(store: Any, work: Callable[[Service], Awaitable[Any]], **settings: Any) -> Any:
    """Run `work` against the application of a store, with an event loop of its own."""

    async def main() -> Any:
        log = _quiet()
        collector = Collector(store, Settings("postgresql://nowhere", **settings), log)
        service = Service(collector, build_app(collector))
        await collector.start()
        try:
            return await work(service)
        finally:
            await collector.stop()

    return asyncio.run(main())


@contextmanager
def live(store: Any, **settings: Any) -> Iterator[tuple[str, Collector]]:
    """A collector that listens on a free port, in a thread; its address, and itself."""
    log = _quiet()
    collector = Collector(store, Settings("postgresql://nowhere", **settings), log)
    sock = bind("127.0.0.1", 0)
    started = threading.Event()
    server = server_of(collector, started.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        assert started.wait(30)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}", collector
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def _quiet() -> Log:
    file: Any = _Nowhere()
    return Log(file)


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing to do."""
