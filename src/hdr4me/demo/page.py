"""The demonstration's page: what was collected, how close it came, in pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from hdr4me.demo.population import HOURS
from hdr4me.pages.html import figure, page, paragraph, section, table

if TYPE_CHECKING:
    from hdr4me.demo.demo import Demo

__all__ = ["demo_page", "draw_days"]

_TRUE, _OURS, _QUIET = "#1d2329", "#c2410c", "#94a3b8"


def demo_page(demo: Demo) -> str:
    """The whole page."""
    survey, n = demo.survey, demo.tally.n_reports
    columns = ["dimension", "category", "true", "estimate", "95 % from", "to", "answers"]
    keys = ["dimension", "category", "true", "estimate", "lower", "upper", "answers"]
    return page(
        "A private collection, end to end",
        f"{n:,} simulated users, {len(survey.schema)} dimensions, epsilon = {survey.epsilon:g}: each user sent "
        f"{survey.report_size} bytes.",
        section(
            "What happened",
            paragraph(
                f"Every user drew {survey.n_sampled} of {len(survey.schema)} dimensions at random, randomised it "
                f"with an integer table whose privacy loss is proven at most e^{survey.epsilon_per_answer:g}, and "
                "sent the cell's number. The collector counted the numbers and calibrated. It never held a true "
                "value; this page does, to show how close the answers came."
            ),
            paragraph(
                f"{demo.coverage:.1%} of the 95 % intervals hold the truth. Re-calibration: {demo.advice}"
            ),
        ),
        section(
            "The day of an average wearer",
            figure(
                draw_days(demo),
                "Hourly means: the truth (line) and the private estimates with 95 % intervals.",
            ),
        ),
        section(
            "Questions with fixed answers", figure(_categories(demo), "True shares (grey) and estimates.")
        ),
        section(
            "Is the error what it says it is?",
            paragraph(
                "Each estimate's error over its own standard error should be a standard normal variate, whatever the "
                "dimension."
            ),
            figure(
                _errors(demo),
                f"(estimate − truth)/standard error for {len(demo.rows)} means and frequencies.",
            ),
        ),
        section("Every estimate", table(columns, [[row[key] for key in keys] for row in demo.rows])),
    )


def _rows(demo: Demo, prefix: str) -> list[dict[str, Any]]:
    return [row for row in demo.rows if row["dimension"].startswith(prefix)]


def draw_days(demo: Demo) -> Figure:
    """The hourly means, true and estimated."""
    drawing = Figure(figsize=(10, 3.4), layout="constrained")
    for axes, (prefix, label) in zip(
        drawing.subplots(1, 2),
        [("heart_rate_", "heart rate (1/min)"), ("steps_", "steps in the hour")],
        strict=True,
    ):
        rows = _rows(demo, prefix)
        estimate = np.array([row["estimate"] for row in rows])
        reach = np.array([row["upper"] for row in rows]) - estimate
        axes.plot([row["true"] for row in rows], color=_TRUE, label="truth")
        axes.errorbar(
            range(24), estimate, reach, fmt="o", ms=3.5, lw=1, color=_OURS, label="private estimate"
        )
        axes.set(xlabel="hour of the day", ylabel=label, xticks=range(0, 24, 4))
        axes.set_xticklabels(HOURS[::4])
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return drawing


def _categories(demo: Demo) -> Figure:
    names = tuple(dict.fromkeys(demo.estimate.of("frequency").dimensions))
    drawing = Figure(figsize=(10, 5.4), layout="constrained")
    grid = drawing.subplots(2, (len(names) + 1) // 2)
    for axes, name in zip(grid.flat, names, strict=False):
        rows = [row for row in demo.rows if row["dimension"] == name]
        place = np.arange(len(rows))
        estimate = np.array([row["estimate"] for row in rows])
        axes.barh(place, [row["true"] for row in rows], color=_QUIET, height=0.7)
        axes.errorbar(
            estimate,
            place,
            xerr=[row["upper"] - row["estimate"] for row in rows],
            fmt="o",
            ms=3.5,
            lw=1,
            color=_OURS,
        )
        axes.set_yticks(place, [row["category"] for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_title(name.replace("_", " "), fontsize=9, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    return drawing


def _errors(demo: Demo) -> Figure:
    z = [(row["estimate"] - row["true"]) / row["standard_error"] for row in demo.rows]
    drawing = Figure(figsize=(6, 3), layout="constrained")
    axes = drawing.subplots()
    x = np.linspace(-4, 4, 200)
    axes.hist(z, bins=np.linspace(-4, 4, 25).tolist(), density=True, color=_QUIET)
    axes.plot(x, stats.norm.pdf(x), color=_OURS, label="standard normal")
    axes.set(xlabel="error / standard error", ylabel="density")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return drawing
