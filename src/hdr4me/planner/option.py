"""One way to run the collection, with the error it will have."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput
from hdr4me.framework.prediction import Prediction
from hdr4me.planner.beliefs import half_range
from hdr4me.planner.candidates import (
    BLOCKS,
    PAIR,
    Candidate,
    Classes,
    arrangement,
    block_names,
    neighbours,
)
from hdr4me.planner.reports import ALONE
from hdr4me.planner.search import Setting
from hdr4me.planner.workload import Workload, baseline

if TYPE_CHECKING:
    from hdr4me.survey import Schema, Survey


Floats = NDArray[np.float64]


class Draw(NamedTuple):
    """The probability of each question, and the error of an even draw over this one's."""

    shares: Floats
    gain: float


def best_draw(errors: ArrayLike, importance: ArrayLike | None = None) -> Draw:
    """How often each question should be asked, where one value is sent: the draw of least total error.

    With question j drawn with probability p_j its error is about s_j/(n·p_j), where s_j is the sum over its coordinates
    of a report's variance. The sum over j of w_j·s_j/p_j, w_j being its importance (1 each if left out), is least for
    p_j ∝ √(w_j·s_j); against an even draw it falls by the factor d·Σ w_j·s_j/(Σ √(w_j·s_j))².

    >>> draw = best_draw([1.0, 1.0, 4.0])
    >>> draw.shares.tolist(), draw.gain
    ([0.25, 0.25, 0.5], 1.125)
    """
    s = np.asarray(errors, dtype=np.float64)
    w = np.ones_like(s) if importance is None else np.asarray(importance, dtype=np.float64)
    if s.ndim != 1 or w.shape != s.shape or not ((s > 0) & (w > 0) & np.isfinite(s * w)).all():
        raise InvalidInput.of(
            "importance", importance, f"one finite number > 0 for each of {s.size} questions"
        )
    root = np.sqrt(w * s)
    return Draw(root / root.sum(), float(s.size * np.sum(w * s) / root.sum() ** 2))


@dataclass(frozen=True)
class Recalibration:
    """What shrinking the estimates can bring, if true means are spread evenly over the domain.

    `gain` is the share of the MSE that the best linear shrinkage removes, σ²/(σ² + τ²) with τ² the true means' mean
    square. `l1_harms` is the share of dimensions that L1 at one standard error makes worse (|θ| > 1.28 σ).
    """

    verdict: str
    gain: float
    l1_harms: float


def recalibration(mse: float, all_zeros_mse: float) -> Recalibration:
    """Is re-calibration likely to help at this error?

    >>> recalibration(10.0, 1 / 3).verdict, recalibration(1e-4, 1 / 3).verdict
    ('likely to help', 'not worth while')
    """
    gain = mse / (mse + all_zeros_mse)
    reach = math.sqrt(3 * all_zeros_mse)  # means spread evenly on ±reach have this mean square
    harms = max(0.0, 1.0 - 1.28 * math.sqrt(mse) / reach)
    verdict = "likely to help" if gain >= 0.25 else "of little help" if gain >= 0.05 else "not worth while"
    return Recalibration(verdict, gain, harms)


