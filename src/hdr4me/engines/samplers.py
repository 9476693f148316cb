"""Channels for many users at once, in NumPy, with the system's randomness.

A channel kind (or a heavy set's family) without an entry in `SAMPLERS` is asked user by user: slow, and right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook, values, word_levels
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.projective import Projective, n_points
from hdr4me.channels.projective.response import field_arrays
from hdr4me.channels.proof import BITS
from hdr4me.channels.subset import Subset
from hdr4me.engines.secure import OneByOne, SecureDraws
from hdr4me.kernels.exact.agreement import MOST, differ, flip, ways
from hdr4me.kernels.exact.codebook import choose
from hdr4me.kernels.exact.member import with_member
from hdr4me.kernels.exact.projective import points
from hdr4me.kernels.exact.sets import MOST as MOST_SETS
from hdr4me.registry import Registry

__all__ = ["SAMPLERS", "Sampler", "codebook_ranks", "sample_many"]

Numbers = NDArray[np.int64]
Sampler = Callable[[Channel, NDArray[Any], SecureDraws], Numbers]
"""(channel, inputs [n], draws) → outputs [n, fields]; blocks and vectors have inputs [n, …] (`engines/wide.py`)."""

_FAST_SUBSETS = 65537
"""Categories for which a compiled kernel draws subsets of the others."""

_BYTE_SETS, _SPARSE = 256, 40
"""Sets of one in more than so many of more categories than that are quicker drawn one by one."""


def sample_many(channel: Channel, inputs: NDArray[Any], draws: SecureDraws) -> Numbers:
    """Outputs of a channel for many inputs."""
    name = f"{channel.kind}/{channel.family.name}" if isinstance(channel, HeavySet) else channel.kind
    if name not in SAMPLERS:
        return by_channel(channel, inputs, draws)
    return SAMPLERS[name](channel, inputs, draws)


def by_channel(channel: Channel, inputs: Numbers, draws: SecureDraws) -> Numbers:
    """The way for every channel: each user's output drawn by the channel itself."""
    single = OneByOne(draws)
    outputs = [channel.sample(x, single) for x in inputs.tolist()]
    return np.array(outputs, np.int64).reshape(len(inputs), len(channel.fields))


@lru_cache(maxsize=64)
def _running_sums(rows: tuple[tuple[int, ...], ...]) -> Numbers:
    """The rows' running sums end to end, row i raised by i·2^32: one search finds the cell of any row."""
    weights = np.array(rows, np.int64)
    return np.asarray((np.cumsum(weights, axis=1) + (np.arange(len(rows))[:, None] << BITS)).ravel())


def _cells(rows: tuple[tuple[int, ...], ...], inputs: Numbers, draws: SecureDraws) -> Numbers:
    words = draws.words(inputs.size).astype(np.int64).reshape(inputs.shape)
    found = np.searchsorted(_running_sums(rows), words + (inputs << BITS), side="right")
    return np.asarray(found - inputs * len(rows[0]))


def _table(channel: Channel, inputs: Numbers, draws: SecureDraws) -> Numbers:
    assert isinstance(channel, Table)
    return _cells(channel.weights, inputs, draws)[:, None]


def _entries(channel: Channel, inputs: Numbers, draws: SecureDraws) -> Numbers:
    assert isinstance(channel, Entries)
    present = (inputs[:, None] == np.arange(channel.size)).astype(np.int64)
    return _cells(channel.weights, present, draws)


def _subset(channel: Channel, inputs: Numbers, draws: SecureDraws) -> Numbers:
    """The law of `Subset.draw`: a set of the others, one of which gives its place to the input if heavy."""
    assert isinstance(channel, HeavySet)
    family = channel.family
    assert isinstance(family, Subset)
    if family.size > _FAST_SUBSETS and family.chosen > 1:
        return by_channel(channel, inputs, draws)
    n = len(inputs)
    heavy = draws.words(n) < channel.weight
    most = min(MOST_SETS, max(_BYTE_SETS, _SPARSE * family.chosen))
    if 2 < 2 * family.chosen < family.size <= most:
        return draws.sets(family.size, family.chosen, inputs, heavy)
    places = draws.below(family.chosen, n)
    output = np.empty((n, family.chosen), f"u{family.fields[0].size}")
    short = 1 < family.chosen < family.size - 1
    others = (draws.short_subsets if short else draws.subsets)(n, family.size - 1, family.chosen)
    with_member(np.ascontiguousarray(others), inputs, heavy, places, output)
    return output  # in as few bytes as a report has


def _projective(channel: Channel, inputs: Numbers, draws: SecureDraws) -> Numbers:
    """As `Projective.draw`, by a compiled loop."""
    assert isinstance(channel, HeavySet)
    family = channel.family
    assert isinstance(family, Projective)
    n, q, t = len(inputs), family.order, family.length
    heavy = draws.words(n) < channel.weight
    inside, outside = draws.below(family.n_heavy, n), draws.below(q ** (t - 1), n)
    powers = np.array([q**f for f in range(t + 1)], np.int64)
    starts = np.array([n_points(q, f) for f in range(t + 1)], np.int64)
    out = np.empty(n, np.int64)
    points(inputs, heavy, inside, outside, powers, starts, *field_arrays(q), out)
    return out[:, None]


