"""Reports from the request to the stored row: a `Batch` when they arrive, a `Block` in the store."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.collector.clock import CLOCK
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.blocks import from_wire
from hdr4me.survey import Survey

ID_SIZE = 16  # bytes of a report's id: random, generated with the report, never derived from a user

# Block numbers below it are random; the SQLite store numbers small blocks from here on until it merges them.
FRESH = 1 << 61

# In a block (bytes where all reports have the same length): a deletion writes its block again.
MOST_REPORTS, MOST_BYTES = 4096, 1 << 20

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def hour_now() -> int:
    """Hours since 1970: no finer time is stored."""
    return int(CLOCK.now() // 3600)


def check_numbers(**numbers: object) -> None:
    """Refuse what is not an integer from 0 to 2^31 − 1."""
    for name, number in numbers.items():
        if type(number) is not int or not 0 <= number < 1 << 31:
            raise InvalidInput.of(name, number, "an integer from 0 to 2^31 - 1")


@dataclass(slots=True, eq=False)
class Batch:
    """The reports of one request, and after writing its result: `stored`, `refused` and `duplicates`."""

    round: int
    source: int  # the number of the upload token; 0 where uploads are open
    ids: bytes  # the ids end to end, in any order
    data: bytes  # the wire bytes of the reports end to end (`Report.to_bytes(survey)`)
    sizes: Sequence[int] | None = None  # bytes of each report; None if all have the same size
    rejected: list[tuple[int, str]] = field(default_factory=list)  # rejected lines, with the reasons
    hour: int = field(default_factory=hour_now)
    sender: object = None  # whose share of the queue it uses: in memory only
    stored: int = 0  # reports stored now
    refused: bool = False  # none was stored because the round is not open
    size: int = field(init=False)  # its bytes of ids and reports
    written: asyncio.Future[None] | None = None  # done when the result is durable

    def __post_init__(self) -> None:
        check_numbers(round=self.round, hour=self.hour, source=self.source)
        if type(self.ids) is not bytes or len(self.ids) % ID_SIZE:
            raise InvalidInput.of("ids", self.ids[:40], f"{ID_SIZE} bytes for each report")
        n, size = len(self.ids) // ID_SIZE, len(self.data)
        self.size = len(self.ids) + size
        complete = not size % n if n and self.sizes is None else size == sum(self.sizes or ())
        if not complete or (self.sizes is not None and len(self.sizes) != n):
            raise InvalidInput.of("data", self.data[:40], "the bytes of one report for each id")

    def __len__(self) -> int:
        return len(self.ids) // ID_SIZE

    @property
    def duplicates(self) -> int:
        """The number of reports that were stored before, or twice in the same write."""
        return 0 if self.refused else len(self) - self.stored


def grouped(batches: Sequence[Batch]) -> list[Group]:
    """The batches by round."""
    rounds: dict[int, list[Batch]] = {}
    for batch in batches:
        if batch.ids:
            rounds.setdefault(batch.round, []).append(batch)
    return [Group(number, of_round) for number, of_round in sorted(rounds.items())]


class Group:
    """The distinct reports of one round in some batches, sorted by id; of equal ids the first is kept."""

    def __init__(self, round: int, batches: Sequence[Batch]) -> None:
        self.round, self._batches = round, batches
        counts = [len(batch) for batch in batches]
        each = [
            len(batch.data) // n for batch, n in zip(batches, counts, strict=True)
        ]  # if all have one size
        ids = np.frombuffer(b"".join([batch.ids for batch in batches]), np.uint8).reshape(-1, ID_SIZE)
        words = ids.view(">u8").astype(np.uint64)
        high, low = words[:, 0], words[:, 1]
        order = np.argsort(high)
        first = high[order]
        repeated = np.zeros(len(order), bool)
        if (first[1:] == first[:-1]).any():  # random ids are all different
            order = np.lexsort((low, high))
            repeated[1:] = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
        self._order = order[~repeated]
        self._ids = ids[self._order]
        self.ids = self._ids.tobytes()
        self._owners = np.repeat(np.arange(len(batches)), counts)[self._order]
        self._data = b"".join([batch.data for batch in batches])
        self._sizes: Numbers = np.repeat(each, counts)
        for batch, end in zip(batches, np.cumsum(counts).tolist(), strict=True):
            if batch.sizes is not None:
                self._sizes[end - len(batch) : end] = batch.sizes
        keys = [(batch.hour, batch.source) for batch in batches]
        self._keys = sorted(set(keys))  # the hour and the source of each block
        self._place = np.array([self._keys.index(key) for key in keys], np.uint16)[self._owners]
        if len(self._order) > MOST_REPORTS or len(self._data) > MOST_BYTES:
            self._divide()
        self.numbers = [secrets.randbits(61) for _ in self._keys]  # of the blocks

    def _divide(self) -> None:
        """Several blocks for the reports of an hour and a source that are too many for one."""
        keys, self._keys, key_of = self._keys, [], self._place.copy()
        for i, key in enumerate(keys):
            chosen = np.flatnonzero(key_of == i)
            length = -(-int(self._sizes[self._order[chosen]].sum()) // len(chosen))  # of a report, on average
            most = max(1, min(MOST_REPORTS, MOST_BYTES // length))
            for part in np.array_split(chosen, -(-len(chosen) // most)):
                self._place[part] = len(self._keys)
                self._keys.append(key)

    @property
    def places(self) -> bytes:
        """For each id the index of its block's number in `numbers`, in two bytes, little-endian."""
        return self._place.astype("<u2", copy=False).tobytes()

    def refuse(self) -> None:
        """The round is not open: none of the reports is stored."""
        for batch in self._batches:
            batch.stored, batch.refused = 0, True

    def acknowledge(self, new: Mask) -> None:
        """The chosen reports are on the disk, and the others were stored before."""
        counts = np.bincount(self._owners[new], minlength=len(self._batches)).tolist()
        for batch, stored in zip(self._batches, counts, strict=True):
            batch.stored, batch.refused = stored, False

    def blocks(self, new: Mask, survey: Survey) -> list[tuple[Block, NDArray[np.uint8]]]:
        """The chosen reports as blocks, each of one hour and source, with their rows."""
        found = []
        for place, (hour, source) in enumerate(self._keys):
            chosen = np.flatnonzero(new & (self._place == place))
            if not chosen.size:
                continue
            sizes, data = self._take(self._order[chosen])
            ids = self._ids[chosen].tobytes()
            block = Block(self.numbers[place], self.round, hour, source, ids, sizes, data)
            try:
                found.append((block, block.rows(survey)))
            except FormatError as error:
                raise InvalidInput(f"a payload is not a report of round {self.round}") from error
        return found

    def _take(self, rows: Numbers) -> tuple[bytes, bytes]:
        """Sizes and data of some reports, in this order, as a block holds them."""
        if (self._sizes == self._sizes[0]).all():
            data = np.frombuffer(self._data, np.uint8).reshape(len(self._sizes), -1)
            return b"", data[rows].tobytes()
        sizes, ends = self._sizes[rows], np.cumsum(self._sizes)[rows]
        parts = [self._data[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        return b"" if (sizes == sizes[0]).all() else sizes.astype("<u4").tobytes(), b"".join(parts)


@dataclass(frozen=True)
class Block:
    """Reports of one round, hour and source, sorted by id, which removes the order of arrival."""

    number: int
    round: int
    hour: int
    source: int
    id_bytes: bytes  # the ids end to end
    sizes: bytes  # of each report in four bytes, little-endian; empty if all have the same size
    data: bytes  # the reports end to end

    def __len__(self) -> int:
        return len(self.id_bytes) // ID_SIZE

    @property
    def ids(self) -> list[bytes]:
        """The id of each report."""
        return split_ids(self.id_bytes)

    @property
    def offsets(self) -> Numbers:
        """Where each report begins in `data`, and where the last one ends."""
        n = len(self)
        if not self.sizes:
            return np.arange(n + 1, dtype=np.int64) * (len(self.data) // max(n, 1))
        return np.concatenate([[0], np.cumsum(np.frombuffer(self.sizes, "<u4"), dtype=np.int64)])

    @property
    def payloads(self) -> list[bytes]:
        """The wire bytes of each report."""
        return [self.data[a:b] for a, b in pairwise(self.offsets.tolist())]

    def rows(self, survey: Survey) -> NDArray[np.uint8]:
        """The reports as a matrix [n, report_size] for `Tally.add_block`; FormatError if one has a wrong size."""
        n, data = len(self), np.frombuffer(self.data, np.uint8)
        if survey.fixed_size:
            if not self.sizes and data.size == n * survey.report_size:
                return data.reshape(n, survey.report_size)
        else:
            rows, good = from_wire(data, self.offsets, survey)
            if good.all():
                return rows
        raise FormatError(f"block {self.number} holds a report that is not of survey {survey.fingerprint}")

    @property
    def checksum(self) -> bytes:
        """BLAKE2b of every field."""
        parts = (self.id_bytes, self.sizes, self.data)
        key = (self.number, self.round, self.hour, self.source)
        digest = hashlib.blake2b(struct.pack("<7q", *key, *map(len, parts)), digest_size=16)
        for part in parts:
            digest.update(part)
        return digest.digest()

    def row(self) -> tuple[int, int, int, int, int, bytes, bytes, bytes, bytes]:
        """The values of `BLOCK_COLUMNS`."""
        key = (self.number, self.round, self.hour, self.source)
        return (*key, len(self), self.id_bytes, self.sizes, self.data, self.checksum)


BLOCK_COLUMNS = "number, round, hour, source, n, ids, sizes, data, checksum"  # a block as a row of a table


def split_ids(ids: bytes) -> list[bytes]:
    """The ids in bytes that hold them end to end."""
    return [ids[at : at + ID_SIZE] for at in range(0, len(ids), ID_SIZE)]


def block_of(round: int, hour: int, source: int, reports: Iterable[tuple[bytes, bytes]]) -> Block:
    """A new block of (id, payload) pairs in any order."""
    pairs = sorted(reports)
    lengths = [len(payload) for _, payload in pairs]
    sizes = b"" if len(set(lengths)) <= 1 else np.array(lengths, "<u4").tobytes()
    ids, data = b"".join([id for id, _ in pairs]), b"".join([payload for _, payload in pairs])
    return Block(secrets.randbits(61), round, hour, source, ids, sizes, data)


def read_block(row: Sequence[Any]) -> Block:
    """The block in a row of `BLOCK_COLUMNS`; FormatError says how it is damaged."""
    number, round_, hour, source, n, ids, sizes, data, checksum = row
    if not all(type(value) is int for value in (number, round_, hour, source, n)):
        raise FormatError("its numbers are not integers")
    if not all(isinstance(value, bytes) for value in (ids, sizes, data, checksum)):
        raise FormatError("its contents are not bytes")
    block = Block(number, round_, hour, source, ids, sizes, data)
    try:
        intact = block.checksum == checksum and len(ids) == ID_SIZE * n
    except struct.error:
        intact = False
    if not intact:
        raise FormatError("its checksum does not match: it was changed or truncated")
    return block


def joined(blocks: Sequence[Block]) -> Block:
    """The reports of some blocks of the same round, hour and source as one block."""
    first = blocks[0]
    pairs = [pair for block in blocks for pair in zip(block.ids, block.payloads, strict=True)]
    return block_of(first.round, first.hour, first.source, pairs)


def together(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Groups of blocks of the same hour and source, each small enough for one block."""
    groups: dict[tuple[int, int], list[Block]] = {}
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for block in blocks:
        key = (block.hour, block.source)
        before = sums.get(key, (0, 0))
        reports, size = before[0] + len(block), before[1] + len(block.data)
        if key in groups and (reports > MOST_REPORTS or size > MOST_BYTES):
            yield groups.pop(key)
            reports, size = len(block), len(block.data)
        groups.setdefault(key, []).append(block)
        sums[key] = reports, size
    yield from groups.values()


def without_id(block: Block, id: bytes) -> tuple[Block | None, Block]:
    """The block without one report (None if it was the only one), and a block of that report alone."""
    at, offsets = block.ids.index(id), block.offsets
    first, last = offsets[at], offsets[at + 1]
    key = (block.round, block.hour, block.source)
    gone = block_of(*key, [(id, block.data[first:last])])
    if len(block) == 1:
        return None, gone
    ids, sizes = (
        part[: at * n] + part[(at + 1) * n :] for part, n in ((block.id_bytes, ID_SIZE), (block.sizes, 4))
    )
    data = block.data[:first] + block.data[last:]
    return Block(secrets.randbits(61), *key, ids, sizes, data), gone
