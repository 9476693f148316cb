"""What stands around every route: security headers, CORS, and an answer in one plain sentence whatever goes wrong."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from hdr4me.collector.headers import SECURITY, Headers, cors_headers, header_of, preflight_headers
from hdr4me.collector.refusals import Refusal, error_body
from hdr4me.collector.state import Collector
from hdr4me.collector.store import Sealed, StoreError, UnknownRound
from hdr4me.collector.upload import App, Disconnected, Message, Receive, Scope, Send
from hdr4me.errors import HDR4MEError

__all__ = ["Guard"]

_SENTENCES = {404: "there is nothing here", 405: "this method is not allowed here"}


class Guard:
    """Security headers, CORS, and an answer in one plain sentence whatever goes wrong."""

    def __init__(self, collector: Collector, inner: App) -> None:
        self._collector, self._inner = collector, inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        scope["app"] = self  # so that Starlette raises what it refuses
        origins, origin = self._collector.settings.origins, header_of(scope, b"origin")
        if scope["method"] == "OPTIONS":
            await _send(send, 204, [*SECURITY, *preflight_headers(origins, origin)], b"")
            return
        extra = [*SECURITY, *cors_headers(origins, origin)]
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                names = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in extra if pair[0] not in names)]
            await send(message)

        try:
            await self._inner(scope, receive, sending)
        except (Disconnected, ClientDisconnect, asyncio.CancelledError):
            return
        except Exception as error:
            if started:
                raise
            status, headers, body = self._told(error)
            await _send(send, status, [*headers, *extra], body)

    def _told(self, error: Exception) -> tuple[int, Headers, bytes]:
        """Status, headers and body for an error."""
        if isinstance(error, Refusal):
            close = [(b"connection", b"close")] if error.close else []
            return error.status, [*error.headers, *close], error.body
        if isinstance(error, HTTPException):
            return error.status_code, [], error_body(_SENTENCES.get(error.status_code, "this is not served"))
        if isinstance(error, UnknownRound):
            return 404, [], error_body(str(error))
        if isinstance(error, Sealed):
            return 410, [], error_body(str(error))
        if isinstance(error, StoreError):
            self._collector.log.failure("the store failed", error)
            return 503, [(b"retry-after", b"2")], error_body("the store does not answer: try again")
        if isinstance(error, HDR4MEError):
            return 400, [], error_body(str(error))
        self._collector.log.failure("unforeseen error in a request", error)
        return 500, [], error_body("this is a mistake in hdr4me, please report it")


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    if body:
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *headers]
    if status != 204:
        headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
