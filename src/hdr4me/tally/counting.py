"""Counting reports of any channels: every byte checked, question by question, by the channels' responses.

Surveys whose answers are single bytes are counted by the compiled kernel instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.io.report import Reason
from hdr4me.survey import Survey
from hdr4me.survey.layout import Layout

Numbers = NDArray[np.int64]


def count_any(
    reports: NDArray[np.uint8], survey: Survey, layout: Layout, counts: Numbers
) -> NDArray[np.uint8]:
    """Add every valid report to counts, in place; the status of each row: 0, or the `Reason` it was left out."""
    n, m, size = len(reports), survey.n_sampled, survey.slot_size
    slots = reports.reshape(n, m, size)
    asked = slots[:, :, 0].astype(np.int64) | slots[:, :, 1].astype(np.int64) << 8
    status = np.zeros(n, np.uint8)
    _mark(status, np.asarray((asked[:, 1:] <= asked[:, :-1]).any(axis=1)), Reason.ORDER)
    _mark(status, np.asarray((asked >= len(survey.questions)).any(axis=1)), Reason.DIMENSION, over=True)
    found: list[tuple[int, Numbers, Numbers]] = []
    order = np.argsort(asked, axis=None, kind="stable")
    bounds = np.searchsorted(asked.ravel()[order], np.arange(len(survey.questions) + 1))
    for q in np.flatnonzero(np.diff(bounds)).tolist():
        users, places = np.divmod(order[bounds[q] : bounds[q + 1]], m)
        channel = survey.questions[q].channel
        used = 2 + channel.wire_size
        part = slots[users, places]
        outputs = channel.response.from_bytes(part[:, 2:used])
        _mark(status, users[part[:, used:].any(axis=1)], Reason.PADDING)
        _mark(status, users[~channel.response.valid(outputs)], Reason.CODE)
        found.append((q, users, outputs))
    for q, users, outputs in found:
        own = layout.of_question(counts, q)
        survey.questions[q].channel.response.count(outputs, status[users] == 0, own)
    return status


def _mark(
    status: NDArray[np.uint8], where: NDArray[np.generic], reason: Reason, *, over: bool = False
) -> None:
    """Give the reports a reason, unless they have one."""
    rows = np.flatnonzero(where) if where.dtype == np.bool_ else where
    status[rows] = np.where((status[rows] == 0) | over, reason, status[rows])
