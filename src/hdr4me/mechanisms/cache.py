"""Designed tables are kept: in memory for this process, on disk for the next.

A file is only a hint. It holds the integers, the decoding and the multipliers of the programme's dual; what they claim
is computed again when they are read: the table's privacy and unbiasedness by `Table`, its variance from the table, the
bound from the multipliers. So a file that another program wrote is at most as good as a design, or is designed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import write_bytes
from hdr4me.channels import Table as TableChannel
from hdr4me.channels.response import probabilities
from hdr4me.channels.table.channel import MAX_CELLS
from hdr4me.errors import HDR4MEError
from hdr4me.mechanisms.law import Floats
from hdr4me.mechanisms.programme import Dual, Objective, Search, certified
from hdr4me.mechanisms.table import Certificate, Table

DESIGN_VERSION, DESIGNS_VERSION = 2, 4
"""Raised whenever a change makes `optimal`, or designs, differ or be kept differently: older files are left alone."""

_MOST_BYTES = 1 << 21
_MOST_MULTIPLIERS = 1 << 10
_LARGEST_MULTIPLIER = 1e9

T = TypeVar("T")
_memory: dict[tuple[Path | None, str], Any] = {}
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


@dataclass(frozen=True)
class Design:
    """A channel of the linear program, made of equally spaced levels on [−1, 1] for each of its numbers."""

    channel: TableChannel

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of a number."""
        return tuple(np.linspace(-1.0, 1.0, self.channel.takes[0].n_levels).tolist())

    @property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """The rows of integers, which sum to 2^32."""
        return self.channel.weights

    @property
    def decoders(self) -> Mapping[str, tuple[float, ...]]:
        """The numbers that the cells count for, by the decoder's name."""
        return self.channel.decoders

    def second_moments(self, name: str) -> Floats:
        """E[decoder²] of each row; the numbers of a pair are "first" and "second"."""
        own = {"first": "value", "second": "value 2"}.get(name, name)
        return np.asarray(probabilities(self.channel.weights) @ np.array(self.channel.decoders[own]) ** 2)


def achieved(table: Table, objective: Objective) -> float:
    """The table's own variance: the largest, or the mean, over the inputs."""
    return table.max_variance() if objective == "max" else table.mean_variance()


def cached_table(
    epsilon: float, objective: Objective, design: Callable[[float, Objective], Table], *, on_disk: bool = True
) -> Table:
    """The table of `optimal` from memory, else from disk, else designed and kept."""
    name = f"optimal-v{DESIGN_VERSION}-{objective}-{epsilon.hex()}.table"
    read = partial(_read, epsilon=epsilon, objective=objective)
    return _kept(name, lambda: design(epsilon, objective), read, _write, on_disk=on_disk)


def cached_design(key: Mapping[str, Any], make: Callable[[], Design]) -> Design:
    """The design from memory, else from disk (its digest must fit, its channel is proven), else made and kept."""
    text = json.dumps(dict(key), sort_keys=True)
    name = f"design-v{DESIGNS_VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def write(path: Path, design: Design) -> None:
        content = json.dumps({"key": text, "channel": design.channel.to_dict()}).encode()
        _save(path, hashlib.sha256(content).digest() + content)

    def read(path: Path) -> Design | None:
        raw = _bounded(path)
        stored = json.loads(raw[32:])
        if hashlib.sha256(raw[32:]).digest() != raw[:32] or stored["key"] != text:
            return None
        fields = {name: value for name, value in stored["channel"].items() if name != "kind"}
        return Design(TableChannel.from_dict(fields))

    return _kept(name, make, read, write)


def _kept(
    name: str,
    make: Callable[[], T],
    read: Callable[[Path], T | None],
    write: Callable[[Path, T], None],
    *,
    on_disk: bool = True,
) -> T:
    """What is kept under this name; a file that is not what it should be is made again and replaced."""
    directory = cache_directory() if on_disk else None
    with _lock:
        if (directory, name) not in _memory:
            found = None if directory is None else _unless_damaged(read, directory / name)
            if found is None:
                found = make()
                if directory is not None:
                    write(directory / name, found)
            _memory[directory, name] = found
        kept: T = _memory[directory, name]
        return kept


def _unless_damaged(read: Callable[[Path], T | None], path: Path) -> T | None:
    data = ValueError, LookupError, TypeError, AttributeError, ArithmeticError, HDR4MEError
    try:
        return read(path)
    except (OSError, RecursionError, *data):
        return None


def _save(path: Path, content: bytes) -> None:
    """Write the file whole or not at all; a disk that cannot be written is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            return  # a pipe or a device in the place of the file: written to, it could wait for ever
        write_bytes(path, content)


def forget() -> None:
    """Empty the memory, for tests; the disk is left alone."""
    _memory.clear()


def _write(path: Path, table: Table) -> None:
    """One line of JSON with the sizes, then weights, decoding and multipliers as little-endian numbers."""
    certificate = table.certificate
    if certificate is None or certificate.proof is None:
        return  # nothing that could be computed again
    proof = certificate.proof
    head = {"levels": table.n_levels, "cells": table.n_cells, "multipliers": int(proof.shape[1])}
    content = table.weights.astype("<i8").tobytes() + table.decode.astype("<f8").tobytes()
    content += proof.astype("<f8").tobytes()
    _save(path, json.dumps(head).encode() + b"\n" + content)


def _read(path: Path, epsilon: float, objective: Objective) -> Table | None:
    """The table in the file, with everything that it claims computed again; None if it is not what it should be."""
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
    return replace(table, certificate=Certificate(objective, bound, found, proof))


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
