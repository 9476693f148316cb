"""The figures of the paper, drawn from the numbers of a run, and the figure of a study of one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from string import ascii_lowercase
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import norm

from hdr4me.paper.cells import MECHANISMS, CellResult
from hdr4me.paper.methods import LambdaChoice
from hdr4me.paper.studies import DATASETS, Results
from hdr4me.paper.theory import CltResult

# The three curves of the paper.
_PAPER_CURVES: dict[str, dict[str, Any]] = {
    "naive": {"label": "current aggregation (naive)", "color": "#1f4e79", "marker": "s"},
    "l1": {"label": "HDR4ME, L1", "color": "#c8553d", "marker": "o"},
    "l2": {"label": "HDR4ME, L2", "color": "#e0a030", "marker": "^", "markersize": 6},
}
# Not in the paper: `auto`, two trivial estimators, the lower bound and the calibrated Square wave. The dashes of `auto`
# and the dots of the oracle alternate, and all zeros has marks, so that each remains visible where they coincide.
_BASELINES: dict[str, dict[str, Any]] = {
    "auto": {"label": "auto (ours)", "color": "#2e8b57", "linestyle": (0, (4, 4)), "linewidth": 1.5},
    "clip": {"label": "clip to [−1, 1]", "color": "#7a8793", "linestyle": (0, (3, 1.5, 1, 1.5))},
    "zeros": {
        "label": "all zeros",
        "color": "#4a5560",
        "linestyle": (0, (1, 3)),
        "marker": "x",
        "markersize": 4,
    },
    "oracle": {"label": "oracle", "color": "#7a3fb0", "linestyle": (-5.5, (1, 3)), "linewidth": 1.5},
    "calibrated": {"label": "Square wave, calibrated", "color": "#4a9bb5", "linestyle": (0, (5, 1.5))},
}
_PREDICTED: dict[str, Any] = {"color": "black", "marker": "+", "linestyle": "", "markersize": 7}
_SETTINGS: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#55606b",
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8ecf0",
    "grid.linewidth": 0.7,
    "xtick.color": "#333b43",
    "ytick.color": "#333b43",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "ytick.minor.size": 0,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
}
_AXES = {
    "dims": "number of dimensions $d$ (categorical)",
    "epsilon": "total budget ε (categorical)",
    "m": "reported dimensions $m$ (categorical)",
}


def drawn(panels: Sequence[Sequence[CellResult]], axis: str, choice: LambdaChoice) -> Figure:
    """The figure of a study of one's own."""
    with rc_context(_SETTINGS):
        return mse_figure(panels, axis, choice)


def draw(results: Results, choice: LambdaChoice) -> dict[str, Figure]:
    """The figures of a run by the names of their files."""
    figures: dict[str, Figure] = {}
    with rc_context(_SETTINGS):
        for number, names in ((2, tuple(MECHANISMS)), (3, ("piecewise", "square_wave"))):
            if results.has(f"fig{number}"):
                drawn = [results.deviations(f"fig{number}", name) for name in names]
                figures[f"figure-{number}"] = _densities(drawn)
        if results.has("fig4"):
            # Three mechanisms on four data sets, (a) to (l) in the paper's order.
            panels = [results.curve("fig4", data, name) for data in DATASETS for name in MECHANISMS]
            figures["figure-4"] = mse_figure(panels, "epsilon", choice)
            figures["figure-4-paper"] = mse_figure(panels, "epsilon", choice, paper=True)
        if results.has("fig5"):
            panels = [results.curve("fig5", "cov19", name) for name in ("laplace", "piecewise")]
            figures["figure-5"] = mse_figure(panels, "dims", choice)
            figures["figure-5-paper"] = mse_figure(panels, "dims", choice, paper=True)
        if results.has("own"):
            axis, panels = results.own_panels()
            figures["figure-own"] = mse_figure(panels, axis, choice)
    return figures


def _densities(results: Sequence[CltResult]) -> Figure:
    figure = Figure(figsize=(3.2 + 2.6 * len(results), 3.6))
    axes = figure.subplots(1, len(results))
    for panel, letter, result in zip(axes, cycle(ascii_lowercase), results, strict=False):
        _draw_density(panel, result)
        panel.set_title(f"({letter}) {MECHANISMS[result.cell.mechanism]}", loc="left")
    axes[0].set_ylabel("density")
    figure.tight_layout(rect=(0, 0.07, 1, 1), w_pad=1.2)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=2)
    return figure


