"""Frequency oracles: the two probabilities that decide how well a category's frequency is estimated.

A report supports a category with probability p if it is the user's own and q if it is not; f̂ = (share − q)/(p − q) is
unbiased and has the variance V₁ = p(1−p)/(p−q)² for users who have the category and V₀ = q(1−q)/(p−q)² for the others.
Over all v categories of a dimension n·Σ Var f̂ = V₁ + (v−1)·V₀, whatever the frequencies (the draw of users apart).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hdr4me.channels.proof import check_epsilon
from hdr4me.errors import InvalidInput


@dataclass(frozen=True)
class Oracle:
    """p, q, and 1 − p, which p itself cannot tell at large ε.

    >>> o = oracle("oue", 1.0, 10)
    >>> round(o.total, 3)
    37.827
    """

    name: str
    n_categories: int
    p: float
    not_p: float
    q: float

    @property
    def present(self) -> float:
        """V₁: the variance of the report of a user who has the category."""
        return self.p * self.not_p / (self.p - self.q) ** 2

    @property
    def absent(self) -> float:
        """V₀: that of a user who has not."""
        return self.q * (1 - self.q) / (self.p - self.q) ** 2

    @property
    def total(self) -> float:
        """n·Σ Var over the dimension's categories: V₁ + (v−1)·V₀."""
        return self.present + (self.n_categories - 1) * self.absent


def _grr(epsilon: float, v: int) -> tuple[float, float, float]:
    """p = e^ε/(e^ε + v − 1), q = 1/(e^ε + v − 1)."""
    light = math.exp(-epsilon)
    whole = 1 + (v - 1) * light
    return 1 / whole, (v - 1) * light / whole, light / whole


def _oue(epsilon: float, v: int) -> tuple[float, float, float]:
    """p = 1/2, q = 1/(e^ε + 1)."""
    light = math.exp(-epsilon)
    return 0.5, 0.5, light / (1 + light)


def subset_size(epsilon: float, n_categories: int) -> int:
    """How many categories a subset report names: the whole number of least total error, near v/(e^ε + 1).

    >>> [subset_size(e, v) for e, v in ((1.0, 10), (2.0, 24), (1.0, 100))]
    [3, 3, 27]
    """
    about = n_categories / (math.exp(min(epsilon, 50.0)) + 1)
    sizes = {min(max(1, math.floor(about) + k), n_categories - 1) for k in (0, 1)}
    return min(
        sizes, key=lambda w: Oracle("subset", n_categories, *_subset_of(epsilon, n_categories, w)).total
    )


def _subset_of(epsilon: float, v: int, w: int) -> tuple[float, float, float]:
    """p = e^ε·w/(e^ε·w + v − w), q = (p(w−1) + (1−p)w)/(v−1)."""
    light = math.exp(-epsilon) * (v - w) / w
    p, not_p = 1 / (1 + light), light / (1 + light)
    return p, not_p, (p * (w - 1) + not_p * w) / (v - 1)


def _subset(epsilon: float, v: int) -> tuple[float, float, float]:
    return _subset_of(epsilon, v, subset_size(epsilon, v))


def _projective(epsilon: float, v: int) -> tuple[float, float, float]:
    from hdr4me.channels.projective.design import best_space, space_oracle

    found = space_oracle(epsilon, v, *best_space(float(epsilon), v))
    return found.p, found.not_p, found.q


_ORACLES: dict[str, Callable[[float, int], tuple[float, float, float]]] = {
    "grr": _grr,
    "oue": _oue,
    "subset": _subset,
    "projective": _projective,
}


def oracle(name: str, epsilon: float, n_categories: int) -> Oracle:
    """The oracle called `name` for a dimension of so many categories under the budget `epsilon` of one value."""
    check_epsilon(epsilon)
    if name not in _ORACLES:
        raise InvalidInput.of("categorical", name, f"use one of {', '.join(_ORACLES)}")
    if isinstance(n_categories, bool) or not isinstance(n_categories, int) or n_categories < 2:
        raise InvalidInput.of("n_categories", n_categories, "a whole number >= 2")
    return Oracle(name, n_categories, *_ORACLES[name](epsilon, n_categories))
