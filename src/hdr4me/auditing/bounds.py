"""What any honest population can give: bounds on how often each counter of a channel is met."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, Entries, HeavySet
from hdr4me.channels.projective import Projective
from hdr4me.channels.proof import ONE

__all__ = ["counter_bounds", "honest_rows"]

Floats = NDArray[np.float64]
_MOST = 200_000
"""Larger channels of an unknown kind are not enumerated."""


def honest_rows(channel: Channel) -> Floats | None:
    """P(cell | input) for a channel whose answer is one cell of a table; None for others."""
    rows = channel.rows
    if rows is None or len(channel.fields) != 1:
        return None
    return np.array(rows, np.float64) / ONE


def counter_bounds(channel: Channel) -> tuple[Floats, Floats] | None:
    """The least and the largest probability, over all inputs, that one report adds to each counter.

    None where a channel is too large to list and is of no known kind.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> low, high = counter_bounds(mechanism("duchi", epsilon=1.0).exact().channel())
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.269, 0.269], [0.731, 0.731])
    """
    rows = honest_rows(channel)
    if rows is not None:
        return rows.min(axis=0), rows.max(axis=0)
    if isinstance(channel, Entries):
        two = np.array(channel.weights, np.float64) / ONE
        return np.tile(two.min(axis=0), channel.size), np.tile(two.max(axis=0), channel.size)
    if isinstance(channel, HeavySet) and isinstance(channel.family, Projective):
        n, k, p = channel.family.n_outputs, channel.family.n_heavy, channel.weight / ONE
        return np.full(channel.n_counters, (1 - p) / (n - k)), np.full(channel.n_counters, p / k)
    if isinstance(channel, HeavySet) and channel.family.name in ("subset", "privset"):
        has, other = channel.shares
        return np.full(channel.n_counters, min(has, other)), np.full(channel.n_counters, max(has, other))
    return _listed(channel)


def _listed(channel: Channel) -> tuple[Floats, Floats] | None:
    """By enumeration, where there is little to enumerate."""
    size = channel.n_inputs
    for field in channel.fields:
        size *= field.bound
        if size > _MOST:
            return None
    met = np.zeros((channel.n_inputs, channel.n_counters))
    for output in channel.outputs():
        counters = list(channel.counters(output))
        for x in range(channel.n_inputs):
            met[x, counters] += float(channel.probability(x, output))
    return met.min(axis=0), met.max(axis=0)
