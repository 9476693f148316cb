"""How good distributions, quantiles, variances, covariances and second rounds are: seeded campaigns.

    python benchmarks/more_statistics.py            # all of it, some minutes on one core
    python benchmarks/more_statistics.py wasserstein
    python benchmarks/more_statistics.py rounds=60   # with so many draws

Writes benchmarks/results/statistics.md. Two real columns come from scikit-learn's bundled data, where it is installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd
from hdr4me.channels import Table
from hdr4me.channels.response import Marginal
from hdr4me.framework.em import Fit, climb, fit
from hdr4me.statistics.distribution import ends_of
from hdr4me.statistics.shapes import Bounds, Grid, Shape

Floats = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
P = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def populations(n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Users' values on [−1, 1]."""
    young = rng.random(n) < 0.25
    found = {
        "age": np.clip(np.where(young, rng.uniform(0, 20, n), rng.normal(45, 18, n)), 0, 100) / 50 - 1,
        "beta": rng.beta(2, 5, n) * 2 - 1,
        "income": np.clip(np.exp(rng.normal(0, 0.6, n)) / 8 * 2 - 1, -1, 1),
        "spiky": np.clip(np.where(rng.random(n) < 0.5, -0.8, rng.normal(0.3, 0.05, n)), -1, 1),
    }
    return found | {name: rng.choice(column, n) for name, column in real_columns().items()}


def real_columns() -> dict[str, Floats]:
    """Two columns of scikit-learn's data, on [−1, 1]; none where it is not installed."""
    try:
        from sklearn import datasets
    except ImportError:
        return {}
    area = datasets.load_breast_cancer().data[:, 3]
    pixel = datasets.load_digits().data[:, 28]
    return {
        "real: tumour area (0 to 3000)": np.clip(area / 1500 - 1, -1, 1),
        "real: pixel of a digit (0 to 16)": pixel / 8 - 1,
    }


def table_of(mechanism: str, epsilon: float = 1.0) -> Table:
    survey = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon, mechanism)
    channel = survey.questions[0].channel
    assert isinstance(channel, Table)
    return channel


def counts_of(values: Floats, reading: Marginal, rng: np.random.Generator) -> Floats:
    """The counts of exactly these users."""
    place = (values + 1) / 2 * (reading.levels.size - 1)
    level = np.minimum(place.astype(np.int64), reading.levels.size - 2)
    level = level + (rng.random(level.size) < place - level)
    law = reading.law[:, 0] / reading.law[:, 0].sum(axis=1, keepdims=True)
    users = np.bincount(level, minlength=reading.levels.size)
    return np.asarray(rng.multinomial(users, law).sum(axis=0), np.float64)


def tally_of(values: Floats, survey: hd.Survey, rng: np.random.Generator) -> hd.Tally:
    low, high = survey.schema.dimensions[0].bounds
    channel = survey.questions[0].channel
    assert isinstance(channel, Table)
    tally = hd.Tally(survey)
    tally.counts[:] = counts_of(
        np.clip((values - low) / (high - low) * 2 - 1, -1, 1), channel.response.marginal(), rng
    )
    tally.n_reports = len(values)
    return tally


def distance(cumulative: Floats, edges: Floats, values: Floats) -> float:
    """Wasserstein-1 on a range of width 2."""
    x = np.linspace(-1, 1, 4001)
    true = np.searchsorted(np.sort(values), x, side="right") / len(values)
    return float(np.abs(np.interp(x, edges, cumulative) - true).mean() * 2)


def published(counts: Floats, grid: Grid) -> Fit:
    """Li et al. 2020: smoothing of strength 1 on 256 bins until a step changes the likelihood by 1e-3·e^ε (ε = 1)."""
    strengths = np.ones(len(counts))
    return fit(grid.joined(counts), grid.law, grid.shape, strengths, steps=2000, tolerance=1e-3 * np.e)


def ratio(ours: Floats, theirs: Floats, of: Callable[[Floats], Floats], rng: np.random.Generator) -> str:
    """of(ours)/of(theirs) for draws of the same counts, with its standard error by bootstrap over draws."""
    picks = rng.integers(0, len(ours), (400, len(ours)))
    again = [of(ours[i]) / of(theirs[i]) for i in picks]
    return f"{of(ours) / of(theirs):.3f} ± {np.std(again):.3f}"


