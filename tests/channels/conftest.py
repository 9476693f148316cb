"""The exact law of a sampler, found by walking through everything that its draws can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from hdr4me.channels import Channel

ONE = 1 << 32
Law = dict[tuple[int, ...], Fraction]
ExactLaw = Callable[[Channel, int, Sequence[int]], Law]


class Walk:
    """Draws that take the given branches, and the first one where none is given.

    A number below n has n branches. A word of 32 bits is only ever compared with the `cuts`: it has two branches for
    each interval between two of them, the interval's first and last word. A comparison that is off by one shows.
    """

    def __init__(self, cuts: Sequence[int], branches: Sequence[int]) -> None:
        ends = [0, *sorted(set(cuts) - {0, ONE}), ONE]
        self.words = [(word, Fraction(b - a, 2 * ONE)) for a, b in pairwise(ends) for word in (a, b - 1)]
        self.given = list(branches)
        self.taken: list[tuple[int, int]] = []
        self.probability = Fraction(1)

    def _branch(self, size: int) -> int:
        number = self.given[len(self.taken)] if len(self.taken) < len(self.given) else 0
        self.taken.append((number, size))
        return number

    def bits(self, n: int) -> int:
        assert n == 32
        word, probability = self.words[self._branch(len(self.words))]
        self.probability *= probability
        return word

    def below(self, n: int) -> int:
        self.probability /= n
        return self._branch(n)


def _exact_law(channel: Channel, x: int, cuts: Sequence[int]) -> Law:
    law: Law = {}
    shapes = set()
    waiting: list[list[int]] = [[]]
    while waiting:
        walk = Walk(cuts, waiting.pop())
        output = channel.sample(x, walk)
        law[output] = law.get(output, Fraction(0)) + walk.probability
        shapes.add(tuple(size for _, size in walk.taken))
        taken = [number for number, _ in walk.taken]
        for at in range(len(walk.given), len(taken)):
            waiting += [[*taken[:at], other] for other in range(1, walk.taken[at][1])]
    assert len(shapes) == 1  # the same draws, whatever comes out
    return law


@pytest.fixture(scope="session")
def exact_law() -> ExactLaw:
    """law = exact_law(channel, x, cuts): P(output) for input x, every output that can come out."""
    return _exact_law


def _prove(channel: Channel) -> None:
    """By enumeration, in fractions: probabilities sum to 1, the loss is the largest ratio, the worst pair has it."""
    outputs = list(channel.outputs())
    assert len(outputs) == len(set(outputs))
    inputs = range(channel.n_inputs)
    for x in inputs:
        assert sum(channel.probability(x, output) for output in outputs) == 1
    used = [output for output in outputs if channel.probability(0, output)]
    worst = max(
        channel.probability(x, y) / channel.probability(z, y) for x in inputs for z in inputs for y in used
    )
    assert channel.likelihood_ratio == worst
    first, second = channel.worst_pair()
    assert max(channel.probability(first, y) / channel.probability(second, y) for y in used) == worst
    for output in outputs:
        counters = list(channel.counters(output))
        assert len(counters) == len(set(counters)) == channel.per_report
        assert all(0 <= counter < channel.n_counters for counter in counters)
        counts = [0] * channel.n_counters
        for counter in counters:
            counts[counter] += 3
        assert channel.n_answers(counts) == 3
        counts[counters[0]] += 1
        assert channel.n_answers(counts) is None or channel.per_report == 1
        counts[counters[0]] = -1
        assert channel.n_answers(counts) is None


@pytest.fixture(scope="session")
def prove() -> Callable[[Any], None]:
    """prove(channel): everything that a channel promises, by enumeration."""
    return _prove
