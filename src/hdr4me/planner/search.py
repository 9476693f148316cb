"""The search for the users, the ε or the dimensions that keep a tolerance with a probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from hdr4me.framework.moments import Floats
from hdr4me.framework.normal import log_probability_within, tolerance_for
from hdr4me.mechanisms.joint import JOINT_FROM
from hdr4me.mechanisms.registry import names
from hdr4me.planner.candidates import (
    BLOCKS,
    BLOCKS_FROM,
    CODEBOOK,
    OPTIONAL,
    PAIR,
    PRIVSET,
    Candidate,
    Classes,
    arrangement,
    classes,
    sampled_grid,
)
from hdr4me.planner.reports import ALONE, Effort, is_proven
from hdr4me.planner.workload import Workload
from hdr4me.survey.question import split_budget

MAX_USERS = 8_000_000_000  # about the number of people
MIN_EPSILON, MAX_EPSILON = 1e-4, 20.0  # a likelihood ratio of e^20 gives no useful privacy
MAX_DIMS = 65_536  # the limit of the report format


@dataclass(frozen=True)
class Setting:
    """A complete problem: workload, users, budget and candidates."""

    workload: Workload
    users: int
    epsilon: float
    mechanisms: tuple[str, ...]
    methods: tuple[str, ...]
    worst: bool = False
    jointly: bool = True
    scales: Mapping[str, float] = field(default_factory=dict)
    tolerance: float | None = None
    effort: Effort = "table"
    pairs_from: float = JOINT_FROM

    @property
    def prior_name(self) -> str:
        """Whether the prior is "worst", "uniform" or "given"."""
        even = all(g.prior.uniform and g.squares is g.present is None for g in self.workload.groups)
        return "worst" if self.worst else "uniform" if even else "given"

    def of_dims(self, dims: int) -> Setting:
        """The setting with `dims` dimensions like the first one."""
        return replace(self, workload=Workload((replace(self.workload.groups[0], count=dims),)))

    def candidates(self) -> list[Candidate]:
        """The candidates; without numbers they are named by the method for categories, or by the first kind."""
        tried = [name for name in self.mechanisms if self._is_tried(name)]
        workload = self.workload
        if not workload.categorical:
            if workload.numeric:
                return [Candidate(name) for name in tried]
            vectors = any(group.length for group in workload.groups)
            return [Candidate(PRIVSET if workload.selections else CODEBOOK if vectors else OPTIONAL)]
        sizes = [size for size, _ in workload.categorical]
        methods = [x for x in self.methods if self._fits(x, self.epsilon)]
        if {"auto", "projective"} <= set(methods):  # surveys use projective reports only if others are long
            from hdr4me.mechanisms.categorical import categorical_choice

            long = any(categorical_choice(self.epsilon, size) == "projective" for size in sizes)
            methods = [x for x in methods if x not in (("subset", "oue") if long else ("projective",))]
        if len(sizes) == 1 and len(methods) > 1:  # with a single size, "auto" equals one of the other methods
            methods = [x for x in methods if x != "auto"]
        if not workload.numeric:
            return [Candidate(method, method) for method in methods]
        return [Candidate(name, method) for name in tried for method in methods]

    def _fits(self, method: str, epsilon: float) -> bool:
        """Whether a method has channels for all categories under the budget of one answer."""
        from hdr4me.mechanisms.categorical import categorical_fits

        return all(categorical_fits(method, epsilon, size) for size, _ in self.workload.categorical)

    def deployable(self, candidate: Candidate, m: int) -> bool:
        """Whether a survey can deploy a candidate with m answers per user."""
        numbers = arrangement(candidate.mechanism)
        if not numbers.possible(self.workload, self.epsilon, m):
            return False
        if candidate.mechanism in names() and not is_proven(
            candidate.mechanism, numbers.budget(self.epsilon, m)
        ):
            return False
        return not candidate.method or self._fits(candidate.method, split_budget(self.epsilon, m))

    def _is_tried(self, name: str) -> bool:
        """Whether a candidate is tried: pairs and blocks need several numbers and a minimum ε unless they are alone."""
        least = {PAIR: self.pairs_from, BLOCKS: BLOCKS_FROM}.get(name, 0.0)
        alone = self.mechanisms == (name,) and (name == PAIR or self.workload.dims > 1)
        return alone or (self.epsilon >= least and arrangement(name).supports(self.workload))

    def classes(
        self,
        candidate: tuple[str, str],
        sampled: tuple[int, ...] | None = None,
        *,
        worst: bool | None = None,
        effort: Effort | None = None,
    ) -> Classes:
        """The candidate's variances over m."""
        name, method = candidate
        base = name if self.workload.numeric else ALONE
        grid = (
            tuple(sampled_grid(arrangement(base).n_questions(self.workload))) if sampled is None else sampled
        )
        worst = self.worst if worst is None else worst
        arguments = self.workload, base, method, self.users, self.epsilon, grid
        return classes(*arguments, worst=worst, effort=effort or self.effort)

    def best_sampled(self, candidate: Candidate, rank_by: str = "error") -> int:
        """The m of least error, searched on the grid and between the grid points beside the best one."""
        made = self.classes(candidate)
        k = int(np.argmin(self.scores(made, rank_by)))
        low, high = made.sampled[max(k - 1, 0)], made.sampled[min(k + 1, len(made.sampled) - 1)]
        m = made.sampled[k]
        if high - low > 2:
            between = tuple(sorted({round(x) for x in np.linspace(low, high, 33)}))
            m = int(between[int(np.argmin(self.scores(self.classes(candidate, between), rank_by)))])
        while m > 1 and not self.deployable(
            candidate, m
        ):  # a law of another package may need a larger budget
            m -= 1
        return m

    def scores(self, made: Classes, rank_by: str, level: float = 0.95) -> Floats:
        """What options are ranked by, at each m: the MSE, or the tolerance at a level by the normal law."""
        if rank_by == "mse":
            return made.mse
        if not self.jointly:
            return tolerance_for(made.sds.max(axis=1), level)
        σ, k = made.sds, made.counts
        low, high = tolerance_for(σ, level, n=k).max(axis=1), tolerance_for(σ.max(axis=1), level, n=k.sum())
        for _ in range(40 if σ.shape[1] > 1 else 0):  # bisection at all m together
            middle = (low + high) / 2
            short = log_probability_within(0.0, σ, middle[:, None]) @ k < math.log(level)
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high

    def success(self, tolerance: float) -> float:
        """The largest log-probability, over candidates and m, of keeping within the tolerance."""
        # The best m is about ε/2.5 and at most eight, so that a coarse grid beyond 16 is sufficient.
        best = -math.inf
        candidates = self.candidates()
        if self.workload.numeric and any(method == "auto" for _, method in candidates):
            # "auto" is at least as accurate for categories as randomized response and unary encoding.
            candidates = [candidate for candidate in candidates if candidate[1] == "auto"]
        for candidate in candidates:
            most = arrangement(candidate.mechanism).n_questions(self.workload)
            made = self.classes(candidate, tuple(sampled_grid(most, dense=16, step=1.5)))
            within = log_probability_within(0.0, made.sds, tolerance)
            score = within @ made.counts if self.jointly else within.min(axis=1)
            k = int(score.argmax())
            log = float(score[k])
            if made.reports[k].small_sample:
                found = made.prediction(k, bounded=self.jointly and self.workload.n_coordinates > 1)
                log = found.log_joint_probability_within(tolerance)
                if not self.jointly:
                    with np.errstate(divide="ignore"):
                        log = float(np.log(found.probability_within(tolerance).min()))
            best = max(best, log)
        return best


