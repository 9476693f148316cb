"""Re-calibration on the paper's grid, in the easy regime and on shapes of our own; with frequencies and speed.

    python benchmarks/recalibration.py [--least 8] [--most 60] [--minutes 10] [--output benchmarks/results]

writes recalibration.csv (one row a cell), recalibration.md (the summary that the documentation quotes), and
docs/figures/recalibration-error.svg. Cells near a bar are repeated more often. A run continues the last one's file;
--fresh starts anew, --summary only writes the summary.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hdr4me.framework.normal import tolerance_for
from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.core import KINDS
from hdr4me.recalibration.hdr4me import l2_weights, shrink, soft_threshold
from hdr4me.recalibration.inputs import check_inputs
from hdr4me.recalibration.shrinkage import james_stein, sure_threshold
from recalibration_cells import Cell, Floats, all_cells
from recalibration_extra import error_figure, frequency_table, speed_table
from recalibration_runs import (
    Draw,
    Job,
    Row,
    campaign,
    conservative_coverage,
    excesses,
    increase_z,
    read,
    z_of,
)

FLOOR = 1e-4
Z = 1.959964
DEFAULTS = ("naive", "l1", "l2")
READINGS = (*DEFAULTS, "l1_z1", "l1_z3", "l1_simultaneous", "l2_z3", "l2_bias", "l2_plugin")


def oracle(theta: Floats, x: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Bayes rule under the true distribution of the means, and whether its own 90 % interval covers."""
    p = np.exp(-0.5 * np.minimum(((x[:, None] - theta) / s[:, None]) ** 2, 1400))
    p /= p.sum(axis=1, keepdims=True)
    order = np.argsort(theta)
    cdf = np.cumsum(p[:, order], axis=1)
    ends = theta[order]
    low = ends[np.minimum((cdf < 0.05).sum(axis=1), theta.size - 1)]
    high = ends[np.minimum((cdf < 0.95).sum(axis=1), theta.size - 1)]
    return p @ theta, (low <= theta) & (theta <= high)


def estimates(cell: Cell, raw: Floats) -> dict[str, Floats]:
    """Every method but `auto` and the oracle, on means as they are collected."""
    theta, s = cell.data.mean, cell.standard_error
    x, sx = raw / cell.slope, s / cell.slope
    bias = (cell.slope - 1) * theta  # the framework's δ; 0 for unbiased mechanisms
    given = check_inputs(raw, s, bias, 1.0, (-1.0, 1.0))

    def bound(z: float) -> Floats:
        return np.abs(bias) + z * s

    z95 = float(tolerance_for(1.0, 0.95))
    every = float(tolerance_for(1.0, 0.95, n=theta.size))
    return {
        "naive": raw,
        "zeros": np.zeros_like(raw),
        "clip": np.clip(x, -1, 1),
        "l1": soft_threshold(raw, bound(z95)),
        "l1_z1": soft_threshold(raw, bound(1)),
        "l1_z3": soft_threshold(raw, bound(3)),
        "l1_simultaneous": soft_threshold(raw, bound(every)),
        "l2": shrink(raw, l2_weights(given, bound(z95), "domain")),
        "l2_z3": shrink(raw, l2_weights(given, bound(3), "domain")),
        "l2_bias": shrink(raw, l2_weights(given, bound(z95), "bias")),
        "l2_plugin": shrink(raw, l2_weights(given, bound(z95), "plug-in")),
        "james_stein": np.clip(james_stein(x, sx, towards_mean=False), -1, 1),
        "james_stein_mean": np.clip(james_stein(x, sx, towards_mean=True), -1, 1),
        "sure": soft_threshold(x, sure_threshold(x, sx) * sx),
    }


