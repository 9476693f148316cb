"""One panel of Figures 2 and 3: the simulated deviations and the framework's density."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import norm

from hdr4me.paper.clt import CltResult

__all__ = ["draw_density"]


def draw_density(axes: Axes, result: CltResult) -> None:
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
    axes.fill_between(
        middle,
        law.pdf(middle) - 2 * error,
        law.pdf(middle) + 2 * error,
        color="#1f4e79",
        alpha=0.12,
        linewidth=0,
    )
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
