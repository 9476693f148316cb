"""Reports as they come from requests, in columns: sorted by id and without twins, in arrays and not one by one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.collector.blocks import ID_SIZE, Block
from hdr4me.collector.store import Arrival, Written

__all__ = ["Load", "Outcome", "Prepared", "prepare", "write_one_by_one"]

Numbers = NDArray[np.int64]


class Load(NamedTuple):
    """The reports of one request.

    Parameters
    ----------
    round, hour, source
        As in `Arrival`.
    ids
        The ids end to end, in any order.
    data
        The reports' wire bytes end to end.
    sizes
        Bytes of each report; None if all have the same.
    """

    round: int
    hour: int
    source: int
    ids: bytes
    data: bytes
    sizes: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.ids) // ID_SIZE


class Outcome(NamedTuple):
    """What became of a load, all of it durable: how many reports are stored now, and how many were refused because
    their round is not open. The others are duplicates.
    """

    stored: int
    refused: int


class Prepared:
    """The distinct reports of one round, sorted by id.

    Parameters
    ----------
    places
        The numbers of the loads among those that are written together.
    loads
        The loads, all of one round.
    """

    def __init__(self, places: Sequence[int], loads: Sequence[Load]) -> None:
        counts = [len(load) for load in loads]
        ids = np.frombuffer(b"".join([load.ids for load in loads]), np.uint8).reshape(-1, ID_SIZE)
        words = ids.view(">u8").astype(np.uint64)
        high, low = words[:, 0], words[:, 1]
        order = np.argsort(high)
        first = high[order]
        twin = np.zeros(len(order), bool)
        if (first[1:] == first[:-1]).any():  # random ids have none; repeated and chosen ones have
            order = np.lexsort((low, high))
            twin[1:] = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
        self._order = order[~twin]
        self.ids = ids[self._order].tobytes()
        self.owners = np.repeat(np.asarray(places), counts)[self._order]
        self._data = b"".join([load.data for load in loads])
        self._sizes = _sizes(loads)
        keys = [(load.hour, load.source) for load in loads]
        self._keys = sorted(set(keys))
        of_load = np.array([self._keys.index(key) for key in keys])
        self._group = np.repeat(of_load, counts)[self._order]
        self.round = loads[0].round if loads else 0

    def __len__(self) -> int:
        return len(self._order)

    def blocks(self, chosen: NDArray[np.bool_]) -> list[Block]:
        """The chosen reports as blocks, one for each hour and source."""
        found = []
        for group, (hour, source) in enumerate(self._keys):
            picked = np.flatnonzero(chosen & (self._group == group))
            if not picked.size:
                continue
            sizes, data = self._take(self._order[picked])
            ids = np.frombuffer(self.ids, np.uint8).reshape(-1, ID_SIZE)[picked].tobytes()
            found.append(Block(secrets.randbits(62), self.round, hour, source, ids, sizes, data))
        return found

    def _take(self, rows: Numbers) -> tuple[bytes, bytes]:
        """Sizes and data of some reports, in this order, as a block has them."""
        data = np.frombuffer(self._data, np.uint8)
        if isinstance(self._sizes, int):
            return b"", data.reshape(-1, self._sizes)[rows].tobytes() if self._sizes else b""
        ends = np.cumsum(self._sizes)
        sizes = self._sizes[rows]
        if (sizes == sizes[0]).all():
            at = (ends - self._sizes)[rows]
            return b"", data[at[:, None] + np.arange(sizes[0])].tobytes()
        parts = [self._data[end - size : end] for end, size in zip(ends[rows], sizes, strict=True)]
        return sizes.astype("<u4").tobytes(), b"".join(parts)


def _sizes(loads: Sequence[Load]) -> int | Numbers:
    """The size of every report, or of each where they differ."""
    found = {len(load.data) // max(len(load), 1) for load in loads if load.sizes is None}
    if len(found) == 1 and all(load.sizes is None for load in loads):
        return found.pop()
    columns = [
        np.full(len(load), len(load.data) // max(len(load), 1))
        if load.sizes is None
        else np.asarray(load.sizes, np.int64)
        for load in loads
    ]
    return np.concatenate(columns)


def prepare(loads: Sequence[Load]) -> list[Prepared]:
    """The loads by round.

    >>> loads = [Load(1, 5, 0, b"b" * 16 + b"a" * 16, b"xy"), Load(1, 5, 0, b"b" * 16, b"z")]
    >>> one, = prepare(loads)
    >>> len(one), one.blocks(np.ones(2, bool))[0].payloads
    (2, [b'y', b'x'])
    """
    rounds: dict[int, list[int]] = {}
    for place, load in enumerate(loads):
        if len(load):
            rounds.setdefault(load.round, []).append(place)
    return [Prepared(places, [loads[i] for i in places]) for _, places in sorted(rounds.items())]


def write_one_by_one(write: Callable[[Sequence[Arrival]], Written], loads: Sequence[Load]) -> list[Outcome]:
    """Write loads through a store's `write`, for stores whose database takes reports one by one anyway."""
    batch: list[Arrival] = []
    owners: list[int] = []
    for owner, (round, hour, source, ids, data, sizes) in enumerate(loads):
        n, at = len(ids) // ID_SIZE, 0
        lengths = [len(data) // n] * n if sizes is None and n else sizes or ()
        for i, size in enumerate(lengths):
            batch.append(Arrival(round, ids[16 * i : 16 * i + 16], data[at : at + size], hour, source))
            at += size
        owners += [owner] * n
    written = write(batch)
    stored, refused = [0] * len(loads), [0] * len(loads)
    for owner, was_stored, was_refused in zip(owners, written.stored, written.refused, strict=True):
        stored[owner] += was_stored
        refused[owner] += was_refused
    return [Outcome(*pair) for pair in zip(stored, refused, strict=True)]
