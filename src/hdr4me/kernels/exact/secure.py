"""The system's randomness for many users at once: words, bounded numbers and subsets, all exactly uniform."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.exact.agreement import number_outputs
from hdr4me.kernels.exact.keystream import Keystream
from hdr4me.kernels.exact.sets import SLACK as SETS_SLACK
from hdr4me.kernels.exact.sets import coins, dense_sets, listed, listed_sets, members_of_bytes
from hdr4me.kernels.exact.subset import SLACK, below, bitmap, subsets, words_needed

_CHUNK = 1 << 16
_BYTES = 1 << 18


class SecureDraws:
    """Uniform draws from a keystream of the system; not for sharing between threads.

    >>> draws = SecureDraws()
    >>> bool(draws.below(6, 1000).max() < 6), draws.subsets(4, 10, 3).shape
    (True, (4, 3))
    """

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

        As many low bits of a word of 64 bits as the bound has are kept, and drawn anew where they reach the bound.
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
        """For each input a uniform set of `width` of v categories that has the input where `heavy`, else lacks it.

        In as few bytes a number as a report has.
        """
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
