"""The distribution estimate on populations that its smoothing strengths were not tuned on (see more_statistics.py)."""

from __future__ import annotations

import numpy as np

from hdr4me.framework.em import climb
from hdr4me.statistics.shapes import Grid
from more_statistics import Floats, P, counts_of, distance, published, ratio, table_of


def other_populations(n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Users' values on [−1, 1]."""
    peaks = np.where(rng.random(n) < 0.5, rng.normal(-0.5, 0.15, n), rng.normal(0.4, 0.2, n))
    found = {
        "triangular": rng.triangular(-1, -0.2, 1, n),
        "Laplace, scale .1, center .5": np.clip(rng.laplace(0.5, 0.1, n), -1, 1),
        "two peaks at -.5 and .4": np.clip(peaks, -1, 1),
        "normal, sd .25": np.clip(rng.normal(0, 0.25, n), -1, 1),
    }
    try:
        from sklearn import datasets
    except ImportError:
        return found
    wine, patients = datasets.load_wine().data, datasets.load_diabetes(scaled=False).data
    return found | {
        "real: proline of wine (0 to 2000)": rng.choice(wine[:, 12] / 1000 - 1, n),
        "real: body mass index (10 to 60)": rng.choice((patients[:, 2] - 10) / 25 - 1, n),
        "real: age of patients (0 to 120)": rng.choice(patients[:, 0] / 60 - 1, n),
    }


def others(rng: np.random.Generator, draws: int = 40) -> list[str]:
    """Errors of ours over those of the published estimator, on the same Square wave counts."""

    def overall(gaps: Floats) -> Floats:
        return np.asarray(np.sqrt(np.mean(gaps**2, axis=0)).mean())

    lines = [
        "| values | quantiles: hdr4me / published | Wasserstein-1: hdr4me / published |",
        "|---|---|---|",
    ]
    reading = table_of("square_wave").response.marginal()
    grid, fine = Grid.of(reading), Grid.of(reading, 256)
    for name, values in other_populations(100_000, rng).items():
        true = np.quantile(values, P, method="inverted_cdf")
        counts = np.stack([counts_of(values, reading, rng) for _ in range(draws)])
        ours = grid.cumulative(climb(grid.joined(counts), grid.law, grid.shape).p)
        theirs = fine.cumulative(published(counts, fine).p)
        both = ((grid, ours), (fine, theirs))
        gaps = [np.array([np.interp(P, row, g.edges) for row in rows]) - true for g, rows in both]
        reached = [np.array([distance(row, g.edges, values) for row in rows]) for g, rows in both]
        first, second = (
            ratio(gaps[0], gaps[1], overall, rng),
            ratio(reached[0], reached[1], np.mean, rng),
        )
        lines.append(f"| {name} | {first} | {second} |")
        print(lines[-1], flush=True)
    return lines