def solve(setting: Setting, what: str, tolerance: float, probability: float) -> Setting | None:
    """The setting with the fewest users, the smallest ε or the most dimensions that keep the tolerance, if any."""
    target = math.log(probability)

    def meets(tried: Setting) -> bool:
        return tried.success(tolerance) >= target

    if what == "users":
        users = _fewest(lambda n: meets(replace(setting, users=n)), MAX_USERS)
        return None if users is None else replace(setting, users=users)
    if what == "dims":
        beyond = _fewest(lambda d: not meets(setting.of_dims(d)), MAX_DIMS + 1)
        dims = MAX_DIMS if beyond is None else beyond - 1
        return setting.of_dims(dims) if dims else None
    quick = replace(setting, effort="law")
    if not meets(replace(quick, epsilon=MAX_EPSILON)):
        return None
    low, high = MIN_EPSILON, MAX_EPSILON
    if meets(replace(quick, epsilon=low)):
        return replace(setting, epsilon=low)
    for _ in range(17):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(replace(quick, epsilon=middle)) else (middle, high)
    return replace(setting, epsilon=round_up(high))


def _fewest(meets: Callable[[int], bool], most: int) -> int | None:
    """The least positive integer at which a monotone condition holds, to one millionth; None if not even at `most`."""
    if not meets(most):
        return None
    low, high = 0, most
    while high - low > max(1, high // 1_000_000):
        middle = math.isqrt(max(low, 1) * high) if high > 4 * max(low, 1) else (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def round_up(x: float) -> float:
    """`x` rounded up to four significant digits."""
    digits = 3 - math.floor(math.log10(x))
    return float(math.ceil(x * 10.0**digits - 1e-9) / 10.0**digits)
