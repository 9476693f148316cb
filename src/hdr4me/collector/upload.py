"""Uploads as plain ASGI in front of all other routes, for speed; headers, bodies and errors of all requests."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hdr4me.collector.access import Shares, sender_of
from hdr4me.collector.batch import Batch
from hdr4me.collector.errors import Finalized, Log, Refusal, StoreError, UnknownRound, error_body
from hdr4me.collector.state import Collector
from hdr4me.errors import HDR4MEError

Headers = list[tuple[bytes, bytes]]
HEADERS = "hdr4me.headers"  # in the scope of a request: its headers as a dict

_SECURITY: Headers = [(b"x-content-type-options", b"nosniff")]  # of all answers; pages have more
_EXPOSED: Headers = [(b"access-control-expose-headers", b"etag, retry-after")]
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, content-encoding, idempotency-key, if-none-match",
    ),
    (b"access-control-max-age", b"3600"),
]
PATH = re.compile(r"/v1/rounds/([1-9][0-9]{0,8})/reports", re.ASCII)
JSON, LINES, ARROW = b"application/json", b"application/x-ndjson", b"application/vnd.apache.arrow.stream"
# Bodies with more bytes or lines are parsed in a thread, so that no other request waits; a bad line takes 10 µs.
_IN_THREAD, _LINES_IN_THREAD = 1 << 14, 128
_MOST_SHOWN = 100  # rejected lines in an answer
_PLAIN = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
_ONE_STORED = b'{"stored":1,"duplicates":0,"rejected":[]}'
_ONE_DUPLICATE = b'{"stored":0,"duplicates":1,"rejected":[]}'
_ROUTE = "/v1/rounds/{round}/reports"
_SENTENCES = {404: "there is no such address", 405: "this method is not allowed at this address"}


def refusal_of(error: Exception, log: Log) -> Refusal:
    """The refusal for a request that raised an error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, _SENTENCES.get(error.status_code, "this is not supported"))
    if isinstance(error, UnknownRound | Finalized):
        return Refusal(404 if isinstance(error, UnknownRound) else 410, str(error))
    if isinstance(error, StoreError):
        log.failure("the store failed", error)
        status, sentence, wait = error.answer
        return Refusal(status, sentence, retry_after=wait)
    if isinstance(error, HDR4MEError):
        return Refusal(400, str(error))
    log.failure("unexpected error in a request", error)
    return Refusal(500, "this is a bug in hdr4me, please report it")


def _part(message: Message) -> tuple[bytes, bool]:
    """The next part of a body, and whether more parts follow."""
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


def _too_long(scope: Scope, most: int) -> bool:
    """Whether the declared length of a body is more than `most` bytes, or not a number."""
    length = scope[HEADERS].get(b"content-length")
    return length is not None and (not length.isdigit() or int(length) > most)


async def read_body(shares: Shares, sender: object, scope: Scope, receive: Receive, most: int) -> bytes:
    """The body of at most `most` bytes, which its sender holds in `shares` until they are given back."""
    if _too_long(scope, most):
        raise Refusal(413, f"the body has more than {most} bytes", close=True)
    parts, held, more = [], 0, True
    try:
        while more:
            part, more = _part(await receive())
            if held + len(part) > most:
                raise Refusal(413, f"the body has more than {most} bytes", close=True)
            if not shares.take(sender, len(part)):
                raise Refusal(503, "too many uploads at once: try again later", retry_after=2, close=True)
            held += len(part)
            parts.append(part)
    except BaseException:
        shares.give_back(sender, held)
        raise
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _discard(scope: Scope, receive: Receive, most: int) -> None:
    """Read a body that is refused, so that the client sees the answer and not a broken connection."""
    seen, more = 0, not _too_long(scope, most)
    while more and seen <= most:
        part, more = _part(await receive())
        seen += len(part)


