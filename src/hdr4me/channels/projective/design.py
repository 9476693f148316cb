"""Which projective space answers a question with so many categories best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from hdr4me.channels import HeavySet
from hdr4me.channels.heavy_set import heaviest
from hdr4me.channels.oracles import Oracle
from hdr4me.channels.projective.channel import MAX_POINTS, Projective, n_points
from hdr4me.channels.projective.field import is_order
from hdr4me.channels.proof import check_epsilon
from hdr4me.errors import InvalidInput

_ENOUGH = 1.003
"""A space with fewer points is taken if its error is at most so many times the least: a tally has a counter a point."""


def space_oracle(epsilon: float, n_categories: int, order: int, length: int) -> Oracle:
    """The error of a space before its weight is rounded: p = e^ε·k/(e^ε·k + N − k), q = pλ/k + (1−p)(k−λ)/(N−k).

    >>> round(space_oracle(1.0, 100, 4, 5).total, 2)
    367.65
    """
    n, k, shared = (n_points(order, length - i) for i in range(3))
    light = math.exp(-min(epsilon, 500.0)) * ((n - k) / k)
    p, not_p = 1 / (1 + light), light / (1 + light)
    q = p * (shared / k) + not_p * ((k - shared) / (n - k))
    return Oracle("projective", n_categories, p, not_p, q)


@lru_cache(maxsize=256)
def best_space(epsilon: float, n_categories: int) -> tuple[int, int]:
    """The field's size and the length of vectors: of the spaces within 0.3 % of the least error the smallest.

    >>> best_space(1.0, 4043), best_space(4.0, 4043), best_space(8.0, 4043)
    ((4, 7), (64, 3), (4049, 2))
    """
    check_epsilon(epsilon)
    if not 2 <= n_categories <= MAX_POINTS // 2:
        raise InvalidInput.of("n_categories", n_categories, f"2 to {MAX_POINTS // 2}")
    spaces = {
        space: space_oracle(epsilon, n_categories, *space).total for space in _spaces(epsilon, n_categories)
    }
    least = min(spaces.values())
    near = [space for space, error in spaces.items() if error <= _ENOUGH * least]
    return min(near, key=lambda space: n_points(*space))


def _spaces(epsilon: float, n_categories: int) -> Iterator[tuple[int, int]]:
    """For each length the smallest field that has enough points, and every field of about e^ε numbers."""
    about = math.exp(min(epsilon, 17.0))
    low, high = math.floor(0.7 * about), math.ceil(1.4 * about) + 1
    steps = sorted({low + (high - low) * i // 48 for i in range(49)})
    near = {_order_from(max(2, q)) for q in steps}
    for length in range(2, 25):
        smallest = _order_from(max(2, math.floor(n_categories ** (1 / (length - 1))) - 2))
        while n_points(smallest, length) < n_categories:
            smallest = _order_from(smallest + 1)
        for order in sorted({smallest, *near}):
            if order >= smallest and n_points(order, length) <= MAX_POINTS:
                yield order, length


def _order_from(q: int) -> int:
    """The smallest field of q or more numbers."""
    while not is_order(q):
        q += 1
    return q


def projective(epsilon: float, n_categories: int) -> HeavySet:
    """The projective channel for so many categories: one index of at most four bytes.

    >>> channel = projective(1.0, 4043)
    >>> channel.wire_size, channel.n_counters
    (2, 5461)
    """
    family = Projective(n_categories, *best_space(float(epsilon), n_categories))
    return HeavySet("projective", float(epsilon), family, heaviest(epsilon, family))
