"""The paper's figures, drawn from this run's numbers, and the figure of a study of one's own."""

from __future__ import annotations

from hdr4me.paper.figures.fig2 import figure2
from hdr4me.paper.figures.fig3 import figure3
from hdr4me.paper.figures.fig4 import figure4
from hdr4me.paper.figures.fig5 import figure5
from hdr4me.paper.figures.own import figure_own

__all__ = ["figure2", "figure3", "figure4", "figure5", "figure_own"]
