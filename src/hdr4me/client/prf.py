"""The device's secret as a source of fixed answers: HMAC-SHA256 over labels; standard library only.

The message of every HMAC is, in this order: the 18 bytes of "hdr4me-permanent-1", the 32 bytes of the series, one byte
that says what for (`Use`), three numbers a, b, c and the block's number, each in four bytes, big end first. The blocks
0, 1, 2, … of 32 bytes follow each other in a stream; words are read from it big end first.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterator
from enum import IntEnum

__all__ = ["SECRET_BYTES", "Stream", "Use", "secret_mark"]

SECRET_BYTES = 32
_PREFIX = b"hdr4me-permanent-1"
_WORD = 1 << 32


class Use(IntEnum):
    """What a stream is for: one byte of its label."""

    QUESTIONS = 0
    FRACTION = 1
    WORD = 2
    MARK = 3
    SECRET = 4


class Stream:
    """The bytes that one label gives, read as numbers; as a source of random numbers it is the label's for ever.

    >>> stream = Stream(bytes(32), "00" * 32, Use.WORD, 3, 5)
    >>> stream.getrandbits(32) == Stream(bytes(32), "00" * 32, Use.WORD, 3, 5).getrandbits(32)
    True
    """

    def __init__(self, secret: bytes, series: str, use: Use, a: int = 0, b: int = 0, c: int = 0) -> None:
        self._bytes = _bytes_of(secret, _PREFIX + bytes.fromhex(series) + struct.pack(">BIII", use, a, b, c))

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        return bytes(next(self._bytes) for _ in range(count))

    def getrandbits(self, k: int) -> int:
        """The number in the next ⌈k/8⌉ bytes, without its lowest bits beyond k."""
        size = -(-k // 8)
        return int.from_bytes(self.take(size), "big") >> (8 * size - k)

    def randbelow(self, n: int) -> int:
        """A number in 0..n−1, n ≤ 2^32: a word modulo n; words at or above the largest multiple of n are skipped."""
        bound = _WORD - _WORD % n
        while (word := self.getrandbits(32)) >= bound:
            pass
        return word % n

    def sample(self, n: int, k: int) -> list[int]:
        """k of 0..n−1, in increasing order: the first k places of a Fisher–Yates shuffle from the front."""
        moved: dict[int, int] = {}
        chosen = []
        for i in range(k):
            place = i + self.randbelow(n - i)
            chosen.append(moved.get(place, place))
            moved[place] = moved.get(i, i)
        return sorted(chosen)


def secret_mark(secret: bytes) -> str:
    """What the ledger keeps to know the secret again: the first 16 bytes of its own stream, in hexadecimal."""
    return Stream(secret, "00" * 32, Use.SECRET).take(16).hex()


def _bytes_of(secret: bytes, label: bytes) -> Iterator[int]:
    block = 0
    while True:
        yield from hmac.digest(secret, label + struct.pack(">I", block), hashlib.sha256)
        block += 1
