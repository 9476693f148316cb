"""Re-calibration where it is hard: unequal noise, edges, clusters, curves, groups, real data, frequencies.

    python benchmarks/recalibration_hard.py [--repeats 60] [--minutes 8] [--output benchmarks/results]

writes recalibration_hard.csv and recalibration_frequencies.csv (one row a cell) and recalibration_hard.md (the
summary). A cell is repeated until `--repeats` or its part of `--minutes` is reached. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hdr4me.recalibration import recalibrate
from recalibration_frequencies import frequency_cells, measure_frequencies
from recalibration_hard_cells import Hard, hard_cells

Z = 1.959964


def measure(cell: Hard, repeats: int, seconds: float, seed: int) -> dict[str, float | str]:
    """Errors, harm with its standard error, coverage of 95 % intervals, and the error announced."""
    rng, theta, s = cell.rng(seed), cell.mean, cell.standard_error
    edge = np.abs(theta) >= 1 - 1e-12
    rows: list[list[float]] = []
    start = time.perf_counter()
    while len(rows) < repeats and (len(rows) < 6 or time.perf_counter() - start < seconds):
        x = theta + s * rng.normal(size=theta.size)
        found = recalibrate(x, s, **cell.options)
        errors = [float(np.mean((y - theta) ** 2)) for y in (x, np.clip(x, -1, 1), found.enhanced_mean)]
        cover = []
        for kind in ("honest", "average", "credible"):
            low, high = found.interval(0.95, kind)
            held = (low <= theta) & (theta <= high)
            cover += [float(held.mean()), float(np.mean(high - low))]
            if kind == "honest":
                cover.append(float(held[edge].mean()) if edge.any() else np.nan)
        rows.append([*errors, found.expected_error_after, *cover])
    table = np.array(rows)
    naive, clipped, auto, announced, honest, honest_length, at_edge, average, length, credible, _ = (
        table.mean(axis=0)
    )
    better = 0 if naive < clipped else 1
    return {
        "family": cell.family,
        "cell": cell.name,
        "repeats": len(rows),
        "noise": float(np.mean(s)),
        "naive": naive,
        "clip": clipped,
        "auto": auto,
        "ratio": auto / min(naive, clipped),
        "harm_z": _z(table[:, 2] - 1.02 * table[:, better]),
        "announced": announced,
        "announced_ratio": announced / max(auto, 1e-300),
        "announced_z": _z(table[:, 3] - 0.75 * table[:, 2]),
        "honest": honest,
        "honest_edge": at_edge,
        "average": average,
        "honest_z": _z(table[:, 4] - 0.94),
        "edge_z": _z(table[:, 6] - 0.93),
        "average_z": _z(table[:, 7] - 0.94),
        "average_length": length / float(np.mean(2 * Z * s)),
        "average_to_honest": length / honest_length,
        "credible": credible,
    }


def _z(values: np.ndarray) -> float:
    """The mean in its own standard errors; NaN if there are none."""
    return float(values.mean() / max(values.std(ddof=1) / np.sqrt(values.size), 1e-12))


def summary(rows: list[dict[str, float | str]]) -> str:
    """One line for each family, and every cell that misses a bar."""
    lines = [
        "| cells | number | harmed (ratio > 1.02 beyond 2 s.e.) | worst ratio | median ratio | honest: least | "
        "at edges: least | average: mean | average: length / raw's | announced / real: median | least |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]

    def column(name: str, rows: list[dict[str, float | str]]) -> np.ndarray:
        return np.array([float(r[name]) for r in rows])

    for family in dict.fromkeys(str(r["family"]) for r in rows):
        mine = [r for r in rows if r["family"] == family]
        edge = column("honest_edge", mine)
        told = f"{100 * np.nanmin(edge):.1f} %" if np.isfinite(edge).any() else ""
        ratio, announced = column("ratio", mine), column("announced_ratio", mine)
        lines.append(
            f"| {family} | {len(mine)} | {int((column('harm_z', mine) > 2).sum())} | {ratio.max():.3f} | "
            f"{np.median(ratio):.3f} | {100 * column('honest', mine).min():.1f} % | {told} | "
            f"{100 * column('average', mine).mean():.1f} % | {column('average_length', mine).mean():.2f} | "
            f"{np.median(announced):.2f} | {announced.min():.2f} |"
        )
    lines += [
        "",
        "| structure and real data | repeats | raw | clip | auto | announced | honest | average | length / raw's |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        if r["family"] in ("structure", "real"):
            numbers = " | ".join(f"{float(r[k]):.3g}" for k in ("naive", "clip", "auto", "announced"))
            shares = " | ".join(f"{100 * float(r[k]):.1f} %" for k in ("honest", "average"))
            lines.append(
                f"| {r['cell']} | {r['repeats']} | {numbers} | {shares} | {float(r['average_length']):.2f} |"
            )
    lines += ["", "Cells that miss a bar beyond two standard errors of their repeats:", ""]
    for r in rows:
        missed = []
        if float(r["harm_z"]) > 2:
            missed.append(f"error {float(r['ratio']):.3f} times the better of raw and clipped")
        if float(r["honest_z"]) < -2:
            missed.append(f"honest coverage {100 * float(r['honest']):.1f} %")
        if float(r["edge_z"]) < -2:
            missed.append(f"coverage at edges {100 * float(r['honest_edge']):.1f} %")
        if float(r["average_z"]) < -2:
            missed.append(f"average coverage {100 * float(r['average']):.1f} %")
        if float(r["announced_z"]) < -2:
            missed.append(f"announced {float(r['announced_ratio']):.2f} of the real error")
        if missed:
            lines.append(f"- {r['family']}, {r['cell']} ({r['repeats']} repeats): {'; '.join(missed)}")
    return "\n".join(lines) + "\n"


def write(path: Path, rows: list[dict[str, float | str]]) -> None:
    """A CSV file, six digits."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows)


