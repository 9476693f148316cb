"""`plan`: rank mechanisms by their predicted error, or solve for a missing quantity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.mechanisms.joint import JOINT_FROM
from hdr4me.mechanisms.registry import built_in, names
from hdr4me.planner.beliefs import prior_by_name, scaled_tolerances, workload_of
from hdr4me.planner.candidates import BLOCKS, PAIR, PAIRS_FROM, arrangement
from hdr4me.planner.plan import Plan, rank
from hdr4me.planner.reports import why_unusable
from hdr4me.planner.search import (
    MAX_DIMS,
    MAX_EPSILON,
    MAX_USERS,
    MIN_EPSILON,
    Setting,
    round_up,
    solve,
)
from hdr4me.planner.words import not_reachable
from hdr4me.planner.workload import Workload
from hdr4me.survey.design import CATEGORICAL

_CORRECTIONS = 20
# If less than this share of the tolerance is reached, the number of users is larger than needed.
_ENOUGH = 0.998


def plan(
    *,
    users: int | None = None,
    dims: int | None = None,
    schema: Any = None,
    epsilon: float | None = None,
    tolerance: float | Mapping[str, float | str] | None = None,
    probability: float | None = None,
    category_count: int | None = None,
    mechanisms: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    prior: Any = None,
    per_dimension: bool = False,
    rank_by: str = "error",
    statistic: str = "mean",
    quantiles: Any = None,
) -> Plan:
    """Rank mechanisms and numbers of answers per user (m) by their predicted error, and solve for a missing quantity.

    Give users, dimensions (or a schema) and ε to predict the error. Leave out ONE of the three and give a `tolerance`
    to compute the fewest users, the smallest ε or the most dimensions that keep it. If all are given and no candidate
    meets the tolerance, the plan's `reachable` is False; if the `probability` is given too, `NotReachable` is raised.

    Parameters
    ----------
    users, dims, epsilon
        n, d and the total budget of a user; at most one may be left out.
    schema
        The dimensions by name, instead of `dims`; needed for tolerances and priors by name.
    tolerance
        ±ξ on the [−1, 1] scale for numbers, on [0, 1] for frequencies, as a share of the norm for coordinates; or a
        mapping from dimension to ξ in its own units (a number, or a text such as "5 min" with the schema's unit).
    probability
        The probability of meeting the tolerance; 0.95 by default.
    category_count
        With `dims`: the number of categories of each dimension.
    mechanisms, categorical
        The candidates: for numbers any registered name, "pair" (two neighbors in one question) or "agreement" (blocks);
        for categories "auto", "grr", "subset", "projective", "oue" or "histogram".
    prior
        "uniform" (the default), "worst" for the worst case, a SciPy distribution, a histogram (edges, weights), or the
        values of a pilot or of public data as an array (n,) or (n, d), all on [−1, 1]. With a schema: a mapping from
        dimension to one of these in its own units (optional values may be missing: None, NaN), to frequencies, vectors
        or a tally, with {"present": 0.7} for the share of users with an optional value; or a `Tally` for all of them.
    per_dimension
        Whether the tolerance is for each coordinate alone; by default it is for all coordinates at once.
    rank_by
        "error": the tolerance met with `probability`, by all coordinates at once or by each (`per_dimension`); "mse":
        the mean squared error over all coordinates; "probability": the probability of meeting the tolerance.
    statistic
        The statistic whose error the options are ranked by: "mean" (and frequencies), "distribution", "quantile",
        "variance", "sd", "covariance" or "mean_by"; `hdr4me.planner.statistics.predict` defines their errors.
    quantiles
        The quantiles for "quantile"; .25, .5 and .75 by default.

    Examples
    --------
    >>> options = plan(users=150_000, dims=750, epsilon=1.0)
    >>> options[0].mechanism, options[0].sampled
    ('optimal_mean', 1)
    >>> plan(dims=100, epsilon=1.0, tolerance=0.05, mechanisms=["piecewise"]).best.users
    2184955
    """
    if statistic != "mean" and (rank_by != "error" or tolerance is not None):
        raise InvalidInput.of(
            "statistic", statistic, "'mean' together with tolerance or rank_by, which apply to means only"
        )
    if rank_by not in ("error", "mse", "probability"):
        raise InvalidInput.of("rank_by", rank_by, "'error', 'mse' or 'probability'")
    chosen = 0.95 if probability is None else probability
    common, scales, own = scaled_tolerances(tolerance, schema)
    _check("users", users, 1, MAX_USERS, "a positive integer up to 8,000,000,000", integer=True)
    _check("dims", dims, 1, MAX_DIMS, f"a positive integer, at most {MAX_DIMS}", integer=True)
    _check("epsilon", epsilon, 1e-300, 65536, "a positive number up to 65536")
    _check("tolerance", common, 1e-300, 1e300, "a positive number")
    _check("probability", chosen, 1e-300, 1 - 1e-16, "a number between 0 and 1")
    worst = isinstance(prior, str) and prior == "worst"
    if hasattr(prior, "priors"):
        if schema is None and dims is None and category_count is None:
            schema = prior.survey.schema
        prior = {} if schema is None else prior_by_name(prior, schema.names)
    if schema is not None and (dims is not None or category_count is not None):
        raise InvalidInput("schema together with dims or category_count is not allowed: give either of them")
    known = {"users": users, "dims": dims if schema is None else len(schema), "epsilon": epsilon}
    missing = [name for name, value in known.items() if value is None]
    if len(missing) > 1:
        raise InvalidInput.missing(*missing, hint=": only one of them can be computed, from a tolerance")
    solved = missing[0] if missing else ""
    if solved and common is None:
        raise InvalidInput.missing(solved, "tolerance", one_of=True)
    workload = workload_of(schema, dims or 1, category_count, None if worst else prior, scales)
    several = Workload.of_size(2, category_count) if solved == "dims" else workload
    tried, left_out = _mechanisms(mechanisms, several, epsilon)
    setting = Setting(
        workload,
        MAX_USERS if users is None else int(users),
        MAX_EPSILON if epsilon is None else float(epsilon),
        tried,
        CATEGORICAL if categorical is None else _listed("categorical", categorical, CATEGORICAL),
        worst,
        not per_dimension,
        scales,
        common,
        pairs_from=PAIRS_FROM if mechanisms is None else JOINT_FROM,
    )
    _check_deployable(setting, paired=mechanisms is not None and PAIR in tried, named=schema is not None)
    if solved and common is not None:
        setting = _solve(setting, solved, common, chosen, schema, own)
    found = rank(setting, common, chosen, schema, solved, rank_by)
    enough = None  # users who keep the tolerance, perhaps more than needed
    for attempt in range(_CORRECTIONS if solved else 0):
        assert common is not None
        over = found.reached / common
        if found.kept >= chosen:
            if attempt or solved != "users" or over >= _ENOUGH:
                break
            enough = setting.users, found
        # The search uses continuous laws or interpolates, and the options use tables, so that results may differ.
        setting = _corrected(setting, solved, over if np.isfinite(over) else 1.0)
        if (
            enough and setting.users >= enough[0]
        ):  # with fewer users the sample is small, and its bounds are wider
            found = enough[1]
            break
        found = rank(setting, common, chosen, schema, solved, rank_by)
    found = replace(found, requested=common, requested_own=own, left_out=left_out)
    if statistic != "mean" or quantiles is not None:
        from hdr4me.planner.statistics import by_statistic

        found = by_statistic(found, statistic, quantiles)
    if probability is not None and not found.reachable:
        raise found.refusal()
    return found


def _solve(
    setting: Setting,
    solved: str,
    tolerance: float,
    probability: float,
    schema: Any,
    own: Mapping[str, float],
) -> Setting:
    """The setting with the missing quantity filled in; `NotReachable` if there is none."""
    found = solve(setting, solved, tolerance, probability)
    if found is not None:
        return found
    nearest = rank(setting, None, probability, schema, "", "error")
    limits = {
        "users": f"{MAX_USERS:,} users, the largest number considered",
        "epsilon": f"ε = {MAX_EPSILON:g}, the largest ε considered",
        "dims": "one dimension",
    }
    raise NotReachable(
        not_reachable(nearest, tolerance, probability, f"Even with {limits[solved]}", own), nearest
    )


def _corrected(setting: Setting, solved: str, over: float) -> Setting:
    """The solved quantity, corrected for a reached tolerance that is `over` times the required one.

    The variance of an estimate is proportional to d/n, and approximately to 1/ε².
    """
    n, d = setting.users, setting.workload.dims
    if solved == "users":
        least = 0 if over < 1 else n + max(1, n // 500)
        return replace(setting, users=max(least, math.ceil(n * over**2)))
    if solved == "epsilon":
        return replace(setting, epsilon=round_up(setting.epsilon * max(over, 1.002)))
    return setting.of_dims(max(1, min(d - max(1, d // 500), math.floor(d / over**2))))


def _mechanisms(
    given: Sequence[str] | None, workload: Workload, epsilon: float | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The mechanisms for numbers to try, and a note for each registered law that cannot be used."""
    together = [name for name in (PAIR, BLOCKS) if arrangement(name).supports(workload)]
    if given is None:
        reasons = {name: _why_not(name, workload, epsilon) for name in names(planned=True)}
        notes = [f"{name} is left out of the plan: {reason}" for name, reason in reasons.items() if reason]
        return (*(name for name, reason in reasons.items() if not reason), *together), tuple(notes)
    listed = _listed("mechanisms", given, (*names(), PAIR, BLOCKS))
    if BLOCKS in listed and BLOCKS not in together:
        raise InvalidInput.of(
            "mechanisms",
            BLOCKS,
            "blocks need two or more numbers, none of them optional",
        )
    for name in listed:
        if reason := _why_not(name, workload, epsilon):
            raise InvalidInput.of("mechanisms", name, reason)
    return listed, ()


def _why_not(name: str, workload: Workload, epsilon: float | None) -> str:
    """The reason why a plan cannot use another package's law; empty if it can, or if there are no numbers."""
    if name in (*built_in(), PAIR, BLOCKS) or not workload.numeric:
        return ""
    if epsilon is None:
        return why_unusable(name, (MIN_EPSILON, MAX_EPSILON), "law")
    return why_unusable(name, (float(epsilon), float(epsilon) / workload.dims), "table")


def _listed(parameter: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """One name or several, all of them known."""
    listed = (given,) if isinstance(given, str) else tuple(given)
    unknown = [name for name in listed if name not in known]
    if unknown or not listed:
        raise InvalidInput.of(parameter, unknown[0] if unknown else [], f"one of {', '.join(known)}")
    return listed


def _check_deployable(setting: Setting, *, paired: bool, named: bool) -> None:
    """Check that pairs, optional numbers and categories have enough budget and a channel."""
    workload, ε = setting.workload, setting.epsilon
    if paired and named and not arrangement(PAIR).supports(workload):
        words = "pairs need numbers that are not optional: remove optional and give a default"
        raise InvalidInput.of("mechanisms", PAIR, words)
    if (paired or workload.optional) and ε < JOINT_FROM:
        what = "optional numbers" if workload.optional else "pairs"
        raise InvalidInput.of("epsilon", ε, f"{what} need at least {JOINT_FROM}")
    if workload.categorical and not setting.candidates():
        most = workload.categorical[-1][0]
        words = f"use auto or projective, which support {most:,} categories under this budget"
        raise InvalidInput.of("categorical", ", ".join(setting.methods), words)


def _check(parameter: str, given: Any, low: float, high: float, words: str, *, integer: bool = False) -> None:
    """Check that a given parameter is a number in a range; bool and NaN are errors."""
    if given is None:
        return
    number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
    if not (number and low <= given <= high and (not integer or int(given) == given)):
        raise InvalidInput.of(parameter, given, words)
