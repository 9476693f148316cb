"""The report about one coordinate: the survey's channel, or a fast approximation of its moments.

Designing a table takes seconds, and a search needs hundreds of them. Approximations have the moments of a `Coordinate`,
with an accuracy that depends on the `Effort`: "law" uses continuous laws, "table" exact tables, and "design" tables for
the given priors. Stored curves (made by `benchmarks/planner_curves.py`) are interpolated in log ε: variances over
Duchi's coth²(ε/2) at |t| = 0, 1/8, …, 1 and their mean; E y² of pairs; E[y²], E[yz], E[z²] of optional numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from hdr4me.channels.response import Coordinate, Marginal, Moments, Response
from hdr4me.framework.laws import calibrate, largest_variance, mean_variance
from hdr4me.mechanisms.joint import (
    JOINT_FROM,
    JOINT_UP_TO,
    number_pair,
    optimal_mean,
    optional_number,
    prior_variance,
    second_moments,
)
from hdr4me.mechanisms.priors import Prior, as_prior
from hdr4me.mechanisms.registry import built_in, registered, scaled_mechanism

Floats = NDArray[np.float64]
Laws = tuple[Prior, Prior]
NEVER = 1e12  # the variance of a mechanism that cannot be deployed
_KNOTS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)  # the budgets for which a search designs tables for a prior
_DESIGNED = ("optimal", "optimal_mean")
ALONE = "optimal"  # the mechanism of a number without a pair
Effort = Literal["law", "table", "design"]


@cache
def _read(name: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(files("hdr4me.planner").joinpath(name).read_text("utf-8"))
    return stored


def between_knots(epsilon: float, knots: tuple[float, ...], f: Callable[[float], Any]) -> Any:
    """Positive numbers f(ε), interpolated in log–log between the knots around ε and constant beyond the end knots."""
    low = max((knot for knot in knots if knot <= epsilon), default=knots[0])
    high = min((knot for knot in knots if knot >= epsilon), default=knots[-1])
    if low == high or epsilon <= low:
        return f(low)
    share = math.log(epsilon / low) / math.log(high / low)
    return f(low) ** (1 - share) * f(high) ** share


@dataclass(frozen=True, eq=False)
class MeanSquare(Coordinate):
    """A number with the mean square of a report over the population and the worst case, without other moments."""

    square: float
    most: Callable[[float], float]

    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        x = np.asarray(values, np.float64)
        return Moments(x[:, None], np.full((x.size, 1, 1), self.square))

    def worst(self, κ: float) -> float:
        return self.most(κ)


@dataclass(frozen=True)
class Indicator(Coordinate):
    """A category: the variance of its report for users without the category and with it."""

    absent: float
    present: float
    indicator = True

    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        x = np.asarray(values, np.float64)
        second = np.where(x > 0, self.present, self.absent) + x**2
        return Moments(x[:, None], second[:, None, None])


@dataclass(frozen=True, eq=False)
class StoredMoments(Coordinate):
    """An optional number: E[y²], E[yz] and E[z²] at each level, the last column without a number."""

    levels: Floats
    squares: Floats

    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        x = np.asarray(values, np.float64)
        there = ~np.isnan(x)
        rows = [np.where(there, np.interp(x, self.levels, each[:-1]), each[-1]) for each in self.squares]
        second = np.stack([rows[0], rows[1], rows[1], rows[2]], axis=1).reshape(-1, 2, 2)
        return Moments(np.stack([np.nan_to_num(x), there.astype(np.float64)], axis=1), second)


INFEASIBLE = MeanSquare(NEVER, lambda κ: NEVER)


Designed = Literal["optimal", "optimal_mean"]
_TABLES_UP_TO, _CURVES_UP_TO = 12.0, 32.0  # largest budgets of the curve in plans, and of the stored curve
POINTS = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True)
class OptimalCurve:
    """The variance of a designed table's report."""

    epsilon: float
    name: Designed = "optimal"

    def variance(self, t: ArrayLike, /) -> Floats:
        """V(|t|), linear in t² between the stored points."""
        row = _row(self.epsilon, self.name)[:-1]
        return np.asarray(np.interp(np.square(np.asarray(t, dtype=np.float64)), POINTS**2, row))

    @property
    def mean_variance(self) -> float:
        """V̄ over t uniform on [−1, 1]."""
        return float(_row(self.epsilon, self.name)[-1])


@cache
def _curve(name: Designed) -> tuple[float, Any]:
    stored = _read("optimal_curve.json")
    x = np.log(np.array(stored["epsilon"]))
    return stored["epsilon"][0], PchipInterpolator(x, np.log(np.array(stored[name])), axis=0)


