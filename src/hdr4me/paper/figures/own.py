"""The figure of a study of one's own: MSE against the budget, or against the number of dimensions."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from hdr4me.paper.cells import title_of
from hdr4me.paper.figures.curves import draw_curves, draw_legend
from hdr4me.paper.figures.style import panel_title, styled
from hdr4me.paper.outcomes import CellResult
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results

__all__ = ["figure_own", "own_panels"]


def own_panels(results: Results) -> tuple[str, list[list[CellResult]]]:
    """What runs along the axis ("epsilon" or "n_dims"), and the cells of each panel."""
    cells = [result for result in results.cells if result.cell.figure == "own"]
    by_size = len({c.cell.epsilon for c in cells}) == 1 and len({c.cell.n_dims for c in cells}) > 1
    panels: dict[tuple[str, int], list[CellResult]] = {}
    for result in cells:
        panels.setdefault((result.cell.mechanism, 0 if by_size else result.cell.n_dims), []).append(result)
    axis = "n_dims" if by_size else "epsilon"
    return axis, [sorted(panel, key=lambda r: getattr(r.cell, axis)) for panel in panels.values()]


def figure_own(results: Results, reading: Reading) -> Figure:
    """One panel for each mechanism (and number of dimensions), three in a row."""
    axis, panels = own_panels(results)
    across = min(3, len(panels))
    down = math.ceil(len(panels) / across)
    with styled():
        height = 3.1 * down + 1.0
        figure = Figure(figsize=(max(3.7 * across, 7.4), height))
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for place, panel in zip(axes, panels, strict=False):
            draw_curves(place, panel, [getattr(result.cell, axis) for result in panel], reading)
            first = panel[0]
            size = "" if axis == "n_dims" else f" ($d={first.cell.n_dims}$)"
            letter = chr(ord("a") + panels.index(panel) % 26)
            panel_title(place, letter, f"{title_of(first.cell.mechanism)} on {first.title}{size}")
            place.set_xlabel(
                "number of dimensions $d$" if axis == "n_dims" else "ε, shared by all dimensions"
            )
            place.set_ylabel("MSE")
        for place in axes[len(panels) :]:
            place.set_axis_off()
        figure.tight_layout(rect=(0, 0.62 / height, 1, 1), h_pad=1.4, w_pad=1.2)
        waves = any(panel[0].cell.mechanism == "square_wave" for panel in panels)
        draw_legend(figure, square_wave=waves, height=0.25 / height)
    return figure
