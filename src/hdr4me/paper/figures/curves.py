"""One panel of Figures 4 and 5: MSE curves of the paper's methods, and ours drawn apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hdr4me.paper.figures.style import BASELINES, PAPER_CURVES, plain_number
from hdr4me.paper.outcomes import CellResult
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import outcome

__all__ = ["draw_curves", "draw_legend"]


def draw_curves(axes: Axes, cells: Sequence[CellResult], labels: Sequence[float], reading: Reading) -> None:
    """MSE (logarithmic) at equally spaced places, as in the paper; bars are two standard errors."""
    places = np.arange(len(cells))
    for method, look in BASELINES.items():
        present = [o for o in cells[0].outcomes if o.method == method]
        if present:
            drawn = {key: value for key, value in look.items() if key != "label"}
            axes.plot(
                places, [outcome(cell, method).mse for cell in cells], zorder=2, **{"linewidth": 1.0, **drawn}
            )
    for method, look in PAPER_CURVES.items():
        found = [outcome(cell, method, reading) for cell in cells]
        axes.errorbar(
            places,
            [item.mse for item in found],
            yerr=[2 * item.standard_error for item in found],
            color=look["color"],
            marker=look["marker"],
            markeredgecolor="white",
            markeredgewidth=0.5,
            elinewidth=0.8,
            zorder=4,
        )
    axes.plot(
        places,
        [cell.predicted_mse for cell in cells],
        linestyle="",
        marker="+",
        color="black",
        markersize=7,
        zorder=5,
    )
    axes.set_yscale("log")
    axes.set_xticks(places, [plain_number(label) for label in labels])
    axes.margins(x=0.06)


def draw_legend(figure: Figure, *, square_wave: bool, height: float) -> None:
    """Two rows under the panels: the paper's curves above, what is ours below."""
    paper = [
        Line2D(
            [], [], color=look["color"], marker=look["marker"], markeredgecolor="white", label=look["label"]
        )
        for look in PAPER_CURVES.values()
    ]
    paper.append(
        Line2D([], [], color="black", marker="+", linestyle="", markersize=7, label="framework's prediction")
    )
    ours = [
        Line2D([], [], **{"linewidth": 1.0, **look})
        for name, look in BASELINES.items()
        if square_wave or name != "calibrated"
    ]
    figure.legend(handles=paper, loc="lower center", ncols=len(paper), bbox_to_anchor=(0.5, height))
    figure.legend(handles=ours, loc="lower center", ncols=len(ours), bbox_to_anchor=(0.5, 0.0))