@lru_cache(maxsize=4096)
def _row(epsilon: float, name: Designed) -> Floats:
    """V at the points, and V̄; below the first budget Duchi's C² − t², scaled by its ratio there."""
    first, curve = _curve(name)
    ε = min(epsilon, _CURVES_UP_TO)
    scale, shape = 1.0 / math.tanh(ε / 2) ** 2, np.append(POINTS**2, 1.0 / 3.0)
    if ε > first:
        return np.asarray(np.exp(curve(math.log(ε))) * scale)
    ratio = np.exp(curve(math.log(first))) / (1.0 - shape * math.tanh(first / 2) ** 2)
    return np.asarray(ratio * (scale - shape))


_PAIR_KNOTS = (1.0, 2.0, 4.0)  # the budgets for which a search designs pairs for a given prior
_LEAST = 1e-12  # the smallest variance; rounding errors may give less if all values are levels
_UNIFORM = as_prior("uniform")


@lru_cache(maxsize=4096)
def pair_moments(epsilon: float, laws: Laws, own: Laws, *, exact: bool) -> Floats:
    """V̄ of the two numbers of a pair over their own priors, and the largest E y², by a table designed for `laws`.

    Unless `exact`, the ratio of other priors to the stored curve is computed at three budgets and interpolated.
    """
    budget = min(epsilon, JOINT_UP_TO)
    even = all(prior.uniform for prior in (*laws, *own))
    if exact and budget >= JOINT_FROM and not (even and np.isin(math.log(budget), _stored_pairs()[0])):
        return _designed_pair(budget, laws, own)
    if even:
        return _pair_curve(epsilon)
    ratios = between_knots(
        epsilon, _PAIR_KNOTS, lambda knot: _designed_pair(knot, laws, own) / _pair_curve(knot)
    )
    return np.asarray(ratios * _pair_curve(epsilon))


@lru_cache(maxsize=256)
def _designed_pair(epsilon: float, laws: Laws, own: Laws) -> Floats:
    made = number_pair(epsilon, first=laws[0], second=laws[1])
    both = np.outer(*(prior.on_levels(made.inputs[0].n_levels) for prior in own)).ravel()
    squares = second_moments(made)
    noise = [max(float(y @ both) - prior.mean_square, _LEAST) for y, prior in zip(squares, own, strict=True)]
    return np.array([*noise, max(float(y.max()) for y in squares)])


@cache
def _stored_pairs() -> tuple[Floats, Floats]:
    stored = _read("pair_curve.json")
    return np.log(np.array(stored["epsilon"])), np.log(np.array([stored["mean"], stored["largest"]]))


def _pair_curve(epsilon: float) -> Floats:
    """`pair_moments` for uniform values; below the first budget E y² is proportional to 1/ε²."""
    x, curves = _stored_pairs()
    at = math.log(min(epsilon, JOINT_UP_TO))
    mean, largest = (math.exp(np.interp(at, x, curve) + 2.0 * max(x[0] - at, 0.0)) for curve in curves)
    return np.array([mean - _UNIFORM.mean_square] * 2 + [largest])


OPTIONAL_POINTS = np.linspace(0.0, 1.0, 17)
_LEVELS = np.concatenate([-OPTIONAL_POINTS[:0:-1], OPTIONAL_POINTS])


@lru_cache(maxsize=256)
def optional_design(epsilon: float) -> Marginal:
    """The report of the survey's table for an optional number."""
    return optional_number(epsilon).response.marginal()


@lru_cache(maxsize=4096)
def quick_optional(epsilon: float) -> StoredMoments:
    """The moments, interpolated, from `JOINT_FROM` on; above `JOINT_UP_TO` they are those of that budget."""
    read = _read("optional_curve.json")
    x, stored = np.log(np.array(read["epsilon"])), np.array(read["moments"])
    at = math.log(min(epsilon, JOINT_UP_TO))
    k = min(max(int(np.searchsorted(x, at, side="right")) - 1, 0), len(x) - 2)
    share = (at - x[k]) / (x[k + 1] - x[k])
    low, high = stored[k], stored[k + 1]
    value, present = (np.exp((1 - share) * np.log(low[i]) + share * np.log(high[i])) for i in (0, 2))
    scale = np.sqrt(value * present)[:-1]
    angles = [row[1][:-1] / np.sqrt(row[0] * row[2])[:-1] for row in (low, high)]
    both = np.append(scale * ((1 - share) * angles[0] + share * angles[1]), 0.0)
    rows = [[*(sign * each[-2:0:-1]), *each] for each, sign in ((value, 1.0), (both, -1.0), (present, 1.0))]
    return StoredMoments(_LEVELS, np.array(rows))


