"""Files that appear whole or not at all: temporary file, fsync, rename; standard library only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["replacing", "write_bytes", "write_text"]


@contextmanager
def replacing(path: str | os.PathLike[str], *, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends well it takes `path`'s place.

    `mode` is a new file's permission before the umask; a file that was there keeps its own. If the block raises,
    nothing of it stays and what was at `path` before is untouched. A path that exists
    and is not a regular file (a pipe, `/dev/stdout`) cannot be replaced: it is written to directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "a.txt")
    ...     with replacing(target) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['a.txt']
    """
    target = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    if target.exists() and not target.is_file():
        if target.is_dir():
            raise IsADirectoryError(f"{path} is a directory, expected a file")
        yield Path(path)
        return
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
    try:
        # Created here rather than by the caller: an unwritable folder is found before any work is done.
        _create(temporary, mode, path)
        with suppress(FileNotFoundError):
            temporary.chmod(target.stat().st_mode & 0o777)  # who may read it stays as it was
        yield temporary
        _sync(temporary)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    with suppress(OSError):  # some file systems cannot sync a folder; the file itself is safe already
        _sync(target.parent)


def _create(temporary: Path, mode: int, path: str | os.PathLike[str]) -> None:
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except OSError as error:
        error.filename = os.fspath(path)  # the name that the caller knows
        raise


def write_bytes(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o666) -> None:
    """Write `data` to `path`, all of it or nothing."""
    with replacing(path, mode=mode) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | os.PathLike[str], text: str, *, mode: int = 0o666) -> None:
    """Write `text` to `path` in UTF-8, all of it or nothing."""
    write_bytes(path, text.encode("utf-8"), mode=mode)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
