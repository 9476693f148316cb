"""Candidates of a plan: how dimensions become questions, which design answers each, and the errors that follow.

Every row is predicted by the one formula of `hdr4me.framework.prediction` from the moments of a report: those of the
channel that a survey has, or of a quick stand-in for it (`quick.py`). What is assumed of the values:

- a prior for numbers (spread evenly unless given); frequencies of a category 1/v each; of a selection half of the
  choices that there can be, the same number for all users, spread evenly over the categories; vectors spread evenly in
  their ball; nine users in ten have what is optional;
- "worst": the largest that any population can give. Of vectors it is the population in which one coordinate has all
  the length and the others have none, which has the largest sum of variances. Means among users with a value are for
  the share of such users that is assumed: among few of the users no mean could be promised.

How much is computed depends on the `Effort`: "law" uses laws only, which serves a search over ε; "table" uses the exact
tables where their cells and levels count, which serves a search over m and n; "design" also designs the tables for a
prior of one's own at the very budget, which serves the options that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.agreement import MAX_SIZE
from hdr4me.channels.agreement.design import block_sizes, quick_second_moment
from hdr4me.channels.codebook.design import codebook_channel
from hdr4me.channels.oracles import oracle
from hdr4me.channels.privset.design import selection_channel
from hdr4me.channels.response import Coordinate, Marginal, Response
from hdr4me.framework.laws import calibrate, largest_variance, mean_variance
from hdr4me.framework.moments import mean_inverse_count, sampling_factor, widening
from hdr4me.framework.prediction import Prediction, one_report
from hdr4me.framework.small_samples import Counts
from hdr4me.mechanisms.categorical import categorical_choice, categorical_fits
from hdr4me.mechanisms.joint import JOINT_FROM, optimal_mean, optional_reach, prior_variance
from hdr4me.mechanisms.priors import Prior
from hdr4me.mechanisms.registry import registered, scaled_mechanism
from hdr4me.planner.quick import (
    TABLES_UP_TO,
    Indicator,
    MeanSquare,
    OptimalCurve,
    between_knots,
    optional_design,
    pair_noise,
    pair_worst,
    quick_optional,
)
from hdr4me.planner.workload import UNIFORM, Group, Workload
from hdr4me.survey.budget import split_budget

__all__ = [
    "ALONE",
    "BLOCKS",
    "BLOCKS_FROM",
    "CODEBOOK",
    "NEVER",
    "OPTIONAL",
    "PAIR",
    "PAIRS_FROM",
    "PRIVSET",
    "Candidate",
    "Classes",
    "Effort",
    "arrangement",
    "block_names",
    "classes",
    "entry_variances",
    "farthest",
    "neighbours",
    "sampled_grid",
    "why_unusable",
]

Effort = Literal["law", "table", "design"]
Floats = NDArray[np.float64]

PAIR, BLOCKS = "pair", "agreement"
"""Numbers asked two by two, each pair with one report, and as signs in blocks; both under the whole ε."""
PAIRS_FROM, BLOCKS_FROM = 1.5, 1.5
"""Below this ε they lower the error by less than 2 %, or never, and a plan does not try them of its own accord."""
CODEBOOK, PRIVSET, OPTIONAL = "codebook", "privset", "optional"
"""What answers vectors, selections and optional numbers."""
ALONE = "optimal"
"""What answers the number that is in no pair."""
NEVER = 1e12
"""The variance of what cannot be deployed."""
_KNOTS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
"""Where a table for a prior of one's own is designed while the best m is looked for."""
_DESIGNED = ("optimal", "optimal_mean")
_ROUNDING = (2.0 / 255) ** 2 / 6
"""A table has at most 256 levels, so that rounding to one of them costs Δ²/6 on average however large ε is."""


class Candidate(NamedTuple):
    """A mechanism for numbers (or what the plan is called without numbers), and a method for categories."""

    mechanism: str
    method: str = ""