def _privset(channel: Channel, inputs: Numbers, draws: SecureDraws) -> Numbers:
    """As `PrivSet.draw`: users whose outputs share as many items with their sets are served together."""
    assert isinstance(channel, HeavySet)
    family = channel.family
    assert isinstance(family, PrivSet)
    w = family.chosen
    distinct, where = np.unique(inputs, return_inverse=True)
    members = np.array([family.members(x) for x in distinct.tolist()], np.int64)[where]
    shared = np.where(
        draws.words(len(inputs)) < channel.weight, 1 + _below_steps(family.ways, draws, len(inputs)), 0
    )
    output = np.empty((len(inputs), w), np.int64)
    for j in np.unique(shared).tolist():
        users = np.flatnonzero(shared == j)
        own = members[users]
        if j:
            output[users, :j] = np.take_along_axis(own, draws.subsets(users.size, family.most, j), axis=1)
        if j < w:
            others = np.array(draws.subsets(users.size, family.size, w - j))
            for k in range(family.most):  # an item's number among the others becomes its number among all
                others += others >= own[:, k, None]
            output[users, j:] = others
    output.sort(axis=1)
    return output


def _below_steps(ends: tuple[int, ...], draws: SecureDraws, n: int) -> Numbers:
    """For n uniform numbers below ends[-1], of any size, how many of the other ends are at or below each.

    32 bits decide, unless they are those of an end; then the number goes on until its bits differ from the end's.
    """
    total = ends[-1]
    cuts = [(end << BITS) // total for end in ends[:-1]]
    words = draws.words(n).astype(np.int64)
    found = np.searchsorted(np.array(cuts, np.int64), words, side="left") if cuts else np.zeros(n, np.int64)
    for row in np.flatnonzero(np.isin(words, cuts)).tolist():
        bits, size = int(words[row]), BITS
        while any((end << size) // total == bits for end in ends[:-1]):
            bits, size = bits << BITS | draws.bits(BITS), size + BITS
        found[row] = sum((end << size) // total < bits for end in ends[:-1])
    return np.asarray(found)


@lru_cache(maxsize=16)
def _places(size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """How many blocks differ in at most 0, 1, … size − 1 places, and the binomials of the kernel."""
    return np.array(Agreement(size, size).ends[:-1], np.uint64), ways()


def _agreement(channel: Channel, inputs: Numbers, draws: SecureDraws) -> Numbers:
    """As `Agreement.draw`; inputs and outputs are the fields [n, fields] as bit patterns."""
    assert isinstance(channel, HeavySet)
    family = channel.family
    assert isinstance(family, Agreement)
    blocks = inputs.reshape(len(inputs), len(family.fields)).copy()
    heavy = draws.words(len(inputs)) < channel.weight
    if family.size > MOST:
        _flip_many(family, blocks, heavy, draws)
        return blocks
    numbers = draws.below_either(heavy, family.n_heavy, family.n_outputs - family.n_heavy)
    ends, binomials = _places(family.size)
    differ(numbers, ends, family.size, binomials, blocks[:, 0].view(np.uint64))
    return blocks


def _flip_many(family: Agreement, blocks: Numbers, heavy: NDArray[np.bool_], draws: SecureDraws) -> None:
    """Flip places of blocks of more than 64 signs: users with as many of them are served together."""
    most = family.size - family.agreeing
    inside = family.ends[: most + 1]
    outside = tuple(end - family.n_heavy for end in family.ends[most + 1 :])
    n = len(blocks)
    t = np.where(heavy, _below_steps(inside, draws, n), most + 1 + _below_steps(outside, draws, n))
    ends = np.cumsum(family.widths)
    for count in np.unique(t[t > 0]).tolist():
        users = np.flatnonzero(t == count)
        flip(users, draws.subsets(users.size, family.size, count), ends, blocks.view(np.uint64))


@lru_cache(maxsize=1)
def _numbers() -> NDArray[np.float32]:
    """What each half word of a codeword stands for."""
    return np.array(values(), np.float32)[np.frombuffer(word_levels(), np.uint8)]


def codebook_ranks(channel: HeavySet, n: int, draws: SecureDraws) -> Numbers:
    """The places that n users draw in the order of codewords: below k with probability W/2^32, else from k on."""
    family = channel.family
    assert isinstance(family, Codebook)
    heavy = draws.words(n) < channel.weight
    light = draws.below(family.codewords - family.heavy, n) + family.heavy
    return np.asarray(np.where(heavy, draws.below(family.heavy, n), light))


def _codebook(channel: Channel, inputs: NDArray[Any], draws: SecureDraws) -> Numbers:
    """As `Codebook.draw`; inputs are vectors [n, length] of the ball of norm 1."""
    assert isinstance(channel, HeavySet)
    family = channel.family
    assert isinstance(family, Codebook)
    n, d = inputs.shape
    targets = np.zeros((n, 4 * (d // 4 + 1)), np.float32)
    targets[:, :d] = inputs
    targets[:, d] = np.sqrt(np.maximum(0.0, 1.0 - np.square(inputs).sum(axis=1)))
    seeds = draws.words(n) >> np.uint32(32 - family.seed_bits)
    found = np.empty((n, 2), np.int64)
    found[:, 0] = seeds
    ranks = codebook_ranks(channel, n, draws)
    choose(targets, seeds, ranks, family.codewords, _numbers(), found[:, 1])
    return found


SAMPLERS: Registry[Sampler] = Registry(
    "channel",
    "samplers",
    {
        Table.kind: _table,
        Entries.kind: _entries,
        f"{HeavySet.kind}/{Subset.name}": _subset,
        f"{HeavySet.kind}/{Projective.name}": _projective,
        f"{HeavySet.kind}/{PrivSet.name}": _privset,
        f"{HeavySet.kind}/{Agreement.name}": _agreement,
        f"{HeavySet.kind}/{Codebook.name}": _codebook,
    },
)
