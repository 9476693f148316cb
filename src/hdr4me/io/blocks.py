"""Blocks of reports, and the conversion between padded rows in memory and unpadded reports on the wire.

If the questions of a survey need different numbers of bytes, its reports are sent without padding. In memory all slots
have the size of the widest, so that one report is one row of a matrix.
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

# The largest number of rejected reports in a block; bounds the memory for any file.
MOST_REJECTED = 4096


@dataclass(frozen=True)
class Block:
    """Unchecked reports [n, report_size] of a file.

    `numbers` are their row numbers in the file, starting at 1; nulls and blank lines count as rows. `rejected` are the
    reports that the reader rejected since the previous block, at most `MOST_REJECTED`.
    """

    rows: Bytes
    numbers: Sequence[int] | NDArray[np.integer[Any]]
    rejected: Sequence[Rejected] = ()


_NO_REPORT = 0xFFFF  # the index of the question in rows that are not reports


def to_wire(rows: Bytes, survey: Survey) -> tuple[Bytes, NDArray[np.int32]]:
    """The concatenated reports without padding, and the offset of each report (and of the end)."""
    if survey.fixed_size:
        return rows.reshape(-1), np.arange(0, rows.size + 1, survey.report_size, dtype=np.int32)
    sizes = _sizes(survey)
    slots = rows.reshape(len(rows), survey.sampled, survey.slot_size)
    questions = questions_of(slots)
    if questions.size and questions.max() >= len(sizes):
        raise InvalidInput(
            f"a report answers question {questions.max()}, but the survey has {len(sizes)} questions"
        )
    used = sizes[questions]
    payload = np.arange(survey.slot_size) < used[:, :, None]
    offsets = np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int32)
    return slots[payload], offsets


def from_wire(data: Bytes, offsets: NDArray[np.int64], survey: Survey) -> tuple[Bytes, NDArray[np.bool_]]:
    """Rows of `report_size` bytes, and which of them are reports of the right length.

    `offsets` are the increasing offsets of the reports in `data`, including the end of the last report.
    """
    sizes = _sizes(survey)
    n = len(offsets) - 1
    at, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    rows = np.zeros((n, survey.sampled, survey.slot_size), np.uint8)
    good = np.ones(n, bool)
    for slot in range(survey.sampled):
        good &= at + 2 <= ends
        questions = np.full(n, _NO_REPORT)
        places = np.flatnonzero(good)
        questions[places] = questions_of(data[at[places, None] + np.arange(2)])
        known = questions < len(sizes)
        size = np.where(known, sizes[np.where(known, questions, 0)], 2)
        good &= at + size <= ends
        for width in np.unique(size[good]).tolist():
            chosen = np.flatnonzero(good & (size == width))
            rows[chosen, slot, :width] = data[at[chosen, None] + np.arange(width)]
        at = at + size
    good &= at == ends
    rows[~good] = 0
    return rows.reshape(n, survey.report_size), good


def _sizes(survey: Survey) -> NDArray[np.int64]:
    """The size of each question's slot on the wire, in bytes."""
    return np.array([2 + question.channel.wire_size for question in survey.questions])


def questions_of(slots: Bytes) -> NDArray[np.int64]:
    """The index of the question in the first two bytes of each slot."""
    return np.asarray(slots[..., 0].astype(np.int64) | slots[..., 1].astype(np.int64) << 8)
