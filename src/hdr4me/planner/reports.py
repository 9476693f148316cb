"""The report of a candidate: the law that the plan predicts with, which is the law of what is deployed.

- Designed tables (`optimal`, `optimal_mean`) are known as curves of ε (`optimal_curve.py`).
- Any other mechanism is deployed as its exact table. Up to some budget the table's variance is the law's to 0.5 %, and
  the law is asked; above, where cells and levels begin to count, the table itself (`Registered.table_from`).

How much is computed depends on what for (`Effort`): "law" asks laws only, which serves a search over ε; "table" asks
the tables, which serves a search over m and n; "design" also designs the tables for a prior of one's own at the very
budget, which serves the options that are shown. Otherwise such tables are designed at a few budgets and interpolated.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.oracles import oracle
from hdr4me.channels.privset.design import number_variance, selection_channel
from hdr4me.framework.laws import calibrate
from hdr4me.framework.report import largest_variance, mean_variance
from hdr4me.mechanisms.categorical import categorical_choice, categorical_fits
from hdr4me.mechanisms.joint import optimal_mean, prior_variance
from hdr4me.mechanisms.priors import Prior
from hdr4me.mechanisms.registry import registered, scaled_mechanism
from hdr4me.planner.optimal_curve import BUDGETS, OptimalCurve
from hdr4me.planner.pairs import PAIR

__all__ = [
    "NEVER",
    "Effort",
    "choice_variances",
    "deployed",
    "entry_variances",
    "largest_error",
    "noise",
    "number_variances",
    "worst_noise",
]

Effort = Literal["law", "table", "design"]

NEVER = 1e12
"""The variance of what cannot be deployed."""
_KNOTS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
"""Where a table for a prior of one's own is designed while the best m is looked for."""
_DESIGNED = ("optimal", "optimal_mean")
# A table has at most 256 levels, so that rounding to one of them costs Δ²/6 on average however large ε is.
_ROUNDING = (2.0 / 255) ** 2 / 6


@lru_cache(maxsize=8192)
def deployed(name: str, epsilon: float, *, table: bool = True) -> Any:
    """The law of one report under ε: something with `variance(t)` on [−1, 1]."""
    if name in _DESIGNED:
        if table and epsilon > BUDGETS[-1]:
            return scaled_mechanism(name, epsilon=epsilon)
        return OptimalCurve(epsilon, name)  # type: ignore[arg-type]
    law = scaled_mechanism(name, epsilon=epsilon)
    if table and epsilon >= registered(name).table_from:
        return law.exact()
    return calibrate(law)


@lru_cache(maxsize=65536)
def noise(
    name: str, epsilon: float, prior: Prior, effort: Effort = "table", designed: Prior | None = None
) -> float:
    """V̄: the mean variance of one report over the prior; `optimal_mean` may be designed for another one."""
    designed = prior if designed is None else designed
    if name != "optimal_mean" or designed.uniform:
        law = deployed(name, epsilon, table=effort != "law")
        found = mean_variance(law, prior)
        return found if getattr(law, "n_levels", None) else max(found, _ROUNDING)
    if effort == "design" or epsilon > _KNOTS[-1]:
        return prior_variance(optimal_mean(epsilon, designed), prior)
    if epsilon < _KNOTS[0]:  # with little budget a table can hardly favour some values
        return mean_variance(OptimalCurve(epsilon, "optimal"), prior)
    k = min(int(np.searchsorted(_KNOTS, epsilon, side="right")) - 1, len(_KNOTS) - 2)
    low, high = (noise(name, knot, prior, "design", designed) for knot in _KNOTS[k : k + 2])
    share = math.log(epsilon / _KNOTS[k]) / math.log(_KNOTS[k + 1] / _KNOTS[k])
    return float(low ** (1 - share) * high**share)


@lru_cache(maxsize=65536)
def worst_noise(name: str, epsilon: float, factor: float, prior: Prior, effort: Effort = "table") -> float:
    """The largest V̄ + κS² that any population gives; `optimal_mean` is the table designed for the prior."""
    if name == "optimal_mean" and not prior.uniform:
        law: Any = optimal_mean(epsilon, prior)
    else:
        law = deployed(name, epsilon, table=effort != "law")
    return float(largest_variance(law, factor)[0])


@lru_cache(maxsize=8192)
def largest_error(name: str, epsilon: float) -> float:
    """The largest distance of a report from its value: what a bound for few reports needs."""
    if name == PAIR:
        return 1.0 + 3.0 * (math.exp(epsilon) + 3) / math.expm1(epsilon)  # designs reach 2.6 times that far
    if name in _DESIGNED:
        return 1.0 + 2.0 / math.tanh(epsilon / 2)  # no designed table has outputs beyond 2C
    law = scaled_mechanism(name, epsilon=epsilon)
    low, high = law.support if law.bounded else law.exact().support
    return 1.0 + max(-low, high) / abs(law.calibration.slope if law.bounded else 1.0)


@lru_cache(maxsize=65536)
def entry_variances(method: str, base: str, epsilon: float, size: int) -> tuple[float, float]:
    """Var of one entry's report where the user has not, and has, the category; "auto" is what a survey chooses.

    Both are `NEVER` where there is no such channel for so many categories.
    """
    if not categorical_fits(method, epsilon, size):
        return NEVER, NEVER
    if method == "histogram":
        base = "optimal" if base == PAIR else base
        v = float(deployed(base, epsilon / 2).variance(np.ones(1))[0]) / 4
        return v, v
    found = oracle(categorical_choice(epsilon, size) if method == "auto" else method, epsilon, size)
    return found.absent, found.present


def choice_variances(epsilon: float, size: int, choices: int) -> tuple[float, float]:
    """Var of one category's report of a selection, for a user who has not chosen the category and for one who has."""
    return selection_channel(epsilon, size, choices).indicator_variances


def number_variances(epsilon: float, size: int, choices: int, chosen: NDArray[np.float64]) -> list[float]:
    """Var of a report's number of choices over the most there can be, for each number that all users chose."""
    channel = selection_channel(epsilon, size, choices)
    return [number_variance(channel, c) / choices**2 for c in chosen.tolist()]
