"""Blocks of reports: as a reader found them, and with or without the padding that they have in memory.

A survey whose questions need different numbers of bytes sends reports without padding. In memory every slot has the
size of the widest, so that one report is one row of a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.io.report import Rejected
from hdr4me.survey import Survey

Bytes = NDArray[np.uint8]

# A block holds no more rejected reports, so that memory is bounded whatever a file holds.
MOST_REJECTED = 4096


@dataclass(frozen=True)
class Block:
    """Reports [n, report_size] of a file that are still to be checked and counted, in memory that nothing else changes.

    `numbers` are their row numbers in the file, from 1; nulls and blank lines count as rows. `rejected` are those that
    the reader itself rejected since the block before, at most `MOST_REJECTED`.
    """

    rows: Bytes
    numbers: Sequence[int] | NDArray[np.integer[Any]]
    rejected: Sequence[Rejected] = ()


_NOBODY = 0xFFFF  # the question's number in rows that stand for what is not a report


def to_wire(rows: Bytes, survey: Survey) -> tuple[Bytes, NDArray[np.int32]]:
    """The reports' bytes end to end, without padding, and where each report begins (and the last one ends)."""
    if survey.fixed_size:
        return rows.reshape(-1), np.arange(0, rows.size + 1, survey.report_size, dtype=np.int32)
    sizes = _sizes(survey)
    slots = rows.reshape(len(rows), survey.sampled, survey.slot_size)
    asked = questions_of(slots)
    if asked.size and asked.max() >= len(sizes):
        raise InvalidInput(f"a report to question {asked.max()}: the survey has {len(sizes)} questions")
    used = sizes[asked]
    kept = np.arange(survey.slot_size) < used[:, :, None]
    offsets = np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int32)
    return slots[kept], offsets


def from_wire(data: Bytes, offsets: NDArray[np.int64], survey: Survey) -> tuple[Bytes, NDArray[np.bool_]]:
    """Rows of `report_size` bytes, and which of them are reports of the right length.

    `offsets` is where each report begins in `data`, and where the last one ends: increasing and inside `data`.
    """
    sizes = _sizes(survey)
    n = len(offsets) - 1
    at, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    rows = np.zeros((n, survey.sampled, survey.slot_size), np.uint8)
    good = np.ones(n, bool)
    for slot in range(survey.sampled):
        good &= at + 2 <= ends
        asked = np.full(n, _NOBODY)
        places = np.flatnonzero(good)
        asked[places] = questions_of(data[at[places, None] + np.arange(2)])
        known = asked < len(sizes)
        size = np.where(known, sizes[np.where(known, asked, 0)], 2)
        good &= at + size <= ends
        for width in np.unique(size[good]).tolist():
            chosen = np.flatnonzero(good & (size == width))
            rows[chosen, slot, :width] = data[at[chosen, None] + np.arange(width)]
        at = at + size
    good &= at == ends
    rows[~good] = 0
    return rows.reshape(n, survey.report_size), good


def _sizes(survey: Survey) -> NDArray[np.int64]:
    """Bytes of each question's slot on the wire."""
    return np.array([2 + question.channel.wire_size for question in survey.questions])


def questions_of(slots: Bytes) -> NDArray[np.int64]:
    """The question's number in the first two bytes of each slot."""
    return np.asarray(slots[..., 0].astype(np.int64) | slots[..., 1].astype(np.int64) << 8)