def job(cell: Cell) -> Job:
    """Mean squared errors of one cell; coverage of 95 % intervals; the expected error."""
    theta, x_error = cell.data.mean, cell.standard_error / cell.slope

    def draw(rng: np.random.Generator) -> Draw:
        raw = cell.slope * theta + cell.standard_error * rng.normal(size=theta.size)
        auto = recalibrate(raw, cell.standard_error, "auto", slope=cell.slope)
        best = oracle(theta, raw / cell.slope, x_error)[0]
        values = estimates(cell, raw) | {"auto": auto.enhanced_mean, "oracle": best}
        found = {name: float(np.mean((value - theta) ** 2)) for name, value in values.items()}
        found["announced"] = auto.expected_error_after
        for kind in KINDS:
            low, high = auto.interval(0.95, kind)
            found[kind] = float(np.mean((low <= theta) & (theta <= high)))
            found[f"{kind}_length"] = float(np.mean(high - low) / np.mean(2 * Z * x_error))
        found |= excesses(found["naive"], found["clip"], found["auto"], found["announced"])
        return found | conservative_coverage(theta, x_error, rng)

    about: dict[str, float | str] = {
        "regime": cell.regime,
        "data": cell.data.name,
        "mechanism": cell.mechanism,
        "epsilon": cell.epsilon,
        "users": cell.users,
        "dims": theta.size,
        "sampled": cell.sampled,
        "noise": float(np.mean(x_error)),
    }
    return Job(cell.name, about, draw)


