"""Real data through the whole pipeline: survey, reports, tally, estimate, re-calibration.

    python benchmarks/recalibration_real.py [--repeats 100] [--users 20000] [--output benchmarks/results]

Users are drawn from the records with replacement (seeded); their reports use the system's randomness, so the digits
change a little from run to run. Needs scikit-learn. Writes recalibration_real.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import hdr4me as hd
from recalibration_hard_cells import REAL_SETS, real_records


def measure(name: str, epsilon: float, users: int, repeats: int) -> str:
    """One row of the table."""
    records = real_records(name)
    d = records.shape[1]
    schema = hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(d)])
    survey = hd.Survey(schema, epsilon=epsilon, mechanism="piecewise", sampled=1)
    rng = np.random.default_rng(d)
    draws = []
    for _ in range(repeats):
        drawn = records[rng.integers(0, len(records), users)]
        tally = hd.Tally(survey)
        for block in hd.engines.Local().reports(drawn, survey):
            tally = tally.add_block(block)
        found, truth = tally.estimate(), drawn.mean(axis=0)
        better = found.recalibrate("auto")
        assert better.recalibration is not None
        draw = [np.mean((m - truth) ** 2) for m in (found.value, np.clip(found.value, -1, 1), better.value)]
        draw.append(better.recalibration.expected_error_after)
        raw = np.subtract(*found.interval(0.95)[::-1])
        edge = np.abs(truth) > 1 - 1e-9
        for kind in ("conservative", "average"):
            low, high = better.interval(0.95, kind=kind)
            held = (low <= truth) & (truth <= high)
            draw += [held.mean(), np.mean(high - low) / np.mean(raw)]
            if kind == "conservative":
                draw.append(held[edge].mean() if edge.any() else np.nan)
        draws.append(draw)
    table = np.array(draws)
    naive, clipped, auto, expected, conservative, length, at_edge, average, shorter = table.mean(axis=0)
    doubt = table.std(axis=0, ddof=1) / np.sqrt(repeats)
    better_one = table[:, 0 if naive < clipped else 1]
    excess = np.std(table[:, 2] - better_one, ddof=1) / np.sqrt(repeats) / better_one.mean()
    edge_words = "" if np.isnan(at_edge) else f"{100 * at_edge:.1f} %"
    return (
        f"| {name} | {d} | {epsilon:g} | {naive:.3g} | {clipped:.3g} | {auto:.3g} | "
        f"{auto / better_one.mean():.3f} ± {excess:.3f} | {expected / auto:.2f} | "
        f"{100 * conservative:.1f} ± {100 * doubt[4]:.1f} % | {edge_words} | {length:.2f} | "
        f"{100 * average:.1f} ± {100 * doubt[7]:.1f} % | {shorter:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    lines = [
        f"{options.repeats} repeats of {options.users:,} users.",
        "",
        "| data | d | ε | raw | clipped | auto | auto / better of raw and clipped | expected / real | conservative 95 "
        "% | at edges | length | average 95 % | length |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in REAL_SETS:
        for epsilon in (1.0, 4.0):
            lines.append(measure(name, epsilon, options.users, options.repeats))
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    (options.output / "recalibration_real.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
