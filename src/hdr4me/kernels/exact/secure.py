"""The system's randomness, exactly uniform: a keystream, and words, bounded numbers and subsets drawn from it.

The keystream is AES-256 in counter mode. There is no seed parameter: the key comes from `os.urandom` and never leaves
the object, and a forked child draws a new key. OpenSSL works with the GIL released, so threads scale.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from hdr4me.kernels.exact.sets import (
    SETS_SLACK,
    SLACK,
    below,
    bitmap,
    coins,
    dense_sets,
    listed,
    listed_sets,
    members_of_bytes,
    subsets,
    words_needed,
)
from hdr4me.kernels.machine.jit import kernel

# Bytes requested from the cipher at once: half of a typical second-level cache, and long enough to hide the call.
BLOCK = 1 << 19

_ZEROS = np.zeros(BLOCK, np.uint8)
_ZEROS.flags.writeable = False

_forks = 0


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class Keystream:
    """Uniform bits from AES-256-CTR under a fresh system key. Not thread-safe: each thread needs its own."""

    __slots__ = ("_encryptor", "_forks")

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        self._forks = _forks
        # The key is used once, for this stream only, so a zero nonce is secure.
        self._encryptor = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite a contiguous array of bytes with fresh randomness."""
        if self._forks != _forks:
            self._rekey()
        for start in range(0, out.size, BLOCK):
            part = out[start : start + BLOCK]
            self._encryptor.update_into(_ZEROS[: part.size], part)  # type: ignore[arg-type]

    def words32(self, n: int) -> NDArray[np.uint32]:
        """n uniform 32-bit words."""
        out = np.empty(n, np.uint32)
        self.fill(out.view(np.uint8))
        return out

    def words16(self, n: int) -> NDArray[np.uint16]:
        """n uniform 16-bit words."""
        out = np.empty(n, np.uint16)
        self.fill(out.view(np.uint8))
        return out

    def __reduce__(self) -> tuple[type[Keystream], tuple[()]]:
        """A pickled copy is a new stream: key and position never leave the object."""
        return Keystream, ()


_CHUNK = 1 << 16
_BYTES = 1 << 18


class SecureDraws:
    """Uniform draws from a keystream of the system; not thread-safe."""

    def __init__(self) -> None:
        self._stream = Keystream()

    def words(self, n: int) -> NDArray[np.uint32]:
        """n words of 32 bits."""
        return self._stream.words32(n)

    def halves(self, n: int) -> NDArray[np.uint16]:
        """n words of 16 bits."""
        return self._stream.words16(n)

    def bits(self, n: int) -> int:
        """One number of n bits."""
        return int.from_bytes(self._stream.words16((n + 15) // 16).tobytes(), "little") & ((1 << n) - 1)

    def below(self, bound: int, n: int = 0) -> NDArray[np.int64]:
        """n integers below `bound` ≤ 2^32, by rejection of the words at or above its largest multiple."""
        limit = (1 << 32) - (1 << 32) % bound
        found = self._stream.words32(n).astype(np.int64)
        while (bad := np.flatnonzero(found >= limit)).size:
            found[bad] = self._stream.words32(bad.size)
        return found % bound

    def below_either(self, heavy: NDArray[np.bool_], inside: int, rest: int) -> NDArray[np.uint64]:
        """An integer below `inside` where heavy, and of the `rest` numbers after it elsewhere.

        The low bits of a 64-bit word are kept, as many as the bound has; a number at or above the bound is drawn again.
        """
        found, rows = np.empty(heavy.size, np.uint64), np.arange(heavy.size)
        bounds = [np.uint64(x) for x in (inside, rest)]
        keep = [np.uint64((1 << x.bit_length()) - 1) for x in (inside, rest)]
        while rows.size:
            words = self._stream.words32(2 * rows.size).view(np.uint64)
            rows = rows[: number_outputs(words, rows, heavy, *bounds, *keep, found)]
        return found

    def subsets(self, n: int, d: int, m: int) -> NDArray[np.int64]:
        """n uniform subsets of m of the numbers below d ≤ 65536, each in increasing order."""
        if m == d:
            return np.broadcast_to(np.arange(d), (n, d))
        if m == 1:
            return self.below(d, n)[:, None]
        return self.short_subsets(n, d, m).astype(np.int64)

    def short_subsets(self, n: int, d: int, m: int) -> NDArray[np.uint16]:
        """The same as numbers of 16 bits, for m from 2 to d − 1."""
        out = np.empty(n * m + SLACK, np.uint16)
        scratch = bitmap(d)
        rows = max(1, _CHUNK // m)
        done = 0
        while done < n:
            count = min(rows, n - done)
            words = self._stream.words32(words_needed(d, m, count))
            drawn = np.empty(words.size, np.uint16)
            drawn = drawn[: below(words, d, drawn)]
            made, _ = subsets(d, m, drawn, 0, scratch, out, done * m, count)
            done += made
        return out[: n * m].reshape(n, m)

    def sets(self, v: int, width: int, inputs: NDArray[np.int64], heavy: NDArray[np.bool_]) -> NDArray[Any]:
        """For each input a uniform set of `width` of v categories, which contains the input only where `heavy`."""
        n, size = len(inputs), 1 if v <= 256 else 2
        out = np.empty(n * width + SETS_SLACK, f"u{size}")
        members, entries, at = members_of_bytes(size), listed(v - 1, width), 0
        if entries is not None:
            while at < n:
                drawn = self._stream.words32(min(_CHUNK, n - at))
                at = listed_sets(drawn, entries, width, v, inputs, heavy, members, out, at)
            return out[: n * width].reshape(n, width)
        c, b, mean, variance = coins(v - 1, width)
        words = (v + 63) // 64
        rows = max(1, int(_BYTES / (8 * b * words + 2 * mean)))
        while at < n:
            count = min(rows, n - at)
            planes = self._stream.words32(2 * count * b * words).view(np.uint64).reshape(count, b, words)
            halves = self._stream.words16(int(count * mean + 4 * (count * variance) ** 0.5) + 64)
            at = dense_sets(planes, c, b, halves, width, v, inputs, heavy, members, out, at)
        return out[: n * width].reshape(n, width)


@kernel()
def number_outputs(words, rows, heavy, inside, rest, keep_inside, keep_rest, numbers):  # type: ignore[no-untyped-def]
    """Write an output number for each row from a 64-bit word: below `inside` if heavy, else one of the `rest` after it.

    As many low bits of a word are kept as the bound has. Rows whose bits are not below the bound are moved to the front
    of `rows` for another draw; returns their number.
    """
    again = 0
    for k in range(words.size):
        i = rows[k]
        own = heavy[i]
        bits = words[k] & (keep_inside if own else keep_rest)
        numbers[i] = bits + (np.uint64(0) if own else inside)
        rows[again] = i
        again += bits >= (inside if own else rest)
    return again
