"""The paper's figures, drawn from this run's numbers."""

from __future__ import annotations

from hdr4me.evaluation.figures.fig2 import figure2
from hdr4me.evaluation.figures.fig3 import figure3
from hdr4me.evaluation.figures.fig4 import figure4
from hdr4me.evaluation.figures.fig5 import figure5

__all__ = ["figure2", "figure3", "figure4", "figure5"]
