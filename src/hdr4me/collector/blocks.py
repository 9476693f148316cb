"""A block: reports of one round, hour and source, sorted by id, with a checksum over every byte of it."""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.blocks import from_wire
from hdr4me.survey import Survey

__all__ = ["COLUMNS", "ID_SIZE", "Block", "block_of", "joined", "read_block", "rows_of", "without_id"]

ID_SIZE = 16
"""Bytes of a report's id: random, made with the report, never derived from a user."""

CHECKSUM_SIZE = 16
COLUMNS = ("number", "round", "hour", "source", "n", "ids", "sizes", "data", "checksum")
"""A block as a row of a table; `sizes` is empty if all reports have one size."""

MOST_PAYLOAD = 1 << 24
"""Bytes: no report is longer."""


@dataclass(frozen=True)
class Block:
    """Reports of one round, hour and source, sorted by id: the order in which they came is forgotten.

    Parameters
    ----------
    number
        A random number that names the block.
    round, hour, source
        As in `Arrival`.
    id_bytes
        The ids end to end, in increasing order.
    sizes
        The size of each report in four bytes, little end first; empty if all have the same.
    data
        The reports end to end.
    """

    number: int
    round: int
    hour: int
    source: int
    id_bytes: bytes
    sizes: bytes
    data: bytes

    def __len__(self) -> int:
        return len(self.id_bytes) // ID_SIZE

    @property
    def ids(self) -> list[bytes]:
        """The id of each report."""
        return [self.id_bytes[at : at + ID_SIZE] for at in range(0, len(self.id_bytes), ID_SIZE)]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each report begins in `data`, and where the last one ends."""
        n = len(self)
        if not self.sizes:
            return np.arange(n + 1, dtype=np.int64) * (len(self.data) // max(n, 1))
        return np.concatenate([[0], np.cumsum(np.frombuffer(self.sizes, "<u4"), dtype=np.int64)])

    @property
    def payloads(self) -> list[bytes]:
        """Each report's bytes on the wire."""
        return [self.data[a:b] for a, b in pairwise(self.offsets.tolist())]

    def rows(self, survey: Survey) -> NDArray[np.uint8]:
        """The reports as a matrix [n, report_size], as `Tally.add_block` and `write_reports` take them."""
        rows, good = rows_of(self, survey)
        if not good.all():
            raise FormatError(
                f"block {self.number} holds a report that is not of survey {survey.fingerprint}"
            )
        return rows

    @property
    def checksum(self) -> bytes:
        """BLAKE2b over every field."""
        head = struct.pack(
            "<7q",
            self.number,
            self.round,
            self.hour,
            self.source,
            len(self.id_bytes),
            len(self.sizes),
            len(self.data),
        )
        digest = hashlib.blake2b(head, digest_size=CHECKSUM_SIZE)
        for part in (self.id_bytes, self.sizes, self.data):
            digest.update(part)
        return digest.digest()

    def row(self) -> tuple[int, int, int, int, int, bytes, bytes, bytes, bytes]:
        """The values of `COLUMNS`."""
        return (
            self.number,
            self.round,
            self.hour,
            self.source,
            len(self),
            self.id_bytes,
            self.sizes,
            self.data,
            self.checksum,
        )


def block_of(round: int, hour: int, source: int, reports: Iterable[tuple[bytes, bytes]]) -> Block:
    """A new block of (id, payload) pairs, sorted here, under a random number.

    >>> block = block_of(1, 491_000, 0, [(b"b" * 16, b"yy"), (b"a" * 16, b"x")])
    >>> block.payloads, read_block(block.row()) == block
    ([b'x', b'yy'], True)
    """
    pairs = sorted(reports)
    lengths = [len(payload) for _, payload in pairs]
    alike = len(set(lengths)) <= 1
    return Block(
        secrets.randbits(61),
        round,
        hour,
        source,
        b"".join([id for id, _ in pairs]),
        b"" if alike else np.array(lengths, "<u4").tobytes(),
        b"".join([payload for _, payload in pairs]),
    )


def read_block(row: Sequence[Any]) -> Block:
    """The block in a row of `COLUMNS`; FormatError says what is wrong with it."""
    number, round_, hour, source, n, ids, sizes, data, checksum = row
    if not all(type(value) is int for value in (number, round_, hour, source, n)):
        raise FormatError("its numbers are not whole numbers")
    if not all(isinstance(value, bytes) for value in (ids, sizes, data, checksum)):
        raise FormatError("its contents are not bytes")
    block = Block(number, round_, hour, source, ids, sizes, data)
    try:
        whole = block.checksum == checksum and len(ids) == ID_SIZE * n
    except struct.error:
        whole = False
    if not whole:
        raise FormatError("its checksum does not match: it was changed or cut short")
    return block


def joined(blocks: Sequence[Block]) -> Block:
    """The reports of some blocks of the same round, hour and source as one block."""
    first = blocks[0]
    pairs = [pair for block in blocks for pair in zip(block.ids, block.payloads, strict=True)]
    return block_of(first.round, first.hour, first.source, pairs)


def without_id(block: Block, id: bytes) -> tuple[Block | None, Block]:
    """The block without one report (None if it was the only one), and a block of that report alone."""
    pairs = list(zip(block.ids, block.payloads, strict=True))
    kept = [pair for pair in pairs if pair[0] != id]
    gone = [pair for pair in pairs if pair[0] == id]
    key = (block.round, block.hour, block.source)
    return block_of(*key, kept) if kept else None, block_of(*key, gone)


def rows_of(block: Block, survey: Survey) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The reports as rows of `report_size` bytes, and which of them have the right length."""
    n, data = len(block), np.frombuffer(block.data, np.uint8)
    if not survey.fixed_size:
        return from_wire(data, block.offsets, survey)
    if not block.sizes and data.size == n * survey.report_size:
        return data.reshape(n, survey.report_size), np.ones(n, bool)
    good = np.diff(block.offsets) == survey.report_size
    rows = np.zeros((n, survey.report_size), np.uint8)
    for row in np.flatnonzero(good).tolist():
        start = int(block.offsets[row])
        rows[row] = data[start : start + survey.report_size]
    return rows, good


def check_report(id: Any, payload: Any, hour: Any, source: Any) -> None:
    """Raise InvalidInput if a report cannot be stored under these."""
    if type(id) is not bytes or len(id) != ID_SIZE:
        raise InvalidInput.of("id", id, f"{ID_SIZE} bytes")
    if type(payload) is not bytes or len(payload) > MOST_PAYLOAD:
        raise InvalidInput.of(
            "payload", payload[:16] if isinstance(payload, bytes) else payload, "a report's bytes"
        )
    for name, value in (("hour", hour), ("source", source)):
        if type(value) is not int or not 0 <= value < 1 << 31:
            raise InvalidInput.of(name, value, "a whole number from 0 to 2^31 - 1")
