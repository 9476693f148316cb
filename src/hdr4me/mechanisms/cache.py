"""Designed tables are cached in memory for this process and on disk for later ones.

A file holds a SHA-256 digest and JSON. It is not trusted: the reader verifies the table's properties again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from hdr4me.atomic import write_bytes
from hdr4me.channels import Table as TableChannel
from hdr4me.errors import HDR4MEError

DESIGNS_VERSION = 4  # incremented when joint designs or their files change
_MOST_BYTES = 1 << 21

T = TypeVar("T")
_memory: dict[tuple[Path | None, str], Any] = {}
_lock = Lock()


def cache_directory() -> Path | None:
    """HDR4ME_CACHE_DIR if it is set (empty: no disk cache), else hdr4me in XDG_CACHE_HOME, else in ~/.cache."""
    own = os.environ.get("HDR4ME_CACHE_DIR")
    if own is not None:
        return Path(own) if own else None
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared:
        return Path(shared) / "hdr4me"
    with contextlib.suppress(RuntimeError):  # no home directory
        return Path.home() / ".cache" / "hdr4me"
    return None


def cached_design(key: Mapping[str, Any], make: Callable[[], TableChannel]) -> TableChannel:
    """The channel of a joint design with this key; the constructor verifies a channel from disk."""
    text = json.dumps(dict(key), sort_keys=True)
    name = f"design-v{DESIGNS_VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def unpack(stored: Any) -> TableChannel | None:
        fields = {name: value for name, value in stored["channel"].items() if name != "kind"}
        return TableChannel.from_dict(fields) if stored["key"] == text else None

    return cached(name, make, lambda channel: {"key": text, "channel": channel.to_dict()}, unpack)


def cached(
    name: str,
    make: Callable[[], T],
    pack: Callable[[T], Any],
    unpack: Callable[[Any], T | None],
    *,
    on_disk: bool = True,
) -> T:
    """The object from memory, from disk, or newly made; an invalid file is replaced."""
    directory = cache_directory() if on_disk else None
    with _lock:
        if (directory, name) not in _memory:
            found = None if directory is None else _load(directory / name, unpack)
            if found is None:
                found = make()
                if directory is not None:
                    save(directory / name, pack(found))
            _memory[directory, name] = found
        item: T = _memory[directory, name]
        return item


def save(path: Path, stored: Any) -> None:
    """Write the file atomically; a disk that cannot be written is not an error."""
    content = json.dumps(stored).encode()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            return  # writing to a pipe or a device could block
        write_bytes(path, hashlib.sha256(content).digest() + content)


def _load(path: Path, unpack: Callable[[Any], T | None]) -> T | None:
    """The content of a regular file of a possible size, None if it is damaged; opening it never blocks."""
    invalid = ValueError, LookupError, TypeError, AttributeError, ArithmeticError, HDR4MEError
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            raw = file.read(_MOST_BYTES + 1) if regular else b""
        if len(raw) > _MOST_BYTES or hashlib.sha256(raw[32:]).digest() != raw[:32]:
            return None
        return unpack(json.loads(raw[32:]))
    except (OSError, RecursionError, *invalid):
        return None