@lru_cache(maxsize=8192)
def _deployed(name: str, epsilon: float, *, table: bool = True) -> Any:
    """The law of one report under ε; below `Registered.table_from` its variance is within 0.5 % of the table's."""
    if name in _DESIGNED:
        if table and epsilon > _TABLES_UP_TO:
            return scaled_mechanism(name, epsilon=epsilon)
        return OptimalCurve(epsilon, name)  # type: ignore[arg-type]
    law = scaled_mechanism(name, epsilon=epsilon)
    if table and epsilon >= registered(name).table_from:
        return law.exact()
    return calibrate(law)


@lru_cache(maxsize=65536)
def _noise(name: str, epsilon: float, prior: Prior, effort: Effort, designed: Prior) -> float:
    """The mean variance of one report over the prior; `optimal_mean` may be designed for another one."""
    if name != "optimal_mean" or designed.uniform:
        law = _deployed(name, epsilon, table=effort != "law")
        return mean_variance(law, prior)
    if effort == "design" or epsilon > _KNOTS[-1]:
        return prior_variance(optimal_mean(epsilon, designed), prior)
    if epsilon < _KNOTS[0]:  # at small budgets the prior has little effect on the table
        return mean_variance(OptimalCurve(epsilon, "optimal"), prior)
    return float(between_knots(epsilon, _KNOTS, lambda knot: _noise(name, knot, prior, "design", designed)))


@lru_cache(maxsize=65536)
def number_report(name: str, epsilon: float, prior: Prior, effort: Effort, designed: Prior) -> Coordinate:
    """The report about a single number with values from `prior`, by a table designed for `designed`."""

    @lru_cache(maxsize=4096)
    def most(κ: float) -> float:
        law: Any = _deployed(name, epsilon, table=effort != "law")
        if name == "optimal_mean" and not designed.uniform:
            law = optimal_mean(epsilon, designed)
        return float(largest_variance(law, κ)[0])

    noise = _noise(name, epsilon, prior, effort, designed)
    return MeanSquare(noise + prior.mean_square, most)


@lru_cache(maxsize=65536)
def entry_variances(method: str, base: str, epsilon: float, size: int) -> tuple[float, float]:
    """The variances of a category's report for users without and with it; `NEVER` if there is no such channel."""
    from hdr4me.channels.oracles import oracle
    from hdr4me.mechanisms.categorical import categorical_choice, categorical_fits

    if not categorical_fits(method, epsilon, size):
        return NEVER, NEVER
    if method == "histogram":
        v = float(_deployed(base, epsilon / 2).variance(np.ones(1))[0]) / 4
        return v, v
    found = oracle(categorical_choice(epsilon, size) if method == "auto" else method, epsilon, size)
    return found.absent, found.present


@lru_cache(maxsize=8192)
def vector_report(epsilon: float, length: int) -> Marginal:
    from hdr4me.channels.codebook.design import codebook_channel

    return codebook_channel(epsilon, length).response.marginal()


@lru_cache(maxsize=8192)
def selection_response(epsilon: float, size: int, choices: int) -> Response:
    from hdr4me.channels.privset.channel import selection_channel

    return selection_channel(epsilon, size, choices).response


@lru_cache(maxsize=8192)
def largest_error(name: str, epsilon: float) -> float:
    """The largest distance of a report from its value, for a single number."""
    if name in _DESIGNED:
        return 1.0 + 2.0 / math.tanh(epsilon / 2)  # no designed table has outputs beyond 2C
    law = scaled_mechanism(name, epsilon=epsilon)
    low, high = law.support if law.bounded else law.exact().support
    return 1.0 + max(-low, high) / abs(law.calibration.slope if law.bounded else 1.0)


@lru_cache(maxsize=1024)
def is_proven(name: str, epsilon: float) -> bool:
    """Whether a registered law has a table that is proven to be private; tables of built-in laws always are."""
    if name not in built_in():
        try:
            scaled_mechanism(name, epsilon=epsilon).exact()
        except Exception:  # a law of another package may raise any exception
            return False
    return True


def why_unusable(name: str, budgets: Sequence[float], effort: Effort) -> str:
    """The reason why a plan cannot use a registered law under these budgets of one value; empty if it can."""
    try:
        largest = 1.0 if effort == "law" else budgets[0]
        if not is_proven(name, largest):
            scaled_mechanism(name, epsilon=largest).exact()  # for its message
        found = [number_report(name, budget, _UNIFORM, effort, _UNIFORM) for budget in budgets]
        errors = [x for report in found for x in (report.moments([0.0]).second[0, 0, 0], report.worst(1.0))]
        if not np.isfinite(errors).all() or min(errors) <= 0:
            return "its variance is not a positive, finite number"
        largest_error(name, budgets[0])
    except Exception as error:  # a law of another package may raise any exception
        return str(error) or type(error).__name__
    return ""
