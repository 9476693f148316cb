"""The pictures of a plan: the deviation's density for the candidates, and the error against m and against ε."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.cli.plan import option_table, winner_table
from hdr4me.pages import html
from hdr4me.planner.candidates import sampled_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hdr4me.planner import Option, Plan


# Colour and dash differ, so that lines that lie on one another can be told apart.
_LOOKS: tuple[tuple[str, Any], ...] = (
    ("#0b6e99", "-"), ("#d1495b", "--"), ("#d38a00", ":"), ("#3a7d44", "-."), ("#6c4f9c", (0, (5, 1))),
    ("#8d6a4f", (0, (1, 1))),
)  # fmt: skip


def draw(plan: Plan) -> Figure:
    """Three panels side by side, one legend below."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    density, over_m, over_epsilon = figure.subplots(1, 3)
    _density(plan, density)
    _error_against_m(plan, over_m)
    _error_against_epsilon(plan, over_epsilon)
    plain = FuncFormatter(lambda x, _: f"{x:g}")
    for axes in (over_m, over_epsilon):
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(plain)
            axis.set_minor_formatter(NullFormatter())
    for axes in (density, over_m, over_epsilon):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    handles, labels = density.get_legend_handles_labels()
    figure.legend(
        handles[::-1], labels[::-1], loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9
    )
    return figure


def _shown(plan: Plan) -> list[tuple[Option, str, Any]]:
    """The best six, each with its colour and dash."""
    return [(option, *look) for option, look in zip(plan.mechanisms, _LOOKS, strict=False)]


def _density(plan: Plan, axes: Axes) -> None:
    shown = _shown(plan)
    reach = 3.5 * max(
        float(np.max(option.deviation(worst=plan.setting.worst).sd)) for option, *_ in shown[:3]
    )
    x = np.linspace(-reach, reach, 401)
    for option, colour, dash in reversed(shown):
        y = option.deviation(worst=plan.setting.worst).marginal_pdf(x)
        axes.plot(x, y, color=colour, ls=dash, label=f"{option.mechanism}, m = {option.n_sampled:,}")
    ξ = plan.best.tolerance_each
    if np.isfinite(ξ):
        axes.axvspan(-ξ, ξ, color=_LOOKS[0][0], alpha=0.08)
    axes.set(
        title=f"One estimate: {plan.best.probability:.0%} within ±{ξ:.2g}",
        xlabel="estimate − truth",
        ylabel="density",
    )


def _error_against_m(plan: Plan, axes: Axes) -> None:
    setting = plan.setting
    grid = tuple(sampled_grid(setting.workload.n_dims))
    for option, colour, dash in reversed(_shown(plan)):
        made = setting.classes((option.mechanism, option.categorical), grid)
        axes.loglog(grid, np.sqrt(made.mse), color=colour, ls=dash)
        axes.plot(option.n_sampled, np.sqrt(option.mse), "o", color=colour, ms=5)
    _all_zeros(plan, axes)
    axes.set(
        title="Error against values sent", xlabel="dimensions each user reports, m", ylabel="root of the MSE"
    )


def _error_against_epsilon(plan: Plan, axes: Axes) -> None:
    centre = plan.best.epsilon
    budgets = np.geomspace(max(centre / 16, 1e-3), max(min(centre * 16, 64.0), centre), 25)
    for option, colour, dash in reversed(_shown(plan)):
        candidate = (option.mechanism, option.categorical)
        errors = [
            np.sqrt(replace(plan.setting, epsilon=float(e)).classes(candidate).mse.min()) for e in budgets
        ]
        axes.loglog(budgets, errors, color=colour, ls=dash)
    axes.axvline(centre, color="#888", lw=1)
    _all_zeros(plan, axes)
    axes.set(title="Error against budget, each at its best m", xlabel="ε", ylabel="root of the MSE")


def _all_zeros(plan: Plan, axes: Axes) -> None:
    level = float(np.sqrt(plan.best.all_zeros_mse))
    axes.axhline(level, color="#888", ls="--", lw=1)
    axes.annotate(
        "all zeros", (0.02, level), xycoords=("axes fraction", "data"), va="bottom", color="#666", fontsize=8
    )


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
