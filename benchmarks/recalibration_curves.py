"""Declared curves and groups, many times: the rule by itself, and what `auto` takes of it.

    python benchmarks/recalibration_curves.py [--repeats 300] [--auto 120] [--output benchmarks/results]

`auto` measures every rule by applying it dozens of times, so it is run on the first of the draws only. The rule alone
takes a hundredth of the time. Writes recalibration_curves.md.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.auto.priors import fit_posterior
from hdr4me.recalibration.auto.structure import blocks, check_structure, structured
from recalibration_hard_cells import Hard
from recalibration_hard_cells import structured as cells


def line(cell: Hard, repeats: int, autos: int, seed: int) -> str:
    """Mean squared errors of raw, clipped, posterior means without and with the structure, and `auto`."""
    rng, theta, s = cell.rng(seed), cell.mean, cell.standard_error
    declared = check_structure(cell.options.get("order"), cell.options.get("groups"), theta.size)
    assert declared is not None
    parts = blocks(declared, s, -1.0, 1.0)
    errors, believed, auto, expected = np.empty((repeats, 4)), 0.0, [], []
    for i in range(repeats):
        x = theta + s * rng.normal(size=theta.size)
        posterior = fit_posterior(x, s, -1.0, 1.0, 0.0)
        beliefs = structured(parts, posterior, x)
        believed += beliefs[0].probability / repeats
        mean = posterior.mean.copy()
        for belief in beliefs:
            mean[belief.where] += belief.probability * (belief.curve.mean - mean[belief.where])
        answers = (x, np.clip(x, -1, 1), posterior.mean, mean)
        errors[i] = [np.mean((answer - theta) ** 2) for answer in answers]
        if i < autos:
            found = recalibrate(x, s, **cell.options)
            auto.append(np.mean((found.enhanced_mean - theta) ** 2))
            expected.append(found.expected_error_after)
    mean, doubt = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(repeats)
    auto_doubt = np.std(auto, ddof=1) / np.sqrt(autos)
    return (
        f"| {cell.name} | {repeats} | {mean[0]:.4f} | {mean[1]:.4f} | {mean[2]:.4f} ± {doubt[2]:.4f} | "
        f"{mean[3]:.4f} ± {doubt[3]:.4f} | {believed:.2f} | "
        f"{np.mean(auto):.4f} ± {auto_doubt:.4f} | {np.mean(expected):.4f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--auto", type=int, default=120)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    lines = [
        f"`auto`: the first {options.auto} of the repeats.",
        "",
        "| cell, noise 0.3 | repeats | raw | clipped | without structure | with structure | mean probability of it | "
        "auto | expected |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells():
        if cell.options:
            lines.append(line(cell, options.repeats, options.auto, options.seed))
            print(lines[-1], flush=True)
    (options.output / "recalibration_curves.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
