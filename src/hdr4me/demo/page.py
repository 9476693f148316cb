"""The demonstration's page: what was collected, how close it came, in pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from hdr4me.demo.population import HOURS
from hdr4me.pages.html import figure, page, paragraph, section, table

if TYPE_CHECKING:
    from hdr4me.demo.demo import Demo

_TRUE, _OURS, _QUIET = "#1d2329", "#c2410c", "#94a3b8"
_ESTIMATE: dict[str, Any] = {"fmt": "o", "ms": 3.5, "lw": 1, "color": _OURS}


def demo_page(demo: Demo) -> str:
    """The whole page."""
    survey, n = demo.survey, demo.tally.n_reports
    columns = {"lower": "95 % from", "upper": "to"}
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
        section(
            "Every estimate",
            table([columns.get(key, key) for key in keys], [[row[key] for key in keys] for row in demo.rows]),
        ),
    )


def _plain(axes: Axes, *, legend: bool = False) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(frameon=False, fontsize=8)


def _points(rows: list[dict[str, Any]]) -> tuple[list[float], list[float], list[float]]:
    """The truth, the estimates, and how far their intervals reach."""
    estimates = [row["estimate"] for row in rows]
    return [row["true"] for row in rows], estimates, [row["upper"] - row["estimate"] for row in rows]


def draw_days(demo: Demo) -> Figure:
    """The hourly means, true and estimated."""
    drawing = Figure(figsize=(10, 3.4), layout="constrained")
    curves = (("heart_rate_", "heart rate (1/min)"), ("steps_", "steps in the hour"))
    for axes, (prefix, label) in zip(drawing.subplots(1, 2), curves, strict=True):
        true, estimate, reach = _points([row for row in demo.rows if row["dimension"].startswith(prefix)])
        axes.plot(true, color=_TRUE, label="truth")
        axes.errorbar(range(24), estimate, reach, **_ESTIMATE, label="private estimate")
        axes.set(xlabel="hour of the day", ylabel=label, xticks=range(0, 24, 4))
        axes.set_xticklabels(HOURS[::4])
        _plain(axes, legend=True)
    return drawing


def _categories(demo: Demo) -> Figure:
    names = tuple(dict.fromkeys(demo.estimate.of("frequency").dimensions))
    drawing = Figure(figsize=(10, 5.4), layout="constrained")
    grid = drawing.subplots(2, (len(names) + 1) // 2)
    for axes, name in zip(grid.flat, names, strict=False):
        rows = [row for row in demo.rows if row["dimension"] == name]
        places = np.arange(len(rows))
        true, estimate, reach = _points(rows)
        axes.barh(places, true, color=_QUIET, height=0.7)
        axes.errorbar(estimate, places, xerr=reach, **_ESTIMATE)
        axes.set_yticks(places, [row["category"] for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_title(name.replace("_", " "), fontsize=9, loc="left")
        _plain(axes)
    return drawing


def _errors(demo: Demo) -> Figure:
    z = [(row["estimate"] - row["true"]) / row["standard_error"] for row in demo.rows]
    drawing = Figure(figsize=(6, 3), layout="constrained")
    axes = drawing.subplots()
    x = np.linspace(-4, 4, 200)
    axes.hist(z, bins=np.linspace(-4, 4, 25).tolist(), density=True, color=_QUIET)
    axes.plot(x, stats.norm.pdf(x), color=_OURS, label="standard normal")
    axes.set(xlabel="error / standard error", ylabel="density")
    _plain(axes, legend=True)
    return drawing
