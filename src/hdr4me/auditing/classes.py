"""Outputs put into classes by what they say for one of two inputs, for each kind of channel."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook, values, word_levels
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.projective import Projective
from hdr4me.channels.projective.response import field_arrays
from hdr4me.channels.proof import ONE
from hdr4me.channels.subset import Subset
from hdr4me.kernels.exact.codebook import axis_ranks
from hdr4me.kernels.exact.projective import coordinates, dots

__all__ = ["Shares", "classes_of", "on_axis"]

Shares = NDArray[np.float64]


def classes_of(
    channel: Channel, first: int, second: int, outputs: list[NDArray[np.int64]]
) -> tuple[list[NDArray[np.int64]], tuple[Shares, Shares]]:
    """The class of each output, and the probability of each class under the two inputs."""
    if isinstance(channel, Entries):  # only the two entries in which the inputs differ tell anything
        shares = np.array(channel.weights, np.float64) / ONE
        pair = (np.outer(shares[1], shares[0]).ravel(), np.outer(shares[0], shares[1]).ravel())
        return [found[:, first] * channel.n_cells + found[:, second] for found in outputs], pair
    if isinstance(channel, Table):
        shares = np.array(channel.weights, np.float64) / ONE
        return [found[:, 0] for found in outputs], (shares[first], shares[second])
    if isinstance(channel, HeavySet) and isinstance(channel.family, Subset):
        return [1 - _heavier(found, first, second) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, Projective):
        return [1 - _on_planes(channel.family, found, first, second) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, Agreement):
        return [1 - _nearer(channel.family, found, first, second) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, Codebook):
        return [1 - on_axis(channel.family, found) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, PrivSet):
        sets = [channel.family.members(x) for x in (first, second)]
        return [1 - _shared(found, *sets) for found in outputs], _three(channel)
    return _by_likelihood(channel, first, second, outputs), _three(channel)


def _three(channel: Channel) -> tuple[Shares, Shares]:
    """A law for the classes 0 (likelier under the first input), 1 (neither) and 2.

    It only decides, before any draw is looked at, that class 0 is the telling one.
    """
    return np.array([1.0, 0.0, 0.0]), np.array([math.exp(-channel.epsilon), 0.0, 1.0])


def _heavier(outputs: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
    """1 where a set has the first category and not the second, −1 the other way round, else 0."""
    return np.asarray((outputs == first).any(axis=1).astype(np.int64) - (outputs == second).any(axis=1))


def _on_planes(family: Projective, outputs: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
    """1 where a point is on the hyperplane of the first category and not of the second, −1 the other way, else 0."""
    q, t = family.order, family.length
    distinct, where = np.unique(outputs[:, 0], return_inverse=True)
    vectors = coordinates(distinct, q, t)
    inputs = coordinates(np.array([first, second]), q, t)
    field = field_arrays(q)
    heavy = dots(vectors[:, None], inputs, q, field.products, field.differences) == 0
    return np.asarray(heavy[:, 0].astype(np.int64) - heavy[:, 1])[where]


def _nearer(family: Agreement, outputs: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
    """1 where a block agrees with the first one in enough places and not with the second, −1 the other way, else 0."""
    heavy = []
    for x in (first, second):
        differ = outputs ^ np.array(family.split(x), np.uint64).view(np.int64)
        n_places = np.bitwise_count(differ.view(np.uint64)).sum(axis=1)
        heavy.append(n_places <= family.size - family.agreeing)
    return np.asarray(heavy[0].astype(np.int64) - heavy[1])


def on_axis(family: Codebook, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 where a codeword is heavy for the first axis and not for its other end, −1 the other way round, else 0."""
    numbers = np.array(values(), np.float32)[np.frombuffer(word_levels(), np.uint8)]
    ranks = np.empty((len(outputs), 2), np.int64)
    axis_ranks(outputs[:, 0], outputs[:, 1], family.codewords, numbers, ranks)
    heavy = ranks < family.heavy
    return np.asarray(heavy[:, 0].astype(np.int64) - heavy[:, 1])


def _shared(outputs: NDArray[np.int64], first: tuple[int, ...], second: tuple[int, ...]) -> NDArray[np.int64]:
    """1 where a set shares an item with the first set and none with the second, −1 the other way round, else 0."""
    heavy = [np.isin(outputs, members).any(axis=1) for members in (first, second)]
    return np.asarray(heavy[0].astype(np.int64) - heavy[1])


def _by_likelihood(
    channel: Channel, first: int, second: int, outputs: list[NDArray[np.int64]]
) -> list[NDArray[np.int64]]:
    """The same classes for any channel, asked of the channel itself for every different output."""
    found = []
    for rows in outputs:
        distinct, where = np.unique(rows, axis=0, return_inverse=True)
        pairs = [
            (channel.probability(first, row), channel.probability(second, row)) for row in distinct.tolist()
        ]
        signs = np.array([(p > q) - (p < q) for p, q in pairs])
        found.append(1 - signs[where.ravel()])
    return found
