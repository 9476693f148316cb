"""The paper's figures, drawn from this run's numbers, and the figure of an own study.

One palette and one grammar: the paper's own curves are solid, everything of ours is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import norm

from hdr4me.paper.cells import MECHANISMS, CellResult, title_of
from hdr4me.paper.clt import CltResult
from hdr4me.paper.methods import Reading
from hdr4me.paper.results import Results
from hdr4me.paper.studies import DATASETS

_PAPER_CURVES: dict[str, dict[str, Any]] = {
    "naive": {"label": "current aggregation", "color": "#1f4e79", "marker": "s"},
    "l1": {"label": "HDR4ME, L1", "color": "#c8553d", "marker": "o"},
    "l2": {"label": "HDR4ME, L2", "color": "#e0a030", "marker": "^"},
}
"""The three curves of the paper's panels."""
_BASELINES: dict[str, dict[str, Any]] = {
    "auto": {"label": "auto (ours)", "color": "#2e8b57", "linestyle": (0, (5, 1.5)), "linewidth": 1.6},
    "clip": {"label": "clip to [−1, 1]", "color": "#7a8793", "linestyle": (0, (3, 1.5, 1, 1.5))},
    "zeros": {"label": "all zeros", "color": "#7a8793", "linestyle": (0, (1, 1.3))},
    "oracle": {"label": "oracle", "color": "#8a63b0", "linestyle": (0, (1, 1.3)), "linewidth": 1.3},
    "calibrated": {"label": "Square wave, calibrated", "color": "#4a9bb5", "linestyle": (0, (5, 1.5))},
}
"""What the paper does not show: our own method, the two trivial ones and the bound."""
_PREDICTED: dict[str, Any] = {"color": "black", "marker": "+", "linestyle": "", "markersize": 7}
_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.labelsize": 8.5,
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
    "figure.dpi": 110,
}
_AXES = {"n_dims": "number of dimensions $d$", "epsilon": "ε, shared by all dimensions"}
Panel = tuple[str, list[CellResult]]
"""A title and the cells of a curve, from left to right."""


def draw(results: Results, reading: Reading) -> dict[str, Figure]:
    """The figures that this run has numbers for, by the names of their files."""
    figures: dict[str, tuple[str, Callable[[], Figure]]] = {
        "fig2": ("figure-2", lambda: _figure2(results)),
        "fig3": ("figure-3", lambda: _figure3(results)),
        "fig4": ("figure-4", lambda: _figure4(results, reading)),
        "fig5": ("figure-5", lambda: _figure5(results, reading)),
        "own": ("figure-own", lambda: _figure_own(results, reading)),
    }
    with rc_context(_SETTINGS):
        return {name: make() for target, (name, make) in figures.items() if results.has(target)}


def _letters() -> Iterator[str]:
    """(a), (b), … and from the beginning again after (z)."""
    number = 0
    while True:
        yield chr(ord("a") + number % 26)
        number += 1


def _figure2(results: Results) -> Figure:
    """Uniform data, first of 5,000 dimensions: Laplace, Piecewise, Square wave."""
    return _densities([results.deviations("fig2", name) for name in MECHANISMS], (11, 3.5), 1.2)


def _figure3(results: Results) -> Figure:
    """The case study of section IV-C: Piecewise and Square wave."""
    names = ("piecewise", "square_wave")
    return _densities([results.deviations("fig3", name) for name in names], (8.4, 3.6), 1.5)


def _densities(found: Sequence[CltResult], size: tuple[float, float], pad: float) -> Figure:
    figure = Figure(figsize=size)
    axes = figure.subplots(1, len(found))
    for panel, letter, result in zip(axes, _letters(), found, strict=False):
        _draw_density(panel, result)
        panel.set_title(f"({letter}) {MECHANISMS[result.cell.mechanism]}", loc="left")
    axes[0].set_ylabel("density")
    figure.tight_layout(rect=(0, 0.07, 1, 1), w_pad=pad)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=2)
    return figure


def _draw_density(axes: Axes, result: CltResult) -> None:
    """Blue line: the framework's pdf; orange squares: the pdf estimate from the simulation, as in the paper."""
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
    axes.plot(fine, law.pdf(fine), color="#1f4e79", linewidth=1.8, label="framework's pdf (band: ±2 s.e.)")
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


