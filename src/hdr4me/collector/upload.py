"""Uploads: POST /v1/rounds/{n}/reports as plain ASGI in front of everything else, for speed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

import msgspec

from hdr4me.collector.access import Grant
from hdr4me.collector.forms import BAD_ID, Checked, id_of
from hdr4me.collector.headers import SECURITY, cors_headers, header_of
from hdr4me.collector.limits import inflate
from hdr4me.collector.refusals import Refusal, error_body
from hdr4me.collector.state import Collector, View
from hdr4me.collector.store import StoreError
from hdr4me.collector.writer import Receipt

__all__ = ["Upload", "discard", "read_body"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = re.compile(r"/v1/rounds/([1-9][0-9]{0,8})/reports", re.ASCII)
JSON, LINES, ARROW = b"application/json", b"application/x-ndjson", b"application/vnd.apache.arrow.stream"
_IN_THREAD = 1 << 14
"""Bodies larger than this are parsed in a thread, so that nobody else waits."""
_PLAIN = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *SECURITY]
_ONE_STORED = b'{"stored":1,"duplicates":0,"rejected":[]}'
_ONE_TWIN = b'{"stored":0,"duplicates":1,"rejected":[]}'


class Disconnected(Exception):
    """The client went away before its request was whole."""


class Upload:
    """Answers uploads, and hands every other request on."""

    def __init__(self, collector: Collector, inner: App) -> None:
        self._collector, self._inner = collector, inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        found = PATH.fullmatch(scope["path"])
        if found is None:
            await self._inner(scope, receive, send)
            return
        headers = list(_PLAIN)
        headers += cors_headers(self._collector.settings.origins, header_of(scope, b"origin"))
        try:
            body = await self._answer(int(found[1]), scope, receive)
            status = 200
        except Refusal as refusal:
            status, body = refusal.status, refusal.body
            headers += refusal.headers
            if refusal.close:
                headers.append((b"connection", b"close"))
        except Disconnected:
            return
        except StoreError as error:
            self._collector.log.failure("the store failed", error)
            status, body = 503, error_body("the store does not answer: try again")
            headers.append((b"retry-after", b"2"))
        except Exception as error:
            self._collector.log.failure("unforeseen error in an upload", error)
            status, body = 500, error_body("this is a mistake in hdr4me, please report it")
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, number: int, scope: Scope, receive: Receive) -> bytes:
        collector = self._collector
        kind = (header_of(scope, b"content-type") or b"").partition(b";")[0].strip().lower()
        try:
            grant = collector.access.require(header_of(scope, b"authorization"), "upload")
            view = collector.view(number)
            if not view.open:
                raise Refusal(409, f"round {number} is closed")
            if kind not in (JSON, LINES, ARROW):
                raise Refusal(
                    415,
                    f"the Content-Type must be one of {', '.join(k.decode() for k in (JSON, LINES, ARROW))}",
                )
            if collector.full:
                raise Refusal(507, "the disk is nearly full: nothing is taken", retry_after=60)
        except Refusal:
            await discard(scope, receive, collector.limits.body_bytes)
            raise
        limits = collector.limits
        most = max(limits.report_bytes, view.forms.longest) if kind == JSON else limits.body_bytes
        body, held = await read_body(collector, scope, receive, most)
        try:
            return await self._store(view, grant, kind, scope, body, most)
        finally:
            collector.body_bytes -= held

    async def _store(
        self, view: View, grant: Grant, kind: bytes, scope: Scope, body: bytes, most: int
    ) -> bytes:
        collector = self._collector
        zipped = _is_gzip(scope)
        if kind == JSON:
            id = id_of(header_of(scope, b"idempotency-key") or b"")
            if id is None:
                raise Refusal(400, f"the Idempotency-Key is {BAD_ID}: make 16 random bytes with the report")
            reports = view.forms.one(inflate(body, most) if zipped else body, id)
        else:
            parse = view.forms.lines if kind == LINES else view.forms.arrow

            def checked() -> Checked:
                return parse(inflate(body, most) if zipped else body)

            reports = await collector.parse(checked) if len(body) > _IN_THREAD else checked()
        for _, reason in reports.rejected:
            collector.writer.reject(view.number, reason)
        if not reports.ids and not reports.rejected:
            raise Refusal(400, "the request holds no report")
        if kind == JSON and reports.rejected:
            raise Refusal(422, f"the report is not counted: {reports.rejected[0][1]}")
        if grant.source and (wait := collector.rates.take(grant.source, len(reports))):
            raise Refusal(
                429, "this token sends too many reports: try again later", retry_after=int(wait) + 1
            )
        receipt = (
            await collector.writer.submit(view.number, grant.source, reports) if reports.ids else _NOTHING
        )
        if receipt.refused:
            raise Refusal(409, f"round {view.number} is closed")
        if kind == JSON:
            return _ONE_STORED if receipt.stored else _ONE_TWIN
        rejected = [{"line": line, "reason": reason} for line, reason in reports.rejected]
        return msgspec.json.encode(
            {"stored": receipt.stored, "duplicates": receipt.duplicates, "rejected": rejected}
        )


_NOTHING = Receipt(0, 0, 0)


def _is_gzip(scope: Scope) -> bool:
    encoding = (header_of(scope, b"content-encoding") or b"identity").strip().lower()
    if encoding not in (b"gzip", b"identity"):
        raise Refusal(415, "the Content-Encoding must be gzip, or left out")
    return encoding == b"gzip"


async def read_body(collector: Collector, scope: Scope, receive: Receive, most: int) -> tuple[bytes, int]:
    """The whole body of at most `most` bytes, and how many bytes of `collector.body_bytes` the caller gives back."""
    length = header_of(scope, b"content-length")
    if length is not None and (not length.isdigit() or int(length) > most):
        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {most} bytes", close=True)
    parts: list[bytes] = []
    held = 0
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part = message.get("body", b"")
            if part:
                parts.append(part)
                held += len(part)
                collector.body_bytes += len(part)
            if held > most:
                raise Refusal(413, f"the body has more than {most} bytes", close=True)
            if collector.body_bytes > collector.limits.waiting_bytes:
                raise Refusal(503, "too many uploads at once: try again later", retry_after=2, close=True)
            if not message.get("more_body", False):
                return (parts[0] if len(parts) == 1 else b"".join(parts)), held
    except (Refusal, Disconnected, asyncio.CancelledError):
        collector.body_bytes -= held
        raise


async def discard(scope: Scope, receive: Receive, most: int) -> None:
    """Read a body that is refused, so that the client sees the answer and not a broken connection."""
    length = header_of(scope, b"content-length")
    if length is not None and (not length.isdigit() or int(length) > most):
        return
    seen = 0
    while seen <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        seen += len(message.get("body", b""))
        if not message.get("more_body", False):
            return
