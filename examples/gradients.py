"""Linear regression from randomized gradients: the share of variance explained, after each round.

    python examples/gradients.py docs/figures/gradients.svg

The users are drawn with replacement from the 442 patients of scikit-learn's diabetes data. Each person reports in one
round under ε = 4: either the whole gradient as a vector, or one coordinate of it as a number.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

import hdr4me as hd
from hdr4me.engines import Local

mpl.use("Agg")

ROUNDS, PEOPLE, EPSILON, NORM, STEP = 12, 500, 4.0, 4.0, 0.2
Floats = NDArray[np.float64]


def clipped(gradients: Floats) -> Floats:
    """The gradients; those that are longer than the norm are scaled to it."""
    size = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, NORM / np.maximum(size, 1e-300)))


def asked(survey: hd.Survey, gradients: Floats) -> Floats:
    """The mean of the gradients, from randomized reports."""
    tally = hd.Tally(survey)
    for block in Local().reports(clipped(gradients), survey):
        tally = tally.add_block(block)
    return np.asarray(tally.estimate().value)


def descend(way: Any, x: Floats, y: Floats) -> list[float]:
    """The share of variance explained before the first round and after each."""
    rng = np.random.default_rng(1)
    weights, found = np.zeros(x.shape[1]), [0.0]
    for _ in range(ROUNDS):
        people = rng.integers(0, len(x), PEOPLE)
        gradients = (y[people] - x[people] @ weights)[:, None] * x[people]
        weights += STEP * way(gradients)
        found.append(float(1 - np.mean((y - x @ weights) ** 2)))
    return found


def main(path: Path) -> None:
    """Compute and draw."""
    from matplotlib import pyplot as plt

    x, y = load_diabetes(return_X_y=True)
    x, y = x * np.sqrt(len(x)), (y - y.mean()) / y.std()
    d = x.shape[1]
    vector = hd.Survey(hd.Schema([hd.Vector("gradient", length=d, norm=NORM)]), epsilon=EPSILON)
    numbers = hd.Schema([hd.Numeric(f"g{j}", -NORM, NORM) for j in range(d)])
    single = hd.Survey(numbers, epsilon=EPSILON, mechanism="piecewise")
    ways = {
        "gradients in the open": lambda gradients: clipped(gradients).mean(axis=0),
        "each a randomized gradient (codebook)": lambda gradients: asked(vector, gradients),
        "each one randomized coordinate": lambda gradients: asked(single, clipped(gradients)),
    }
    least = float(1 - np.mean((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2))
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.axhline(least, color="0.6", lw=1, ls=":", label="least squares, data in the open")
    for (name, way), style in zip(ways.items(), ("-", "-", "--"), strict=True):
        explained = descend(way, x, y)
        axes.plot(explained, style, marker="o", ms=3, label=name)
        print(f"{name}: {explained[-1]:.3f} explained after {ROUNDS} rounds")
    axes.set(xlabel=f"round ({PEOPLE:,} people each, ε = {EPSILON:g})", ylabel="share of variance explained")
    axes.set_ylim(0, 0.6)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
