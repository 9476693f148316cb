"""Draws data-flow.svg and odds.svg: python docs/_made/diagrams.py docs/figures"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import matplotlib.patches
import numpy as np
from matplotlib.figure import Figure

from hdr4me.explanation.odds import guess

_BLUE, _RED, _GREY = "#0b6e99", "#d1495b", "#55606b"


def data_flow() -> Figure:
    """Five boxes, what travels between them, and who sees it."""
    figure = Figure(figsize=(10.5, 2.6))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 105), ylim=(0, 26))
    axes.axis("off")
    boxes = (
        ("record", "true values", "the device alone", _RED),
        ("report", "randomized cells", "the collector", _BLUE),
        ("store", "reports, random ids", "the collector", _BLUE),
        ("tally", "integers", "the analyst", _BLUE),
        ("answer", "estimates, intervals", "everybody", _BLUE),
    )
    steps = ("client: clean,\ndraw, randomize", "send", "count", "estimate")
    for i, (name, content, who, color) in enumerate(boxes):
        x = 2 + 21.3 * i
        axes.add_patch(
            matplotlib.patches.FancyBboxPatch((x, 9), 14, 9, "round,pad=0.4", fc="none", ec=color, lw=1.6)
        )
        axes.text(x + 7, 15, name, ha="center", fontsize=12, weight="bold", color=color)
        axes.text(x + 7, 11.4, content, ha="center", fontsize=8.5, color=_GREY)
        axes.text(x + 7, 4.5, who, ha="center", fontsize=8.5, color=_GREY, style="italic")
        if i < len(steps):
            axes.annotate(
                "", (x + 20.6, 13.5), (x + 15, 13.5), arrowprops={"arrowstyle": "->", "color": _GREY}
            )
            axes.text(x + 17.8, 19.5, steps[i], ha="center", va="bottom", fontsize=8, color=_GREY)
    axes.axvline(19.9, 0.08, 0.70, color=_RED, ls=":", lw=1.2)
    axes.text(19.4, 1.4, "privacy is made here", ha="right", fontsize=8, color=_RED)
    axes.text(20.4, 1.4, "nothing here costs privacy any more", ha="left", fontsize=8, color=_BLUE)
    return figure


def odds() -> Figure:
    """The most that three guesses can become."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    epsilon = np.linspace(0, 6, 121)
    for before, color in ((0.5, _BLUE), (0.1, "#2e7d4f"), (0.001, _RED)):
        axes.plot(
            epsilon,
            [guess(before, float(np.exp(e))) for e in epsilon],
            color=color,
            label=f"prior {before:g}",
        )
        axes.axhline(before, color=color, ls=":", lw=0.8)
    axes.set(xlabel="ε of a report", ylabel="posterior probability, at most", ylim=(0, 1))
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with matplotlib.rc_context({"svg.hashsalt": "hdr4me"}):
        for name, drawing in (("data-flow", data_flow()), ("odds", odds())):
            drawing.savefig(folder / f"{name}.svg", metadata={"Date": None})
