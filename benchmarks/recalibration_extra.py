"""The rest of the re-calibration benchmark: frequencies, speed, and the figure of L1 and L2."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms import mechanism
from hdr4me.recalibration import recalibrate, recalibrate_frequencies

Floats = NDArray[np.float64]

DIMS, CATEGORY_COUNT, USERS = 10, 50, 100_000
METHODS = ("norm_sub", "auto", "base_cut", "bayes", "l1", "l2")


def _collected(encoding: str, epsilon: float, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """True frequencies of one Zipf dimension, their estimates and standard errors at m = 1."""
    v, r = CATEGORY_COUNT, USERS // DIMS
    zipf = 1 / np.arange(1, v + 1)
    f = rng.permutation(zipf / zipf.sum())
    counts = rng.multinomial(r, f)
    if encoding in ("oue", "grr"):
        p, q = (0.5, 1 / (np.exp(epsilon) + 1))
        if encoding == "oue":
            seen = rng.binomial(counts, p) + rng.binomial(r - counts, q)
        else:
            p = np.exp(epsilon) / (np.exp(epsilon) + v - 1)
            q = (1 - p) / (v - 1)
            kept = rng.binomial(counts, p)
            seen = kept.copy()
            for k in range(v):
                seen[np.arange(v) != k] += rng.multinomial(counts[k] - kept[k], np.full(v - 1, 1 / (v - 1)))
        share = seen / r
        return f, (share - q) / (p - q), np.sqrt(np.maximum(share * (1 - share), 1 / r) / r) / (p - q)
    options = {"domain": (-1, 1)} if encoding == "square_wave" else {}
    mech = mechanism(encoding, epsilon=epsilon / 2, **options)
    absent, present = (float(mech.variance(t)) / mech.calibration.slope**2 / 4 for t in (-1.0, 1.0))
    noise = (absent * (1 - counts / r) + present * counts / r) / r
    return f, counts / r + np.sqrt(noise) * rng.normal(size=v), np.sqrt(noise + f * (1 - f) / r)


def frequency_table(repeats: int = 20) -> str:
    """MSE × 10⁶ of every encoding, raw and post-processed."""
    lines = [
        f"| ε | encoding | raw | {' | '.join(METHODS)} |",
        "|---|---|---|" + "---|" * len(METHODS),
    ]
    for epsilon in (1.0, 4.0):
        for encoding in ("laplace", "piecewise", "square_wave", "oue", "grr"):
            rng = np.random.default_rng(int(epsilon))
            total = np.zeros(1 + len(METHODS))
            for _ in range(repeats):
                f, found, error = _collected(encoding, epsilon, rng)
                total[0] += np.mean((found - f) ** 2)
                for i, method in enumerate(METHODS):
                    better = recalibrate_frequencies(found, error, method).frequencies
                    total[i + 1] += np.mean((better - f) ** 2)
            numbers = " | ".join(f"{1e6 * t / repeats:.1f}" for t in total)
            lines.append(f"| {epsilon:g} | {encoding} | {numbers} |")
    return "\n".join(lines) + "\n"


def speed_table() -> str:
    """Seconds of `recalibrate(…, "auto")`, best of three: on the clock, and of one processor."""
    rng = np.random.default_rng(0)
    lines = ["| d | standard errors | seconds | processor seconds |", "|---|---|---|---|"]
    for d in (1_000, 100_000):
        for name, s in (
            ("all 0.003", np.full(d, 0.003)),
            ("all 0.05", np.full(d, 0.05)),
            ("all 5", np.full(d, 5.0)),
            ("0.02 to 0.1", rng.uniform(0.02, 0.1, d)),
            ("0.001 to 10", 10 ** rng.uniform(-3, 1, d)),
        ):
            x = np.clip(rng.normal(0.1, 0.3, d), -1, 1) + s * rng.normal(size=d)
            best = busy = np.inf
            for _ in range(3):
                start, used = time.perf_counter(), time.process_time()
                recalibrate(x, s)
                best = min(best, time.perf_counter() - start)
                busy = min(busy, time.process_time() - used)
            lines.append(f"| {d:,} | {name} | {best:.3f} | {busy:.3f} |")
    return "\n".join(lines) + "\n"


def error_figure(rows: list[dict[str, Any]], path: Path) -> None:
    """MSE over naive's against the noise: L1 and L2 increase the error on the left of 1, `auto` does not."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "hdr4me"
    import matplotlib.pyplot as plt

    fair = [r for r in rows if r["mechanism"] != "square_wave"]
    noise = np.array([float(r["noise"]) for r in fair])
    figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for name, label, color in (
        ("l1", "HDR4ME L1 (95 %)", "#c1432e"),
        ("l2", "HDR4ME L2 (domain, 95 %)", "#d9912b"),
        ("auto", "auto", "#2b6a99"),
        ("oracle", "oracle", "#999999"),
    ):
        ratio = np.array([float(r[name]) / float(r["naive"]) for r in fair])
        axis.scatter(noise, np.maximum(ratio, 1e-4), s=14, alpha=0.7, label=label, color=color, lw=0)
    axis.axhline(1, color="black", lw=0.8)
    axis.set(xscale="log", yscale="log", ylim=(8e-5, 12))
    axis.set_xlabel("standard error of a collected mean")
    axis.set_ylabel("mean squared error / that of the means as collected")
    axis.legend(frameon=False, loc="lower left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
