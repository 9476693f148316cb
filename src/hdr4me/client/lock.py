"""An exclusive lock on a file, for POSIX and Windows; standard library only."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from hdr4me.errors import InvalidInput, LedgerBusy

_PAUSE = 0.01  # seconds between two attempts; neither `flock` nor `msvcrt` has a timeout
_BUSY = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock file `path` (mode 0600) while the block runs; the system releases the lock if the process ends.

    Raises LedgerBusy if another process holds the lock for `timeout` seconds, and InvalidInput if `path` is a link, a
    directory, a pipe or another user's file. The lock file is not removed.
    """
    descriptor = _acquired(path, timeout)
    try:
        yield
    finally:
        _lock(descriptor, held=False)
        os.close(descriptor)


def _acquired(path: Path, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while True:
        descriptor = _open(path)
        try:
            _lock(descriptor, held=True)
            # The file may have been deleted in the meantime, and a lock on a deleted file has no effect.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException as error:
            if not isinstance(error, OSError) or error.errno not in _BUSY:
                os.close(descriptor)
                raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise LedgerBusy(
                f"another process held {path} for {timeout:g} seconds, so nothing is spent: "
                "try again when that process has ended"
            )
        time.sleep(_PAUSE)


def _open(path: Path) -> int:
    # Do not follow a link, and do not block on a pipe.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    irregular = "it is not a regular file; remove it"
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO}:
            raise InvalidInput(f"{path} cannot be a lock file: {irregular}") from None
        raise
    state = os.fstat(descriptor)
    regular = stat.S_ISREG(state.st_mode)
    if not regular or (hasattr(os, "getuid") and os.getuid() not in (0, state.st_uid)):
        os.close(descriptor)
        why = "it belongs to another user, who could block the ledger" if regular else irregular
        raise InvalidInput(f"{path} cannot be a lock file: {why}")
    if state.st_mode & 0o077 and hasattr(os, "fchmod"):
        with suppress(OSError):  # a file system without permissions
            os.fchmod(descriptor, 0o600)
    return descriptor


def _lock(descriptor: int, *, held: bool) -> None:
    """Acquire the lock without waiting (OSError of `_BUSY` if it is held), or release it."""
    if sys.platform == "win32":
        msvcrt: Any = import_module("msvcrt")
        os.lseek(descriptor, 0, os.SEEK_SET)  # the first byte, which need not exist
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK if held else msvcrt.LK_UNLCK, 1)
    else:
        fcntl: Any = import_module("fcntl")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if held else fcntl.LOCK_UN)
