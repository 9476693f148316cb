"""Headers: those of a request, and those that every answer carries."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

__all__ = ["PAGE_POLICY", "SECURITY", "cors_headers", "header_of", "preflight_headers"]

Headers = list[tuple[bytes, bytes]]

SECURITY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
"""On every answer."""

PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of the pages: nothing from anywhere else, no inline script or style."""


def header_of(scope: MutableMapping[str, Any], name: bytes) -> bytes | None:
    """The first header of this name (in lower case), or None."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def cors_headers(origins: Sequence[str], origin: bytes | None) -> Headers:
    """What lets a page of a listed origin read the answer; never with credentials.

    >>> cors_headers(("https://a.example",), b"https://b.example")
    [(b'vary', b'origin')]
    """
    if not origins:
        return []
    if origin is None or origin.decode("latin-1") not in origins:
        return [(b"vary", b"origin")]
    return [
        (b"vary", b"origin"),
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"etag, retry-after"),
    ]


def preflight_headers(origins: Sequence[str], origin: bytes | None) -> Headers:
    """The answer to a browser that asks whether a page may send a request."""
    found = cors_headers(origins, origin)
    if len(found) > 1:
        found += [
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (
                b"access-control-allow-headers",
                b"authorization, content-type, content-encoding, idempotency-key, if-none-match",
            ),
            (b"access-control-max-age", b"3600"),
        ]
    return found
