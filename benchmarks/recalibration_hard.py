"""Re-calibration where it is hard: unequal noise, edges, clusters, curves, groups, real data, frequencies.

    python benchmarks/recalibration_hard.py [--least 12] [--most 200] [--minutes 10] [--output benchmarks/results]

writes recalibration_hard.csv and recalibration_frequencies.csv (one row a cell) and recalibration_hard.md (the
summary). Cells near a bar are repeated more often. A run continues the last one's files; --fresh starts anew, --only
takes some families. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hdr4me.recalibration import recalibrate
from recalibration_frequencies import frequency_cells, frequency_job
from recalibration_hard_cells import Hard, hard_cells
from recalibration_runs import (
    Draw,
    Job,
    Row,
    campaign,
    conservative_coverage,
    excesses,
    increase_z,
    read,
    write,
    z_of,
)

Z = 1.959964


def job(cell: Hard) -> Job:
    """Errors, coverage of 95 % intervals, and the expected error."""
    theta, s = cell.mean, cell.standard_error

    def draw(rng: np.random.Generator) -> Draw:
        x = theta + s * rng.normal(size=theta.size)
        found = recalibrate(x, s, **cell.options)
        naive, clip, auto = (
            float(np.mean((y - theta) ** 2)) for y in (x, np.clip(x, -1, 1), found.enhanced_mean)
        )
        expected = found.expected_error_after
        out = {"naive": naive, "clip": clip, "auto": auto, "announced": expected}
        for kind in ("average", "credible"):
            low, high = found.interval(0.95, kind)
            out[kind] = float(np.mean((low <= theta) & (theta <= high)))
            out[f"{kind}_length"] = float(np.mean(high - low) / np.mean(2 * Z * s))
        return out | excesses(naive, clip, auto, expected) | conservative_coverage(theta, s, rng)

    about: dict[str, float | str] = {"family": cell.family, "noise": float(np.mean(s))}
    return Job(f"{cell.family}: {cell.name}", about, draw)


def summary(rows: list[Row]) -> str:
    """One line for each family, and every cell that misses a bar."""
    lines = [
        "| cells | number | repeats | error increased (ratio > 1.02 beyond 2 s.e.) | worst ratio | median ratio | "
        "conservative: least | at edges: least | average: mean | average: length / raw's | expected / real: median | "
        "least |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]

    def column(name: str, rows: list[Row]) -> np.ndarray:
        return np.array([float(r.get(name, "nan")) for r in rows])

    for family in dict.fromkeys(str(r["family"]) for r in rows):
        mine = [r for r in rows if r["family"] == family]
        edge, times = column("edge", mine), column("repeats", mine)
        expected = f"{100 * np.nanmin(edge):.1f} %" if np.isfinite(edge).any() else ""
        ratio = column("auto", mine) / np.minimum(column("naive", mine), column("clip", mine))
        announced = column("announced", mine) / np.maximum(column("auto", mine), 1e-300)
        harmed = int(np.sum([increase_z(r) > 2 for r in mine]))
        lines.append(
            f"| {family} | {len(mine)} | {times.min():.0f}–{times.max():.0f} | {harmed} | {ratio.max():.3f} | "
            f"{np.median(ratio):.3f} | {100 * column('conservative', mine).min():.1f} % | {expected} | "
            f"{100 * column('average', mine).mean():.1f} % | {column('average_length', mine).mean():.2f} | "
            f"{np.median(announced):.2f} | {announced.min():.2f} |"
        )
    lines += [
        "",
        "| structure and real data | repeats | raw | clip | auto | ± | expected | conservative | average | "
        "length / raw's | credible | length / raw's |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        if r["family"] in ("structure", "real"):
            error = float(r["sd_auto"]) / np.sqrt(float(r["repeats"]))
            shown = [float(r[k]) for k in ("naive", "clip", "auto")] + [error, float(r["announced"])]
            numbers = " | ".join(f"{v:.3g}" for v in shown)
            conservative, average, credible = (
                100 * float(r[k]) for k in ("conservative", "average", "credible")
            )
            lines.append(
                f"| {r['name']} | {float(r['repeats']):.0f} | {numbers} | {conservative:.1f} % | {average:.1f} % | "
                f"{float(r['average_length']):.2f} | {credible:.1f} % | {float(r['credible_length']):.2f} |"
            )
    lines += ["", "Cells that miss a requirement by more than two standard errors of their repeats:", ""]
    for r in rows:
        missed = []
        best = min(float(r["naive"]), float(r["clip"]))
        if increase_z(r) > 2:
            missed.append(f"error {float(r['auto']) / best:.3f} times the better of raw and clipped")
        for name, bar, words in (
            ("conservative", 0.94, "conservative coverage"),
            ("edge", 0.93, "coverage at edges"),
            ("average", 0.94, "average coverage"),
        ):
            if z_of(r, name, bar) < -2:
                missed.append(f"{words} {100 * float(r[name]):.1f} %")
        if z_of(r, "excess_announced") < -2:
            missed.append(f"expected error {float(r['announced']) / float(r['auto']):.2f} of the real error")
        if missed:
            lines.append(f"- {r['name']} ({float(r['repeats']):.0f} repeats): {'; '.join(missed)}")
    return "\n".join(lines) + "\n"


def frequency_summary(rows: list[Row]) -> str:
    """One paragraph."""
    harmed = [r for r in rows if increase_z(r) > 2]
    ratio = np.array([float(r["auto"]) / min(float(r["naive"]), float(r["clip"])) for r in rows])
    expected = np.array([float(r["announced"]) / float(r["auto"]) for r in rows])
    text = (
        f"\nFrequencies: {len(rows)} cells, {min(float(r['repeats']) for r in rows):.0f} to "
        f"{max(float(r['repeats']) for r in rows):.0f} repeats; {len(harmed)} with `auto` above 1.02 × the better of "
        f"raw and norm-sub beyond two standard errors; median of auto over the better one {np.median(ratio):.3f}, "
        f"least {ratio.min():.3f}, largest {ratio.max():.3f}; expected / real: median {np.median(expected):.2f}; "
        f"largest mean excess of the first category {max(float(r['first_excess']) for r in rows):.3f}.\n"
    )
    return text + "".join(f"- {r['name']}: harmed\n" for r in harmed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--least", type=int, default=12)
    parser.add_argument("--most", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", nargs="*", help="families of cells; `frequencies` is one")
    parser.add_argument("--fresh", action="store_true", help="forget the last run")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    means, shares = (options.output / f"recalibration_{name}.csv" for name in ("hard", "frequencies"))
    if options.fresh:
        for path in (means, means.with_suffix(".part")):
            path.unlink(missing_ok=True)
        shares.unlink(missing_ok=True)
    limits = {"seed": options.seed, "least": options.least, "most": options.most, "batch": 12}
    jobs = [job(c) for c in hard_cells()]
    chosen = [j for j in jobs if options.only is None or j.about["family"] in options.only]
    if chosen:
        part = means.with_suffix(".part")
        kept = {str(r.get("name")): r for r in read(means)} if means.exists() else {}
        mine = [kept[j.name] for j in chosen if j.name in kept]
        if mine:
            write(part, mine)
        found = campaign(chosen, part, minutes=options.minutes, **limits)
        part.unlink()
        kept |= {str(r["name"]): r for r in found}
        write(means, [kept[j.name] for j in jobs if j.name in kept])
    if options.only is None or "frequencies" in options.only:
        campaign([frequency_job(c) for c in frequency_cells()], shares, minutes=options.minutes, **limits)
    text = summary(read(means)) if means.exists() else ""
    text += frequency_summary(read(shares)) if shares.exists() else ""
    (options.output / "recalibration_hard.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
