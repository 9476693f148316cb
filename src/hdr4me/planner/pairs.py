"""Numbers asked in pairs: the candidate "pair", whose one report answers two neighbouring numbers under the whole ε.

A survey with pairs has fewer questions, so that each is answered by more users; each answer is noisier than that of a
number alone. Whether pairs have the smaller error depends on ε and on the number of dimensions.

All pairs of a survey share one table. It is designed for the mean law of the first numbers and that of the second ones
(`Workload.pair_laws`); what is foretold of a pair is the table's error over the two numbers' own priors, taken as
independent. An odd number of numbers leaves one by itself, which `optimal` serves.
"""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms.joint import JOINT_FROM, JOINT_UP_TO, number_pair
from hdr4me.mechanisms.priors import Prior, as_prior

__all__ = [
    "PAIR",
    "PAIRS_FROM",
    "curve_row",
    "designed_squares",
    "neighbours",
    "pair_noise",
    "pair_worst",
    "pairs_fit",
]

PAIR = "pair"
"""The candidate's name among the mechanisms."""
PAIRS_FROM = 1.5
"""Below this ε pairs lower the error by less than 2 %, and a plan does not try them of its own accord."""

_KNOTS = (1.0, 2.0, 4.0)
"""Where designs are asked for a prior of one's own while the best m is looked for."""
_LEAST = 1e-12
"""No variance is taken as smaller: it may be lost to rounding where values lie on the levels."""
_UNIFORM = as_prior("uniform")

Floats = NDArray[np.float64]
Laws = tuple[Prior, Prior]


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


@lru_cache(maxsize=256)
def designed_squares(epsilon: float, laws: Laws, own: Laws) -> tuple[float, float]:
    """E y² of the first and of the second number over their own priors, by the table designed for `laws`.

    A number between two levels is rounded to one of them at random, which `on_levels` counts in.
    """
    made = number_pair(epsilon, first=laws[0], second=laws[1])
    first, second = (prior.on_levels(len(made.levels)) for prior in own)
    both = np.outer(first, second).ravel()
    return float(made.second_moments("first") @ both), float(made.second_moments("second") @ both)


@lru_cache(maxsize=4096)
def pair_noise(epsilon: float, laws: Laws, own: Laws, *, exact: bool) -> tuple[float, float]:
    """V̄ of the two numbers of a pair over their own priors: of the very table, or quickly.

    For values spread evenly `pair_curve.json` holds E y² at some budgets, between which it is interpolated. For others
    the ratio to that curve's variance is asked at a few budgets and interpolated.

    Parameters
    ----------
    epsilon
        The budget of the answer.
    laws, own
        What the table is designed for, and the priors of the two numbers.
    exact
        Whether the table is designed at this very budget, if it is not stored.
    """
    budget = min(epsilon, JOINT_UP_TO)
    even = all(prior.uniform for prior in (*laws, *own))
    if exact and budget >= JOINT_FROM and not (even and _is_stored(budget)):
        return _noise(budget, laws, own)
    curve = _curve(epsilon)[0] - _UNIFORM.mean_square
    if even:
        return curve, curve
    ratios = [
        np.log(_noise(knot, laws, own)) - math.log(_curve(knot)[0] - _UNIFORM.mean_square)
        for knot in _around(epsilon)
    ]
    first, second = np.exp(_between(epsilon, ratios)) * curve
    return float(first), float(second)


def _noise(epsilon: float, laws: Laws, own: Laws) -> tuple[float, float]:
    first, second = designed_squares(epsilon, laws, own)
    return max(first - own[0].mean_square, _LEAST), max(second - own[1].mean_square, _LEAST)


def pair_worst(epsilon: float, laws: Laws, *, exact: bool) -> float:
    """The largest E y² of any pair of values, which is a bound of V + κS² for every population."""
    budget, even = min(epsilon, JOINT_UP_TO), laws[0].uniform and laws[1].uniform
    if exact and budget >= JOINT_FROM and not (even and _is_stored(budget)):
        return _largest(budget, laws)
    if even:
        return _curve(epsilon)[1]
    ratios = [np.array([math.log(_largest(knot, laws) / _curve(knot)[1])]) for knot in _around(epsilon)]
    return float(np.exp(_between(epsilon, ratios))[0] * _curve(epsilon)[1])


def _largest(epsilon: float, laws: Laws) -> float:
    made = number_pair(epsilon, first=laws[0], second=laws[1])
    return float(max(made.second_moments("first").max(), made.second_moments("second").max()))


def _around(epsilon: float) -> tuple[float, ...]:
    """The knot of this budget, or the two beside it: designs take seconds the first time, and no others are needed.

    >>> _around(4.0), _around(3.0), _around(0.1), _around(20.0)
    ((4.0,), (2.0, 4.0), (1.0,), (4.0,))
    """
    below = [knot for knot in _KNOTS if knot <= epsilon] or [_KNOTS[0]]
    above = [knot for knot in _KNOTS if knot >= epsilon] or [_KNOTS[-1]]
    return tuple(sorted({below[-1], above[0]}))


def _between(epsilon: float, numbers: list[Floats]) -> Floats:
    """Interpolated in log ε between the knots around a budget."""
    knots = _around(epsilon)
    if len(knots) == 1:
        return numbers[0]
    share = math.log(epsilon / knots[0]) / math.log(knots[1] / knots[0])
    return np.asarray((1 - share) * numbers[0] + share * numbers[1])


@cache
def _stored() -> tuple[Floats, Floats]:
    stored = json.loads(files("hdr4me.planner").joinpath("pair_curve.json").read_text("utf-8"))
    return np.log(np.array(stored["epsilon"])), np.log(np.array([stored["mean"], stored["largest"]]))


def _is_stored(epsilon: float) -> bool:
    return bool(np.isin(math.log(epsilon), _stored()[0]))


def _curve(epsilon: float) -> tuple[float, float]:
    """E y² of each number over values spread evenly, and at most; below the first budget both are as 1/ε².

    Above the largest budget of the designs they are those of that budget.
    """
    x, curves = _stored()
    at = math.log(min(epsilon, JOINT_UP_TO))
    below = 2.0 * max(x[0] - at, 0.0)
    mean, largest = (math.exp(np.interp(at, x, curve) + below) for curve in curves)
    return mean, largest


def curve_row(epsilon: float) -> tuple[float, float]:
    """What the file stores for one budget, from the design itself."""
    laws = _UNIFORM, _UNIFORM
    return sum(designed_squares(epsilon, laws, laws)) / 2, _largest(epsilon, laws)
