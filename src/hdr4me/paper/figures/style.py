"""How the figures look: one palette, one grammar. The paper's own curves are solid, everything of ours is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes

__all__ = ["BASELINES", "PAPER_CURVES", "panel_title", "plain_number", "styled"]

PAPER_CURVES: dict[str, dict[str, Any]] = {
    "naive": {"label": "current aggregation", "color": "#1f4e79", "marker": "s"},
    "l1": {"label": "HDR4ME, L1", "color": "#c8553d", "marker": "o"},
    "l2": {"label": "HDR4ME, L2", "color": "#e0a030", "marker": "^"},
}
"""The three curves of the paper's panels."""

BASELINES: dict[str, dict[str, Any]] = {
    "auto": {"label": "auto (ours)", "color": "#2e8b57", "linestyle": (0, (5, 1.5)), "linewidth": 1.6},
    "clip": {"label": "clip to [−1, 1]", "color": "#7a8793", "linestyle": (0, (3, 1.5, 1, 1.5))},
    "zeros": {"label": "all zeros", "color": "#7a8793", "linestyle": (0, (1, 1.3))},
    "oracle": {"label": "oracle", "color": "#8a63b0", "linestyle": (0, (1, 1.3)), "linewidth": 1.3},
    "calibrated": {"label": "Square wave, calibrated", "color": "#4a9bb5", "linestyle": (0, (5, 1.5))},
}
"""What the paper does not show: our own method, the two trivial ones and the bound."""


@contextmanager
def styled() -> Iterator[None]:
    """Every figure is drawn inside this."""
    settings: dict[str, Any] = {
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
    with rc_context(settings):  # type: ignore[arg-type]
        yield


def panel_title(axes: Axes, letter: str, text: str) -> None:
    """“(a) Laplace on Gaussian (d = 100)”, to the left above the panel."""
    axes.set_title(f"({letter}) {text}", loc="left")


def plain_number(value: float) -> str:
    """A budget or a size as the paper writes it.

    >>> plain_number(0.1), plain_number(5000.0)
    ('0.1', '5000')
    """
    return f"{value:g}"
