"""Atomic writing of files: temporary file, fsync, rename; standard library only."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # not a POSIX system: leftover files are not removed
    fcntl = None


_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{12}\.part", re.DOTALL)
_YOUNG = 60.0
"""Seconds before a temporary file may be removed: its writer may not hold the lock yet."""

_cleaned: set[str] = set()
"""Folders that this process has cleaned; it removes its own files, so once is enough."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces `path` when the block ends without an error.

    `mode` is a new file's permission before the umask; an existing file keeps its own. If the block raises, the
    temporary file is removed and `path` is unchanged. The next process that writes to the folder removes files of
    killed processes. A path that is not a regular file (a pipe, `/dev/stdout`) is written directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "a.txt")
    ...     with replacing(target) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['a.txt']
    """
    target = Path(os.path.realpath(path))  # replace the target of a symbolic link, not the link
    if target.exists() and not target.is_file():
        if target.is_dir():
            raise IsADirectoryError(f"{path} is a directory, expected a file")
        yield Path(path)
        return
    _clean(target.parent)
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
    lock = None
    try:
        # Created here, so that an unwritable folder is an error before any work is done.
        lock = _create(temporary, mode, path)
        with suppress(FileNotFoundError):
            temporary.chmod(target.stat().st_mode & 0o777)  # keep the permissions
        yield temporary
        _sync(temporary)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        if lock is not None:
            os.close(lock)
    with suppress(OSError):  # some file systems cannot sync a folder; the file itself is already safe
        _sync(target.parent)


def _create(temporary: Path, mode: int, path: str | os.PathLike[str]) -> int | None:
    """Create the file; its open descriptor holds a lock, which shows that the writer is alive."""
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        error.filename = os.fspath(path)  # the path of the caller
        raise
    if fcntl is None:  # an open file cannot be renamed on this system
        os.close(descriptor)
        return None
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _clean(folder: Path) -> None:
    """Remove temporary files that are neither locked nor new, because their writer has ended."""
    if fcntl is None or str(folder) in _cleaned:
        return
    _cleaned.add(str(folder))
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _LEFTOVER.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _YOUNG:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError if a process is writing it
            os.unlink(path)  # noqa: PTH108
    finally:
        os.close(descriptor)


def write_bytes(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o666, reserve: int = 0) -> None:
    """Write `data` to `path`, all of it or nothing.

    With `reserve`, at least that many bytes are on the disk before the file is cut to its length, so that success does
    not depend on the length of shorter data.
    """
    with replacing(path, mode=mode) as temporary:
        temporary.write_bytes(data.ljust(reserve, b"\n"))
        if reserve > len(data):
            _sync(temporary)
            os.truncate(temporary, len(data))


def write_text(path: str | os.PathLike[str], text: str, *, mode: int = 0o666, reserve: int = 0) -> None:
    """Write `text` to `path` in UTF-8, all of it or nothing; `reserve` as in `write_bytes`."""
    write_bytes(path, text.encode("utf-8"), mode=mode, reserve=reserve)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
