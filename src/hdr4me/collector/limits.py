"""What a request may cost: sizes, numbers, seconds, and what happens beyond."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field

from hdr4me.collector.refusals import Refusal
from hdr4me.errors import InvalidInput

__all__ = ["Limits", "Rates", "inflate"]


@dataclass(frozen=True)
class Limits:
    """The limits of a collector; every number is the most that is allowed, unless it says otherwise.

    Parameters
    ----------
    report_bytes
        Bytes of a request with one report; a survey whose reports need more is allowed what it needs.
    body_bytes
        Bytes of any other request, as it is sent and after decompression.
    reports
        Reports in one request.
    header_bytes
        Bytes of a request's first line and headers.
    seconds
        From the first byte of a request to its last.
    idle_seconds
        Between two requests on one connection.
    waiting_bytes, waiting_reports
        Bytes of requests that are being read, and reports that wait to be written, before 503 is answered.
    connections
        Open connections before 503 is answered.
    rate
        Reports a second for each upload token, over a minute.
    free_bytes
        Least free space where the reports are stored; below it 507 is answered.
    """

    report_bytes: int = 16 << 10
    body_bytes: int = 8 << 20
    reports: int = 10_000
    header_bytes: int = 16 << 10
    seconds: float = 10.0
    idle_seconds: float = 60.0
    waiting_bytes: int = 128 << 20
    waiting_reports: int = 1_000_000
    connections: int = 8_192
    rate: float = 100_000.0
    free_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if not value > 0 and name != "free_bytes":
                raise InvalidInput.of(name, value, "a number above 0")


def inflate(body: bytes, most: int) -> bytes:
    """The content of one gzip member, or a refusal if it is longer than `most` bytes, damaged or cut short.

    >>> import gzip
    >>> inflate(gzip.compress(b"a report"), 100)
    b'a report'
    """
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
    """How many reports each token may still send: full buckets hold a minute's worth and fill at `rate`."""

    rate: float
    _buckets: dict[int, tuple[float, float]] = field(default_factory=dict)

    def take(self, source: int, reports: int, now: float | None = None) -> float:
        """Take reports out of a token's bucket; 0, or the seconds to wait if there are too few.

        >>> rates = Rates(rate=2.0)
        >>> rates.take(1, 120, now=0.0), rates.take(1, 10, now=0.0), rates.take(1, 10, now=5.0)
        (0.0, 5.0, 0.0)
        """
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
