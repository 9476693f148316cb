"""Figure 2: the framework against the experiment on Uniform data, first of 5,000 dimensions."""

from __future__ import annotations

from matplotlib.figure import Figure

from hdr4me.paper.cells import MECHANISMS
from hdr4me.paper.figures.density import draw_density
from hdr4me.paper.figures.style import panel_title, styled
from hdr4me.paper.results import Results

__all__ = ["figure2"]


def figure2(results: Results) -> Figure:
    """Three panels: Laplace, Piecewise, Square wave."""
    with styled():
        figure = Figure(figsize=(11, 3.5))
        axes = figure.subplots(1, 3)
        for panel, letter, (mechanism, title) in zip(axes, "abc", MECHANISMS.items(), strict=True):
            draw_density(panel, results.deviations("fig2", mechanism))
            panel_title(panel, letter, title)
        axes[0].set_ylabel("density")
        figure.tight_layout(rect=(0, 0.07, 1, 1), w_pad=1.2)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=2)
    return figure
