"""Refusals: what a request gets that cannot be served, as a status and one plain sentence."""

from __future__ import annotations

import json
from http import HTTPStatus

from hdr4me.errors import HDR4MEError, printable

__all__ = ["Refusal", "error_body"]

_LONGEST = 500


class Refusal(HDR4MEError):
    """A request that is not served; `close` ends the connection, because the rest of the request is not read.

    >>> str(Refusal(404, "there is no round 7")), Refusal(503, "busy", retry_after=2).headers
    ('there is no round 7', [(b'retry-after', b'2')])
    """

    def __init__(
        self, status: int, sentence: str, *, retry_after: int | None = None, close: bool = False
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.close = close
        self.headers: list[tuple[bytes, bytes]] = []
        if retry_after is not None:
            self.headers.append((b"retry-after", str(max(1, retry_after)).encode()))
        if status == HTTPStatus.UNAUTHORIZED:
            self.headers.append((b"www-authenticate", b"Bearer"))

    @property
    def body(self) -> bytes:
        """The sentence as JSON."""
        return error_body(str(self))


def error_body(sentence: str) -> bytes:
    """`{"error": sentence}`, without anything in it that could steer a terminal."""
    return json.dumps({"error": printable(sentence)[:_LONGEST]}).encode()
