"""One way to run the collection, with the error it will have."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.errors import InvalidInput
from hdr4me.framework.deviation import Deviation
from hdr4me.framework.supremum import joint_tolerance, log_probability_within
from hdr4me.planner.costs import Prior, classes
from hdr4me.planner.workload import Workload

if TYPE_CHECKING:
    from hdr4me.survey import Schema, Survey

__all__ = ["Option", "Recalibration", "make_option", "recalibration"]

# A mean's spread over dimensions when nothing is known: uniform on [−1, 1].
_SPREAD = 1.0 / 3.0


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
    words = ((0.25, "likely to help"), (0.05, "of little help"), (0.0, "not worth while"))
    return Recalibration(next(text for least, text in words if gain >= least), gain, harms)


@dataclass(frozen=True)
class Option:
    """A mechanism and a number of sampled dimensions, and the error that the framework foretells.

    `probability_within` is that of the least certain coordinate alone, `joint_probability_within` that of all at
    once, both for `tolerance`; `tolerance_each` and `tolerance_joint` are the tolerances kept with `probability`.
    `worst_*` are the same over all populations there can be. Numbers are on the [−1, 1] scale, frequencies on [0, 1].
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
    categorical: str
    all_zeros_mse: float
    recalibration: Recalibration
    workload: Workload
    schema: Any = None

    def survey(self, schema: Schema | None = None, name: str = "") -> Survey:
        """The survey that carries this option out; `schema` may be left out if the plan was made for one."""
        from hdr4me.survey import Survey

        schema = self.schema if schema is None else schema
        if schema is None:
            raise InvalidInput("schema is missing: this plan was made for a number of dimensions only")
        if Workload.of(schema) != self.workload:
            raise InvalidInput(
                f"schema of {len(schema)} dimensions is not what was planned: {self.workload.what}"
            )
        return Survey(
            schema,
            epsilon=self.epsilon,
            mechanism=self.base,
            n_sampled=self.n_sampled,
            categorical=self.categorical or "auto",
            name=name,
        )

    @property
    def base(self) -> str:
        """The numeric mechanism under histogram encoding."""
        return self.mechanism if self.workload.numeric else "optimal"

    def deviation(self, prior: Prior = "uniform") -> Deviation:
        """The law of θ̂ − θ̄ behind the numbers, coordinates grouped by kind."""
        made = _classes(
            self.workload, self.base, self.categorical, self.n_users, self.epsilon, self.n_sampled, prior
        )
        v = made.variances[0]
        nothing = np.full_like(v, np.nan)  # Berry–Esseen needs third moments, which a plan does not compute
        return Deviation(
            np.zeros_like(v), v, made.counts.astype(np.int64), self.reports_per_dimension, nothing, "exact"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        plain = asdict(self)
        del plain["workload"], plain["schema"]
        return plain


def _classes(workload: Workload, base: str, method: str, n: int, epsilon: float, m: int, prior: Prior) -> Any:
    return classes(workload, base, method, n, epsilon, (m,), prior)


def make_option(
    workload: Workload,
    mechanism: str,
    method: str,
    n_users: int,
    epsilon: float,
    n_sampled: int,
    tolerance: float | None,
    probability: float,
    prior: Prior,
    schema: Any = None,
) -> Option:
    """Everything about one candidate; without a tolerance, the one that all coordinates keep with `probability`."""
    base = mechanism if workload.numeric else "optimal"
    assumed, worst = (
        _classes(workload, base, method, n_users, epsilon, n_sampled, p) for p in (prior, "worst")
    )
    sd, worst_sd = np.sqrt(assumed.variances[0]), np.sqrt(worst.variances[0])
    counts = assumed.counts
    joint = joint_tolerance(0.0, sd, counts, probability)
    ξ = joint if tolerance is None else tolerance
    within = log_probability_within(0.0, sd, ξ)
    zeros = _all_zeros(workload)
    mse = float(assumed.mse[0])
    return Option(
        mechanism=mechanism,
        n_sampled=n_sampled,
        mse=mse,
        probability_within=float(np.exp(within.min())),
        joint_probability_within=float(np.exp(np.sum(counts * within))),
        tolerance=ξ,
        probability=probability,
        tolerance_each=joint_tolerance(0.0, sd.max(), 1, probability),
        tolerance_joint=joint,
        worst_mse=float(worst.mse[0]),
        worst_tolerance_each=joint_tolerance(0.0, worst_sd.max(), 1, probability),
        worst_tolerance_joint=joint_tolerance(0.0, worst_sd, counts, probability),
        n_users=n_users,
        n_dims=workload.n_dims,
        epsilon=epsilon,
        epsilon_per_value=epsilon / n_sampled,
        reports_per_dimension=n_users * n_sampled / workload.n_dims,
        categorical=method,
        all_zeros_mse=zeros,
        recalibration=recalibration(mse, zeros),
        workload=workload,
        schema=schema,
    )


def _all_zeros(workload: Workload) -> float:
    """What answering zero everywhere scores: means uniform on [−1, 1], frequencies uniform on the simplex.

    E θ² = 1/3 for a mean, E f² = 2/(v(v+1)) for each of v frequencies.
    """
    total = workload.numeric * _SPREAD
    total += sum(count * size * 2.0 / (size * (size + 1)) for size, count in workload.categorical)
    return total / workload.n_coordinates
