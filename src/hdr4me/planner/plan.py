"""`plan`: the framework turned round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.planner.costs import CATEGORICAL, NUMERIC, Prior
from hdr4me.planner.option import Option, make_option
from hdr4me.planner.search import (
    MAX_DIMS,
    MAX_EPSILON,
    MAX_USERS,
    Setting,
    largest_dims,
    smallest_epsilon,
    smallest_users,
)
from hdr4me.planner.winners import Winner, winners
from hdr4me.planner.words import number, percent, summary
from hdr4me.planner.workload import Workload

__all__ = ["Plan", "plan"]

DEFAULT_PROBABILITY = 0.95


@dataclass(frozen=True, eq=False)
class Plan(Sequence[Option]):
    """The options, best first; `solved` names what was solved for, `asked` is the tolerance given."""

    options: tuple[Option, ...]
    setting: Setting = field(repr=False)
    solved: str = ""
    asked: float | None = None

    @overload
    def __getitem__(self, index: int) -> Option: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Option, ...]: ...
    def __getitem__(self, index: int | slice) -> Option | tuple[Option, ...]:
        return self.options[index]

    def __len__(self) -> int:
        return len(self.options)

    def __iter__(self) -> Iterator[Option]:
        return iter(self.options)

    @property
    def best(self) -> Option:
        """The first option."""
        return self.options[0]

    @property
    def summary(self) -> str:
        """One line in plain words."""
        return summary(self.best, self.solved, self.asked, self.shortfall, self._why_not_optimal)

    @cached_property
    def reachable(self) -> bool:
        """Does any candidate keep the tolerance asked for? True if none was asked for, or if it was solved for."""
        if self.asked is None or self.solved:
            return True
        jointly, p = self.setting.jointly, self.best.probability
        shown = max(o.joint_probability_within if jointly else o.probability_within for o in self.options)
        return bool(shown >= p or self.setting.success(self.asked) >= np.log(p))

    @property
    def shortfall(self) -> str:
        """What is not reached, and what is; empty if the plan is reachable."""
        if self.reachable:
            return ""
        assert self.asked is not None
        best, jointly = self.best, self.setting.jointly and self.best.workload.n_coordinates > 1
        reached = min(o.tolerance_joint if jointly else o.tolerance_each for o in self.options)
        return (
            f"±{number(self.asked)} is not reached with {percent(best.probability)} probability"
            f"{' by all at once' if jointly else ''}, ±{number(reached)} is"
        )

    def refusal(self) -> NotReachable:
        """What is raised if the tolerance is insisted on: the nearest plan, and what it would take."""
        setting, tolerance, probability = self.setting, self.asked, self.best.probability
        assert tolerance is not None
        nearest = _rank(setting, None, probability, self.best.schema, "", "error")
        words = f"{setting.n_users:,} users and ε = {setting.epsilon:g}"
        message = _not_reachable(nearest, tolerance, probability, words)
        users = smallest_users(setting, tolerance, probability)
        budget = smallest_epsilon(setting, tolerance, probability)
        ways = [f"{users:,} users"] if users is not None else []
        ways += [f"ε = {budget:g}"] if budget is not None else []
        return NotReachable(message + (f"; it takes {' or '.join(ways)}" if ways else ""), nearest)

    @property
    def _why_not_optimal(self) -> str:
        """Why `optimal` was a candidate for numbers and is not the first; empty if it is, or was none."""
        best = self.best
        if (
            not best.workload.numeric
            or best.mechanism == "optimal"
            or "optimal" not in self.setting.mechanisms
        ):
            return ""
        words = "optimal, which makes the largest variance of a report smallest, is not first here: "
        if self.setting.prior == "uniform":
            return (
                words + f"over values spread evenly {best.mechanism} has less on average "
                '(--prior worst, prior="worst", ranks by the worst case)'
            )
        return words + f"with the spread of the values themselves {best.mechanism} has less at its worst"

    @property
    def mechanisms(self) -> tuple[Option, ...]:
        """The best option of each mechanism, best first."""
        seen: dict[tuple[str, str], Option] = {}
        for option in self.options:
            seen.setdefault((option.mechanism, option.categorical), option)
        return tuple(seen.values())

    @cached_property
    def winners(self) -> tuple[Winner, ...]:
        """Which mechanism is likeliest to keep within each of several tolerances: not always the same one."""
        return winners(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "summary": self.summary,
            "solved": self.solved,
            "n_users": self.best.n_users,
            "n_dims": self.best.n_dims,
            "epsilon": self.best.epsilon,
            "tolerance": self.best.tolerance,
            "probability": self.best.probability,
            "prior": self.setting.prior,
            "jointly": self.setting.jointly,
            "options": [option.to_dict() for option in self.options],
            "winners": [winner.to_dict() for winner in self.winners],
        }


def plan(
    *,
    n_users: int | None = None,
    n_dims: int | None = None,
    schema: Any = None,
    epsilon: float | None = None,
    tolerance: float | None = None,
    probability: float | None = None,
    n_categories: int | None = None,
    mechanisms: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    prior: Prior = "uniform",
    jointly: bool = True,
    rank_by: str = "error",
) -> Plan:
    """Rank mechanism × m by the error they will have, and solve for whatever is left out.

    Give users, dimensions (or a schema) and ε to learn the error; leave out ONE of the three and give a `tolerance`
    to learn the fewest users, the smallest ε or the most dimensions that keep within it with `probability` (0.95
    unless given), for all coordinates at once unless `jointly` is False. Everything given: checked. If no candidate
    meets it, the plan's `reachable` is False and its summary says what is reached instead; if the `probability` is
    given too, it is insisted on, and refused with `NotReachable` (which carries the nearest plan).

    Tolerances are on the [−1, 1] scale for numbers and on [0, 1] for frequencies. `prior` says whose values: "uniform",
    or "worst" for a promise that holds whatever they are.

    >>> options = plan(n_users=150_000, n_dims=750, epsilon=1.0)
    >>> options[0].mechanism, options[0].n_sampled
    ('optimal', 1)
    >>> plan(n_dims=100, epsilon=1.0, tolerance=0.05, mechanisms=["piecewise"]).best.n_users
    2184955
    """
    chosen = DEFAULT_PROBABILITY if probability is None else probability
    _check(n_users, epsilon, tolerance, chosen, prior, rank_by)
    workload, solved = _what(n_users, n_dims, schema, epsilon, n_categories)
    setting = Setting(
        workload,
        MAX_USERS if n_users is None else int(n_users),
        MAX_EPSILON if epsilon is None else float(epsilon),
        _names("mechanisms", mechanisms, NUMERIC),
        _names("categorical", categorical, CATEGORICAL),
        prior,
        jointly,
    )
    if solved and tolerance is None:
        raise InvalidInput(f"tolerance is missing: without it no {solved} can be found")
    if solved:
        assert tolerance is not None
        setting = _solve(setting, solved, tolerance, chosen)
    found = replace(_rank(setting, tolerance, chosen, schema, solved, rank_by), asked=tolerance)
    if probability is not None and not found.reachable:
        raise found.refusal()
    return found


def _solve(setting: Setting, solved: str, tolerance: float, probability: float) -> Setting:
    """The setting with the missing quantity filled in; `NotReachable` if there is none."""
    if solved == "n_users":
        users = smallest_users(setting, tolerance, probability)
        if users is not None:
            return replace(setting, n_users=users)
    elif solved == "epsilon":
        budget = smallest_epsilon(setting, tolerance, probability)
        if budget is not None:
            return replace(setting, epsilon=budget)
    else:
        dims = largest_dims(setting, tolerance, probability)
        if dims is not None:
            size = setting.workload.categorical[0][0] if setting.workload.categorical else None
            return replace(setting, workload=Workload.of_size(dims, size))
    nearest = _rank(setting, None, probability, None, "", "error")
    limit = {"n_users": f"{MAX_USERS:,} users", "epsilon": f"ε = {MAX_EPSILON:g}"}.get(
        solved, "one dimension"
    )
    raise NotReachable(_not_reachable(nearest, tolerance, probability, f"even {limit}"), nearest)


def _not_reachable(nearest: Plan, tolerance: float, probability: float, reason: str) -> str:
    best = nearest.best
    reached = best.tolerance_joint if nearest.setting.jointly else best.tolerance_each
    return (
        f"not reachable: {reason} do not keep {best.workload.what} within ±{number(tolerance)} with "
        f"{percent(probability)} probability; the nearest is ±{number(reached)} by {best.mechanism}, "
        f"{best.n_sampled:,} of {best.n_dims:,} values sent"
    )


def _rank(
    setting: Setting, tolerance: float | None, probability: float, schema: Any, solved: str, rank_by: str
) -> Plan:
    """Each candidate at its best m, at the m beside it, at 1 and at d, in order.

    Without a tolerance the best option's own serves all, so that their probabilities can be compared.
    """
    d = setting.workload.n_dims

    def option(name: str, method: str, m: int, ξ: float | None) -> Option:
        return make_option(
            setting.workload,
            name,
            method,
            setting.n_users,
            setting.epsilon,
            m,
            ξ,
            probability,
            setting.prior,
            schema,
        )

    best = {candidate: setting.best_sampled(candidate) for candidate in setting.candidates()}
    if tolerance is None:
        first = min((option(*candidate, m, None) for candidate, m in best.items()), key=lambda o: o.mse)
        tolerance = first.tolerance_joint if setting.jointly else first.tolerance_each
    options = [
        option(name, method, m, tolerance)
        for (name, method), at in best.items()
        for m in sorted({1, max(1, at - 1), at, min(d, at + 1), d})
    ]
    if rank_by == "probability":
        options.sort(key=lambda o: (-o.joint_probability_within, o.tolerance_joint, o.n_sampled))
    else:
        options.sort(key=lambda o: (o.mse, o.n_sampled))
    return Plan(tuple(options), setting, solved)


def _names(parameter: str, given: Sequence[str] | None, allowed: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return allowed
    if isinstance(given, str):
        given = [given]
    for name in given:
        if name not in allowed:
            raise InvalidInput(f"{parameter} = {name!r} is not allowed: use one of {', '.join(allowed)}")
    if not given:
        raise InvalidInput(f"{parameter} is empty: use some of {', '.join(allowed)}")
    return tuple(given)


def _what(
    n_users: int | None, n_dims: int | None, schema: Any, epsilon: float | None, n_categories: int | None
) -> tuple[Workload, str]:
    """The workload, and the name of the one thing to solve for ("" if nothing is missing)."""
    if schema is not None and (n_dims is not None or n_categories is not None):
        raise InvalidInput("schema together with n_dims or n_categories is not allowed: give one")
    known = {"n_users": n_users, "n_dims": n_dims if schema is None else len(schema), "epsilon": epsilon}
    missing = [name for name, value in known.items() if value is None]
    if len(missing) > 1:
        raise InvalidInput(f"{' and '.join(missing)} are missing: at most one of them can be solved for")
    if schema is not None:
        return Workload.of(schema), missing[0] if missing else ""
    if n_dims is not None and n_dims > MAX_DIMS:
        raise InvalidInput(f"n_dims = {n_dims} is not allowed: at most {MAX_DIMS}")
    return Workload.of_size(1 if n_dims is None else n_dims, n_categories), missing[0] if missing else ""


def _check(n_users: Any, epsilon: Any, tolerance: Any, probability: Any, prior: Any, rank_by: Any) -> None:
    def refuse(name: str, value: Any, allowed: str) -> None:
        raise InvalidInput(f"{name} = {value!r} is not allowed: {allowed}")

    def number(value: Any) -> bool:
        return (
            isinstance(value, (int, float, np.number))
            and not isinstance(value, bool)
            and bool(abs(value) <= 1e300)  # type: ignore[operator]  # nan is not, and an int may be of any size
        )

    if n_users is not None and not (
        number(n_users) and int(n_users) == n_users and 1 <= n_users <= MAX_USERS
    ):
        refuse("n_users", n_users, f"a whole number from 1 to {MAX_USERS}")
    if epsilon is not None and not (number(epsilon) and 0 < epsilon <= 65536):
        refuse("epsilon", epsilon, "a positive number up to 65536")
    if tolerance is not None and not (number(tolerance) and tolerance > 0):
        refuse("tolerance", tolerance, "a positive number")
    if not (number(probability) and 0 < probability < 1):
        refuse("probability", probability, "a number between 0 and 1")
    if prior not in ("uniform", "worst"):
        refuse("prior", prior, "'uniform' or 'worst'")
    if rank_by not in ("error", "probability"):
        refuse("rank_by", rank_by, "'error' or 'probability'")
