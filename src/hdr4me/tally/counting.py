"""Counting reports of any channels: every byte checked, question by question, in NumPy.

Surveys whose answers are single bytes are counted by the compiled kernel; this is the way for all others. A channel
kind without an entry in `RULES` is counted report by report, through the channel itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.io.report import Reason
from hdr4me.registry import Registry
from hdr4me.survey import Survey
from hdr4me.survey.layout import Layout
from hdr4me.tally.whole import add_whole, counted_whole, counters_of, good_outputs

__all__ = ["RULES", "Rule", "count_any", "fields_of"]

Numbers = NDArray[np.int64]
Rule = Callable[[Channel, Numbers], tuple[NDArray[np.bool_], Numbers]]
"""(channel, outputs [n, fields]) → (which of them are outputs, the counters [n, per_report] that each adds 1 to)."""


def count_any(
    reports: NDArray[np.uint8], survey: Survey, layout: Layout, counts: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Add every valid report to counts, in place; the status of each row: 0, or the `Reason` it was left out.

    Parameters
    ----------
    reports
        Padded reports, uint8 of shape (n, report_size).
    survey
        The survey that they answer.
    layout
        Where its counters stand.
    counts
        The counters.
    """
    n, m, size = len(reports), survey.n_sampled, survey.slot_size
    slots = reports.reshape(n, m, size)
    asked = slots[:, :, 0].astype(np.int64) | slots[:, :, 1].astype(np.int64) << 8
    status = np.zeros(n, np.uint8)
    _mark(status, np.asarray((asked[:, 1:] <= asked[:, :-1]).any(axis=1)), Reason.ORDER)
    _mark(status, np.asarray((asked >= len(survey.questions)).any(axis=1)), Reason.DIMENSION, over=True)
    added: list[tuple[int, Numbers, Numbers]] = []
    order = np.argsort(asked, axis=None, kind="stable")
    bounds = np.searchsorted(asked.ravel()[order], np.arange(len(survey.questions) + 1))
    for q in np.flatnonzero(np.diff(bounds)).tolist():
        users, places = np.divmod(order[bounds[q] : bounds[q + 1]], m)
        channel = survey.questions[q].channel
        used = 2 + channel.wire_size
        part = slots[users, places]
        padding = part[:, used:].any(axis=1)
        outputs = fields_of(part[:, 2:used], channel)
        if counted_whole(channel):
            good, at = good_outputs(channel, outputs), outputs
        else:
            good, at = RULES[channel.kind](channel, outputs)
        _mark(status, users[padding], Reason.PADDING)
        _mark(status, users[~good], Reason.CODE)
        added.append((q, users, at))
    for q, users, at in added:
        own = layout.of_question(counts, q)
        add_many(survey.questions[q].channel, at, status[users] == 0, own)
    return status


def add_many(channel: Channel, at: Numbers, good: NDArray[np.bool_], counts: Numbers) -> None:
    """Add the good reports to the counters of their question: `at` are their counters, or their outputs."""
    if counted_whole(channel):
        add_whole(channel, at, good, counts)
    else:
        counts += np.bincount(at[good].ravel(), minlength=counts.size)


def _mark(
    status: NDArray[np.uint8], where: NDArray[np.generic], reason: Reason, *, over: bool = False
) -> None:
    """Give the reports a reason, unless they have one."""
    rows = np.flatnonzero(where) if where.dtype == np.bool_ else where
    status[rows] = np.where((status[rows] == 0) | over, reason, status[rows])


def fields_of(data: NDArray[np.uint8], channel: Channel) -> Numbers:
    """The fields [n, fields] in bytes [n, wire_size], little end first."""
    sizes = [field.size for field in channel.fields]
    if len(set(sizes)) == 1:
        kind = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}[sizes[0]]
        return np.ascontiguousarray(data).view(kind).astype(np.int64)
    found, at = np.zeros((len(data), len(sizes)), np.int64), 0
    for column, size in enumerate(sizes):
        for byte in range(size):
            found[:, column] |= data[:, at + byte].astype(np.int64) << 8 * byte
        at += size
    return found


def _inside(channel: Channel, outputs: Numbers) -> NDArray[np.bool_]:
    bounds = np.array([field.bound for field in channel.fields])
    return np.asarray(((outputs >= 0) & (outputs < bounds)).all(axis=1))


def _table(channel: Channel, outputs: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    return _inside(channel, outputs), outputs


def _entries(channel: Channel, outputs: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    assert isinstance(channel, Entries)
    return _inside(channel, outputs), outputs + np.arange(channel.size) * channel.n_cells


def _heavy_set(channel: Channel, outputs: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    assert isinstance(channel, HeavySet)
    if counted_whole(channel):
        return good_outputs(channel, outputs), counters_of(channel, outputs)
    if channel.family.name == "projective":
        return _inside(channel, outputs), outputs
    if channel.family.name not in ("subset", "privset"):
        return by_channel(channel, outputs)
    return _inside(channel, outputs) & (np.diff(outputs, axis=1) > 0).all(axis=1), outputs


def by_channel(channel: Channel, outputs: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    """The way for every channel: each output asked of the channel itself."""
    good = np.zeros(len(outputs), bool)
    at = np.zeros((len(outputs), channel.per_report), np.int64)
    for row, output in enumerate(outputs.tolist()):
        if channel.is_output(output):
            good[row], at[row] = True, list(channel.counters(output))
    return good, at


class _Rules(Registry[Rule]):
    """Rules by kind; a kind without one is counted by the channel itself."""

    def __getitem__(self, name: str) -> Rule:
        return super().__getitem__(name) if name in self else by_channel


RULES = _Rules("channel", "counting", {Table.kind: _table, Entries.kind: _entries, HeavySet.kind: _heavy_set})
