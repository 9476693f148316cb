"""Numbers asked in pairs: the candidate "pair", whose one report answers two neighbouring numbers under the whole ε.

A survey with pairs has fewer questions, so that each is answered by more users; each answer is noisier than that of a
number alone. Whether pairs have the smaller error depends on ε and on the number of dimensions.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from hdr4me.mechanisms.joint import number_pair
from hdr4me.mechanisms.priors import Prior

__all__ = ["PAIR", "PAIRS_FROM", "designed_squares", "neighbours", "pair_noise", "pair_worst", "pairs_fit"]

PAIR = "pair"
"""The candidate's name among the mechanisms."""
PAIRS_FROM = 1.5
"""Below this ε pairs lower the error by less than 2 %, and a plan does not try them of its own accord."""

_BUDGETS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0)
_SECOND = (
    128.8383,
    32.7946,
    14.9261,
    8.4031,
    5.3802,
    3.7352,
    2.6833,
    2.0432,
    1.6143,
    1.3175,
    1.0912,
    0.9382,
    0.7246,
    0.5989,
    0.4674,
    0.4072,
    0.3613,
    0.3466,
)
_LARGEST = (
    130.3964,
    33.9579,
    17.1304,
    10.7121,
    7.4354,
    5.5290,
    4.3721,
    3.3686,
    2.8889,
    2.5476,
    2.2403,
    1.7192,
    1.4903,
    1.3514,
    1.1989,
    1.1089,
    1.0390,
    1.0052,
)
"""E y² of each number of a pair at these budgets, over values spread evenly and at most: what `number_pair` has."""
_KNOTS = (1.0, 2.0, 4.0, 8.0)
"""Where designs are asked for a prior of one's own."""


def neighbours(schema: Any) -> list[tuple[str, str]]:
    """Numbers that are not optional, two by two in the schema's order; an odd one is left alone.

    >>> from hdr4me.survey import Numeric, Schema
    >>> neighbours(Schema([Numeric(x, 0, 1) for x in "abc"]))
    [('a', 'b')]
    """
    names = [dimension.name for dimension in schema.dimensions if dimension.reads == "number"]
    return list(zip(names[::2], names[1::2], strict=False))


def pairs_fit(schema: Any, n_dims: int, n_categories: int | None) -> bool:
    """Whether there are two numbers or more, none of them optional."""
    if schema is None:
        return n_categories is None and n_dims > 1
    kinds = [dimension.reads for dimension in schema.dimensions]
    return kinds.count("number") > 1 and "optional" not in kinds


@lru_cache(maxsize=4096)
def pair_noise(epsilon: float, prior: Prior) -> float:
    """V̄ of one number of a pair over the prior, for both numbers independent."""
    squares = float(np.sum(prior.shares * prior.values**2))
    if prior.uniform:
        return _between(epsilon, _BUDGETS, _SECOND) - squares
    near = _around(epsilon)
    return _between(epsilon, near, tuple(designed_squares(knot, prior) for knot in near)) - squares


def pair_worst(epsilon: float) -> float:
    """The largest E y² of any pair of values, which is a bound of V + κS² for every population."""
    return _between(epsilon, _BUDGETS, _LARGEST)


@lru_cache(maxsize=256)
def designed_squares(epsilon: float, prior: Prior) -> float:
    """E y² under the design that a survey has, which is made for values spread evenly."""
    made = number_pair(epsilon)
    shares = prior.on_levels(len(made.levels))
    both = np.outer(shares, shares).ravel()
    return float((made.second_moments("first") + made.second_moments("second")) @ both) / 2


def _around(epsilon: float) -> tuple[float, ...]:
    """The knot of this budget, or the two beside it: designs take seconds the first time, and no others are needed.

    >>> _around(4.0), _around(3.0), _around(0.1), _around(20.0)
    ((4.0,), (2.0, 4.0), (1.0,), (8.0,))
    """
    below = [knot for knot in _KNOTS if knot <= epsilon] or [_KNOTS[0]]
    above = [knot for knot in _KNOTS if knot >= epsilon] or [_KNOTS[-1]]
    return tuple(sorted({below[-1], above[0]}))


def _between(epsilon: float, budgets: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Interpolated in log E y² over log ε; below the first budget E y² ∝ 1/ε², above the last it is the last."""
    if epsilon < budgets[0]:
        return second[0] * (budgets[0] / epsilon) ** 2
    return float(np.exp(np.interp(math.log(epsilon), np.log(budgets), np.log(second))))
