"""The variance of the `optimal` table as a curve of ε, so that planning need not solve linear programmes.

`optimal_curve.json` holds, for a few dozen budgets, the variance V(t) of the designed table at |t| = 0, 1/8, …, 1 and
its mean over t uniform, each divided by Duchi's C² = coth²(ε/2), the scale of the answer. Between the budgets the
logarithms are interpolated (monotone cubics in log ε); below the first the table is Duchi's, above the last it stays
as it is. `write` makes the file anew.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

__all__ = ["BUDGETS", "OptimalCurve", "design_row", "write"]

Floats = NDArray[np.float64]

BUDGETS = (
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0,
    4.5, 5.0, 5.5, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 16.0, 20.0, 24.0, 32.0,
)  # fmt: skip
POINTS = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True)
class OptimalCurve:
    """What planning needs to know of an `optimal` report: the designed table's variance.

    >>> curve = OptimalCurve(1.0)
    >>> 3.5 < float(curve.variance(0.5)) < 4.1  # Piecewise has 4.07 there, and 5.22 at the end
    True
    """

    epsilon: float

    def variance(self, t: ArrayLike, /) -> Floats:
        """V(|t|), linear in t² between the stored points."""
        row = _row(self.epsilon)[:-1]
        return np.asarray(np.interp(np.square(np.asarray(t, dtype=np.float64)), POINTS**2, row))

    @property
    def mean_variance(self) -> float:
        """V̄ over t uniform on [−1, 1]."""
        return float(_row(self.epsilon)[-1])


def _scale(epsilon: float) -> float:
    return 1.0 / math.tanh(epsilon / 2)


@cache
def _curve() -> tuple[Floats, Any]:
    stored = json.loads(files("hdr4me.planner").joinpath("optimal_curve.json").read_text("utf-8"))
    x = np.log(np.array(stored["epsilon"]))
    return x, PchipInterpolator(x, np.log(np.array(stored["variance"])), axis=0)


@cache
def _row(epsilon: float) -> Floats:
    """V at the points, and V̄, in plain units."""
    x, curve = _curve()
    at = math.log(epsilon)
    if at <= x[0]:  # Duchi's variance C² − t², in units of C², scaled by what is left at the first budget
        first, duchi = np.exp(curve(x[0])), _duchi(math.exp(x[0]))
        return np.asarray(first / duchi * _duchi(epsilon) * _scale(epsilon) ** 2)
    if at > x[-1]:  # what is private at the last budget is private at more
        return _row(math.exp(x[-1]))
    return np.asarray(np.exp(curve(at)) * _scale(epsilon) ** 2)


def _duchi(epsilon: float) -> Floats:
    shape = np.concatenate([POINTS**2, [1.0 / 3.0]])
    return np.asarray(1.0 - shape / _scale(epsilon) ** 2)


def design_row(epsilon: float) -> list[float]:
    """What the file stores for one budget, from the designed table itself."""
    from hdr4me.mechanisms import mechanism

    table: Any = mechanism("optimal", epsilon=epsilon)
    row = np.append(table.variance(POINTS), table.mean_variance())
    return [float(f"{x:.9g}") for x in row / _scale(epsilon) ** 2]


def write() -> None:  # pragma: no cover - run by hand after `optimal` changes
    """Design every table and store its variances."""
    from pathlib import Path

    rows = [design_row(epsilon) for epsilon in BUDGETS]
    text = json.dumps({"epsilon": BUDGETS, "points": POINTS.tolist(), "variance": rows}, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n", "utf-8")