def _figure4(results: Results, reading: Reading) -> Figure:
    """MSE against the budget: three mechanisms on four data sets, (a) to (l) in the paper's order."""
    curves = [results.curve("fig4", data, name) for data in DATASETS for name in MECHANISMS]
    panels = [(_title(cells, "epsilon"), cells) for cells in curves]
    return _mse_figure(panels, "epsilon", reading, (11, 12.6), rows=(0.052, 0.02), across=3, pad=1.2)


def _figure5(results: Results, reading: Reading) -> Figure:
    """MSE against the number of dimensions on COV-19, ε = 0.8: Laplace and Piecewise."""
    curves = [results.curve("fig5", "cov19", name) for name in ("laplace", "piecewise")]
    panels = [(_title(cells, "n_dims"), cells) for cells in curves]
    return _mse_figure(panels, "n_dims", reading, (8.4, 4.1), rows=(0.13, 0.055), across=2, pad=1.5)


def _figure_own(results: Results, reading: Reading) -> Figure:
    """One panel for each mechanism (and number of dimensions), three in a row, each with its labels."""
    axis, curves = results.own_panels()
    panels = [(_title(cells, axis), cells) for cells in curves]
    across = min(3, len(panels))
    height = 3.1 * math.ceil(len(panels) / across) + 1.0
    size, rows = (max(3.7 * across, 7.4), height), (0.62 / height, 0.25 / height)
    return _mse_figure(panels, axis, reading, size, rows=rows, across=across, pad=1.2, outer=False)


def _title(cells: Sequence[CellResult], axis: str) -> str:
    size = "" if axis == "n_dims" else f" ($d={cells[0].cell.n_dims}$)"
    return f"{title_of(cells[0].cell.mechanism)} on {cells[0].title}{size}"


def _mse_figure(
    panels: Sequence[Panel],
    axis: str,
    reading: Reading,
    size: tuple[float, float],
    *,
    rows: tuple[float, float],
    across: int,
    pad: float,
    outer: bool = True,
) -> Figure:
    """MSE curves in panels, and the legend under them."""
    figure = Figure(figsize=size)
    grid = figure.subplots(math.ceil(len(panels) / across), across, squeeze=False)
    places = grid.ravel()
    for place, letter, (title, cells) in zip(places, _letters(), panels, strict=False):
        _draw_curves(place, cells, axis, reading)
        place.set_title(f"({letter}) {title}", loc="left")
        if not outer or place in grid[-1]:
            place.set_xlabel(_AXES[axis])
        if not outer or place in grid[:, 0]:
            place.set_ylabel("MSE")
    for place in places[len(panels) :]:
        place.set_axis_off()
    figure.tight_layout(rect=(0, rows[0], 1, 1), h_pad=1.4, w_pad=pad)
    waves = any(cells[0].cell.mechanism == "square_wave" for _, cells in panels)
    _draw_legend(figure, square_wave=waves, height=rows[1])
    return figure


def _draw_curves(axes: Axes, cells: Sequence[CellResult], axis: str, reading: Reading) -> None:
    """MSE (logarithmic) at equally spaced places, as in the paper; bars are two standard errors."""
    places = np.arange(len(cells))
    for method, look in _BASELINES.items():
        if any(item.method == method for item in cells[0].outcomes):
            drawn = {key: value for key, value in look.items() if key != "label"}
            mse = [cell.outcome(method).mse for cell in cells]
            axes.plot(places, mse, zorder=2, **{"linewidth": 1.0, **drawn})
    for method, look in _PAPER_CURVES.items():
        found = [cell.outcome(method, reading) for cell in cells]
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
    axes.plot(places, [cell.predicted_mse for cell in cells], zorder=5, **_PREDICTED)
    axes.set_yscale("log")
    axes.set_xticks(places, [f"{getattr(cell.cell, axis):g}" for cell in cells])
    axes.margins(x=0.06)


def _draw_legend(figure: Figure, *, square_wave: bool, height: float) -> None:
    """Two rows under the panels: the paper's curves above (at `height`), what is ours below."""
    paper = [Line2D([], [], markeredgecolor="white", **look) for look in _PAPER_CURVES.values()]
    paper.append(Line2D([], [], label="framework's prediction", **_PREDICTED))
    ours = [
        Line2D([], [], **{"linewidth": 1.0, **look})
        for name, look in _BASELINES.items()
        if square_wave or name != "calibrated"
    ]
    figure.legend(handles=paper, loc="lower center", ncols=len(paper), bbox_to_anchor=(0.5, height))
    figure.legend(handles=ours, loc="lower center", ncols=len(ours), bbox_to_anchor=(0.5, 0.0))