def inflate(body: bytes, most: int) -> bytes:
    """The content of one gzip member, or a refusal if it is longer than `most` bytes, damaged or truncated."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        found = inflater.decompress(body, most + 1)
    except zlib.error:
        raise Refusal(400, "the body is not gzip, although its Content-Encoding says so") from None
    if len(found) > most:
        raise Refusal(413, f"the body has more than {most} bytes after decompression")
    if not inflater.eof:
        raise Refusal(400, "the gzip body is truncated")
    if inflater.unused_data:
        raise Refusal(400, "the gzip body has bytes after its end: send one gzip member")
    return found


class Upload:
    """Answers uploads and passes every other request on; adds security headers, and makes an error one sentence."""

    def __init__(self, collector: Collector, inner: ASGIApp) -> None:
        self._collector, self._inner = collector, inner
        self._headers = [*_SECURITY, (b"vary", b"origin")] if collector.settings.allow_origins else _SECURITY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        given = scope[HEADERS] = dict(reversed(scope["headers"]))  # the first of those with the same name
        headers, origin = self._headers, given.get(b"origin", b"")
        allowed = origin.decode("latin-1") in self._collector.settings.allow_origins
        if allowed:  # a page of a listed origin may read the answer; never with credentials
            headers = [*headers, (b"access-control-allow-origin", origin), *_EXPOSED]
        if scope["method"] == "OPTIONS":
            await _send(send, 204, [*headers, *(_PREFLIGHT if allowed else [])], b"")
            return
        started, began, status = False, time.perf_counter(), 200

        async def sending(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        found = PATH.fullmatch(scope["path"]) if scope["method"] == "POST" else None
        try:
            if found is not None:
                scope["hdr4me.route"] = _ROUTE
                body = await self._answer(int(found[1]), scope, receive)
                started = True
                await _send(send, 200, headers, body)
            else:
                scope["app"] = self  # so that Starlette raises its refusals
                await self._inner(scope, receive, sending)
        except (ClientDisconnect, asyncio.CancelledError):
            status = 499
        except Exception as error:
            if started:
                raise
            refusal = refusal_of(error, self._collector.log)
            status = refusal.status
            await _send(send, status, [*refusal.headers, *headers], error_body(str(refusal)))
        finally:
            route = scope.get("hdr4me.route", "other")
            self._collector.requests.add(scope["method"], route, status, time.perf_counter() - began)

    async def _answer(self, number: int, scope: Scope, receive: Receive) -> bytes:
        """Store the reports of an upload; the body of the answer."""
        collector, limits, given = self._collector, self._collector.limits, scope[HEADERS]
        kind = given.get(b"content-type", b"").partition(b";")[0].strip().lower()
        try:
            if scope["query_string"]:
                raise Refusal(400, "an upload has no parameters in its address")
            grant = collector.access.require(given.get(b"authorization"), "send")
            forms = collector.forms.get(number)
            if forms is None:
                raise Refusal(404, f"there is no round {number}")
            if number not in collector.open_rounds:
                raise Refusal(409, f"round {number} is closed")
            if kind not in (JSON, LINES, ARROW):
                kinds = ", ".join(k.decode() for k in (JSON, LINES, ARROW))
                raise Refusal(415, f"the Content-Type must be one of {kinds}")
            if collector.full:
                raise Refusal(507, "the disk is nearly full: reports are not accepted", retry_after=60)
        except Refusal:
            await _discard(scope, receive, limits.body_bytes)
            raise
        encoding, parse = given.get(b"content-encoding"), forms.lines if kind == LINES else forms.arrow
        most, sender = limits.body_bytes, sender_of(grant.source, scope.get("client"))
        if kind == JSON:
            parse = partial(forms.one, id=given.get(b"idempotency-key", b""))
            most = max(limits.report_bytes, forms.longest)
        body = await read_body(collector.body_bytes, sender, scope, receive, most)
        try:
            if encoding is not None or len(body) > _IN_THREAD or body.count(b"\n") > _LINES_IN_THREAD:
                work = (_parsed, parse, encoding, body, most, grant.source)
                batch = await collector.parse(*work, sender=sender)
            else:
                batch = parse(body, grant.source)
            batch.sender = sender
            return await self._stored(batch, kind)
        finally:
            collector.body_bytes.give_back(sender, len(body))

    async def _stored(self, batch: Batch, kind: bytes) -> bytes:
        """Count what was rejected, and store the rest."""
        collector = self._collector
        if batch.rejected:
            for reason, count in Counter(reason for _, reason in batch.rejected).items():
                collector.writer.reject(batch.round, reason, count)
            if kind == JSON:
                raise Refusal(422, f"the report is rejected: {batch.rejected[0][1]}")
        elif not batch.ids:
            raise Refusal(400, "the request contains no report")
        if batch.source and (wait := collector.rates.take(batch.source, len(batch))):
            raise Refusal(
                429, "this token sends too many reports: try again later", retry_after=int(wait) + 1
            )
        if batch.ids:
            await collector.writer.submit(batch)
        if batch.refused:
            raise Refusal(409, f"round {batch.round} is closed")
        if kind == JSON:
            return _ONE_STORED if batch.stored else _ONE_DUPLICATE
        rejected = [{"line": line, "reason": reason} for line, reason in batch.rejected[:_MOST_SHOWN]]
        answer = {"stored": batch.stored, "duplicates": batch.duplicates, "rejected": rejected}
        if len(batch.rejected) > _MOST_SHOWN:
            answer["more_rejected"] = len(batch.rejected) - _MOST_SHOWN
        return msgspec.json.encode(answer)


def _parsed(
    parse: Callable[[bytes, int], Batch], encoding: bytes | None, body: bytes, most: int, source: int
) -> Batch:
    """The reports of a body that may have a Content-Encoding; called in a thread."""
    name = b"identity" if encoding is None else encoding.strip().lower()
    if name not in (b"gzip", b"identity"):
        raise Refusal(415, "the Content-Encoding must be gzip, or left out")
    return parse(inflate(body, most) if name == b"gzip" else body, source)


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    if body:
        headers = [*_PLAIN, *headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