def wasserstein(rng: np.random.Generator, draws: int = 40) -> list[str]:
    bars = {"age": 0.012, "beta": 0.013, "income": 0.016}
    lines = [
        "| values | square_wave | SW + EMS as published | hdr4me / published | piecewise | optimal | "
        "bar (own / default table) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, values in populations(100_000, rng).items():
        cells = []
        for mechanism in ("square_wave", "piecewise", "optimal"):
            reading = table_of(mechanism).response.marginal()
            counts = np.stack([counts_of(values, reading, rng) for _ in range(draws)])
            grid, fine = Grid.of(reading), Grid.of(reading, 256)
            ways = [(grid, climb(grid.joined(counts), grid.law, grid.shape))]
            if mechanism == "square_wave":
                ways.append((fine, published(counts, fine)))
            reached = [
                np.array([distance(row, used.edges, values) for row in used.cumulative(found.p)])
                for used, found in ways
            ]
            cells += [f"{part.mean():.4f}" for part in reached]
            if mechanism == "square_wave":
                cells.append(ratio(reached[0], reached[1], np.mean, rng))
        bar = f"{bars[name]} / {1.35 * bars[name]:.4f}" if name in bars else "–"
        lines.append(f"| {name} | {' | '.join(cells)} | {bar} |")
        print(lines[-1], flush=True)
    return lines


def quantile_errors(
    rng: np.random.Generator, draws: int = 40, sizes: tuple[int, ...] = (100_000, 10_000)
) -> list[str]:
    """Ours and Li et al.'s EMS on the same Square wave counts, and ours on the default table."""
    lines = [
        f"| n, values, way | {' | '.join(map(str, P))} | mean | hdr4me / published |",
        "|---|" + "---|" * (len(P) + 2),
    ]

    def overall(gaps: Floats) -> Floats:
        return np.asarray(np.sqrt(np.mean(gaps**2, axis=0)).mean())

    for n in sizes:
        for name, values in populations(n, rng).items():
            true = np.quantile(values, P, method="inverted_cdf")
            for mechanism in ("square_wave", "optimal"):
                reading = table_of(mechanism).response.marginal()
                grid, fine = Grid.of(reading), Grid.of(reading, 256)
                counts = np.stack([counts_of(values, reading, rng) for _ in range(draws)])
                ways = {
                    mechanism: (grid, climb(grid.joined(counts), grid.law, grid.shape)),
                    f"{mechanism}, EMS": (fine, published(counts, fine)),
                }
                gaps = {
                    way: np.array([np.interp(P, row, used.edges) for row in used.cumulative(found.p)]) - true
                    for way, (used, found) in ways.items()
                }
                compared = ratio(gaps[mechanism], gaps[f"{mechanism}, EMS"], overall, rng)
                for way, gap in gaps.items():
                    error = np.sqrt(np.mean(gap**2, axis=0))
                    cells = " | ".join(f"{e:.3f}" for e in error)
                    last = compared if way == mechanism else ""
                    lines.append(f"| {n:,}, {name}, {way} | {cells} | {error.mean():.4f} | {last} |")
                    print(lines[-1], flush=True)
    return lines


def quantiles(rng: np.random.Generator, draws: int = 100) -> list[str]:
    heads = " | ".join(map(str, P))
    lines = [f"| table, n, values, kind | {heads} |", "|---|" + "---|" * len(P)]
    for mechanism in ("optimal", "square_wave"):
        reading = table_of(mechanism).response.marginal()
        grid, bounds = Grid.of(reading), Bounds(reading)
        for n in (10_000, 100_000):
            for name, values in populations(n, rng).items():
                true = np.quantile(values, P, method="inverted_cdf")
                inside = {kind: np.zeros(len(P)) for kind in ("conservative", "approximate")}
                width = {kind: np.zeros(len(P)) for kind in inside}
                error = np.zeros(len(P))
                for _ in range(draws):
                    counts = counts_of(values, reading, rng)
                    fitted = climb(grid.joined(counts)[None, :], grid.law, grid.shape)
                    shape = Shape(counts, bounds, grid, fitted.p[0], float(fitted.strength[0]))
                    value = shape.quantile(P)
                    error += (value - true) ** 2
                    for kind in inside:
                        pairs = np.array([ends_of(shape, p, 0.95, kind == "approximate") for p in P])
                        low, high = np.minimum(pairs[:, 0], value), np.maximum(pairs[:, 1], value)
                        inside[kind] += (low <= true) & (true <= high)
                        width[kind] += high - low
                for kind in inside:
                    cells = [
                        f"{100 * c / draws:.0f} % ±{w / draws / 2:.3f}"
                        for c, w in zip(inside[kind], width[kind], strict=True)
                    ]
                    lines.append(f"| {mechanism}, {n:,}, {name}, {kind} | {' | '.join(cells)} |")
                    print(lines[-1], flush=True)
                cells = [f"{e:.3f}" for e in np.sqrt(error / draws)]
                lines.append(f"| {mechanism}, {n:,}, {name}, RMSE | {' | '.join(cells)} |")
    return lines


def variances(rng: np.random.Generator, draws: int = 2000) -> list[str]:
    lines = [
        "| table, ε, n, values | coverage approximate | coverage conservative | RMSE | mean standard error |",
        "|---|---|---|---|---|",
    ]
    for mechanism, epsilon in (("optimal", 1.0), ("square_wave", 1.0), ("optimal", 4.0)):
        survey = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon, mechanism)
        for n in (10_000, 100_000):
            for name, values in populations(n, rng).items():
                inside, found, errors = {"approximate": 0, "conservative": 0}, [], []
                for _ in range(draws if n < 100_000 else draws // 2):
                    answer = hd.ask(tally_of(values, survey, rng), "variance", "x")
                    found.append(answer.value[0])
                    errors.append(answer.standard_error[0])
                    for kind in inside:
                        low, high = answer.interval(kind=kind)
                        inside[kind] += int(low[0] <= values.var() <= high[0])
                rmse = np.sqrt(np.mean((np.array(found) - values.var()) ** 2))
                cover = " | ".join(f"{100 * inside[kind] / len(found):.1f} %" for kind in inside)
                lines.append(
                    f"| {mechanism}, {epsilon:g}, {n:,}, {name} | {cover} | {rmse:.5f} | {np.mean(errors):.5f} |"
                )
                print(lines[-1], flush=True)
    return lines


def speed(rng: np.random.Generator) -> list[str]:
    lines = [
        "| table | 1,000 dimensions with 100,000 reports each, distributions: time of one core |",
        "|---|---|",
    ]
    for mechanism in ("optimal", "square_wave"):
        survey = hd.Survey(hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(1000)]), 1.0, mechanism)
        tally = hd.Tally(survey)
        reading = survey.questions[0].channel.response.marginal()
        for q in range(1000):
            values = rng.beta(rng.uniform(1, 5), rng.uniform(1, 5), 1000) * 2 - 1
            tally.layout.of_question(tally.counts, q)[:] = counts_of(np.repeat(values, 100), reading, rng)
        tally.n_reports = 100_000_000
        start = time.process_time()
        hd.ask(tally, "distribution")
        lines.append(f"| {mechanism} | {time.process_time() - start:.1f} s |")
        print(lines[-1], flush=True)
    return lines


