"""The curves that the planner stores, from the designs themselves; run this file after a design changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.joint import number_pair, second_moments
from hdr4me.mechanisms.priors import as_prior
from hdr4me.planner import reports
from hdr4me.planner.reports import OPTIONAL_POINTS, POINTS, optional_design

BUDGETS = (
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0,
    4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.25, 8.5, 9.0, 9.5, 10.0, 10.5, 11.0, 11.5, 12.0,
)  # fmt: skip
WINDOWS = (13.0, 14.0, 16.0, 20.0, 24.0, 32.0)
OPTIONAL_BUDGETS = (
    0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0,
    9.0, 10.0,
)  # fmt: skip


def design_row(epsilon: float, name: str = "optimal") -> list[float]:
    """What the file stores for one budget, from the designed table itself; a point has the largest variance near it.

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
    v = np.append(table.variance(np.clip(both, -1.0, 1.0)).max(axis=1), table.mean_variance())
    return [float(f"{x:.9g}") for x in v / np.tanh(epsilon / 2) ** -2]


def pair_row(epsilon: float) -> tuple[float, float]:
    """What the file stores for one budget: E y² over values spread evenly, and the largest, from the design itself."""
    made = number_pair(epsilon)
    even = as_prior("uniform").on_levels(made.inputs[0].n_levels)
    squares = second_moments(made)
    mean = sum(float(x @ np.outer(even, even).ravel()) for x in squares) / 2
    return mean, float(np.max(squares))


def optional_row(epsilon: float) -> list[list[float]]:
    """What the file stores for one budget, from the design itself."""
    found = optional_design(epsilon).moments(np.concatenate([OPTIONAL_POINTS, -OPTIONAL_POINTS, [np.nan]]))
    n, rows = OPTIONAL_POINTS.size, []
    for (i, j), sign in zip(((0, 0), (0, 1), (1, 1)), (1.0, -1.0, 1.0), strict=True):
        each = found.second[:, i, j]
        rows.append([float(f"{x:.7g}") for x in (*((each[:n] + sign * each[n:-1]) / 2), each[-1])])
    return rows


def write() -> None:
    """Design every table and store its curves."""
    folder = Path(reports.__file__).parent
    budgets = (*BUDGETS, *WINDOWS)
    names = "optimal", "optimal_mean"
    optimal = {name: [design_row(epsilon, name) for epsilon in budgets] for name in names}
    optional = [optional_row(epsilon) for epsilon in OPTIONAL_BUDGETS]
    pairs = [float(x) for x in json.loads(folder.joinpath("pair_curve.json").read_text("utf-8"))["epsilon"]]
    mean, largest = zip(*(pair_row(epsilon) for epsilon in pairs), strict=True)
    for name, document in (
        ("optimal_curve.json", {"epsilon": budgets, "points": POINTS.tolist(), **optimal}),
        ("pair_curve.json", {"epsilon": pairs, "mean": mean, "largest": largest}),
        (
            "optional_curve.json",
            {"epsilon": OPTIONAL_BUDGETS, "points": OPTIONAL_POINTS.tolist(), "moments": optional},
        ),
    ):
        folder.joinpath(name).write_text(json.dumps(document) + "\n", "utf-8")


if __name__ == "__main__":
    write()