def read(path: Path) -> list[dict[str, float | str]]:
    """What `write` wrote."""
    with path.open(newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", help="one family of cells; the others' rows are kept from the last run")
    options = parser.parse_args()
    cells, shapes = list(hard_cells()), list(frequency_cells())
    kept: list[dict[str, float | str]] = []
    frequencies: list[dict[str, float | str]] = []
    if options.only is not None:
        kept = [r for r in read(options.output / "recalibration_hard.csv") if r["family"] != options.only]
        frequencies = read(options.output / "recalibration_frequencies.csv")
        cells, shapes = [c for c in cells if c.family == options.only], []
    seconds = 60 * options.minutes / (len(cells) + len(shapes))
    rows = kept
    for c in cells:
        rows.append(measure(c, options.repeats, seconds, options.seed))
        told = {k: round(v, 3) for k, v in rows[-1].items() if isinstance(v, float)}
        print(c.family, c.name, rows[-1]["repeats"], told, file=sys.stderr, flush=True)
    frequencies += [measure_frequencies(c, options.repeats, seconds, options.seed) for c in shapes]
    options.output.mkdir(parents=True, exist_ok=True)
    write(options.output / "recalibration_hard.csv", rows)
    write(options.output / "recalibration_frequencies.csv", frequencies)
    harmed = [r for r in frequencies if float(r["harm_z"]) > 2]
    text = summary(rows) + (
        f"\nFrequencies: {len(frequencies)} cells, {len(harmed)} with `auto` above 1.02 × norm-sub beyond two standard "
        f"errors; median auto / norm-sub {np.median([float(r['ratio']) for r in frequencies]):.3f}, worst "
        f"{max(float(r['ratio']) for r in frequencies):.3f}; largest mean excess of the first category "
        f"{max(float(r['first_excess']) for r in frequencies):.3f}.\n"
    )
    text += "".join(f"- {r['cell']}: {float(r['ratio']):.3f}\n" for r in harmed)
    (options.output / "recalibration_hard.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
