"""Figures of a plan: the density of the error, and the error against questions per person and against ε."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.pages import html
from hdr4me.planner.candidates import sampled_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hdr4me.planner import Plan


# Color and dash differ, so that overlapping lines can be distinguished.
_LOOKS: tuple[tuple[str, Any], ...] = (
    ("#0b6e99", "-"), ("#d1495b", "--"), ("#d38a00", ":"), ("#3a7d44", "-."), ("#6c4f9c", (0, (5, 1))),
    ("#8d6a4f", (0, (1, 1))),
)  # fmt: skip


def draw(plan: Plan) -> Figure:
    """Three panels side by side, one legend below."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    best, setting, worst = plan.best, plan.setting, plan.setting.worst
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    density, over_m, over_epsilon = panels = figure.subplots(1, 3)
    reach = 3.5 * max(float(np.max(option.deviation(worst=worst).sd)) for option in plan.mechanisms[:3])
    x = np.linspace(-reach, reach, 401)
    grid = tuple(sampled_grid(setting.workload.dims))
    budgets = np.geomspace(max(best.epsilon / 16, 1e-3), max(min(best.epsilon * 16, 64.0), best.epsilon), 25)
    settings = [replace(setting, epsilon=float(budget)) for budget in budgets]
    for option, (color, dash) in reversed(list(zip(plan.mechanisms, _LOOKS, strict=False))):
        candidate = (option.mechanism, option.categorical)
        look: Any = {
            "color": color,
            "ls": dash,
            "label": f"{option.mechanism}, {option.sampled:,} per person",
        }
        density.plot(x, option.deviation(worst=worst).marginal_pdf(x), **look)
        over_m.loglog(grid, np.sqrt(setting.classes(candidate, grid).mse), **look)
        over_m.plot(option.sampled, np.sqrt(option.mse), "o", color=color, ms=5)
        over_epsilon.loglog(budgets, [np.sqrt(s.classes(candidate).mse.min()) for s in settings], **look)
    half_width, zeros = best.tolerance_each, float(np.sqrt(best.all_zeros_mse))
    if np.isfinite(half_width):
        density.axvspan(-half_width, half_width, color=_LOOKS[0][0], alpha=0.08)
    over_epsilon.axvline(best.epsilon, color="#888", lw=1)
    titles = (
        (f"One estimate: {best.probability:.0%} within ±{half_width:.2g}", "estimate − truth", "density"),
        ("Error against questions per person", "questions per person", "root mean square error"),
        ("Error against budget, each at its optimum", "ε", "root mean square error"),
    )
    for axes, (title, xlabel, ylabel) in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    for axes in (over_m, over_epsilon):
        axes.axhline(zeros, color="#888", ls="--", lw=1)
        at: Any = {"xycoords": ("axes fraction", "data"), "va": "bottom"}
        axes.annotate("all zeros", (0.02, zeros), **at, color="#666", fontsize=8)
        html.log_ticks(axes.yaxis)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    handles, labels = density.get_legend_handles_labels()
    place: Any = {"loc": "outside lower center", "ncols": len(labels)}
    figure.legend(handles[::-1], labels[::-1], **place, frameon=False, fontsize=9)
    return figure


def plan_page(
    plan: Plan, lines: Sequence[str], tables: Sequence[tuple[str, list[str], list[list[Any]]]]
) -> str:
    """A self-contained page: the summary, the figures, the guarantees and all tables."""
    best = plan.best.recalibration
    caption = (
        "Left: the error of one estimate. Middle and right: its dependence on questions per person and on ε."
    )
    return html.page(
        "A plan for a private collection",
        plan.summary,
        html.figure(draw(plan), caption),
        *map(html.paragraph, lines),
        *(html.section(title, html.table(columns, rows)) for title, columns, rows in tables),
        html.section(
            "Re-calibration",
            html.paragraph(
                f"If the true means are spread evenly, the best linear shrinkage removes {best.gain:.1%} of the "
                f"error, while L1 at one standard error harms {best.l1_harms:.0%} of the dimensions: {best.verdict}."
            ),
        ),
    )
