"""Figure 5: MSE against the number of dimensions on COV-19, ε = 0.8."""

from __future__ import annotations

from matplotlib.figure import Figure

from hdr4me.paper.cells import MECHANISMS
from hdr4me.paper.figures.curves import draw_curves, draw_legend
from hdr4me.paper.figures.style import panel_title, styled
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results

__all__ = ["figure5"]


def figure5(results: Results, reading: Reading) -> Figure:
    """Two panels: Laplace and Piecewise."""
    with styled():
        figure = Figure(figsize=(8.4, 4.1))
        axes = figure.subplots(1, 2)
        for panel, letter, mechanism in zip(axes, "ab", ("laplace", "piecewise"), strict=True):
            cells = results.curve("fig5", "cov19", mechanism)
            draw_curves(panel, cells, [cell.cell.n_dims for cell in cells], reading)
            panel_title(panel, letter, f"{MECHANISMS[mechanism]} on {cells[0].title}")
            panel.set_xlabel("number of dimensions $d$")
        axes[0].set_ylabel("MSE")
        figure.tight_layout(rect=(0, 0.13, 1, 1), w_pad=1.5)
        draw_legend(figure, square_wave=False, height=0.055)
    return figure
