"""Memoized random numbers from the device's secret: HMAC-SHA256 over labels; standard library only.

The message of every HMAC is, in this order: the 18 bytes of "hdr4me-permanent-1", the 32 bytes of the series, one byte
for the purpose (`Use`), two integers a and b and the index of the block, each in four bytes, big-endian. A stream is
the concatenation of the blocks 0, 1, 2, … of 32 bytes each; numbers in it are big-endian.
"""

from __future__ import annotations

import hmac
import struct
from enum import IntEnum

from hdr4me.channels.channel import below

SECRET_BYTES = 32
_PREFIX = b"hdr4me-permanent-1"


class Use(IntEnum):
    """The purpose of a stream: one byte of its label."""

    QUESTIONS = 0
    FRACTION = 1
    ANSWER = 2
    MARK = 3
    SECRET = 4


class Stream:
    """A deterministic source of random numbers: the pseudorandom bytes of one label."""

    def __init__(self, secret: bytes, series: str, use: Use, a: int = 0, b: int = 0) -> None:
        self._secret = secret
        self._label = _PREFIX + bytes.fromhex(series) + struct.pack(">BII", use, a, b)
        self._block = 0
        self._left = b""

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        while len(self._left) < count:
            message = self._label + struct.pack(">I", self._block)
            self._left += hmac.digest(self._secret, message, "sha256")
            self._block += 1
        found, self._left = self._left[:count], self._left[count:]
        return found

    def bits(self, n: int) -> int:
        """Return the number in the next ⌈n/8⌉ bytes, reduced to its n highest bits."""
        size = -(-n // 8)
        return int.from_bytes(self.take(size), "big") >> (8 * size - n)

    def below(self, n: int) -> int:
        """Return a uniform number below `n` by rejection sampling, as all channels do."""
        return below(self, n)


def secret_mark(secret: bytes) -> str:
    """Return the mark that identifies the secret in the ledger: 16 bytes of a stream of the secret, in hexadecimal."""
    return Stream(secret, "00" * 32, Use.SECRET).take(16).hex()