def sampled_grid(n_dims: int, *, dense: int = 32, step: float = 1.1) -> list[int]:
    """The m to try: every one up to `dense`, then `step` times as many each time, and all of them.

    >>> sampled_grid(5)
    [1, 2, 3, 4, 5]
    >>> len(sampled_grid(10_000)), len(sampled_grid(10_000, dense=16, step=1.5))
    (93, 32)
    """
    grid = list(range(1, min(n_dims, dense) + 1))
    while grid[-1] < n_dims:
        grid.append(min(n_dims, max(grid[-1] + 1, round(grid[-1] * step))))
    return grid


# -- the report of one answer -------------------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def _deployed(name: str, epsilon: float, *, table: bool = True) -> Any:
    """The law of one report under ε: something with `variance(t)` on [−1, 1].

    Up to some budget an exact table's variance is the law's to 0.5 %, and the law is asked (`Registered.table_from`).
    """
    if name in _DESIGNED:
        if table and epsilon > TABLES_UP_TO:
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
        found = mean_variance(law, prior)
        return found if getattr(law, "n_levels", None) else max(found, _ROUNDING)
    if effort == "design" or epsilon > _KNOTS[-1]:
        return prior_variance(optimal_mean(epsilon, designed), prior)
    if epsilon < _KNOTS[0]:  # with little budget a table can hardly favour some values
        return mean_variance(OptimalCurve(epsilon, "optimal"), prior)
    return float(between_knots(epsilon, _KNOTS, lambda knot: _noise(name, knot, prior, "design", designed)))


@lru_cache(maxsize=65536)
def _number(name: str, epsilon: float, prior: Prior, effort: Effort, designed: Prior) -> Coordinate:
    """A number by itself, whose values follow `prior`, by a table designed for `designed`."""

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
    """Var of a category's report where the user has not, and has, the category; "auto" is what a survey chooses.

    Both are `NEVER` where there is no such channel for so many categories.
    """
    if not categorical_fits(method, epsilon, size):
        return NEVER, NEVER
    if method == "histogram":
        v = float(_deployed(ALONE if base == PAIR else base, epsilon / 2).variance(np.ones(1))[0]) / 4
        return v, v
    found = oracle(categorical_choice(epsilon, size) if method == "auto" else method, epsilon, size)
    return found.absent, found.present


@lru_cache(maxsize=8192)
def _category(method: str, base: str, epsilon: float, size: int) -> Coordinate:
    return Indicator(*entry_variances(method, base, epsilon, size))


@lru_cache(maxsize=8192)
def _vector(epsilon: float, length: int) -> Marginal:
    return codebook_channel(epsilon, length).response.marginal()


@lru_cache(maxsize=8192)
def _selection(epsilon: float, size: int, choices: int) -> Response:
    return selection_channel(epsilon, size, choices).response


_INFEASIBLE = MeanSquare(NEVER, lambda κ: NEVER)


# -- how numbers become questions ---------------------------------------------------------------------------------


class _Alone:
    """Each number is a question of its own; m of all questions are answered, each under ε/m."""

    def supports(self, workload: Workload) -> bool:
        return True

    def n_questions(self, workload: Workload, m: int = 1) -> int:
        return workload.n_dims

    def share(self, workload: Workload, m: int) -> float:
        """The probability that a user answers a question."""
        return m / self.n_questions(workload)

    def budget(self, epsilon: float, m: int) -> float:
        return split_budget(epsilon, m)

    def possible(self, workload: Workload, epsilon: float, m: int) -> bool:
        """Whether a survey can ask this."""
        return not workload.optional or split_budget(epsilon, m) >= JOINT_FROM

    def reports(
        self, workload: Workload, name: str, budget: float, m: int, effort: Effort
    ) -> Iterator[tuple[int, int, Coordinate]]:
        """For numbers that are alike: their group, how many they are, and what is reported about each."""
        for k, group in enumerate(workload.groups):
            if group.is_number:
                yield k, group.count, _number(name, budget, group.prior, effort, workload.table_priors[k])

    def reach(self, name: str, budget: float, m: int) -> float:
        """The largest distance of a report from its value."""
        return _largest_error(name, budget)


