"""Designed tables are kept: in memory for this process, on disk for the next."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import numpy as np

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.search import Objective
from hdr4me.mechanisms.table import Certificate, Table

__all__ = ["DESIGN_VERSION", "cache_directory", "cached_table", "forget"]

DESIGN_VERSION = 1
"""Raised whenever a change makes `optimal` design different tables: older files are then left alone."""

_memory: dict[tuple[Path | None, float, str], Table] = {}
_lock = Lock()


def cache_directory() -> Path | None:
    """HDR4ME_CACHE_DIR if set (empty: no disk), else hdr4me in XDG_CACHE_HOME, else in ~/.cache."""
    own = os.environ.get("HDR4ME_CACHE_DIR")
    if own is not None:
        return Path(own) if own else None
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared:
        return Path(shared) / "hdr4me"
    with contextlib.suppress(RuntimeError):  # no home directory
        return Path.home() / ".cache" / "hdr4me"
    return None


def cached_table(epsilon: float, objective: Objective, design: Callable[[float, Objective], Table]) -> Table:
    """The table from memory, else from disk, else designed and kept.

    A file is only a hint: whatever it holds must be a table that passes every check of `Table`, private at this
    very ε, and its digest must fit; otherwise it is designed again. A disk that cannot be written is no error.
    """
    directory = cache_directory()
    key = (directory, epsilon, objective)
    with _lock:
        if key not in _memory:
            path = None if directory is None else directory / _file_name(epsilon, objective)
            table = None if path is None else _read(path, epsilon, objective)
            if table is None:
                table = design(epsilon, objective)
                if path is not None:
                    _write(path, table)
            _memory[key] = table
        return _memory[key]


def forget() -> None:
    """Empty the memory, for tests; the disk is left alone."""
    _memory.clear()


def _file_name(epsilon: float, objective: Objective) -> str:
    return f"optimal-v{DESIGN_VERSION}-{objective}-{epsilon.hex()}.npz"


def _write(path: Path, table: Table) -> None:
    """Atomically: a file beside it, then a rename. The first 32 bytes are the digest of the rest."""
    certificate = table.certificate
    assert certificate is not None
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        levels=table.levels,
        decode=table.decode,
        weights=table.weights,
        certificate=np.array([certificate.bound, certificate.achieved]),
    )
    content = buffer.getvalue()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".optimal-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)


def _read(path: Path, epsilon: float, objective: Objective) -> Table | None:
    """The table in the file, or None if there is no such file or it is not what it should be."""
    try:
        raw = path.read_bytes()
        if hashlib.sha256(raw[32:]).digest() != raw[:32]:
            return None
        with np.load(io.BytesIO(raw[32:]), allow_pickle=False) as arrays:
            bound, achieved = (float(x) for x in arrays["certificate"])
            return Table(
                "optimal",
                epsilon,
                arrays["levels"],
                arrays["decode"],
                arrays["weights"],
                certificate=Certificate(objective, bound, achieved),
            )
    except (OSError, ValueError, KeyError, InvalidInput):
        return None
