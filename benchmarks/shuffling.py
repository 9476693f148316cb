"""Privacy amplification by shuffling, for several tables, budgets and numbers of reports, and the computing time.

    python benchmarks/shuffling.py [benchmarks/results/shuffling.json]

Every number is the central ε at δ = 1e-6 of a survey with one numeric or one categorical dimension. `exact` is that of
randomized response if all other users have the same value, a lower bound for Duchi's table; `closed` is the formula of
Feldman, McMillan and Talwar. Times are seconds of one core.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from hdr4me.accounting.shuffling import amplification
from hdr4me.survey import Categorical, Numeric, Schema, Survey

DELTA = 1e-6
BUDGETS = (1.0, 2.0, 4.0)
REPORTS = (1_000, 10_000, 100_000, 10_000_000)
NUMBERS = ("duchi", "piecewise", "optimal")
CHOICES = ("grr", "oue")


def exact_response(epsilon: float, n: int) -> float | None:
    """The exact ε of n shuffled binary responses if all other users have the same value."""
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    k = np.arange(n + 1)
    rest, shifted = binom.pmf(k, n - 1, q), binom.pmf(k - 1, n - 1, q)
    first, second = p * shifted + q * rest, q * shifted + p * rest

    def above(e: float) -> float:
        both = [
            float(np.maximum(a - math.exp(e) * b, 0).sum()) for a, b in ((first, second), (second, first))
        ]
        return max(both) - DELTA

    return float(brentq(above, 1e-7, epsilon)) if above(epsilon) < 0 < above(1e-7) else None


def surveys(epsilon: float) -> dict[str, Survey]:
    number, choice = Schema([Numeric("x", 0, 1)]), Schema([Categorical("x", [str(i) for i in range(20)])])
    made = {name: Survey(number, epsilon, mechanism=name) for name in NUMBERS}
    return made | {f"{name}, 20 categories": Survey(choice, epsilon, categorical=name) for name in CHOICES}


def main(path: Path | None) -> None:
    """One line for each budget and number of reports; all of them as JSON if a path is given."""
    rows: list[dict[str, Any]] = []
    for epsilon in BUDGETS:
        made = surveys(epsilon)
        for n in REPORTS:
            row: dict[str, Any] = {"local_epsilon": epsilon, "reports": n}
            for name, survey in made.items():
                start = time.process_time()
                found = amplification(survey, n, DELTA)
                row[name] = round(found.epsilon, 6)
                row.setdefault("seconds", {})[name] = round(time.process_time() - start, 2)
                row["closed"] = None if found.closed_form is None else round(found.closed_form, 6)
            exact = exact_response(epsilon, n) if n <= 1_000_000 else None
            row["exact"] = None if exact is None else round(exact, 6)
            if exact is not None and not exact <= row["duchi"]:
                raise AssertionError(f"below the exact value: {row}")
            if row["closed"] is not None and not max(row[name] for name in made) <= row["closed"]:
                raise AssertionError(f"above the closed form: {row}")
            rows.append(row)
            print(json.dumps(row), flush=True)
    if path is not None:
        path.write_text(json.dumps({"delta": DELTA, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