@dataclass(frozen=True, repr=False)
class Option:
    """A mechanism and a number of sampled dimensions, and the error that the framework predicts.

    `probability_within` is that of the least certain coordinate alone, `joint_probability_within` that of all at
    once, both for `tolerance`; `tolerance_each` and `tolerance_joint` are the tolerances kept with `probability`.
    `worst_*` are the same over all populations there can be. Numbers are on the [−1, 1] scale, frequencies on [0, 1],
    coordinates of vectors are shares of the largest norm.
    Where dimensions have tolerances of their own, `tolerance` is the smallest on that scale and the others keep their
    proportion to it. `few` says that there are so few reports per dimension that their number is summed over and the
    worst case is Bernstein's bound. `all_zeros_mse` and `even_mse` are what two answers that ask nobody would score.
    """

    mechanism: str
    n_sampled: int
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
    n_users: int
    n_dims: int
    epsilon: float
    epsilon_per_value: float
    reports_per_dimension: float
    few: bool
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
            f"<Option {self.mechanism}, m = {self.n_sampled}: MSE {self.mse:.4g}, each within "
            f"±{self.tolerance_each:.3g} with {100 * self.probability:g} % probability>"
        )

    @property
    def name(self) -> str:
        """The mechanism for numbers, and the method for categories beside it."""
        both = self.categorical and self.workload.numeric
        return f"{self.mechanism} + {self.categorical}" if both else self.mechanism

    @property
    def beats_baseline(self) -> bool:
        """Is the expected error below what an answer that asks nobody would score?"""
        return self.mse < min(self.all_zeros_mse, self.even_mse)

    def survey(self, schema: Schema | None = None, name: str = "") -> Survey:
        """The survey that carries this option out; `schema` may be left out if the plan was made for one."""
        from hdr4me.survey import Survey
        from hdr4me.survey.design import design

        schema = self.schema if schema is None else schema
        if schema is None:
            raise InvalidInput("schema is missing: this plan was made for a number of dimensions only")
        if Workload.of(schema).shape != self.workload.shape:
            raise InvalidInput(
                f"schema of {len(schema)} dimensions is not what was planned: {self.workload.what}"
            )
        if self.mechanism == BLOCKS:
            blocks = block_names(schema.names, self.n_sampled)
            return Survey(schema, epsilon=self.epsilon, blocks=blocks, name=name)
        priors = (self.workload.groups[k].prior for k in self.workload.numbers)
        questions = design(
            schema,
            self.epsilon_per_value,
            ALONE if self.base == PAIR else self.base,
            self.categorical or "auto",
            pairs=neighbours(schema) if self.base == PAIR else (),
            priors=dict(zip(Workload.number_names(schema), priors, strict=True)),
        )
        return Survey.from_questions(
            schema, epsilon=self.epsilon, n_sampled=self.n_sampled, questions=questions, name=name
        )

    @property
    def base(self) -> str:
        """The numeric mechanism under histogram encoding."""
        return self.mechanism if self.workload.numeric else ALONE

    def classes(self, *, worst: bool = False) -> Classes:
        """The coordinates' variances, grouped by kind."""
        candidate = self.mechanism, self.categorical
        return self.setting.classes(candidate, (self.n_sampled,), worst=worst, effort="design")

    def deviation(self, *, worst: bool = False) -> Prediction:
        """The law of θ̂ − θ̄ behind the numbers, coordinates grouped by kind."""
        made = self.classes(worst=worst)
        v = made.variances[0]
        return Prediction(np.zeros_like(v), v, made.counts.astype(np.int64))

    def draw(self, importance: Any = None) -> Draw:
        """How often each group's dimensions should be asked where one value is sent, and what that gains.

        One share for each dimension, groups in the workload's order; `importance` is one number for each.
        """
        made = self.classes()
        total = made.variances[0] * self.reports_per_dimension * made.counts
        counts = np.array([group.count for group in self.workload.groups])
        return best_draw(np.repeat(np.bincount(made.group, total) / counts, counts), importance)

    @property
    def errors(self) -> dict[str, float]:
        """The predicted standard errors of selections, vectors and what is optional, by the name of the row.

        Of a selection its shares and its mean number of choices; of a vector the mean of a coordinate (the root mean
        square over the coordinates) and of an optional number the mean, in own units; of what is optional the share of
        users who have it. The largest where several rows have the same name.
        """
        made, found = self.classes(), dict[str, float]()
        own: dict[int, list[float]] = {k: [] for k in made.group}
        for k, variance in zip(made.group, made.variances[0].tolist(), strict=True):
            own[k].append(math.sqrt(variance))
        for k, group in enumerate(self.workload.groups):
            if group.choices:
                of = f"of {group.size:,}, at most {group.choices:,}"
                found |= {f"share {of}": own[k][0], f"number {of}": own[k][1] * group.choices}
        named = () if self.schema is None else self.schema.dimensions
        for dimension, k in zip(named, self.workload.places, strict=False):
            group = self.workload.groups[k]
            if group.length or group.optional:
                row = "coordinate" if group.length else "mean"
                found[f"{row} of {dimension.name}"] = own[k][0] * half_range(dimension)
            if group.optional:
                found[f"share with {dimension.name}"] = own[k][1]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON; infinite tolerances are null."""
        plain = {k: v for k, v in vars(self).items() if k not in ("setting", "schema")}
        plain["recalibration"] = asdict(self.recalibration)
        return plain


def make_option(
    setting: Setting,
    candidate: Candidate,
    n_sampled: int,
    tolerance: float | None,
    probability: float,
    schema: Any = None,
) -> Option:
    """Everything about one candidate; without a tolerance, the one that all coordinates keep with `probability`."""
    workload, n_users, epsilon = setting.workload, setting.n_users, setting.epsilon
    assumed, largest = (
        setting.classes(candidate, (n_sampled,), worst=worst, effort="design")
        for worst in (setting.worst, True)
    )
    reports = assumed.reports[0]
    single, bound = assumed.prediction(), largest.prediction(bounded=True)
    together = assumed.prediction(bounded=workload.n_coordinates > 1)
    joint = together.tolerance(probability, jointly=True)
    ξ = joint if tolerance is None else tolerance
    without = baseline(workload)
    mse = float(assumed.mse[0])
    return Option(
        mechanism=candidate.mechanism,
        n_sampled=n_sampled,
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
        n_users=n_users,
        n_dims=workload.n_dims,
        epsilon=epsilon,
        epsilon_per_value=arrangement(candidate.mechanism).budget(epsilon, n_sampled),
        reports_per_dimension=n_users * reports.share,
        few=reports.few,
        categorical=candidate.method,
        all_zeros_mse=without.zeros,
        even_mse=without.even,
        recalibration=recalibration(mse, without.zeros),
        setting=setting,
        schema=schema,
    )
