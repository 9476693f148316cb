"""Draws docs/figures/over-time.svg: how often a binary attribute is guessed, with fresh noise and memoized responses.

    python benchmarks/over_time.py docs/figures/over-time.svg

The curves are exact (`hdr4me.accounting.repeated.guessed`); the points are a seeded simulation of 20,000 people whose
reports are made by randomized response. The attacker guesses the more frequent answer.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from hdr4me.accounting.repeated import guessed
from hdr4me.atomic import replacing

EPSILON, DAYS, PEOPLE = 1.0, 30, 20_000


def simulated(memoized: bool) -> list[float]:
    """Return the share of correct guesses after each day."""
    rng = np.random.default_rng(2026)
    p = 1 / (1 + math.exp(-EPSILON))
    right = rng.random((DAYS, PEOPLE)) < p
    if memoized:
        right[:] = right[0]
    counts, day = np.cumsum(right, axis=0), np.arange(1, DAYS + 1)[:, None]
    ties = rng.random((DAYS, PEOPLE)) < 0.5
    return [float(x) for x in np.where(2 * counts == day, ties, 2 * counts > day).mean(axis=1)]


def main(path: Path) -> None:
    """Draw the figure; its bytes depend only on the version of matplotlib."""
    mpl.rcParams["svg.hashsalt"] = "over-time"
    days = range(1, DAYS + 1)
    fresh, once = [guessed(EPSILON, t) for t in days], guessed(EPSILON, 1)
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(days, [100 * x for x in fresh], color="C3", label="fresh noise every day")
    axes.plot(days, [100 * once] * DAYS, color="C0", label="memoized responses")
    axes.plot(days, [100 * x for x in simulated(False)], "o", color="C3", markersize=3)
    axes.plot(days, [100 * x for x in simulated(True)], "o", color="C0", markersize=3)
    for value, below in ((fresh[-1], 5.0), (once, 4.0)):
        axes.annotate(f"{100 * value:.1f} %", (DAYS, 100 * value - below), ha="right", fontsize=9)
    axes.set(
        xlabel="days, one report each", ylabel="guessed right, %", ylim=(48, 102), xlim=(0.5, DAYS + 0.5)
    )
    axes.set_title("A yes/no attribute reported daily at ε = 1", fontsize=10)
    axes.legend(loc="lower right", fontsize=9)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
