"""The pictures of a plan: the deviation's density for the candidates, and the error against m and against ε."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.cli.plan import option_table, winner_table
from hdr4me.pages import html
from hdr4me.planner.candidates import sampled_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hdr4me.planner import Plan


# Color and dash differ, so that lines that lie on one another can be told apart.
_LOOKS: tuple[tuple[str, Any], ...] = (
    ("#0b6e99", "-"), ("#d1495b", "--"), ("#d38a00", ":"), ("#3a7d44", "-."), ("#6c4f9c", (0, (5, 1))),
    ("#8d6a4f", (0, (1, 1))),
)  # fmt: skip


def draw(plan: Plan) -> Figure:
    """Three panels side by side, one legend below."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

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
        look: Any = {"color": color, "ls": dash, "label": f"{option.mechanism}, m = {option.sampled:,}"}
        density.plot(x, option.deviation(worst=worst).marginal_pdf(x), **look)
        over_m.loglog(grid, np.sqrt(setting.classes(candidate, grid).mse), **look)
        over_m.plot(option.sampled, np.sqrt(option.mse), "o", color=color, ms=5)
        over_epsilon.loglog(budgets, [np.sqrt(s.classes(candidate).mse.min()) for s in settings], **look)
    ξ, zeros = best.tolerance_each, float(np.sqrt(best.all_zeros_mse))
    if np.isfinite(ξ):
        density.axvspan(-ξ, ξ, color=_LOOKS[0][0], alpha=0.08)
    over_epsilon.axvline(best.epsilon, color="#888", lw=1)
    titles = (
        (f"One estimate: {best.probability:.0%} within ±{ξ:.2g}", "estimate − truth", "density"),
        ("Error against values sent", "dimensions each user reports, m", "root of the MSE"),
        ("Error against budget, each at its best m", "ε", "root of the MSE"),
    )
    for axes, (title, xlabel, ylabel) in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    for axes in (over_m, over_epsilon):
        axes.axhline(zeros, color="#888", ls="--", lw=1)
        at: Any = {"xycoords": ("axes fraction", "data"), "va": "bottom"}
        axes.annotate("all zeros", (0.02, zeros), **at, color="#666", fontsize=8)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            axis.set_minor_formatter(NullFormatter())
    handles, labels = density.get_legend_handles_labels()
    place: Any = {"loc": "outside lower center", "ncols": len(labels)}
    figure.legend(handles[::-1], labels[::-1], **place, frameon=False, fontsize=9)
    return figure


def _probability(p: float) -> str:
    return f"{p:.4g}" if p >= 0.001 else "< 0.001"


def plan_page(plan: Plan) -> str:
    """A page that needs no network: the summary, the pictures, the ranking, the winners."""
    best = plan.best.recalibration
    (columns, options), (heads, winners) = option_table(plan, plan.options), winner_table(plan)
    for row in options:
        row[3:5] = map(_probability, row[3:5])
    for row in winners:
        row[3] = _probability(row[3])
    return html.page(
        "A plan for a private collection",
        plan.summary,
        html.figure(draw(plan), "Left: the error of one estimate. Middle and right: the effect of m and ε."),
        html.section("Options, best first", html.table(columns, options)),
        html.section(
            "Different tolerances, different winners",
            html.table(heads, winners),
            html.paragraph(
                "Raw Square wave moves every answer towards the middle, whatever the truth: no survey deploys it."
            ),
        ),
        html.section(
            "Re-calibration",
            html.paragraph(
                f"If the true means are spread evenly, the best linear shrinkage removes {best.gain:.1%} of the "
                f"error, while L1 at one standard error harms {best.l1_harms:.0%} of the dimensions: {best.verdict}."
            ),
        ),
    )
