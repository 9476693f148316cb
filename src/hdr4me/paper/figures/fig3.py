"""Figure 3: the framework against the experiment in the case study of section IV-C."""

from __future__ import annotations

from matplotlib.figure import Figure

from hdr4me.paper.cells import MECHANISMS
from hdr4me.paper.figures.density import draw_density
from hdr4me.paper.figures.style import panel_title, styled
from hdr4me.paper.results import Results

__all__ = ["figure3"]


def figure3(results: Results) -> Figure:
    """Two panels: Piecewise and Square wave."""
    with styled():
        figure = Figure(figsize=(8.4, 3.6))
        axes = figure.subplots(1, 2)
        for panel, letter, mechanism in zip(axes, "ab", ("piecewise", "square_wave"), strict=True):
            draw_density(panel, results.deviations("fig3", mechanism))
            panel_title(panel, letter, MECHANISMS[mechanism])
        axes[0].set_ylabel("density")
        figure.tight_layout(rect=(0, 0.07, 1, 1), w_pad=1.5)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=2)
    return figure
