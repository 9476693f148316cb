"""Figure 4: MSE against the budget, three mechanisms on four data sets."""

from __future__ import annotations

from matplotlib.figure import Figure

from hdr4me.paper.cells import MECHANISMS
from hdr4me.paper.figures.curves import draw_curves, draw_legend
from hdr4me.paper.figures.style import panel_title, styled
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results
from hdr4me.paper.studies import DATASETS

__all__ = ["figure4"]


def figure4(results: Results, reading: Reading) -> Figure:
    """Twelve panels in the paper's order, (a) to (l)."""
    with styled():
        figure = Figure(figsize=(11, 12.6))
        axes = figure.subplots(len(DATASETS), len(MECHANISMS))
        letters = iter("abcdefghijkl")
        for row, dataset in enumerate(DATASETS):
            for column, (mechanism, title) in enumerate(MECHANISMS.items()):
                cells = results.curve("fig4", dataset, mechanism)
                panel = axes[row, column]
                draw_curves(panel, cells, [cell.cell.epsilon for cell in cells], reading)
                panel_title(panel, next(letters), f"{title} on {cells[0].title} ($d={cells[0].cell.n_dims}$)")
                if column == 0:
                    panel.set_ylabel("MSE")
                if row == len(DATASETS) - 1:
                    panel.set_xlabel("ε, shared by all dimensions")
        figure.tight_layout(rect=(0, 0.052, 1, 1), h_pad=1.4, w_pad=1.2)
        draw_legend(figure, square_wave=True, height=0.02)
    return figure
