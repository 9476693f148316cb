"""Optional numbers in a plan: the error of the mean among those who have one, and of their share.

The formulas are those of `hdr4me.framework.optional`. The options that are shown ask the very table that a survey has.
While a plan searches, `optional_curve.json` holds the table's second moments for some budgets: E[y²], E[yz] and E[z²]
for numbers at t = 0, 1/16, …, 1, and E[y²] and E[z²] without a number. Between the budgets they are interpolated in
log ε. `write` makes the file anew.
"""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.moments import sampled_variance, sampling_factor
from hdr4me.framework.optional import OptionalErrors, OptionalReport
from hdr4me.mechanisms.joint import JOINT_FROM, JOINT_UP_TO, optional_number
from hdr4me.planner.workload import Group

__all__ = [
    "OPTIONAL",
    "deployed_report",
    "design_moments",
    "largest_optional_error",
    "optional_variances",
    "quick_report",
    "write",
]

OPTIONAL = "optional"
"""The mechanism that serves optional numbers."""
BUDGETS = (
    0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0,
    9.0, 10.0,
)  # fmt: skip
POINTS = np.linspace(0.0, 1.0, 17)
_LEVELS = np.concatenate([-POINTS[:0:-1], POINTS])
NEVER = 1e12
"""The variance under budgets that no design is made for."""
_SHARES = np.linspace(0.0, 1.0, 65)

Floats = NDArray[np.float64]


@lru_cache(maxsize=256)
def deployed_report(epsilon: float) -> OptionalReport:
    """The report of the table that a survey has under a budget."""
    made = optional_number(epsilon)
    return OptionalReport.of(made.levels, made.weights, made.decoders["value"], made.decoders["present"])


def design_moments(epsilon: float) -> list[list[float]]:
    """What the file stores for one budget, from the design itself."""
    made = deployed_report(epsilon)
    found = []
    for each, sign in zip(made.squares, (1.0, -1.0, 1.0), strict=True):
        low, high = (np.interp(t, made.levels, each[:-1]) for t in (-POINTS, POINTS))
        found.append([float(f"{x:.7g}") for x in (*((high + sign * low) / 2), each[-1])])
    return found


@cache
def _stored() -> tuple[Floats, NDArray[Any]]:
    stored = json.loads(files("hdr4me.planner").joinpath("optional_curve.json").read_text("utf-8"))
    return np.log(np.array(stored["epsilon"])), np.array(stored["moments"])


@lru_cache(maxsize=4096)
def quick_report(epsilon: float) -> OptionalReport:
    """The moments, interpolated, from `JOINT_FROM` on; above `JOINT_UP_TO` they are those of that budget."""
    x, stored = _stored()
    at = math.log(min(epsilon, JOINT_UP_TO))
    k = min(max(int(np.searchsorted(x, at, side="right")) - 1, 0), len(x) - 2)
    share = (at - x[k]) / (x[k + 1] - x[k])
    low, high = stored[k], stored[k + 1]
    value, present = (np.exp((1 - share) * np.log(low[i]) + share * np.log(high[i])) for i in (0, 2))
    scale = np.sqrt(value * present)[:-1]
    angles = [row[1][:-1] / np.sqrt(row[0] * row[2])[:-1] for row in (low, high)]
    both = scale * ((1 - share) * angles[0] + share * angles[1])
    rows = [
        [*(sign * each[:0:-1]), *each, last]
        for each, sign, last in (
            (value[:-1], 1.0, value[-1]),
            (both, -1.0, 0.0),
            (present[:-1], 1.0, present[-1]),
        )
    ]
    return OptionalReport(_LEVELS, np.array(rows))


def optional_variances(
    group: Group, n_users: int, inverse: Floats, budgets: list[float], *, worst: bool, exact: bool = False
) -> list[tuple[Floats, float]]:
    """The variance of the mean among those who have a number, and of their share; how many there are of each.

    "Worst" is over all values and shares for the share, and over all values for the mean, if as many have one as is
    assumed: among few of the users no mean could be promised.

    Parameters
    ----------
    group
        Optional numbers that are alike.
    n_users, inverse
        n, and E[1/r] of the number r of reports, for each budget.
    budgets
        The ε of one answer.
    worst
        Whether the largest variance of any values is meant.
    exact
        Whether the table is designed at the very budget.
    """
    report = deployed_report if exact else quick_report
    κ = np.broadcast_to(sampling_factor(n_users, inverse), (len(budgets),))
    rule = _worst if worst else _expected
    found = [
        (NEVER, NEVER) if epsilon < JOINT_FROM else rule(group, report(epsilon), float(k))
        for epsilon, k in zip(budgets, κ, strict=True)
    ]
    mean, share = (
        sampled_variance(np.array(each), 0.0, n_users, inverse) for each in zip(*found, strict=True)
    )
    return [(mean, float(group.count)), (share, float(group.count))]


def _expected(group: Group, report: OptionalReport, κ: float) -> OptionalErrors:
    """The variance of a report about the mean, and about the share: its noise, and κ times the spread over users."""
    return report.errors(group.prior.values, group.prior.shares, group.expected_present, κ)


def _worst(group: Group, report: OptionalReport, κ: float) -> OptionalErrors:
    """The largest over all values: of two values with the mean R for the mean, since their moments are linear."""
    π, t = group.expected_present, _LEVELS
    largest = 0.0
    for mean in t.tolist():
        each = report.residual(t, mean) - (1 - κ) * (t - mean) ** 2
        low, high = t[t <= mean], t[t >= mean]
        gap = high[None, :] - low[:, None]
        weight = np.divide(mean - low[:, None], gap, out=np.zeros_like(gap), where=gap > 0)
        two = (1 - weight) * each[t <= mean][:, None] + weight * each[t >= mean][None, :]
        largest = max(largest, (π * float(two.max()) + (1 - π) * report.without(mean)) / π**2)
    f = _SHARES
    share = f * (report.squares[2, :-1].max() - 1.0) + (1 - f) * report.squares[2, -1] + κ * f * (1 - f)
    return OptionalErrors(largest, float(share.max()))


def largest_optional_error(epsilon: float, present: float) -> float:
    """The largest distance of (y − R·z)/π from its mean: what a bound for few reports needs."""
    budget = min(max(epsilon, JOINT_FROM), JOINT_UP_TO)
    reach = 1.6 * (math.exp(budget) + 2) / math.expm1(budget)  # no design has outputs beyond that
    return 2.0 + (2 * reach + 1.0) / present


def write() -> None:  # pragma: no cover - run by hand after a design changes
    """Design every table and store its moments."""
    from pathlib import Path

    rows = [design_moments(epsilon) for epsilon in BUDGETS]
    text = json.dumps({"epsilon": BUDGETS, "points": POINTS.tolist(), "moments": rows})
    Path(__file__).with_name("optional_curve.json").write_text(text + "\n", "utf-8")
