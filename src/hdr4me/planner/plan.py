"""A plan: ways to run a collection with their predicted errors, best first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.framework import deviation
from hdr4me.framework.prediction import Prediction
from hdr4me.mechanisms.registry import scaled_mechanism
from hdr4me.pages.text import pluralize
from hdr4me.planner.candidates import (
    BLOCKS,
    PAIR,
    Candidate,
    Classes,
    arrangement,
    block_names,
    neighbors,
)
from hdr4me.planner.reports import ALONE
from hdr4me.planner.search import Setting, solve
from hdr4me.planner.words import not_reachable, notes, number, percent, summary
from hdr4me.planner.workload import Workload, baseline, size_of

if TYPE_CHECKING:
    from hdr4me.survey import Schema, Survey

Floats = NDArray[np.float64]
_TOLERANCES = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0)
# The bias of raw Square wave depends on the true mean: values are spread evenly over [0, 1], as in the case study.
_VALUES = (np.arange(64) + 0.5) / 64


class Draw(NamedTuple):
    """The probability of each question, and the ratio of the error of equal probabilities to the error of these."""

    shares: Floats
    gain: float


def best_draw(errors: ArrayLike, importance: ArrayLike | None = None) -> Draw:
    """The probabilities p_j ∝ √(w_j·s_j), which minimize the total error Σ w_j·s_j/p_j (s_j: a report's variance)."""
    s = np.asarray(errors, dtype=np.float64)
    w = np.ones_like(s) if importance is None else np.asarray(importance, dtype=np.float64)
    if s.ndim != 1 or w.shape != s.shape or not ((s > 0) & (w > 0) & np.isfinite(s * w)).all():
        raise InvalidInput.of("importance", importance, f"one positive number for each of {s.size} questions")
    root = np.sqrt(w * s)
    return Draw(root / root.sum(), float(s.size * np.sum(w * s) / root.sum() ** 2))


@dataclass(frozen=True)
class Recalibration:
    """The share of the MSE that linear shrinkage removes if true means are uniform, and the share of dimensions whose
    error L1 increases."""

    verdict: str
    gain: float
    l1_harms: float


def recalibration(mse: float, all_zeros_mse: float) -> Recalibration:
    """Whether re-calibration is likely to help at this error."""
    gain = mse / (mse + all_zeros_mse)
    reach = math.sqrt(3 * all_zeros_mse)  # means uniform on ±reach have this mean square
    harms = max(0.0, 1.0 - 1.28 * math.sqrt(mse) / reach)
    verdict = "likely to help" if gain >= 0.25 else "of little help" if gain >= 0.05 else "not worthwhile"
    return Recalibration(verdict, gain, harms)


@dataclass(frozen=True, repr=False)
class Option:
    """A mechanism and a number of sampled dimensions, and the error that the framework predicts.

    `probability_within` is the probability that the least accurate coordinate meets `tolerance` (the smallest one, if
    dimensions have their own), and `joint_probability_within` that all coordinates meet it. `tolerance_each` and
    `tolerance_joint` hold with `probability`; `worst_*` are for the worst population. Numbers are on the scale
    [−1, 1], frequencies on [0, 1], and coordinates of vectors are divided by the largest norm. `small_sample` is true
    if bounds replace the normal approximation. `all_zeros_mse` and `even_mse` are the errors of two answers that need
    no data: zero for every mean and frequency, and zero for means and 1/v for frequencies.
    """

    mechanism: str
    sampled: int
    mse: float
    probability_within: float
    joint_probability_within: float
    tolerance: float
    probability: float
    tolerance_each: float
    tolerance_joint: float
    worst_mse: float
    worst_tolerance_each: float
    worst_tolerance_joint: float
    users: int
    dims: int
    epsilon: float
    epsilon_per_value: float
    reports_per_dimension: float
    small_sample: bool
    categorical: str
    all_zeros_mse: float
    even_mse: float
    recalibration: Recalibration
    setting: Setting
    schema: Any = None

    @property
    def workload(self) -> Workload:
        """What is to be estimated."""
        return self.setting.workload

    def __repr__(self) -> str:
        return (
            f"<Option {self.mechanism}, m = {self.sampled}: MSE {self.mse:.4g}, each within "
            f"±{self.tolerance_each:.3g} with {100 * self.probability:g} % probability>"
        )

    @property
    def name(self) -> str:
        """The mechanism for numbers, and the method for categories beside it."""
        both = self.categorical and self.workload.numeric
        return f"{self.mechanism} + {self.categorical}" if both else self.mechanism

    @property
    def beats_baseline(self) -> bool:
        """Whether the expected error is below that of the best answer that needs no data."""
        return self.mse < min(self.all_zeros_mse, self.even_mse)

    def survey(self, schema: Schema | None = None, name: str = "") -> Survey:
        """The survey that deploys this option; `schema` may be left out if the plan was made for one."""
        from hdr4me.survey import Survey, Tolerance
        from hdr4me.survey.design import design

        schema = self.schema if schema is None else schema
        if schema is None:
            raise InvalidInput(
                "schema is missing: this plan was made for a number of dimensions, so give the schema"
            )
        if Workload.of(schema).shape != self.workload.shape:
            raise InvalidInput(
                f"schema of {len(schema)} dimensions does not match the plan, which is for {self.workload.what}"
            )
        setting, tolerance = self.setting, None
        if setting.tolerance is not None:
            units = {d.name: d.half_range * setting.scales.get(d.name, 1.0) for d in schema.dimensions}
            own = {name: setting.tolerance * unit for name, unit in units.items() if math.isfinite(unit)}
            tolerance = Tolerance(own, self.probability, setting.jointly)
        if self.mechanism == BLOCKS:
            blocks = block_names(schema.names, self.sampled)
            return Survey(
                schema, epsilon=self.epsilon, block_questions=blocks, name=name, tolerance=tolerance
            )
        priors = (self.workload.groups[k].prior for k in self.workload.numbers)
        questions = design(
            schema,
            self.epsilon_per_value,
            ALONE if self.base == PAIR else self.base,
            self.categorical or "auto",
            pair_questions=neighbors(schema) if self.base == PAIR else (),
            priors=dict(zip(Workload.number_names(schema), priors, strict=True)),
        )
        return Survey.from_questions(
            schema,
            epsilon=self.epsilon,
            sampled=self.sampled,
            questions=questions,
            name=name,
            tolerance=tolerance,
        )

    @property
    def base(self) -> str:
        """The numeric mechanism under histogram encoding."""
        return self.mechanism if self.workload.numeric else ALONE

    def classes(self, *, worst: bool = False) -> Classes:
        """The coordinates' variances, grouped by kind."""
        candidate = self.mechanism, self.categorical
        return self.setting.classes(candidate, (self.sampled,), worst=worst, effort="design")

    def deviation(self, *, worst: bool = False) -> Prediction:
        """The law of θ̂ − θ̄ of every row, in classes of rows with the same distribution."""
        made = self.classes(worst=worst)
        v = made.variances[0]
        rows = made.rows(self.workload, self.schema)
        return Prediction(np.zeros_like(v), v, made.counts.astype(np.int64), rows=rows)

    def draw(self, importance: Any = None) -> Draw:
        """The best probability of each question if every person answers one; groups are in the workload's order."""
        made = self.classes()
        total = made.variances[0] * self.reports_per_dimension * made.counts
        counts = np.array([group.count for group in self.workload.groups])
        return best_draw(np.repeat(np.bincount(made.group, total) / counts, counts), importance)

    @property
    def errors(self) -> dict[str, float]:
        """The predicted standard errors of selections, vectors and optional values, in own units, by row."""
        found = self.deviation().standard_errors
        plain = {d.name for d in self.schema or () if not any(size_of(d)[1:])}
        return {row.label: error for row, error in found.items() if row.dimension not in plain}

    def own_units(self, requested: Mapping[str, float], *, common: bool) -> dict[str, dict[str, float]]:
        """For each requested dimension, in own units: the tolerance kept alone, by all together, and at worst.

        With `common`, the joint tolerances are proportional to the requested ones, else to each row's standard error.
        """
        p, several, found = self.probability, self.workload.n_coordinates > 1, dict[str, dict[str, float]]()
        assumed, largest = self.classes(worst=self.setting.worst), self.classes(worst=True)
        for of, made, bounded in (
            ("each", assumed, False),
            ("all", assumed, several),
            ("worst_all", largest, True),
        ):
            law = made.prediction(bounded=bounded, rows=made.rows(self.workload, self.schema))
            if of == "each" or not common:
                tolerances = law.tolerances(p, jointly=of != "each")
            else:
                tolerances = law.in_own_units(law.tolerance(p, jointly=True))
            for row, tolerance in tolerances.items():
                scale = requested.get(row.dimension, 1.0)
                if math.isfinite(scale):
                    found.setdefault(row.dimension, {}).setdefault(of, tolerance * scale)
        return found

    def _repr_html_(self) -> str:
        from hdr4me.pages.html import table

        plain = {k: v for k, v in self.to_dict().items() if isinstance(v, str | int | float)}
        return table(["property", "value"], [[k.replace("_", " "), v] for k, v in plain.items()])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON; infinite tolerances are null."""
        plain = {k: v for k, v in vars(self).items() if k not in ("setting", "schema")}
        plain["recalibration"] = asdict(self.recalibration)
        return plain


def make_option(
    setting: Setting,
    candidate: Candidate,
    sampled: int,
    tolerance: float | None,
    probability: float,
    schema: Any = None,
) -> Option:
    """An option from a candidate; the default tolerance is the one that all coordinates keep with `probability`."""
    workload, users, epsilon = setting.workload, setting.users, setting.epsilon
    made = partial(setting.classes, candidate, (sampled,), effort="design")
    assumed, largest = made(), made(worst=True)
    reports = assumed.reports[0]
    single, bound = assumed.prediction(), largest.prediction(bounded=True)
    together = assumed.prediction(bounded=workload.n_coordinates > 1)
    joint = together.tolerance(probability, jointly=True)
    ξ = joint if tolerance is None else tolerance
    without = baseline(workload)
    mse = float(assumed.mse[0])
    return Option(
        mechanism=candidate.mechanism,
        sampled=sampled,
        mse=mse,
        probability_within=float(np.min(single.probability_within(ξ))),
        joint_probability_within=together.joint_probability_within(ξ),
        tolerance=ξ,
        probability=probability,
        tolerance_each=single.tolerance(probability),
        tolerance_joint=joint,
        worst_mse=float(largest.mse[0]),
        worst_tolerance_each=bound.tolerance(probability),
        worst_tolerance_joint=bound.tolerance(probability, jointly=True),
        users=users,
        dims=workload.dims,
        epsilon=epsilon,
        epsilon_per_value=arrangement(candidate.mechanism).budget(epsilon, sampled),
        reports_per_dimension=users * reports.share,
        small_sample=reports.small_sample,
        categorical=candidate.method,
        all_zeros_mse=without.zeros,
        even_mse=without.even,
        recalibration=recalibration(mse, without.zeros),
        setting=setting,
        schema=schema,
    )


@dataclass(frozen=True)
class Winner:
    """The mechanism with the largest probability to keep one coordinate within `tolerance`; `raw`: not calibrated."""

    tolerance: float
    mechanism: str
    sampled: int
    probability_within: float
    raw: bool


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Sequence[Option]):
    """The options, best first, with the requested tolerance.

    Parameters
    ----------
    options
        The ways to collect, best first.
    setting
        The complete problem: workload, users, budget and candidates.
    solved
        The quantity that was solved for: "users", "dims", "epsilon", or nothing.
    requested, requested_own
        The requested tolerance on the scale [−1, 1], and those by dimension in own units.
    statistic, statistic_errors
        What the options are ranked by, and the error of each option.
    left_out
        Which registered mechanisms cannot be used, and why.

    Examples
    --------
    >>> from hdr4me.planner.ask import plan
    >>> result = plan(users=10_000, dims=8, epsilon=1.0)
    >>> result.best.sampled, len(result) == len(result.options)
    (1, True)
    """

    options: tuple[Option, ...]
    setting: Setting = field(repr=False)
    solved: str = ""
    requested: float | None = None
    requested_own: Mapping[str, float] = field(default_factory=dict)
    statistic: str = "mean"
    statistic_errors: tuple[float, ...] = ()
    left_out: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Option: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Option, ...]: ...
    def __getitem__(self, index: int | slice) -> Option | tuple[Option, ...]:
        return self.options[index]

    def __len__(self) -> int:
        return len(self.options)

    def __repr__(self) -> str:
        return f"<Plan of {len(self)} options: {self.summary}>"

    def _repr_html_(self) -> str:
        from hdr4me.pages import html

        within = f"within ±{self.best.tolerance:.3g}: each"
        shown = "name sampled mse probability_within joint_probability_within tolerance_each tolerance_joint"
        rows = map(attrgetter(*shown.split()), self.mechanisms)
        columns = (
            "mechanism",
            "questions per person",
            "MSE",
            within,
            "all jointly",
            "each alone (±)",
            "all jointly (±)",
        )
        return html.paragraph(self.summary) + html.table(columns, list(rows))

    @property
    def best(self) -> Option:
        """The first option."""
        return self.options[0]

    @property
    def summary(self) -> str:
        """The predicted accuracy and the design in sentences."""
        return summary(self)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Assumptions and details in sentences, the most important first."""
        return notes(self)

    @property
    def kept(self) -> float:
        """The largest probability, over the options, that the tolerance is met: jointly, or by each."""
        jointly = self.setting.jointly
        return max(o.joint_probability_within if jointly else o.probability_within for o in self.options)

    @cached_property
    def reachable(self) -> bool:
        """Whether a candidate meets the requested tolerance; true if there is none or the plan was solved for it."""
        if self.requested is None or self.solved:
            return True
        p = self.best.probability
        return self.kept >= p or (
            not self.best.small_sample and self.setting.success(self.requested) >= math.log(p)
        )

    @property
    def shortfall(self) -> str:
        """The tolerance that is not reached and the one that is, in a sentence; empty if the plan is reachable."""
        if self.reachable:
            return ""
        assert self.requested is not None
        best, jointly = self.best, self.setting.jointly and self.best.workload.n_coordinates > 1
        return (
            f"The tolerance ±{number(self.requested)} is not reached{' by all at once' if jointly else ''} with "
            f"{percent(best.probability)} probability; ±{number(self.reached)} is"
        )

    @property
    def reached(self) -> float:
        """The smallest tolerance, over the options, that is met with the plan's probability: jointly, or by each."""
        jointly = self.setting.jointly
        return min(o.tolerance_joint if jointly else o.tolerance_each for o in self.options)

    def refusal(self) -> NotReachable:
        """The error with the nearest plan, and the users or the ε that would reach the tolerance."""
        setting, tolerance, probability = self.setting, self.requested, self.best.probability
        assert tolerance is not None
        nearest = rank(setting, None, probability, self.best.schema, "", "error")
        words = f"With {pluralize(setting.users, 'user')} and ε = {setting.epsilon:g}"
        message = not_reachable(nearest, tolerance, probability, words, self.requested_own)
        users, budget = (solve(setting, what, tolerance, probability) for what in ("users", "epsilon"))
        ways = [pluralize(users.users, "user")] if users else []
        ways += [f"ε = {budget.epsilon:g}"] if budget else []
        return NotReachable(message + (f". {' or '.join(ways)} would suffice" if ways else ""), nearest)

    def error_of(self, option: Option) -> float:
        """The error of the plan's statistic, on the scale [−1, 1], for one of its options."""
        if self.statistic == "mean":
            return math.sqrt(option.mse)
        return next(e for e, own in zip(self.statistic_errors, self.options, strict=True) if own is option)

    def table(self) -> list[dict[str, Any]]:
        """One row per option, best first, with plain values, as for a data frame."""
        names = "mechanism categorical sampled users dims epsilon mse tolerance probability_within"
        names += " joint_probability_within tolerance_each tolerance_joint worst_tolerance_joint"
        return [{name: getattr(option, name) for name in names.split()} for option in self.options]

    @property
    def mechanisms(self) -> tuple[Option, ...]:
        """The best option of each mechanism, best first."""
        seen: dict[tuple[str, str], Option] = {}
        for option in self.options:
            seen.setdefault((option.mechanism, option.categorical), option)
        return tuple(seen.values())

    @cached_property
    def winners(self) -> tuple[Winner, ...]:
        """The mechanism with the largest probability to keep each of several tolerances.

        Among unbiased mechanisms it is the one of least variance. Raw Square wave is biased at small budgets and may
        keep a wide tolerance that no unbiased mechanism keeps (the paper's Table II); surveys always calibrate it.
        """
        best, d = self.best, self.best.dims
        unbiased = min(self.mechanisms, key=lambda o: o.tolerance_each)
        law = unbiased.deviation(worst=self.setting.worst)
        tried = [(unbiased.mechanism, unbiased.sampled, law, False)]
        for m in sorted({min(d, 4**k) for k in range(9)}) if best.workload.numeric else ():
            wave = scaled_mechanism("square_wave", epsilon=best.epsilon / m)
            found = deviation(wave, users=best.users, dims=d, sampled=m, values=_VALUES)
            tried.append(("square_wave", m, found, True))
        table = []
        for ξ in sorted(x for x in {*_TOLERANCES, best.tolerance} if np.isfinite(x)):
            each = [
                Winner(ξ, name, m, float(np.min(x.probability_within(ξ))), raw) for name, m, x, raw in tried
            ]
            table.append(max(each, key=lambda winner: winner.probability_within))
        return tuple(table)

    @property
    def own_units(self) -> dict[str, dict[str, float]]:
        """For each dimension of the schema, in own units, the tolerances kept by the best option."""
        return self.best.own_units(self.setting.scales, common=self.requested is not None)

    def unit(self, name: str) -> str:
        """The unit that the schema gives a number; empty if it gives none."""
        return getattr(self.best.schema[name], "unit", None) or ""

    @property
    def requested_in_units(self) -> dict[str, float]:
        """The requested tolerance in each dimension's own units, also where it was given on the scale [−1, 1]."""
        if self.requested_own or self.requested is None or self.best.schema is None:
            return dict(self.requested_own)
        return {d.name: self.requested * d.half_range for d in self.best.schema.dimensions}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "summary": self.summary,
            "solved": self.solved,
            **{name: getattr(self.best, name) for name in ("users", "dims", "epsilon", "tolerance")},
            "tolerances": self.requested_in_units,
            "units": {name: self.unit(name) for name in self.own_units if self.unit(name)},
            "probability": self.best.probability,
            "prior": self.setting.prior_name,
            "jointly": self.setting.jointly,
            "own_units": self.own_units,
            "errors": self.best.errors,
            "beats_baseline": self.best.beats_baseline,
            "statistic": self.statistic,
            "statistic_errors": list(self.statistic_errors),
            "options": [option.to_dict() for option in self.options],
            "winners": [asdict(winner) for winner in self.winners],
            "notes": list(self.notes),
        }


