"""The system's randomness, stretched: AES-256 in counter mode, keyed from the operating system.

Every report a survey collects is drawn from a `Keystream`. There is no seed parameter: the key comes from
`os.urandom` and never leaves the object. A forked child re-keys before its first byte, so parent and child
never repeat each other. OpenSSL does the work with the GIL released, at memory-like speed, so threads scale.
"""

from __future__ import annotations

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

BLOCK = 1 << 19
"""Bytes asked of the cipher at once: half of a typical second-level cache, and long enough to hide the call."""

_ZEROS = np.zeros(BLOCK, np.uint8)
_ZEROS.flags.writeable = False

_forks = 0


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class Keystream:
    """Uniform bits from AES-256-CTR under a fresh system key. Not for sharing between threads: make one each.

    >>> stream = Keystream()
    >>> stream.words32(3).shape, stream.words16(5).dtype
    ((3,), dtype('uint16'))
    """

    __slots__ = ("_encryptor", "_forks")

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        self._forks = _forks
        # The key is used once, for this stream only, so a zero nonce is sound.
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
        """A copy sent elsewhere is a new stream: key and position never leave the object."""
        return Keystream, ()
