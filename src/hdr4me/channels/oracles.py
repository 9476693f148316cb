"""Frequency oracles: the two probabilities that determine the error of estimated frequencies.

A report supports a category with probability p if it is the user's own and q if it is not; f̂ = (share − q)/(p − q) is
unbiased and has the variance V₁ = p(1−p)/(p−q)² for users who have the category and V₀ = q(1−q)/(p−q)² for the others.
Over all v categories of a dimension n·Σ Var f̂ = V₁ + (v−1)·V₀ for any frequencies (without the sampling of users).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from hdr4me.channels.k_subset import KSubset, heaviest
from hdr4me.channels.projective.channel import MAX_POINTS, Projective, n_points
from hdr4me.channels.projective.field import is_order
from hdr4me.channels.proof import check_epsilon
from hdr4me.errors import InvalidInput

_ENOUGH = 1.003  # the smallest space whose error is within this factor of the minimum is used


@dataclass(frozen=True)
class Oracle:
    """p, q, and 1 − p, which loses precision if computed from p at large ε."""

    category_count: int
    p: float
    not_p: float
    q: float

    @property
    def present(self) -> float:
        """V₁: the variance of a decoded report for users with the category."""
        return self.p * self.not_p / (self.p - self.q) ** 2

    @property
    def absent(self) -> float:
        """V₀: the variance of a decoded report for the other users."""
        return self.q * (1 - self.q) / (self.p - self.q) ** 2

    @property
    def total(self) -> float:
        """n·Σ Var over the dimension's categories: V₁ + (v−1)·V₀."""
        return self.present + (self.category_count - 1) * self.absent


def oracle(name: str, epsilon: float, category_count: int) -> Oracle:
    """The oracle called `name` for a number of categories under the budget `epsilon` of one value."""
    check_epsilon(epsilon)
    if name not in ("grr", "oue", "subset", "projective"):
        raise InvalidInput.of("categorical", name, "use one of grr, oue, subset, projective")
    if isinstance(category_count, bool) or not isinstance(category_count, int) or category_count < 2:
        raise InvalidInput.of("category_count", category_count, "an integer >= 2")
    v, light = category_count, math.exp(-epsilon)
    if name == "oue":  # p = 1/2, q = 1/(e^ε + 1)
        return Oracle(v, 0.5, 0.5, light / (1 + light))
    if name == "grr":  # p = e^ε/(e^ε + v − 1), q = 1/(e^ε + v − 1)
        total = 1 + (v - 1) * light
        return Oracle(v, 1 / total, (v - 1) * light / total, light / total)
    if name == "subset":
        return _subset(epsilon, v, subset_size(epsilon, v))
    return space_oracle(epsilon, v, *best_space(float(epsilon), v))


def subset_size(epsilon: float, category_count: int) -> int:
    """The subset size with the smallest total error, near v/(e^ε + 1)."""
    about = category_count / (math.exp(min(epsilon, 50.0)) + 1)
    sizes = {min(max(1, math.floor(about) + k), category_count - 1) for k in (0, 1)}
    return min(sizes, key=lambda w: _subset(epsilon, category_count, w).total)


def _subset(epsilon: float, v: int, w: int) -> Oracle:
    """p = e^ε·w/(e^ε·w + v − w), q = (p(w−1) + (1−p)w)/(v−1)."""
    light = math.exp(-epsilon) * (v - w) / w
    p, not_p = 1 / (1 + light), light / (1 + light)
    return Oracle(v, p, not_p, (p * (w - 1) + not_p * w) / (v - 1))


def space_oracle(epsilon: float, category_count: int, order: int, length: int) -> Oracle:
    """The error of a space before its weight is rounded: p = e^ε·k/(e^ε·k + N − k), q = pλ/k + (1−p)(k−λ)/(N−k)."""
    n, k, shared = (n_points(order, length - i) for i in range(3))
    light = math.exp(-min(epsilon, 500.0)) * ((n - k) / k)
    p, not_p = 1 / (1 + light), light / (1 + light)
    return Oracle(category_count, p, not_p, p * (shared / k) + not_p * ((k - shared) / (n - k)))


@lru_cache(maxsize=256)
def best_space(epsilon: float, category_count: int) -> tuple[int, int]:
    """The field size and the vector length of the smallest space within 0.3 % of the smallest error."""
    check_epsilon(epsilon)
    if not 2 <= category_count <= MAX_POINTS // 2:
        raise InvalidInput.of("category_count", category_count, f"2 to {MAX_POINTS // 2}")
    spaces = {
        space: space_oracle(epsilon, category_count, *space).total
        for space in _spaces(epsilon, category_count)
    }
    least = min(spaces.values())
    near = [space for space, error in spaces.items() if error <= _ENOUGH * least]
    return min(near, key=lambda space: n_points(*space))


def _spaces(epsilon: float, category_count: int) -> Iterator[tuple[int, int]]:
    """For each length, the smallest field with enough points, and the fields with about e^ε elements."""
    about = math.exp(min(epsilon, 17.0))
    low, high = math.floor(0.7 * about), math.ceil(1.4 * about) + 1
    steps = sorted({low + (high - low) * i // 48 for i in range(49)})
    near = {_order_from(max(2, q)) for q in steps}
    for length in range(2, 25):
        smallest = _order_from(max(2, math.floor(category_count ** (1 / (length - 1))) - 2))
        while n_points(smallest, length) < category_count:
            smallest = _order_from(smallest + 1)
        for order in sorted({smallest, *near}):
            if order >= smallest and n_points(order, length) <= MAX_POINTS:
                yield order, length


def _order_from(q: int) -> int:
    """The size of the smallest field with at least q elements."""
    while not is_order(q):
        q += 1
    return q


def projective(epsilon: float, category_count: int) -> KSubset:
    """The projective channel for a number of categories; its output is one index of at most four bytes."""
    family = Projective(category_count, *best_space(float(epsilon), category_count))
    return KSubset("projective", float(epsilon), family, heaviest(epsilon, family))
