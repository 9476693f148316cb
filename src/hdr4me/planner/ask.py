"""`plan`: the framework turned round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.mechanisms.joint import JOINT_FROM
from hdr4me.mechanisms.registry import built_in, names, registered
from hdr4me.planner.beliefs import own_tolerance, prior_by_name, scaled_tolerances, workload_of
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

DEFAULT_PROBABILITY = 0.95
_CORRECTIONS = 20
_ENOUGH = 0.998
"""Users that keep less than this share of the tolerance are more than are needed."""
CATEGORICAL = ("auto", "grr", "subset", "projective", "oue", "histogram")
"""How categories can be served; "auto" gives each dimension the oracle of least error."""


def plan(
    *,
    n_users: int | None = None,
    n_dims: int | None = None,
    schema: Any = None,
    epsilon: float | None = None,
    tolerance: float | Mapping[str, float | str] | None = None,
    probability: float | None = None,
    n_categories: int | None = None,
    mechanisms: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    prior: Any = None,
    values: Any = None,
    jointly: bool = True,
    rank_by: str = "error",
    statistic: str = "mean",
    p: Any = None,
) -> Plan:
    """Rank mechanism × m by the error they will have, and solve for whatever is left out.

    Give users, dimensions (or a schema) and ε to learn the error; leave out ONE of the three and give a `tolerance`
    to learn the fewest users, the smallest ε or the most dimensions that keep within it. Everything given: checked. If
    no candidate meets it, the plan's `reachable` is False and its summary says what is reached instead; if the
    `probability` is given too, it is insisted on, and refused with `NotReachable` (which carries the nearest plan).

    Parameters
    ----------
    n_users, n_dims, epsilon
        n, d and the total budget of a user; at most one may be left out.
    schema
        The dimensions by name, instead of `n_dims`; needed for tolerances, priors and values by name.
    tolerance
        ±ξ on the [−1, 1] scale for numbers, on [0, 1] for frequencies, and as a share of the norm for a vector's
        coordinates; or a mapping from dimension to ξ in its own units (a number, or a text such as "5 min" with the
        unit that the schema gives the dimension), nothing being asked of the others.
    probability
        With which the tolerance is to be kept; 0.95 unless given.
    n_categories
        With `n_dims`: each dimension has so many categories.
    mechanisms, categorical
        Only these candidates: for numbers any registered name, "pair" (neighbours asked together) or "agreement"
        (blocks), for categories "auto", "grr", "subset", "projective", "oue", "histogram". Unless given, all of them;
        pairs and blocks from ε = 1.5 on.
    prior
        Whose values: "uniform" (unless given), "worst" for a promise that holds whatever they are, a SciPy
        distribution, a histogram (edges, weights) or an array, all on [−1, 1]; or a mapping from dimension to one of
        these in the dimension's own units (frequencies for categories, vectors for vectors), or to a tally. Of an
        optional number or vector also the share of users who have one: {"present": 0.7}, and "values" beside it. A
        `Tally` of an earlier collection stands for such a mapping; without a schema its survey's is planned for.
    values
        The values of a pilot or of public data instead of a prior: an array (n,) or (n, d) on [−1, 1], or with a
        schema a mapping from dimension to values in its own units. Those of an optional number or vector may have gaps
        (None, NaN), which give the share of users who have one.
    jointly
        Whether the tolerance is for all coordinates at once, or for each alone.
    rank_by
        "error" or "probability" (of keeping within the tolerance).
    statistic
        What the options are ranked by: "mean" (and frequencies), "distribution", "quantile", "variance", "sd",
        "covariance" or "mean_by"; `hdr4me.planner.statistics.foretell` says what their errors are. What is solved for
        and the tolerance concern means. Of vectors only the mean is predicted.
    p
        Which quantiles, for "quantile": .25, .5 and .75 unless given.

    Examples
    --------
    >>> options = plan(n_users=150_000, n_dims=750, epsilon=1.0)
    >>> options[0].mechanism, options[0].n_sampled
    ('optimal_mean', 1)
    >>> plan(n_dims=100, epsilon=1.0, tolerance=0.05, mechanisms=["piecewise"]).best.n_users
    2184955
    """
    if statistic != "mean" and (rank_by != "error" or tolerance is not None):
        raise InvalidInput(
            f"statistic = {statistic!r} together with a tolerance or rank_by is not allowed: both concern means"
        )
    chosen = DEFAULT_PROBABILITY if probability is None else probability
    common, scales = scaled_tolerances(tolerance, schema)
    _check(n_users, epsilon, common, chosen, rank_by)
    worst = isinstance(prior, str) and prior == "worst"
    if hasattr(prior, "priors"):
        if schema is None and n_dims is None and n_categories is None:
            schema = prior.survey.schema
        prior = prior_by_name(prior, schema)
    solved = _missing(n_users, n_dims, schema, epsilon, n_categories)
    workload = workload_of(
        schema, 1 if n_dims is None else n_dims, n_categories, None if worst else prior, values, scales
    )
    budget = MAX_EPSILON if epsilon is None else float(epsilon)
    several = Workload.of_size(2, n_categories) if solved == "n_dims" else workload
    tried, notes = _mechanisms(mechanisms, several, epsilon)
    setting = Setting(
        workload,
        MAX_USERS if n_users is None else int(n_users),
        budget,
        tried,
        _methods(categorical),
        worst,
        jointly,
        scales,
        pairs_from=PAIRS_FROM if mechanisms is None else JOINT_FROM,
    )
    if mechanisms is not None:
        _check_pairs(setting, named=schema is not None)
    if setting.workload.optional and setting.epsilon < JOINT_FROM:
        raise InvalidInput.of("epsilon", epsilon, f"optional numbers need at least {JOINT_FROM}")
    if setting.workload.categorical and not setting.candidates():
        most = max(size for size, _ in setting.workload.categorical)
        words = f"none of these serves {most:,} categories under this budget; auto and projective serve them"
        raise InvalidInput.of("categorical", ", ".join(setting.methods), words)
    if solved and common is None:
        raise InvalidInput.missing("tolerance")
    if solved:
        assert common is not None
        setting = _solve(setting, solved, common, chosen)
    found = rank(setting, common, chosen, schema, solved, rank_by)
    for attempt in range(_CORRECTIONS if solved else 0):
        assert common is not None
        over = found.reached / common
        enough = found.kept >= chosen
        if enough and not (attempt == 0 and solved == "n_users" and over < _ENOUGH):
            break
        # the search asks laws, or interpolates, where the options ask tables: it was too hopeful, or too careful
        setting = _corrected(setting, solved, over if np.isfinite(over) else 1.0)
        found = rank(setting, common, chosen, schema, solved, rank_by)
    own = {}
    if isinstance(tolerance, Mapping):
        known = {dimension.name: dimension for dimension in schema.dimensions}
        own = {name: own_tolerance(known[name], given) for name, given in tolerance.items()}
    found = replace(found, asked=common, asked_own=own, notes=notes)
    if statistic != "mean" or p is not None:
        from hdr4me.planner.statistics import by_statistic

        found = by_statistic(found, statistic, p)
    if probability is not None and not found.reachable:
        raise found.refusal()
    return found


def _solve(setting: Setting, solved: str, tolerance: float, probability: float) -> Setting:
    """The setting with the missing quantity filled in; `NotReachable` if there is none."""
    found = solve(setting, solved, tolerance, probability)
    if found is not None:
        return found
    nearest = rank(setting, None, probability, None, "", "error")
    limit = {"n_users": f"{MAX_USERS:,} users", "epsilon": f"ε = {MAX_EPSILON:g}"}.get(
        solved, "one dimension"
    )
    raise NotReachable(not_reachable(nearest, tolerance, probability, f"even {limit}"), nearest)


def _corrected(setting: Setting, solved: str, over: float) -> Setting:
    """What was solved for, corrected where the tolerance reached is `over` times that asked for.

    The variance of an estimate is as d/n, and about as 1/ε².
    """
    n, d = setting.n_users, setting.workload.n_dims
    if solved == "n_users" and over < 1:
        return replace(setting, n_users=math.ceil(n * over**2))
    if solved == "n_users":
        return replace(setting, n_users=max(n + max(1, n // 500), math.ceil(n * over**2)))
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
    listed = [given] if isinstance(given, str) else list(given)
    if BLOCKS in listed and BLOCKS not in together:
        raise InvalidInput.of(
            "mechanisms", BLOCKS, "blocks are for two or more numbers that are not optional"
        )
    for name in listed:
        if name in (BLOCKS, PAIR):
            continue
        try:
            registered(name)
        except InvalidInput as refusal:
            raise InvalidInput.of("mechanisms", name, f"{refusal.allowed}, {PAIR}, {BLOCKS}") from None
        if reason := _why_not(name, workload, epsilon):
            raise InvalidInput.of("mechanisms", name, reason)
    if not listed:
        raise InvalidInput.of("mechanisms", listed, f"some of {', '.join((*names(), PAIR, BLOCKS))}")
    return tuple(listed), ()


def _why_not(name: str, workload: Workload, epsilon: float | None) -> str:
    """Why a law of another package cannot be planned with; empty if it can, or if there are no numbers."""
    if name in built_in() or not workload.numeric:
        return ""
    if epsilon is None:
        return why_unusable(name, (MIN_EPSILON, MAX_EPSILON), "law")
    return why_unusable(name, (float(epsilon), float(epsilon) / workload.n_dims), "table")


def _methods(given: Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return CATEGORICAL
    listed = [given] if isinstance(given, str) else list(given)
    for name in listed:
        if name not in CATEGORICAL:
            raise InvalidInput.of("categorical", name, f"use one of {', '.join(CATEGORICAL)}")
    if not listed:
        raise InvalidInput.of("categorical", listed, f"some of {', '.join(CATEGORICAL)}")
    return tuple(listed)


def _check_pairs(setting: Setting, *, named: bool) -> None:
    """Pairs that are asked for by name need two numbers that are not optional."""
    if PAIR not in setting.mechanisms:
        return
    if named and not arrangement(PAIR).supports(setting.workload):
        raise InvalidInput.of(
            "mechanisms",
            PAIR,
            "pairs are of numbers that are not optional, at least two; an optional number is asked by itself, value "
            "and presence in one report: leave out mechanisms, or take away optional and give a default",
        )
    if setting.epsilon < JOINT_FROM:
        raise InvalidInput.of("epsilon", setting.epsilon, f"pairs need at least {JOINT_FROM}")


def _missing(
    n_users: int | None, n_dims: int | None, schema: Any, epsilon: float | None, n_categories: int | None
) -> str:
    """The name of the one thing to solve for ("" if nothing is missing)."""
    if schema is not None and (n_dims is not None or n_categories is not None):
        raise InvalidInput("schema together with n_dims or n_categories is not allowed: give one")
    if n_dims is not None and (isinstance(n_dims, bool) or not isinstance(n_dims, int) or n_dims < 1):
        raise InvalidInput.of("n_dims", n_dims, "a whole number >= 1")
    if n_dims is not None and n_dims > MAX_DIMS:
        raise InvalidInput.of("n_dims", n_dims, f"at most {MAX_DIMS}")
    known = {"n_users": n_users, "n_dims": n_dims if schema is None else len(schema), "epsilon": epsilon}
    missing = [name for name, value in known.items() if value is None]
    if len(missing) > 1:
        raise InvalidInput.missing(*missing)
    return missing[0] if missing else ""


def _check(n_users: Any, epsilon: Any, tolerance: Any, probability: Any, rank_by: Any) -> None:
    def number(value: Any) -> bool:
        return (
            isinstance(value, (int, float, np.number))
            and not isinstance(value, bool)
            and bool(abs(value) <= 1e300)  # type: ignore[operator]  # nan is not; an int may be of any size
        )

    if n_users is not None and not (
        number(n_users) and int(n_users) == n_users and 1 <= n_users <= MAX_USERS
    ):
        raise InvalidInput.of("n_users", n_users, f"a whole number from 1 to {MAX_USERS}")
    if epsilon is not None and not (number(epsilon) and 0 < epsilon <= 65536):
        raise InvalidInput.of("epsilon", epsilon, "a positive number up to 65536")
    if tolerance is not None and not (number(tolerance) and tolerance > 0):
        raise InvalidInput.of("tolerance", tolerance, "a positive number")
    if not (number(probability) and 0 < probability < 1):
        raise InvalidInput.of("probability", probability, "a number between 0 and 1")
    if rank_by not in ("error", "probability"):
        raise InvalidInput.of("rank_by", rank_by, "'error' or 'probability'")
