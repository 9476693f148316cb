"""Candidates of a plan: the questions for the dimensions, and the errors predicted from the moments of a report.

By default numbers are uniform, frequencies are 1/v, selections have half of the allowed choices, vectors are uniform in
their ball, and 90 % of the users have an optional value. The worst case is the largest variance over all populations;
for vectors, one coordinate has the full length. The worst case does not include the share of users with an optional
value: with a very small share no mean can be estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.agreement import MAX_SIZE
from hdr4me.channels.agreement.design import block_sizes, quick_second_moment
from hdr4me.channels.response import Coordinate
from hdr4me.framework.moments import mean_inverse_count, sampling_factor, widening
from hdr4me.framework.prediction import PredictedRow, Prediction, one_report
from hdr4me.framework.small_samples import Counts
from hdr4me.mechanisms.joint import JOINT_FROM, optional_reach
from hdr4me.mechanisms.priors import Prior
from hdr4me.planner.reports import (
    ALONE,
    INFEASIBLE,
    NEVER,
    Effort,
    Indicator,
    MeanSquare,
    entry_variances,
    largest_error,
    number_report,
    optional_design,
    pair_moments,
    quick_optional,
    selection_response,
    vector_report,
)
from hdr4me.planner.workload import Group, Workload
from hdr4me.survey.question import split_budget

Floats = NDArray[np.float64]
Reports = Iterator[tuple[int, int, Coordinate]]
Rows = tuple[PredictedRow, ...]

# Two numbers in one question, and the signs of several numbers in one question; both under the full ε.
PAIR, BLOCKS = "pair", "agreement"
# Below this ε they gain less than 2 %, and a plan tries them only on request.
PAIRS_FROM, BLOCKS_FROM = 1.5, 1.5
# The mechanisms of vectors, selections and optional numbers.
CODEBOOK, PRIVSET, OPTIONAL = "codebook", "privset", "optional"


class Candidate(NamedTuple):
    """A mechanism for numbers (without numbers, the name of the plan's first kind), and a method for categories."""

    mechanism: str
    method: str = ""


def sampled_grid(dims: int, *, dense: int = 32, step: float = 1.1) -> list[int]:
    """The m to try: all up to `dense`, then a geometric grid with factor `step`, and `dims`."""
    grid = list(range(1, min(dims, dense) + 1))
    while grid[-1] < dims:
        grid.append(min(dims, max(grid[-1] + 1, round(grid[-1] * step))))
    return grid


class _Alone:
    """Each number is one question; each person answers m of all questions, each under ε/m."""

    def supports(self, workload: Workload) -> bool:
        return True

    def n_questions(self, workload: Workload, m: int = 1) -> int:
        return workload.dims

    def share(self, workload: Workload, m: int) -> float:
        """The probability that a person answers a question."""
        return m / self.n_questions(workload)

    def budget(self, epsilon: float, m: int) -> float:
        return split_budget(epsilon, m)

    def possible(self, workload: Workload, epsilon: float, m: int) -> bool:
        """Whether a survey can ask this."""
        return not workload.optional or split_budget(epsilon, m) >= JOINT_FROM

    def reports(self, workload: Workload, name: str, budget: float, m: int, effort: Effort) -> Reports:
        """For numbers with the same distribution: their group, their count, and the report about each."""
        for k, group in enumerate(workload.groups):
            if group.is_number:
                designed = workload.table_priors[k]
                yield k, group.count, number_report(name, budget, group.prior, effort, designed)

    def reach(self, name: str, budget: float, m: int) -> float:
        """The largest distance of a report from its value."""
        return largest_error(name, budget)


class _Pairs(_Alone):
    """Two neighboring numbers form a question, with one table for their mean priors; an odd last number is alone."""

    def supports(self, workload: Workload) -> bool:
        return workload.numeric > 1 and not workload.optional

    def n_questions(self, workload: Workload, m: int = 1) -> int:
        return workload.dims - workload.numeric // 2

    def possible(self, workload: Workload, epsilon: float, m: int) -> bool:
        return split_budget(epsilon, m) >= JOINT_FROM

    def reports(self, workload: Workload, name: str, budget: float, m: int, effort: Effort) -> Reports:
        for pair, count in workload.pairs.items():
            own = workload.groups[pair[0]].prior, workload.groups[pair[1]].prior
            for place, k in enumerate(pair):
                yield k, count, _paired(budget, workload.pair_laws, own, place, effort == "design")
        if len(workload.numbers) % 2:
            prior = workload.groups[k := workload.numbers[-1]].prior
            yield k, 1, number_report(ALONE, budget, prior, effort, prior)

    def reach(self, name: str, budget: float, m: int) -> float:
        # Designs have outputs up to 2.6 times the corners of randomized response (`mechanisms.joint`).
        return 1.0 + 3.0 * (math.exp(budget) + 3) / math.expm1(budget)


@lru_cache(maxsize=8192)
def _paired(
    epsilon: float, laws: tuple[Prior, Prior], own: tuple[Prior, Prior], place: int, exact: bool
) -> Coordinate:
    found = pair_moments(epsilon, laws, own, exact=exact)
    return MeanSquare(float(found[place]) + own[place].mean_square, lambda κ: float(found[2]))


class _Blocks(_Alone):
    """The signs of at most m numbers form a block; each person answers one block under the full ε."""

    def supports(self, workload: Workload) -> bool:
        return workload.numeric == workload.dims > 1

    def n_questions(self, workload: Workload, m: int = 1) -> int:
        return -(-workload.dims // m)

    def share(self, workload: Workload, m: int) -> float:
        return 1 / self.n_questions(workload, m)

    def budget(self, epsilon: float, m: int) -> float:
        return epsilon

    def possible(self, workload: Workload, epsilon: float, m: int) -> bool:
        d = workload.dims
        return 2 <= m <= min(d, MAX_SIZE) and d // self.n_questions(workload, m) >= 2

    def reports(self, workload: Workload, name: str, budget: float, m: int, effort: Effort) -> Reports:
        """A decoded sign has the mean square 1/c² for any value; sizes of blocks differ by at most one."""
        possible = self.possible(workload, budget, m)
        report = _signs(budget, workload.dims, m) if possible else INFEASIBLE
        for k, group in enumerate(workload.groups):
            yield k, group.count, report

    def reach(self, name: str, budget: float, m: int) -> float:
        return float(1.0 + np.sqrt(quick_second_moment(budget, m)))


@lru_cache(maxsize=8192)
def _signs(epsilon: float, dims: int, m: int) -> MeanSquare:
    sizes = np.array(block_sizes(dims, m))
    each = {int(b): quick_second_moment(epsilon, int(b)) for b in set(sizes.tolist())}
    square = float(sum(b * each[b] for b in sizes.tolist()) / dims)
    return MeanSquare(square, lambda κ: square)


_ARRANGEMENTS: dict[str, _Alone] = {PAIR: _Pairs(), BLOCKS: _Blocks()}
_BY_ITSELF = _Alone()


def arrangement(mechanism: str) -> _Alone:
    """The arrangement of numbers in questions for this mechanism."""
    return _ARRANGEMENTS.get(mechanism, _BY_ITSELF)


def neighbors(schema: Any) -> list[tuple[str, str]]:
    """Pairs of neighboring numbers that are not optional; an odd last number has no pair."""
    names = Workload.number_names(schema)
    return list(zip(names[::2], names[1::2], strict=False))


def block_names(names: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    """The dimensions of each block: neighbors in the schema."""
    ends = np.cumsum([0, *block_sizes(len(names), size)]).tolist()
    return [names[low:high] for low, high in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of rows with the same distribution: a column for each class, a line for each m.

    `group` is the index of each column's group in the workload, and `part` is 0 for the means or frequencies of a group
    and 1 for its second row (the share of an optional value, the number chosen of a selection). `wider` is the factor
    by which a tolerance exceeds that of the normal law, and `farthest` gives the largest error of one report at an m.
    """

    sampled: tuple[int, ...]
    variances: Floats
    counts: Floats
    scales: Floats
    wider: Floats
    group: tuple[int, ...]
    part: tuple[int, ...]
    reports: tuple[Counts, ...]
    farthest: Callable[[int], float | None]

    @property
    def mse(self) -> Floats:
        """The expected MSE at each m."""
        return np.asarray(self.variances @ self.counts / self.counts.sum())

    @property
    def sds(self) -> Floats:
        """Standard deviations over each group's tolerance; 0 for a group without a tolerance."""
        required = np.isfinite(self.scales)
        return np.where(
            required, np.sqrt(self.variances) * self.wider / np.where(required, self.scales, 1.0), 0.0
        )

    def prediction(self, line: int = 0, *, bounded: bool = False, rows: Rows = ()) -> Prediction:
        """The law of the errors over the tolerances at one m; `bounded` uses Bernstein's bound for small samples."""
        sds, reports = self.sds[line], self.reports[line]
        largest = self.farthest(self.sampled[line]) if bounded and reports.small_sample else None
        zeros, counts = np.zeros_like(sds), self.counts.astype(np.int64)
        return Prediction(zeros, sds**2, counts, reports=reports, largest=largest, rows=rows)

    def rows(self, workload: Workload, schema: Any) -> Rows:
        """The rows of each dimension of a schema; of several classes of a row, the one of largest variance."""
        found = []
        for dimension, k in zip(
            schema.dimensions if schema is not None else (), workload.places, strict=False
        ):
            group = workload.groups[k]
            for part, name in enumerate(group.row_names):
                of_row = [
                    c for c, at in enumerate(zip(self.group, self.part, strict=True)) if at == (k, part)
                ]
                index = max(of_row, key=lambda c: float(self.variances[0, c]))
                unit = group.choices if name == "number chosen" else 1.0 if part else dimension.half_range
                found.append(PredictedRow(dimension.name, name, index, float(unit)))
        return tuple(found)


def classes(
    workload: Workload,
    mechanism_name: str,
    method: str,
    users: int,
    epsilon: float,
    sampled: tuple[int, ...],
    *,
    worst: bool = False,
    effort: Effort = "table",
) -> Classes:
    """The variances of all rows if `mechanism_name` answers numbers and `method` categories."""
    arranged = arrangement(mechanism_name)
    lines, reports = [], []
    for m in sampled:
        share, budget = arranged.share(workload, m), arranged.budget(epsilon, m)
        inverse = mean_inverse_count(users, share)
        κ = float(sampling_factor(users, inverse))
        line = []
        for k, count, report in _reports(workload, mechanism_name, method, budget, m, effort):
            group = workload.groups[k]
            rows = _rows(group, count, report, budget, κ, worst=worst)
            wide = 1.0
            if group.optional:
                error = math.sqrt(inverse * rows[1][0])
                wide = float(widening(error, group.expected_present, workload.n_coordinates))
            line += [(inverse * v, alike, k, i, 1.0 if i == 1 else wide) for i, (v, alike) in enumerate(rows)]
        lines.append(line)
        reports.append(Counts(users, share))
    variances, counts, numbers, parts, wider = np.moveaxis(np.array(lines, np.float64), -1, 0)
    group_of, part = (tuple(int(k) for k in x[0]) for x in (numbers, parts))
    scales = np.array([workload.groups[k].scale for k in group_of])
    reach = partial(farthest, workload, mechanism_name, epsilon)
    return Classes(sampled, variances, counts[0], scales, wider, group_of, part, tuple(reports), reach)


def _reports(workload: Workload, name: str, method: str, budget: float, m: int, effort: Effort) -> Reports:
    """For dimensions with the same distribution: their group, their count, and the report about each coordinate."""
    if workload.numeric:
        yield from arrangement(name).reports(workload, name, budget, m, effort)
    for k, group in enumerate(workload.groups):
        if group.choices:
            yield k, group.count, selection_response(budget, group.size, group.choices).marginal()
        elif group.size:
            base = ALONE if name == PAIR else name
            yield k, group.count, Indicator(*entry_variances(method, base, budget, group.size))
        elif group.length:
            yield k, group.count, vector_report(budget, group.length + group.optional)
        elif group.optional and budget < JOINT_FROM:
            yield k, group.count, INFEASIBLE
        elif group.optional:
            yield k, group.count, optional_design(budget) if effort == "design" else quick_optional(budget)


def _rows(
    group: Group, count: int, report: Coordinate, budget: float, κ: float, *, worst: bool
) -> list[tuple[float, int]]:
    """The contribution of one report to the variance of a row, E Var + κ·Var E, and the number of such rows."""
    each = count * max(group.size, group.length, 1)
    if group.optional and report is INFEASIBLE:
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
    if worst and group.length > 1:  # the other coordinates are 0
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
    """The variance of one report about the number of choices, divided by the largest number."""
    chosen = np.linspace(0.0, group.choices, 65) if worst else np.array([group.expected_choices])
    response: Any = selection_response(budget, group.size, group.choices)
    return float(response.number_variance(chosen).max()) / group.choices**2 + (0.25 * κ if worst else 0.0)


def farthest(workload: Workload, mechanism_name: str, epsilon: float, m: int) -> float | None:
    """The largest distance of a report from its value, for numbers and vectors; None if there are none."""
    budget, found = split_budget(epsilon, m), list[float]()
    for group in workload.groups:
        if group.length:
            decoder = vector_report(budget, group.length + group.optional).decoders["value"]
            reach = float(np.abs(decoder).max())
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