class _Pairs(_Alone):
    """Neighbouring numbers are asked two by two; an odd one is left by itself.

    All pairs of a survey share one table. It is designed for the mean law of the first numbers and that of the second
    ones; predicted is its error over the two numbers' own priors, taken as independent.
    """

    def supports(self, workload: Workload) -> bool:
        return workload.numeric > 1 and not workload.optional

    def n_questions(self, workload: Workload, m: int = 1) -> int:
        return workload.n_dims - workload.numeric // 2

    def possible(self, workload: Workload, epsilon: float, m: int) -> bool:
        return split_budget(epsilon, m) >= JOINT_FROM

    def reports(
        self, workload: Workload, name: str, budget: float, m: int, effort: Effort
    ) -> Iterator[tuple[int, int, Coordinate]]:
        for pair, count in workload.pairs.items():
            own = workload.groups[pair[0]].prior, workload.groups[pair[1]].prior
            for place, k in enumerate(pair):
                yield k, count, _paired(budget, workload.pair_laws, own, place, effort == "design")
        if len(workload.numbers) % 2:
            prior = workload.groups[k := workload.numbers[-1]].prior
            yield k, 1, _number(ALONE, budget, prior, effort, prior)

    def reach(self, name: str, budget: float, m: int) -> float:
        # designs have outputs up to 2.6 times the corners of randomised response (`mechanisms.joint`)
        return 1.0 + 3.0 * (math.exp(budget) + 3) / math.expm1(budget)


@lru_cache(maxsize=8192)
def _paired(
    epsilon: float, laws: tuple[Prior, Prior], own: tuple[Prior, Prior], place: int, exact: bool
) -> Coordinate:
    noise = pair_noise(epsilon, laws, own, exact=exact)[place]
    return MeanSquare(noise + own[place].mean_square, lambda κ: pair_worst(epsilon, laws, exact=exact))


