"""Counting reports that add to many counters each: a kernel takes their outputs whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import N_LEVELS, Codebook, word_levels
from hdr4me.kernels.exact.agreement import count_signs
from hdr4me.kernels.exact.codebook import count_levels, levels_of

__all__ = ["add_whole", "counted_whole", "counters_of", "good_outputs"]

Numbers = NDArray[np.int64]


def _levels() -> NDArray[np.uint8]:
    return np.frombuffer(word_levels(), np.uint8)


def counted_whole(channel: Channel) -> bool:
    """Whether a kernel counts this channel's outputs."""
    return isinstance(channel, HeavySet) and isinstance(channel.family, Agreement | Codebook)


def good_outputs(channel: Channel, outputs: Numbers) -> NDArray[np.bool_]:
    """Which outputs [n, fields], fields of 64 bits as bit patterns, are inside their bounds."""
    good = np.ones(len(outputs), bool)
    for column, field in enumerate(channel.fields):
        if field.bound < 1 << 64:
            good &= outputs[:, column].view(np.uint64) < np.uint64(field.bound)
    return good


def add_whole(channel: Channel, outputs: Numbers, good: NDArray[np.bool_], counts: Numbers) -> None:
    """Add the good outputs to the question's counters."""
    assert isinstance(channel, HeavySet)
    family = channel.family
    if isinstance(family, Codebook):
        count_levels(outputs[:, 0], outputs[:, 1], good, _levels(), counts.reshape(family.length, N_LEVELS))
        return
    assert isinstance(family, Agreement)
    first = 0
    for column, width in enumerate(family.widths):
        blocks = np.ascontiguousarray(outputs[:, column]).view(np.uint64)
        count_signs(blocks, good, width, counts[2 * first : 2 * (first + width)])
        first += width


def counters_of(channel: Channel, outputs: Numbers) -> Numbers:
    """The counters [n, per_report] that each output adds 1 to, for those who need them one by one."""
    assert isinstance(channel, HeavySet)
    family = channel.family
    if isinstance(family, Codebook):
        found = np.empty((len(outputs), family.length), np.int64)
        levels_of(outputs[:, 0], outputs[:, 1], _levels(), found)
        return found + N_LEVELS * np.arange(family.length)
    assert isinstance(family, Agreement)
    parts = [
        outputs[:, column, None] >> np.arange(width - 1, -1, -1) & 1
        for column, width in enumerate(family.widths)
    ]
    return np.concatenate(parts, axis=1) + 2 * np.arange(family.size)
