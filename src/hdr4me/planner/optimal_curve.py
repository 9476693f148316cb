"""The variance of the designed tables as curves of ε, so that planning need not solve linear programmes.

`optimal_curve.json` holds, for a few dozen budgets up to ε = 12, the variance V(t) of the designed table at |t| = 0,
1/8, …, 1 and its mean over t uniform, each divided by Duchi's C² = coth²(ε/2), the scale of the answer. There is one
curve for `optimal` and one for `optimal_mean` over the uniform prior. Between the budgets the logarithms are
interpolated (monotone cubics in log ε). Below the first the table is Duchi's; above ε = 12 the curve serves searches
only, for there the tables are windows, quick to make, and a plan asks the table. `write` makes the file anew.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from hdr4me.mechanisms import mechanism

__all__ = ["BUDGETS", "OptimalCurve", "design_row", "write"]

Floats = NDArray[np.float64]
Designed = Literal["optimal", "optimal_mean"]

BUDGETS = (
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0,
    4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.25, 8.5, 9.0, 9.5, 10.0, 10.5, 11.0, 11.5, 12.0,
)  # fmt: skip
_WINDOWS = (13.0, 14.0, 16.0, 20.0, 24.0, 32.0)
POINTS = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True)
class OptimalCurve:
    """What planning needs to know of a designed table's report.

    >>> curve = OptimalCurve(1.0)
    >>> 3.5 < float(curve.variance(0.5)) < 4.1  # Piecewise has 4.07 there, and 5.22 at the end
    True
    """

    epsilon: float
    name: Designed = "optimal"

    def variance(self, t: ArrayLike, /) -> Floats:
        """V(|t|), linear in t² between the stored points."""
        row = _row(self.epsilon, self.name)[:-1]
        return np.asarray(np.interp(np.square(np.asarray(t, dtype=np.float64)), POINTS**2, row))

    @property
    def mean_variance(self) -> float:
        """V̄ over t uniform on [−1, 1]."""
        return float(_row(self.epsilon, self.name)[-1])


def _scale(epsilon: float) -> float:
    return 1.0 / math.tanh(epsilon / 2)


@cache
def _curve(name: Designed) -> tuple[Floats, Any]:
    stored = json.loads(files("hdr4me.planner").joinpath("optimal_curve.json").read_text("utf-8"))
    x = np.log(np.array(stored["epsilon"]))
    return x, PchipInterpolator(x, np.log(np.array(stored[name])), axis=0)


@lru_cache(maxsize=4096)
def _row(epsilon: float, name: Designed) -> Floats:
    """V at the points, and V̄, in plain units."""
    if epsilon > _WINDOWS[-1]:
        return _row(_WINDOWS[-1], name)
    x, curve = _curve(name)
    at = math.log(epsilon)
    if at <= x[0]:  # Duchi's variance C² − t², in units of C², scaled by what is left at the first budget
        first, duchi = np.exp(curve(x[0])), _duchi(math.exp(x[0]))
        return np.asarray(first / duchi * _duchi(epsilon) * _scale(epsilon) ** 2)
    return np.asarray(np.exp(curve(at)) * _scale(epsilon) ** 2)


def _duchi(epsilon: float) -> Floats:
    shape = np.concatenate([POINTS**2, [1.0 / 3.0]])
    return np.asarray(1.0 - shape / _scale(epsilon) ** 2)


def _designed(epsilon: float, name: Designed) -> Floats:
    """The same from the designed table itself; a point stands for the largest variance near it.

    Between two levels the variance is a parabola whose peak lies between them, so each point takes the largest
    variance within half the distance of two levels; beyond ε = 8, where the peaks of `optimal` differ in height, the
    largest of all that are nearest to it.
    """
    table: Any = mechanism(name, epsilon=epsilon)
    reach = 1.0 / (table.n_levels - 1) if table.n_levels >= 17 else 0.0
    if name == "optimal" and epsilon > 8:
        reach = 1.0 / 16
    around = POINTS[:, None] + reach * np.linspace(-1.0, 1.0, 257)
    both = np.concatenate([around, -around], axis=1)
    v = table.variance(np.clip(both, -1.0, 1.0)).max(axis=1)
    return np.append(v, table.mean_variance())


def design_row(epsilon: float, name: Designed = "optimal") -> list[float]:
    """What the file stores for one budget, from the designed table itself."""
    return [float(f"{x:.9g}") for x in _designed(epsilon, name) / _scale(epsilon) ** 2]


def write() -> None:  # pragma: no cover - run by hand after a design changes
    """Design every table and store its variances."""
    from pathlib import Path

    names: tuple[Designed, ...] = ("optimal", "optimal_mean")
    rows = {name: [design_row(epsilon, name) for epsilon in (*BUDGETS, *_WINDOWS)] for name in names}
    text = json.dumps({"epsilon": (*BUDGETS, *_WINDOWS), "points": POINTS.tolist(), **rows}, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n", "utf-8")