class _Blocks(_Alone):
    """Numbers are asked as signs in blocks of at most m; each user answers one block under the whole ε."""

    def supports(self, workload: Workload) -> bool:
        return workload.numeric == workload.n_dims > 1

    def n_questions(self, workload: Workload, m: int = 1) -> int:
        return -(-workload.n_dims // m)

    def share(self, workload: Workload, m: int) -> float:
        return 1 / self.n_questions(workload, m)

    def budget(self, epsilon: float, m: int) -> float:
        return epsilon

    def possible(self, workload: Workload, epsilon: float, m: int) -> bool:
        d = workload.n_dims
        return 2 <= m <= min(d, MAX_SIZE) and d // self.n_questions(workload, m) >= 2

    def reports(
        self, workload: Workload, name: str, budget: float, m: int, effort: Effort
    ) -> Iterator[tuple[int, int, Coordinate]]:
        """A decoded sign has the mean square 1/c², whatever the value; blocks differ by one in size at most."""
        report = _INFEASIBLE
        if self.possible(workload, budget, m):
            report = _signs(budget, workload.n_dims, m)
        for k, group in enumerate(workload.groups):
            yield k, group.count, report

    def reach(self, name: str, budget: float, m: int) -> float:
        return float(1.0 + np.sqrt(quick_second_moment(budget, m)))


@lru_cache(maxsize=8192)
def _signs(epsilon: float, n_dims: int, m: int) -> MeanSquare:
    sizes = np.array(block_sizes(n_dims, m))
    each = {int(b): quick_second_moment(epsilon, int(b)) for b in set(sizes.tolist())}
    square = float(sum(b * each[b] for b in sizes.tolist()) / n_dims)
    return MeanSquare(square, lambda κ: square)


_TOGETHER: dict[str, _Alone] = {PAIR: _Pairs(), BLOCKS: _Blocks()}
_BY_ITSELF = _Alone()


def arrangement(mechanism: str) -> _Alone:
    """How numbers become questions if this mechanism answers them."""
    return _TOGETHER.get(mechanism, _BY_ITSELF)


@lru_cache(maxsize=8192)
def _largest_error(name: str, epsilon: float) -> float:
    """The largest distance of a report from its value, for a number by itself."""
    if name in _DESIGNED:
        return 1.0 + 2.0 / math.tanh(epsilon / 2)  # no designed table has outputs beyond 2C
    law = scaled_mechanism(name, epsilon=epsilon)
    low, high = law.support if law.bounded else law.exact().support
    return 1.0 + max(-low, high) / abs(law.calibration.slope if law.bounded else 1.0)


def why_unusable(name: str, budgets: Sequence[float], effort: Effort) -> str:
    """Why a registered law cannot be planned with under these budgets of one value; empty if it can."""
    try:
        found = [_number(name, budget, UNIFORM, effort, UNIFORM) for budget in budgets]
        errors = [x for report in found for x in (report.moments([0.0]).second[0, 0, 0], report.worst(1.0))]
        if not np.isfinite(errors).all() or min(errors) <= 0:
            return "its variance is not a positive, finite number"
        _largest_error(name, budgets[0])
    except Exception as error:  # a law of another package may raise anything at all
        return str(error) or type(error).__name__
    return ""


def neighbours(schema: Any) -> list[tuple[str, str]]:
    """Numbers that are not optional, two by two in the schema's order; an odd one is left alone.

    >>> from hdr4me.survey import Numeric, Schema
    >>> neighbours(Schema([Numeric(x, 0, 1) for x in "abc"]))
    [('a', 'b')]
    """
    names = Workload.number_names(schema)
    return list(zip(names[::2], names[1::2], strict=False))


def block_names(names: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    """The dimensions of each block: neighbours in the schema."""
    ends = np.cumsum([0, *block_sizes(len(names), size)]).tolist()
    return [names[low:high] for low, high in pairwise(ends)]


# -- the errors of all rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """Rows that are alike, a column each, one line per m: their variance and how many they are.

    `group` is the number of each column's group in the workload. A selection has two columns: shares, and numbers of
    choices over the most that there can be. So has an optional number: its mean among those who have one, and their
    share. A vector has one column, and two for the worst population; an optional one has its share beside them.
    `wider` is how many times wider than by the normal law a tolerance must be (`hdr4me.framework.moments.widening`).
    """

    sampled: tuple[int, ...]
    variances: Floats
    counts: Floats
    scales: Floats
    wider: Floats
    group: tuple[int, ...]

    @property
    def mse(self) -> Floats:
        """The expected MSE at each m."""
        return np.asarray(self.variances @ self.counts / self.counts.sum())

    @property
    def sds(self) -> Floats:
        """Standard deviations for tolerances, in units of each group's own; 0 where nothing is asked of a group."""
        asked = np.isfinite(self.scales)
        return np.where(asked, np.sqrt(self.variances) * self.wider / np.where(asked, self.scales, 1.0), 0.0)

    def prediction(
        self, line: int = 0, reports: Counts | None = None, largest: float | None = None
    ) -> Prediction:
        """The law of the errors at one m, each on the scale of the group's own tolerance."""
        sds = self.sds[line]
        counts = self.counts.astype(np.int64)
        return Prediction(np.zeros_like(sds), sds**2, counts, reports=reports, largest=largest)


_Rows = tuple[float, int]
"""What one report adds to the variance of rows, E Var + κ·Var E, and how many rows are alike."""


def classes(
    workload: Workload,
    mechanism_name: str,
    method: str,
    n_users: int,
    epsilon: float,
    sampled: tuple[int, ...],
    *,
    worst: bool = False,
    effort: Effort = "table",
) -> Classes:
    """The variances of all rows if `mechanism_name` answers numbers and `method` categories.

    Parameters
    ----------
    workload
        The groups of dimensions.
    mechanism_name, method
        The candidate.
    n_users, epsilon
        n, and the total budget of a user.
    sampled
        The numbers m of dimensions that a user reports.
    worst
        Whether the largest variance of any population is meant, or that of the groups' priors.
    effort
        How much is computed.
    """
    arranged = arrangement(mechanism_name)
    lines, wider = [], []
    counts: list[int] = []
    numbers: list[int] = []
    for m in sampled:
        inverse = mean_inverse_count(n_users, arranged.share(workload, m))
        κ = float(sampling_factor(n_users, inverse))
        budget = arranged.budget(epsilon, m)
        line, widths = list[float](), list[float]()
        counts, numbers = [], []
        for k, count, report in _reports(workload, mechanism_name, method, budget, m, effort):
            group = workload.groups[k]
            rows = _rows(group, count, report, budget, κ, worst=worst)
            line += [inverse * variance for variance, _ in rows]
            counts += [alike for _, alike in rows]
            numbers += [k] * len(rows)
            wide = 1.0
            if group.optional:
                error = math.sqrt(inverse * rows[1][0])
                wide = float(widening(error, group.expected_present, workload.n_coordinates))
            widths += [1.0 if i == 1 else wide for i in range(len(rows))]
        lines.append(line)
        wider.append(widths)
    scales = np.array([workload.groups[k].scale for k in numbers])
    return Classes(
        sampled, np.array(lines), np.array(counts, np.float64), scales, np.array(wider), tuple(numbers)
    )


def _reports(
    workload: Workload, name: str, method: str, budget: float, m: int, effort: Effort
) -> Iterator[tuple[int, int, Coordinate]]:
    """For dimensions that are alike: their group, how many they are, and what is reported about each coordinate."""
    if workload.numeric:
        yield from arrangement(name).reports(workload, name, budget, m, effort)
    for k, group in enumerate(workload.groups):
        if group.choices:
            yield k, group.count, _selection(budget, group.size, group.choices).marginal()
        elif group.size:
            yield k, group.count, _category(method, name, budget, group.size)
        elif group.length:
            yield k, group.count, _vector(budget, group.length + group.optional)
        elif group.optional and budget < JOINT_FROM:
            yield k, group.count, _INFEASIBLE
        elif group.optional:
            yield k, group.count, optional_design(budget) if effort == "design" else quick_optional(budget)


def _rows(
    group: Group, count: int, report: Coordinate, budget: float, κ: float, *, worst: bool
) -> list[_Rows]:
    """The rows of `count` dimensions of a group."""
    each = count * max(group.size, group.length, 1)
    if group.optional and report is _INFEASIBLE:
        return [(NEVER, each), (NEVER, count)]
    if not worst:
        noise, spread = _expected(group, report)
        rows = [(noise + κ * spread, each)]
        if group.optional:
            noise, spread = _expected(group, report, share=True)
            rows.append((noise + κ * spread, count))
    elif group.optional:
        one = count if group.length else each
        rows = [(report.worst_mean(group.expected_present, κ), one), (report.worst_share(κ), count)]
    else:
        rows = [(report.worst(κ), count if group.length else each)]
    if worst and group.length > 1:  # the other coordinates have none of the length
        moments = report.optional_moments([0.0, np.nan]) if group.optional else report.moments([0.0, 0.0])
        π = group.expected_present if group.optional else 1.0
        rows.append((one_report(moments, np.array([π, 1.0 - π]))[0], each - count))
    if group.choices:
        rows.append((_number_chosen(group, budget, κ, worst=worst), count))
    return rows


@lru_cache(maxsize=65536)
def _expected(group: Group, report: Coordinate, *, share: bool = False) -> tuple[float, float]:
    values, shares = group.population
    moments = report.optional_moments(values) if group.optional else report.moments(values)
    return one_report(moments, shares, share=share)


def _number_chosen(group: Group, budget: float, κ: float, *, worst: bool) -> float:
    """Of the mean number of choices over the most there can be, which all users are taken to have chosen."""
    chosen = np.linspace(0.0, group.choices, 65) if worst else np.array([group.expected_choices])
    response: Any = _selection(budget, group.size, group.choices)
    return float(response.number_variance(chosen).max()) / group.choices**2 + (0.25 * κ if worst else 0.0)


def farthest(workload: Workload, mechanism_name: str, epsilon: float, m: int) -> float | None:
    """The largest distance of a report from its value, for numbers and vectors; None if there are none.

    Frequencies and shares have no bound for few reports: theirs are taken as normal.
    """
    budget, found = split_budget(epsilon, m), list[float]()
    for group in workload.groups:
        if group.length:
            reach = float(np.abs(_vector(budget, group.length + group.optional).decoders["value"]).max())
        elif group.optional:
            reach = optional_reach(budget)
        else:
            continue
        # of an optional value the error of one report is that of (y − R·z)/π
        found.append(2.0 + (2 * reach + 1.0) / group.expected_present if group.optional else 1.0 + reach)
    if workload.numeric:
        arranged = arrangement(mechanism_name)
        found.append(arranged.reach(mechanism_name, arranged.budget(epsilon, m), m))
    return max(found, default=None)
