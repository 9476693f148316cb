"""An attack on a channel that is deployed: a lower bound of its ε from its outputs alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook, values, word_levels
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.projective import Projective
from hdr4me.channels.proof import ONE
from hdr4me.channels.subset import Subset
from hdr4me.engines.local import Local
from hdr4me.kernels.exact.codebook import axis_ranks
from hdr4me.kernels.exact.projective import coordinates, dots
from hdr4me.mechanisms.projective import field_arrays
from hdr4me.survey import Categorical, Dimension, Numeric, Question, Schema, Selection, Survey, Vector
from hdr4me.tally.counting import fields_of

__all__ = ["ALARM", "attack", "bound", "draws_made", "on_axis"]

Integers = NDArray[np.int64]
Shares = NDArray[np.float64]
Bools = NDArray[np.bool_]
_FAMILIES = (Subset, PrivSet, Projective, Agreement, Codebook)

ALARM = 1e-6
"""The probability that an honest table is accused, for each table."""

_LEAST_DRAWS, _MOST_PRODUCTS = 10_000, 1_000_000_000
"""Draws of a codebook that are always made, and products beyond which no more are."""

_AT_ONCE = 1 << 19
"""Outputs that are in memory at a time."""


def draws_made(channel: Channel, n_draws: int) -> int:
    """How many draws of each value the attack makes when it is asked for `n_draws`.

    A codebook takes K·d products a draw, so that long vectors are drawn fewer times, at least 10,000 times each.

    >>> from hdr4me.mechanisms.codebook import codebook_channel
    >>> draws_made(codebook_channel(4.0, 100), 1_000_000)
    10000
    """
    if isinstance(channel, HeavySet) and isinstance(channel.family, Codebook):
        products = channel.family.codewords * (channel.family.length + 1)
        return min(n_draws, max(_LEAST_DRAWS, _MOST_PRODUCTS // products))
    return n_draws


def attack(
    channel: Channel, n_draws: int, progress: Callable[[int], None] | None = None, *, whole: bool = False
) -> float:
    """A lower bound of a channel's ε, from outputs alone, wrong with probability at most `ALARM`.

    The channel answers its two worst inputs many times each through the sampler that batches use. Outputs are put
    into classes by their likelihood ratio, and the set of classes is fixed beforehand (the one whose bound should come
    out highest), so the two Clopper–Pearson bounds are honest.

    Parameters
    ----------
    channel
        The channel.
    n_draws
        How many answers of each input; long vectors are drawn fewer times (`draws_made`).
    progress
        Called with a number of draws whenever so many more have been made; of `n_draws` in all.
    whole
        Make all `n_draws`, however long they take.

    Returns
    -------
    float
        The bound, which holds at any number of draws.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> channel = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi").channels[0]
    >>> 0 < attack(channel, 10_000) <= 1.0
    True
    """
    first, second = channel.worst_pair()
    wanted, reported = n_draws, 0
    n_draws = n_draws if whole else draws_made(channel, n_draws)
    hits = [0, 0]
    for start in range(0, n_draws, _AT_ONCE):
        n = min(_AT_ONCE, n_draws - start)
        classes, law = _classes_of(
            channel, first, second, [_answered(channel, x, n) for x in (first, second)]
        )
        chosen = _telling_set(law[0], law[1], n_draws)
        hits = [before + int(chosen[found].sum()) for before, found in zip(hits, classes, strict=True)]
        if progress is not None:
            reached = wanted * (start + n) // n_draws
            progress(reached - reported)
            reported = reached
    return bound(hits[0], hits[1], n_draws)


def bound(first: int, second: int, n_draws: int) -> float:
    """The lower bound of ε from how many of `n_draws` outputs of each input fell into the telling set.

    >>> bound(731_000, 269_000, 1_000_000) < 1.0
    True
    """
    hits = (first, second)
    low = float(stats.beta.ppf(ALARM / 2, hits[0], n_draws - hits[0] + 1)) if hits[0] else 0.0
    high = float(stats.beta.isf(ALARM / 2, hits[1] + 1, n_draws - hits[1])) if hits[1] < n_draws else 1.0
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _telling_set(first: Shares, second: Shares, n_draws: int) -> NDArray[np.bool_]:
    """Among the sets {ratio ≥ τ}, the one whose expected bound is highest at this many draws."""
    order = np.argsort(-first / np.maximum(second, 1e-300), kind="stable")
    p, q = np.cumsum(first[order]), np.cumsum(second[order])
    z = float(stats.norm.isf(ALARM / 2))
    low = p - z * np.sqrt(p / n_draws)
    high = q + z * np.sqrt(q / n_draws) + z**2 / n_draws
    best = int(np.argmax(np.where(low > 0, low, 1e-300) / high))
    chosen = np.zeros(first.size, dtype=bool)
    chosen[order[: best + 1]] = True
    return chosen


def _answered(channel: Channel, x: int, n_draws: int) -> Integers:
    """What `n_draws` users with input x send, through the engine that batches go through."""
    dimensions: list[Dimension] = []
    record: list[float] = []
    rest = channel.n_inputs
    if isinstance(channel, HeavySet) and isinstance(channel.family, Codebook):
        return _vectors(channel, channel.family, x, n_draws)
    if isinstance(channel, HeavySet) and isinstance(channel.family, PrivSet):
        return _selected(channel, channel.family, x, n_draws)
    for number, take in enumerate(channel.takes):
        rest //= take.size
        own = (x // rest) % take.size
        if take.reads == "category":
            dimensions.append(Categorical(f"x{number}", range(take.size)))
            record.append(own)
            continue
        n_levels = take.size - (take.reads == "optional")
        dimensions.append(Numeric(f"x{number}", -1, 1, optional=take.reads == "optional"))
        record.append(2 * own / (n_levels - 1) - 1 if own < n_levels else math.nan)
    return _sent(dimensions, channel, np.broadcast_to(np.array(record), (n_draws, len(record))))


def _selected(channel: HeavySet, family: PrivSet, x: int, n_draws: int) -> Integers:
    """The same for a set of categories."""
    text = "|".join(str(item) for item in family.members(x) if item < family.size)
    records = pa.table({"x": pa.array([text]).take(np.zeros(n_draws, np.int64))})
    return _sent([Selection("x", range(family.size), family.most)], channel, records)


def _vectors(channel: HeavySet, family: Codebook, x: int, n_draws: int) -> Integers:
    """The same for a vector."""
    records = np.broadcast_to(np.array(family.vector(x)), (n_draws, family.length))
    return _sent([Vector("x", family.length)], channel, records)


def _sent(dimensions: Sequence[Dimension], channel: Channel, records: Any) -> Integers:
    """The answers to one question about all the dimensions."""
    questions = [Question(tuple(range(len(dimensions))), channel)]
    survey = Survey.from_questions(
        Schema(dimensions), epsilon=channel.epsilon, n_sampled=1, questions=questions
    )
    return np.concatenate([fields_of(block[:, 2:], channel) for block in Local().reports(records, survey)])


def _classes_of(
    channel: Channel, first: int, second: int, outputs: list[Integers]
) -> tuple[list[Integers], tuple[Shares, Shares]]:
    """The class of each output, and the probability of each class under the two inputs."""
    if isinstance(channel, Entries):  # only the two entries in which the inputs differ are informative
        shares = np.array(channel.weights, np.float64) / ONE
        pair = (np.outer(shares[1], shares[0]).ravel(), np.outer(shares[0], shares[1]).ravel())
        return [found[:, first] * channel.n_cells + found[:, second] for found in outputs], pair
    if isinstance(channel, Table):
        shares = np.array(channel.weights, np.float64) / ONE
        return [found[:, 0] for found in outputs], (shares[first], shares[second])
    if isinstance(channel, HeavySet) and isinstance(channel.family, _FAMILIES):
        heavy = [_heavy(channel.family, found, first, second) for found in outputs]
        return [1 - (one.astype(np.int64) - other) for one, other in heavy], _three(channel)
    return _by_likelihood(channel, first, second, outputs), _three(channel)


def _three(channel: Channel) -> tuple[Shares, Shares]:
    """A law for the classes 0 (likelier under the first input), 1 (neither) and 2.

    It only decides, before any draw is looked at, that class 0 is the telling one.
    """
    return np.array([1.0, 0.0, 0.0]), np.array([math.exp(-channel.epsilon), 0.0, 1.0])


def _heavy(family: Any, outputs: Integers, first: int, second: int) -> tuple[Bools, Bools]:
    """Which outputs are heavy for the first input, and which for the second."""
    if isinstance(family, Subset | PrivSet):
        items = [(x,) if isinstance(family, Subset) else family.members(x) for x in (first, second)]
        one, other = (np.asarray(np.isin(outputs, members).any(axis=1)) for members in items)
        return one, other
    if isinstance(family, Projective):
        return _on_planes(family, outputs, first, second)
    if isinstance(family, Agreement):
        one, other = (_agrees(family, outputs, x) for x in (first, second))
        return one, other
    return on_axis(family, outputs)


def _on_planes(family: Projective, outputs: Integers, first: int, second: int) -> tuple[Bools, Bools]:
    """A point is heavy for a category if it is on the category's hyperplane."""
    q, t = family.order, family.length
    distinct, where = np.unique(outputs[:, 0], return_inverse=True)
    vectors = coordinates(distinct, q, t)
    inputs = coordinates(np.array([first, second]), q, t)
    field = field_arrays(q)
    heavy = (dots(vectors[:, None], inputs, q, field.products, field.differences) == 0)[where]
    return heavy[:, 0], heavy[:, 1]


def _agrees(family: Agreement, outputs: Integers, x: int) -> Bools:
    """A block of signs is heavy if it agrees with the input in enough places."""
    differ = outputs ^ np.array(family.split(x), np.uint64).view(np.int64)
    n_places = np.bitwise_count(differ.view(np.uint64)).sum(axis=1)
    return np.asarray(n_places <= family.size - family.agreeing)


def on_axis(family: Codebook, outputs: Integers) -> tuple[Bools, Bools]:
    """Whether a codeword is heavy for the first axis, and for its other end: the worst pair of a codebook."""
    numbers = np.array(values(), np.float32)[np.frombuffer(word_levels(), np.uint8)]
    ranks = np.empty((len(outputs), 2), np.int64)
    axis_ranks(outputs[:, 0], outputs[:, 1], family.codewords, numbers, ranks)
    heavy = ranks < family.heavy
    return heavy[:, 0], heavy[:, 1]


def _by_likelihood(channel: Channel, first: int, second: int, outputs: list[Integers]) -> list[Integers]:
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
