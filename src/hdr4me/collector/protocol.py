"""The HTTP protocol with deadlines: ten seconds from the first byte of a request to its last.

uvicorn's own protocol waits for ever for a request that arrives byte by byte. Here a sweep, once a second, ends every
connection whose request, or whose reading of an answer, takes too long.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hdr4me.collector.limits import Limits
from hdr4me.collector.refusals import error_body

__all__ = ["DeadlineProtocol", "protocol_with"]

_SLOW_READER = 60.0
"""Seconds in which a client must take some of a waiting answer."""


def _closing(status: str, sentence: str) -> bytes:
    body = error_body(sentence)
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body


_TOO_SLOW = _closing("408 Request Timeout", "the request took too long")
_BAD = _closing("400 Bad Request", "this is not an HTTP request")
_LONG_HEAD = _closing("431 Request Header Fields Too Large", "the headers are too long")
_TOO_MANY = _closing("503 Service Unavailable", "too many connections: try again later")


class DeadlineProtocol(HttpToolsProtocol):
    """A connection that knows when its request began; `limits` is set by `protocol_with`."""

    limits: Limits = Limits()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._since: float | None = (
            self.loop.time()
        )  # waiting for the client since then; None while it waits for us
        self._head = self._bytes = self._buffered = 0
        self._stuck: float | None = None
        self._told = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(_TOO_MANY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        if self._told:
            return
        if self._since is None and (self.cycle is None or self.cycle.response_complete):
            self._since = self.loop.time()
        self._head += len(data)
        self._bytes += len(data)
        super().data_received(data)
        if self._head > self.limits.header_bytes and not self.transport.is_closing():
            self._end(_LONG_HEAD)
        elif self._bytes > 3 * self.limits.body_bytes + (1 << 20):  # chunks and trailers without end
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._since is None:
            self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        self._head = -(1 << 62)  # until the request is whole, only its body follows
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head = self._bytes = 0
        self._since = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._end(_BAD)

    def _unsupported_upgrade_warning(self) -> None:
        """An upgrade is not taken; the request is answered as any other."""

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
            if self._told or self.transport.is_closing() or not self._bytes:
                self.transport.abort()
            else:
                self._end(_TOO_SLOW)

    def _end(self, answer: bytes) -> None:
        """Send a last answer, unless another one is under way, and close."""
        self._told = True
        started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not started:
            self.transport.write(answer)
        self.transport.close()


def protocol_with(limits: Limits) -> type[DeadlineProtocol]:
    """The protocol with these limits."""
    return type("Protocol", (DeadlineProtocol,), {"limits": limits})