SECTIONS: dict[str, tuple[str, Callable[..., list[str]] | str]] = {
    "wasserstein": (
        "Wasserstein-1 distance to the users' values (n = 100,000, ε = 1, range of width 2)",
        wasserstein,
    ),
    "errors": (
        "Quantiles: root mean square error (ε = 1, range of width 2)",
        quantile_errors,
    ),
    "shapes": (
        "Distributions on populations that the smoothing strengths were not tuned on (n = 100,000, ε = 1)",
        "other_shapes:others",
    ),
    "variances": ("Variances: coverage of 95 % intervals", variances),
    "covariances": (
        "Covariance and correlation: two answers in one report under ε/2 each (pairs), or a question about the product",
        "statistics_of_two:covariances",
    ),
    "formulas": (
        "Covariance from pairs: coverage of 95 % intervals and variance by its formula (n = 10,000)",
        "statistics_of_two:formulas",
    ),
    "groups": ("Means and shares by group", "statistics_of_two:groups"),
    "rounds": ("Two rounds: 8,000 and 32,000 reports against 40,000 in one", "second_rounds:rounds"),
    "others": (
        "Two rounds on populations that the constants were not set on (8,000 and 32,000 reports)",
        "second_rounds:others",
    ),
    "designs": (
        "The second round's table: general, or designed for the pilot's distribution",
        "second_rounds:designs",
    ),
    "ends": ("Two rounds end to end on real data", "second_rounds:ends"),
    "speed": ("Time", speed),
    "quantiles": (
        "Quantiles: coverage of 95 % intervals and their mean half-width on [−1, 1] (ε = 1)",
        quantiles,
    ),
}


def main(names: list[str]) -> None:
    path = RESULTS / "statistics.md"
    kept: dict[str, str] = {}
    if path.exists():
        for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            kept[part.partition("\n")[0]] = part.partition("\n")[2].strip()
    for text in names or list(SECTIONS):
        name, _, draws = text.partition("=")
        title, run = SECTIONS[name]
        if isinstance(run, str):
            module, _, function = run.partition(":")
            run = getattr(import_module(module), function)
        lines = run(np.random.default_rng(20261116), **({"draws": int(draws)} if draws else {}))
        kept[title] = "\n".join([f"{draws} draws.\n", *lines] if draws else lines)
        ordered = [title for title, _ in SECTIONS.values() if title in kept]
        text = "# Statistics, measured\n\nMade by `benchmarks/more_statistics.py`; every draw is seeded.\n"
        path.write_text(text + "".join(f"\n## {t}\n\n{kept[t]}\n" for t in ordered), encoding="utf-8")


if __name__ == "__main__":
    arguments: Any = sys.argv[1:]
    main(arguments)
