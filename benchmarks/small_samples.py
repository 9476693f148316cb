"""Coverage and width of 95 % intervals in small samples.

    PYTHONPATH=src python benchmarks/small_samples.py > benchmarks/results/small_samples.md

Every cell simulates reports with the survey's table and evaluates `Answer.interval`, individual and simultaneous, and
the normal law (the standard error times Student's quantile). `all` sends every dimension, `tenth` one of ten.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import datasets

import hdr4me as hd
from hdr4me.statistics import estimate
from hdr4me.statistics.intervals import quantile
from hdr4me.survey.layout import Layout

RUNS, ROWS, LEVEL = 15, 20, 0.95
ALL = RUNS * ROWS
RNG = np.random.default_rng(2026)


@dataclass(frozen=True)
class Counts:
    """Simulated counts instead of a tally."""

    survey: hd.Survey
    counts: np.ndarray
    n_reports: int

    @property
    def layout(self) -> Layout:
        return Layout.of(self.survey)


def populations(n: int) -> dict[str, np.ndarray]:
    """Values on [−1, 1]; real columns are drawn from with replacement."""
    cancer, digits = datasets.load_breast_cancer().data[:, 3], datasets.load_digits().data[:, 28]
    return {
        "uniform": RNG.uniform(-1, 1, n),
        "skewed": 2 * RNG.beta(0.5, 10, n) - 1,
        "2 % at 1": np.where(np.arange(n) < max(1, n // 50), 1.0, -1.0),
        "two points": np.where(np.arange(n) % 2, 1.0, -1.0),
        "cancer area": RNG.choice(cancer / 2500 * 2 - 1, n),
        "digits pixel": RNG.choice(digits / 16 * 2 - 1, n),
    }


def drawn(rows: np.ndarray, values: np.ndarray, r: int) -> np.ndarray:
    """Cell counts of r of the users."""
    levels, cells = rows.shape
    asked = RNG.choice(values, r, replace=False) if r < values.size else values
    place = (asked + 1) / 2 * (levels - 1)
    level = np.minimum(np.floor(place).astype(int), levels - 2)
    level = level + (RNG.random(r) < place - level)
    edges = (rows.cumsum(axis=1) + np.arange(levels)[:, None]).ravel()
    cell = np.searchsorted(edges, level + RNG.random(r), side="right") - level * cells
    return np.bincount(np.clip(cell, 0, cells - 1), minlength=cells)


def hits(answer: hd.Answer, truth: np.ndarray) -> np.ndarray:
    """Individual, normal, simultaneous and simultaneous normal coverage; two widths; the share of small-sample rows."""
    reach = quantile(LEVEL, answer.n_answers) * answer.scaled_error
    joint_reach = quantile(LEVEL, answer.n_answers, len(answer)) * answer.scaled_error
    low, high = answer.interval(LEVEL)
    joint_low, joint_high = answer.interval(LEVEL, simultaneous=True)
    off = np.abs(answer.value - truth)
    return np.array(
        [
            np.mean((low <= truth) & (truth <= high)),
            np.mean(off <= reach),
            np.all((joint_low <= truth) & (truth <= joint_high)),
            np.all(off <= joint_reach),
            np.median(high - low),
            np.median(2 * reach),
            np.mean([law == "small sample" for law in answer.laws(LEVEL)]),
        ]
    )


def line(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def table(title: str) -> None:
    print(f"\n## {title}\n")
    line("mechanism", "ε", "answers", "asked", "values", "alone", "(normal)", "at once", "(normal)",
         "width", "(normal)", "small-sample rows")  # fmt: skip
    line(*["---"] * 12)


def numbers() -> list[float]:
    alone = []
    table(f"Means: {ALL} intervals alone, {RUNS} times {ROWS} at once")
    schema = hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(ALL)])
    for mechanism in ("duchi", "piecewise", "optimal"):
        for ε in (1.0, 4.0, 8.0):
            survey = hd.Survey(schema, epsilon=ε * ALL, mechanism=mechanism, sampled=ALL)
            rows = survey.questions[0].channel.response.marginal().rows
            for r in (20, 50, 200, 1000, 2000):
                for asked, n in (("all", r), ("tenth", 10 * r)):
                    for name, values in populations(n).items():
                        counts = np.concatenate([drawn(rows, values, r) for _ in range(ALL)])
                        whole = estimate(Counts(survey, counts, n))
                        parts = [whole._select(np.arange(k, k + ROWS)) for k in range(0, ALL, ROWS)]
                        found = [hits(part, np.full(ROWS, values.mean())) for part in parts]
                        alone.append(show(mechanism, ε, r, asked, name, np.mean(found, axis=0)))
    return alone


def show(mechanism: str, ε: float, r: int, asked: str, name: str, mean: np.ndarray) -> float:
    line(mechanism, f"{ε:g}", r, asked, name, *(f"{x:.3f}" for x in mean[:4]),
         f"{mean[4]:.3g}", f"{mean[5]:.3g}", f"{mean[6]:.2f}")  # fmt: skip
    return float(mean[0])


def categories() -> list[float]:
    alone = []
    runs = 60
    table(f"Frequencies: {runs} collections, all of whose categories are looked at")
    engine, folder = hd.engines.Local(threads=1), tempfile.mkdtemp()
    for mechanism in ("grr", "oue", "subset"):
        for size in (10, 100):
            for ε in (1.0, 4.0):
                schema = hd.Schema([hd.Categorical("c", [str(k) for k in range(size)])])
                survey = hd.Survey(schema, epsilon=ε, categorical=mechanism)
                for n in (50, 200, 1000, 2000):
                    for name, weight in (
                        ("Zipf", 1 / np.arange(1, size + 1)),
                        ("even", np.ones(size)),
                        ("one category", np.arange(size) == 0),
                    ):
                        values = RNG.choice(size, n, p=weight / weight.sum())
                        truth = np.bincount(values, minlength=size) / n
                        found = []
                        for _ in range(runs):
                            path = Path(folder, "reports.parquet")
                            engine.perturb(values[:, None].astype(float), survey, path)
                            found.append(hits(engine.tally(path, survey).estimate(), truth))
                        alone.append(show(f"{mechanism}, {size}", ε, n, "all", name, np.mean(found, axis=0)))
    return alone


def main() -> None:
    print("# Intervals of 95 % in small samples\n\nMade by `benchmarks/small_samples.py`.")
    which = sys.argv[1:] or ["numbers", "categories"]
    for part in which:
        found = np.array({"numbers": numbers, "categories": categories}[part]())
        print(f"\n{part}: lowest share of intervals that hold {found.min():.3f}, cells below 0.93: "
              f"{np.count_nonzero(found < 0.93)} of {found.size}, mean {found.mean():.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
