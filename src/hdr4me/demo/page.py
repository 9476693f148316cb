"""The page of the demonstration: estimates beside true values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from scipy import stats

from hdr4me.atomic import write_text
from hdr4me.demo import HOURS, Demo
from hdr4me.pages.html import figure, page, paragraph, section, svg, table

_TRUE, _OURS, _QUIET = "#1d2329", "#c2410c", "#94a3b8"
_ESTIMATE: dict[str, Any] = {"fmt": "o", "ms": 3.5, "lw": 1, "color": _OURS}
_LOOK: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}


def write_page(demo: Demo, folder: Path) -> None:
    """Write report.html, and day.svg beside it."""
    survey, n = demo.survey, demo.tally.n_reports
    keys = ["dimension", "category", "true", "estimate", "lower", "upper", "answers"]
    with rc_context(_LOOK):
        days, categories, errors = (draw(demo.rows) for draw in (_days, _categories, _errors))
        text = page(
            "A private collection, end to end",
            f"{n:,} simulated users, {len(survey.schema)} dimensions, ε = {survey.epsilon:g}: each user sent "
            f"{survey.report_size} bytes.",
            section(
                "Method",
                paragraph(
                    f"Every user answered {survey.sampled} of {len(survey.schema)} questions, chosen at random. The "
                    "device randomized the answer with an integer table whose likelihood ratios are at most "
                    f"e^{survey.epsilon_per_answer:g}. The collector never has true values; this page uses them to "
                    f"show that {100 * demo.coverage:.1f} % of the 95 % intervals contain them. {demo.advice}"
                ),
            ),
            section("Average day", figure(days, "True hourly means (line) and estimates.")),
            section("Categorical questions", figure(categories, "True shares (gray) and estimates.")),
            section(
                "Calibration of the standard errors",
                paragraph("Errors divided by their standard errors follow a standard normal distribution."),
                figure(errors, f"(estimate − truth)/standard error of {len(demo.rows)} estimates."),
            ),
            section("All estimates", table(keys, [[row[key] for key in keys] for row in demo.rows])),
        )
        write_text(folder / "report.html", text)
        write_text(folder / "day.svg", svg(days))


def _points(rows: list[dict[str, Any]]) -> tuple[list[float], list[float], list[float]]:
    """True values, estimates and half-widths of intervals."""
    estimates = [row["estimate"] for row in rows]
    return [row["true"] for row in rows], estimates, [row["upper"] - row["estimate"] for row in rows]


def _days(rows: list[dict[str, Any]]) -> Figure:
    drawing = Figure(figsize=(10, 3.4), layout="constrained")
    curves = (("heart_rate_", "heart rate (1/min)"), ("steps_", "steps in the hour"))
    for axes, (prefix, label) in zip(drawing.subplots(1, 2), curves, strict=True):
        true, estimate, reach = _points([row for row in rows if row["dimension"].startswith(prefix)])
        axes.plot(true, color=_TRUE, label="truth")
        axes.errorbar(range(24), estimate, reach, **_ESTIMATE, label="private estimate")
        axes.set(xlabel="hour of the day", ylabel=label)
        axes.set_xticks(range(0, 24, 4), HOURS[::4])
        axes.legend()
    return drawing


def _categories(every: list[dict[str, Any]]) -> Figure:
    names = tuple(dict.fromkeys(row["dimension"] for row in every if row["category"]))
    drawing = Figure(figsize=(10, 5.4), layout="constrained")
    for axes, name in zip(drawing.subplots(2, (len(names) + 1) // 2).flat, names, strict=False):
        rows = [row for row in every if row["dimension"] == name]
        places = np.arange(len(rows))
        true, estimate, reach = _points(rows)
        axes.barh(places, true, color=_QUIET, height=0.7)
        axes.errorbar(estimate, places, xerr=reach, **_ESTIMATE)
        axes.set_yticks(places, [row["category"] for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_title(name.replace("_", " "), fontsize=9, loc="left")
    return drawing


def _errors(rows: list[dict[str, Any]]) -> Figure:
    drawing = Figure(figsize=(6, 3), layout="constrained")
    axes = drawing.subplots()
    x = np.linspace(-4, 4, 201)
    z = [(row["estimate"] - row["true"]) / row["standard_error"] for row in rows]
    axes.hist(z, bins=np.linspace(-4, 4, 25).tolist(), density=True, color=_QUIET)
    axes.plot(x, stats.norm.pdf(x), color=_OURS, label="standard normal")
    axes.set(xlabel="error / standard error", ylabel="density")
    axes.legend()
    return drawing
