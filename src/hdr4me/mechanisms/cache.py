"""Designed tables are kept: in memory for this process, on disk for the next.

A file is only a hint. It holds the integers, the decoding and the multipliers of the programme's dual; what they claim
is computed again when they are read: the table's privacy and unbiasedness by `Table`, its variance from the table, the
bound from the multipliers. So a file that another program wrote is at most as good as a design, or is designed again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import write_bytes
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.programme import Dual, certified
from hdr4me.mechanisms.search import Objective, Search
from hdr4me.mechanisms.table import MAX_CELLS, Certificate, Table

__all__ = ["DESIGN_VERSION", "achieved", "cache_directory", "cached_table", "forget"]

DESIGN_VERSION = 2
"""Raised whenever a change makes `optimal` design or keep different tables: older files are then left alone."""

_MOST_BYTES = 1 << 21
_MOST_MULTIPLIERS = 1 << 10
_LARGEST_MULTIPLIER = 1e9

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


def achieved(table: Table, objective: Objective) -> float:
    """The table's own variance: the largest, or the mean, over the inputs."""
    return table.max_variance() if objective == "max" else table.mean_variance()


def cached_table(
    epsilon: float, objective: Objective, design: Callable[[float, Objective], Table], *, on_disk: bool = True
) -> Table:
    """The table from memory, else from disk, else designed and kept.

    A file that is not what it should be is designed again and replaced. A disk that cannot be written is no error.

    Parameters
    ----------
    epsilon, objective
        What the table is for.
    design
        Makes it.
    on_disk
        Whether designing takes long enough for a file.
    """
    directory = cache_directory() if on_disk else None
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
    return f"optimal-v{DESIGN_VERSION}-{objective}-{epsilon.hex()}.table"


def _write(path: Path, table: Table) -> None:
    """One line of JSON with the sizes, then weights, decoding and multipliers as little-endian numbers."""
    certificate = table.certificate
    if certificate is None or certificate.proof is None:
        return  # nothing that could be computed again
    proof = certificate.proof
    head = {"levels": table.n_levels, "cells": table.n_cells, "multipliers": int(proof.shape[1])}
    content = table.weights.astype("<i8").tobytes() + table.decode.astype("<f8").tobytes()
    content += proof.astype("<f8").tobytes()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            return  # a pipe or a device in the place of the file: written to, it could wait for ever
        write_bytes(path, json.dumps(head).encode() + b"\n" + content)


def _read(path: Path, epsilon: float, objective: Objective) -> Table | None:
    """The table in the file, or None if there is no such file or it is not what it should be."""
    try:
        arrays = _arrays(_bounded(path))
        if arrays is None:
            return None
        weights, decode, proof = arrays
        bound = _bound(proof, epsilon, objective)
        table = Table("optimal", epsilon, np.linspace(-1.0, 1.0, len(weights)), decode, weights)
        found = achieved(table, objective)
        most = 0.05 if epsilon <= 8.0 else 0.5  # what a design comes to is well within
        if bound is None or not bound <= found <= (1 + most) * bound:
            return None
        certificate = Certificate(objective, bound, found, proof)
        return Table("optimal", epsilon, table.levels, decode, weights, certificate=certificate)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ArithmeticError, InvalidInput):
        return None


def _bounded(path: Path) -> bytes:
    """The file's bytes, if it is a regular file of a possible size; opening it waits for nobody."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("larger than any table")
    return content


def _arrays(content: bytes) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]] | None:
    first, _, data = content.partition(b"\n")
    head = json.loads(first[:1000])
    n_levels, n_cells, n = head["levels"], head["cells"], head["multipliers"]
    for size, most in ((n_levels, MAX_CELLS), (n_cells, MAX_CELLS), (n, _MOST_MULTIPLIERS)):
        if type(size) is not int or not 2 <= size <= most:
            return None
    if len(data) != 8 * (n_levels * n_cells + n_cells + 4 * n):
        return None
    numbers = np.frombuffer(data, "<f8")[n_levels * n_cells :]
    weights = np.frombuffer(data, "<i8")[: n_levels * n_cells].reshape(n_levels, n_cells)
    return weights.astype(np.int64), numbers[:n_cells].copy(), numbers[n_cells:].reshape(4, n).copy()


def _bound(proof: NDArray[np.float64], epsilon: float, objective: Objective) -> float | None:
    """The variance that the multipliers prove to be a limit, or None if they prove nothing.

    Any distribution π over inputs proves a limit for the largest variance; for the mean it must be the uniform one.
    """
    levels, mu, nu, pi = proof
    search = Search(epsilon, objective)
    if not (np.abs(proof) <= _LARGEST_MULTIPLIER).all() or pi.min() < 0 or not math.isclose(pi.sum(), 1.0):
        return None
    if np.abs(levels).max() > (1 + 1e-12) / search.unit:
        return None
    mean_square = None
    if objective == "mean":
        half, prior, mean_square = search.inputs(levels.size - 2)
        assert prior is not None
        whole = np.concatenate([-half[:0:-1], half])
        shares = np.concatenate([prior[:0:-1] / 2, prior[:1], prior[1:] / 2])
        if whole.shape != levels.shape or not np.allclose(whole, levels) or not np.allclose(shares, pi):
            return None
    return certified(Dual(levels, mu, nu, pi), epsilon, mean_square) * search.unit**2
