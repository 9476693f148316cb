"""Refusals: the answer to a request that is not accepted, as a status and one sentence; decompression and rates."""

from __future__ import annotations

import json
import time
import zlib
from dataclasses import dataclass, field
from http import HTTPStatus

from hdr4me.errors import HDR4MEError, printable

_LONGEST = 500


class Refusal(HDR4MEError):
    """A request that is not accepted; `close` ends the connection, because the rest of the request is not read."""

    def __init__(
        self, status: int, sentence: str, *, retry_after: int | None = None, close: bool = False
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers: list[tuple[bytes, bytes]] = []
        if retry_after is not None:
            self.headers.append((b"retry-after", str(max(1, retry_after)).encode()))
        if status == HTTPStatus.UNAUTHORIZED:
            self.headers.append((b"www-authenticate", b"Bearer"))
        if close:
            self.headers.append((b"connection", b"close"))

    @property
    def body(self) -> bytes:
        """The sentence as JSON."""
        return error_body(str(self))


def error_body(sentence: str) -> bytes:
    """`{"error": sentence}`, without terminal control characters."""
    return json.dumps({"error": printable(sentence)[:_LONGEST]}).encode()


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
        raise Refusal(400, "the gzip body is cut short")
    if inflater.unused_data:
        raise Refusal(400, "the gzip body has bytes after its end: send one gzip member")
    return found


@dataclass
class Rates:
    """A token bucket for each upload token: it holds the reports of a minute and fills at `rate` per second."""

    rate: float
    _buckets: dict[int, tuple[float, float]] = field(default_factory=dict)

    def take(self, source: int, reports: int, now: float | None = None) -> float:
        """Take reports out of a token's bucket; 0, or the seconds to wait if there are too few."""
        at = time.monotonic() if now is None else now
        most = 60 * self.rate
        left, before = self._buckets.get(source, (most, at))
        left = min(most, left + (at - before) * self.rate)
        wanted = min(float(reports), most)
        if left < wanted:
            self._buckets[source] = (left, at)
            return (wanted - left) / self.rate
        self._buckets[source] = (left - reports, at)
        return 0.0