def _error(rank_by: str, option: Option) -> tuple[float, float, int]:
    """The key that options are ranked by; it is rounded, so that ties go to the smaller MSE and the fewer answers."""
    setting = option.setting
    score = option.tolerance_joint if setting.jointly else option.tolerance_each
    # Bounds of small samples are not compared with the normal law.
    if rank_by == "mse" or option.small_sample:
        score = float(setting.scores(option.classes(worst=setting.worst), rank_by, option.probability)[0])
    return float(f"{score:.9e}"), float(f"{option.mse:.12e}"), option.sampled


def rank(
    setting: Setting, tolerance: float | None, probability: float, schema: Any, solved: str, rank_by: str
) -> Plan:
    """Each candidate at its best m, at the neighbors of this m, at 1 and at d, best first.

    Without a tolerance, probabilities are for the tolerance of the best option.
    """
    best = {candidate: setting.best_sampled(candidate, rank_by) for candidate in setting.candidates()}
    if tolerance is None:
        each = (make_option(setting, *at_best, None, probability, schema) for at_best in best.items())
        first = min(each, key=partial(_error, rank_by))
        tolerance = first.tolerance_joint if setting.jointly else first.tolerance_each
    mixed = setting.workload.numeric > 0 and any(candidate.method == "auto" for candidate in best)
    options = []
    for candidate, at in best.items():
        most = arrangement(candidate.mechanism).n_questions(setting.workload)
        beside = sorted({1, max(1, at - 1), at, min(most, at + 1), most})
        for m in [at] if mixed and candidate.method != "auto" else beside:
            if setting.deployable(candidate, m):
                options.append(make_option(setting, candidate, m, tolerance, probability, schema))
    if rank_by == "probability":
        options.sort(key=lambda o: (-o.joint_probability_within, o.tolerance_joint, o.sampled))
    else:
        options.sort(key=partial(_error, rank_by))
    # Subset selection with sets of one category is randomized response: equal options are shown once.
    kept: dict[tuple[Any, ...], Option] = {}
    for option in options:
        number = "" if option.categorical == option.mechanism else option.mechanism
        kept.setdefault((number, option.sampled, f"{option.mse:.9e}"), option)
    return Plan(tuple(kept.values()), setting, solved)