def summary(rows: list[Row]) -> str:
    """The numbers that the requirements ask for, as Markdown."""

    def column(name: str, where: np.ndarray) -> Floats:
        return np.asarray(np.array([float(r[name]) for r in rows])[where], np.float64)

    def least(names: tuple[str, ...], where: np.ndarray) -> Floats:
        return np.asarray(np.min([column(n, where) for n in names], axis=0))

    regime = np.array([r["regime"] for r in rows])
    unbiased = np.array([r["mechanism"] != "square_wave" for r in rows])
    lines = [
        "| cells | number | ≤ 1.05 × min(naive, L1, L2) | same, every choice of λ*, +1e-4 | worst auto/naive "
        "(unbiased) | error above min(naive, clip) | median (auto+1e-4)/(oracle+1e-4) | conservative 95 %: mean | "
        "least | average 95 %: mean | length / raw's |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in ("paper", "own", "easy", "all"):
        where = np.ones(len(rows), bool) if name == "all" else regime == name
        auto, best = column("auto", where), column("oracle", where)
        inside = np.mean(auto <= 1.05 * least(DEFAULTS, where))
        floored = np.mean(auto + FLOOR <= 1.05 * (least(READINGS, where) + FLOOR))
        harmed = sum(increase_z(r) > 2 for r, here in zip(rows, where.tolist(), strict=True) if here)
        fair = where & unbiased
        worst = np.max(column("auto", fair) / column("naive", fair))
        lines.append(
            f"| {name} | {where.sum()} | {100 * inside:.1f} % | {100 * floored:.1f} % | {worst:.3f} | "
            f"{harmed} | {np.median((auto + FLOOR) / (best + FLOOR)):.3f} | "
            f"{100 * column('conservative', where).mean():.1f} % | {100 * column('conservative', where).min():.1f} % | "
            f"{100 * column('average', where).mean():.1f} % | {column('average_length', where).mean():.2f} |"
        )
    lines += [
        "",
        "| regime | data | median auto/clip | worst | conservative: least | average: mean | length / raw's | ",
    ]
    lines[-1] += "credible: least | expected/real, noise < .7: median | least |"
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    data = np.array([r["data"] for r in rows])
    quiet = np.array([float(r["noise"]) < 0.7 for r in rows])
    for name, what in dict.fromkeys((str(r["regime"]), str(r["data"])) for r in rows):
        where = (regime == name) & (data == what)
        ratio = column("auto", where) / np.minimum(column("naive", where), column("clip", where))
        expected = (column("announced", where & quiet) + 1e-9) / (column("auto", where & quiet) + 1e-9)
        words = f"{np.median(expected):.2f} | {expected.min():.2f}" if expected.size else " | "
        lines.append(
            f"| {name} | {what} | {np.median(ratio):.3f} | {ratio.max():.3f} | "
            f"{100 * column('conservative', where).min():.1f} % | {100 * column('average', where).mean():.1f} % | "
            f"{column('average_length', where).mean():.2f} | {100 * column('credible', where).min():.1f} % | {words} |"
        )
    everything = np.ones(len(rows), bool)
    auto, least_default = column("auto", everything), least(DEFAULTS, everything)
    lines += ["", "Cells above 1.05 × min(naive, L1, L2):", ""]
    for r, a, b in zip(rows, auto, least_default, strict=True):
        if a > 1.05 * b:
            lines.append(
                f"- {r['regime']}/{r['data']}/{r['mechanism']}, ε = {float(r['epsilon']):g}: {a:.4g} against {b:.4g}"
            )
    easy = regime == "easy"
    for method in ("l1", "l1_z3", "l2", "l2_z3"):
        ratio = column(method, easy) / column("naive", easy)
        lines += [
            "",
            f"{method} in the easy regime: worse than naive in {100 * np.mean(ratio > 1.05):.0f} % of the ",
        ]
        lines[-1] += f"cells, up to {ratio.max():.1f} times."
    return "\n".join(lines) + "\n"


def announced_summary(rows: list[Row]) -> str:
    """Announced over real error, where the error is measured and not bounded: noise below 0.7 of half the domain."""
    quiet = [r for r in rows if float(r["noise"]) < 0.7]
    expected, real, clip = (
        np.array([float(r[name]) for r in quiet]) for name in ("announced", "auto", "clip")
    )
    low = [r for r in quiet if z_of(r, "excess_announced") < -2]
    repeats = [float(r["repeats"]) for r in rows]
    some = real > 0.05 * clip
    return (
        f"\n{len(rows)} cells, {min(repeats):.0f} to {max(repeats):.0f} repeats. Expected / real error in "
        f"{len(quiet)} cells of noise below 0.7: mean of both as parts of clipping's error "
        f"{np.mean(expected / clip):.3f} / {np.mean(real / clip):.3f} = "
        f"{np.sum(expected / clip) / np.sum(real / clip):.3f}; of the totals {expected.sum() / real.sum():.3f}; "
        f"median {np.median(expected / np.maximum(real, 1e-300)):.3f}, in the {some.sum()} cells with more than 5 % "
        f"of clipping's error {np.median(expected[some] / real[some]):.3f}; below 0.75 beyond two standard errors: "
        f"{len(low)}; largest auto / better of naive and clip "
        f"{max(float(r['auto']) / min(float(r['naive']), float(r['clip'])) for r in rows):.3f}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--least", type=int, default=8)
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget the last run")
    parser.add_argument(
        "--every", type=int, default=1, help="every k-th cell only, into recalibration_part.*"
    )
    parser.add_argument("--summary", action="store_true", help="take the cells from the last run's file")
    options = parser.parse_args()
    start = time.perf_counter()
    stem = "recalibration" if options.every == 1 else "recalibration_part"
    path = options.output / f"{stem}.csv"
    options.output.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        path.unlink(missing_ok=True)
    if options.summary:
        rows = read(path)
    else:
        limits = {"least": options.least, "most": options.most, "batch": 4, "minutes": options.minutes}
        jobs = [job(cell) for cell in all_cells()][:: options.every]
        rows = campaign(jobs, path, seed=options.seed, **limits)
    text = summary(rows) + announced_summary(rows) + "\n" + speed_table()
    if options.every == 1:
        text += "\n" + frequency_table()
        error_figure(rows, Path(__file__).parent.parent / "docs" / "figures" / "recalibration-error.svg")
    (options.output / f"{stem}.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
