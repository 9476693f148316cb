"""The device's secret as a source of fixed answers: HMAC-SHA256 over labels; standard library only.

The message of every HMAC is, in this order: the 18 bytes of "hdr4me-permanent-1", the 32 bytes of the series, one byte
that says what for (`Use`), two numbers a and b and the block's number, each in four bytes, big end first. The blocks
0, 1, 2, … of 32 bytes follow each other in a stream; numbers are read from it big end first.
"""

from __future__ import annotations

import hmac
import struct
from enum import IntEnum

from hdr4me.channels.channel import below

SECRET_BYTES = 32
_PREFIX = b"hdr4me-permanent-1"


class Use(IntEnum):
    """What a stream is for: one byte of its label."""

    QUESTIONS = 0
    FRACTION = 1
    ANSWER = 2
    MARK = 3
    SECRET = 4


class Stream:
    """The bytes that one label gives, read as numbers: a source of draws that is the label's for ever."""

    def __init__(self, secret: bytes, series: str, use: Use, a: int = 0, b: int = 0) -> None:
        self._secret = secret
        self._label = _PREFIX + bytes.fromhex(series) + struct.pack(">BII", use, a, b)
        self._block = 0
        self._left = b""

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        while len(self._left) < count:
            message = self._label + struct.pack(">I", self._block)
            self._left += hmac.digest(self._secret, message, "sha256")
            self._block += 1
        found, self._left = self._left[:count], self._left[count:]
        return found

    def bits(self, n: int) -> int:
        """The number in the next ⌈n/8⌉ bytes, without its lowest bits beyond n."""
        size = -(-n // 8)
        return int.from_bytes(self.take(size), "big") >> (8 * size - n)

    def below(self, n: int) -> int:
        """A number below `n`, by the rule of every channel: a word modulo n, words that would favor some skipped."""
        return below(self, n)


def secret_mark(secret: bytes) -> str:
    """What the ledger keeps to know the secret again: the first 16 bytes of its own stream, in hexadecimal."""
    return Stream(secret, "00" * 32, Use.SECRET).take(16).hex()
