"""Different tolerances, different winners (the paper's Table II, for the plan at hand).

Among unbiased mechanisms the one of least variance is the likeliest to keep any tolerance. Raw Square wave is biased:
it moves every answer towards the middle of the domain. At small budgets its error is nearly all bias, so it keeps a
wide tolerance where no unbiased mechanism does, and keeps no narrow one. Its answer tells little about the data, and no
survey deploys it without calibration. It is shown because the paper's comparison depends on it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.framework import deviation
from hdr4me.mechanisms.registry import scaled_mechanism

if TYPE_CHECKING:
    from hdr4me.planner.plan import Plan

__all__ = ["TOLERANCES", "Winner", "winners"]

TOLERANCES = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0)

# Raw Square wave's bias depends on the true mean: values spread evenly over the upper half, as in the case study.
_VALUES = (np.arange(64) + 0.5) / 64


@dataclass(frozen=True)
class Winner:
    """Who is likeliest to keep one coordinate within `tolerance`; `raw` if by shrinkage, without calibration."""

    tolerance: float
    mechanism: str
    n_sampled: int
    probability_within: float
    raw: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def winners(plan: Plan) -> tuple[Winner, ...]:
    """For each tolerance the best unbiased option or, where it does better, raw Square wave at its own best m."""
    best = plan.best
    tolerances = sorted(x for x in {*TOLERANCES, best.tolerance} if np.isfinite(x))
    d = best.n_dims
    unbiased = min(plan.mechanisms, key=lambda o: o.tolerance_each)
    law = unbiased.deviation(worst=plan.setting.worst)
    sampled = sorted({min(d, 4**k) for k in range(9)})
    waves = (
        []
        if not best.workload.numeric
        else [
            (
                m,
                deviation(
                    scaled_mechanism("square_wave", epsilon=best.epsilon / m),
                    n_users=best.n_users,
                    n_dims=d,
                    n_sampled=m,
                    values=_VALUES,
                ),
            )
            for m in sampled
        ]
    )
    table = []
    for ξ in tolerances:
        winner = Winner(
            ξ, unbiased.mechanism, unbiased.n_sampled, float(np.min(law.probability_within(ξ))), False
        )
        for m, wave in waves:
            p = float(wave.probability_within(ξ))
            if p > winner.probability_within:
                winner = Winner(ξ, "square_wave", m, p, True)
        table.append(winner)
    return tuple(table)