def _draw_density(axes: Axes, result: CltResult) -> None:
    """The predicted density as a blue line and the simulated density as orange squares, as in the paper."""
    deviations = np.array(result.deviations)
    law = norm(result.bias, result.sd)
    bins = min(31, max(11, int(2 * deviations.size ** (1 / 3)) | 1))
    edges = np.linspace(result.bias - 3.6 * result.sd, result.bias + 3.6 * result.sd, bins + 1)
    inside, _ = np.histogram(deviations, edges)
    height = inside / (deviations.size * np.diff(edges))
    expected = np.diff(law.cdf(edges))
    error = np.sqrt(expected * (1 - expected) / deviations.size) / np.diff(edges)
    middle = (edges[1:] + edges[:-1]) / 2
    fine = np.linspace(edges[0], edges[-1], 400)
    low, high = law.pdf(middle) - 2 * error, law.pdf(middle) + 2 * error
    axes.fill_between(middle, low, high, color="#1f4e79", alpha=0.12, linewidth=0)
    axes.plot(fine, law.pdf(fine), color="#1f4e79", linewidth=1.8, label="predicted density (band: ±2 s.e.)")
    axes.plot(
        middle, height, linestyle="", marker="s", markersize=4, color="#e07b39", markeredgecolor="white",
        markeredgewidth=0.4, label=f"{deviations.size:,} simulated collections",
    )  # fmt: skip
    axes.set_ylim(bottom=0, top=law.pdf(result.bias) * 1.28)
    axes.text(
        0.98, 0.97, f"KS distance {result.ks_distance:.4f}\n$p$ = {result.ks_p_value:.3f}",
        transform=axes.transAxes, ha="right", va="top", color="#333b43",
    )  # fmt: skip
    axes.set_xlabel(r"deviation $\hat\theta_1-\bar\theta_1$")


def mse_figure(
    panels: Sequence[Sequence[CellResult]], axis: str, choice: LambdaChoice, *, paper: bool = False
) -> Figure:
    """MSE curves in panels, up to three in a row, with one legend below; `paper` draws the paper's curves alone."""
    across = min(3, len(panels))
    down = math.ceil(len(panels) / across)
    height = 2.83 * down + 1.27
    figure = Figure(figsize=(max(3.67 * across, 8.4), height))
    places = figure.subplots(down, across, squeeze=False).ravel()
    have = {item.method for cells in panels for item in cells[0].outcomes}
    curves = {name: look for name, look in _PAPER_CURVES.items() if name in have}
    others = {name: look for name, look in _BASELINES.items() if name in have and not paper}
    for number, (place, letter, cells) in enumerate(
        zip(places, cycle(ascii_lowercase), panels, strict=False)
    ):
        _draw_curves(place, cells, axis, choice, curves, others, predicted=not paper)
        first = cells[0].cell
        sizes = [] if axis == "dims" else [f"d={first.dims}"]
        sizes += [f"m={first.sampled}"] if axis != "m" and first.sampled else []
        count = f" (${', '.join(sizes)}$)" if sizes else ""
        place.set_title(f"({letter}) {cells[0].panel}{count}", loc="left")
        if number + across >= len(panels):
            place.set_xlabel(_AXES[axis])
        if number % across == 0:
            place.set_ylabel("MSE")
    for place in places[len(panels) :]:
        place.set_axis_off()
    # Two rows: the curves of the paper, then the others.
    first_row = [Line2D([], [], markeredgecolor="white", **look) for look in curves.values()]
    if not paper:
        first_row.append(Line2D([], [], label="predicted MSE", **_PREDICTED))
    second_row = [Line2D([], [], **{"linewidth": 1.0, **look}) for look in others.values()]
    rows = [row for row in (second_row, first_row) if row]
    figure.tight_layout(rect=(0, (0.15 + 0.25 * len(rows)) / height, 1, 1), h_pad=1.4, w_pad=1.2)
    for number, handles in enumerate(rows):
        at = (0.5, 0.25 * number / height)
        figure.legend(handles=handles, loc="lower center", ncols=len(handles), bbox_to_anchor=at)
    return figure


def _draw_curves(
    axes: Axes,
    cells: Sequence[CellResult],
    axis: str,
    choice: LambdaChoice,
    curves: Mapping[str, dict[str, Any]],
    others: Mapping[str, dict[str, Any]],
    *,
    predicted: bool,
) -> None:
    """MSE on a logarithmic axis at equally spaced positions, as in the paper.

    Bars are two standard deviations of single collections; two standard errors of the MSE would be hidden by the marks.
    The curves of the paper are shifted against each other, so that equal values remain visible.
    """
    places = np.arange(len(cells), dtype=np.float64)
    for method, look in others.items():
        if any(item.method == method for item in cells[0].outcomes):
            mse = [cell.outcome(method).mse for cell in cells]
            shift = 0.16 if "marker" in look else 0.0
            axes.plot(places + shift, mse, zorder=5, **{"linewidth": 1.0, **look})
    shifts = 0.07 * (np.arange(len(curves)) - (len(curves) - 1) / 2)
    for shift, (method, look) in zip(shifts, curves.items(), strict=True):
        found = [cell.outcome(method, choice) for cell in cells]
        sd = [
            item.standard_error * math.sqrt(cell.cell.repeats)
            for item, cell in zip(found, cells, strict=True)
        ]
        bars = [np.minimum(2 * np.array(sd), [0.99 * item.mse for item in found]), 2 * np.array(sd)]
        axes.errorbar(
            places + shift,
            [item.mse for item in found],
            yerr=bars,
            capsize=3,
            **{**look, "markeredgecolor": "white", "markeredgewidth": 0.5, "elinewidth": 1.0, "zorder": 4},
        )
        expected = [item.predicted_mse for item in found]
        if predicted and None not in expected:
            axes.plot(places + shift, np.array(expected), zorder=6, **_PREDICTED)
    axes.set_yscale("log")
    axes.set_xticks(places, [f"{getattr(cell.cell, axis):g}" for cell in cells])
    axes.margins(x=0.06)
