"""The picture and the page of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.pages import html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hdr4me.comparison.compare import Comparison
    from hdr4me.comparison.measure import Row


COLUMNS = (
    "ε",
    "mechanism",
    "foretold MSE",
    "simulated MSE",
    "±",
    "re-calibrated MSE",
    "95 % intervals cover",
)
_COLOURS = ("#0b6e99", "#d1495b", "#2e7d4f", "#b7791f", "#6b4c9a", "#55606b", "#c2577e", "#3d8b8b")


def draw(comparison: Comparison) -> Figure:
    """Root mean squared error by ε: points are simulated, dashed lines predicted, hollow points re-calibrated."""
    from matplotlib.figure import Figure

    tables = titled(comparison)
    figure = Figure(figsize=(6.2 * len(tables), 4.2), layout="constrained")
    for axes, rows in zip(figure.subplots(1, len(tables), squeeze=False)[0], tables.values(), strict=True):
        _panel(axes, comparison, rows)
    return figure


def titled(comparison: Comparison) -> dict[str, list[Row]]:
    """The rows of each kind and statistic, which are on one scale, by a title."""
    found: dict[str, list[Row]] = {}
    for row in comparison.rows:
        of = "share chosen" if row.statistic == "chosen" else row.statistic
        found.setdefault(f"The {of} of {row.kind}", []).append(row)
    return found


def _panel(axes: Axes, comparison: Comparison, rows: list[Row]) -> None:
    for colour, name in zip(_COLOURS * 4, dict.fromkeys(row.mechanism for row in rows), strict=False):
        own = sorted((row for row in rows if row.mechanism == name), key=lambda row: row.epsilon)
        x = [row.epsilon for row in own]
        axes.plot(x, np.sqrt([row.simulated for row in own]), "o-", color=colour, label=name, markersize=5)
        if all(row.foretold is not None for row in own):
            axes.plot(x, np.sqrt([row.foretold or 0.0 for row in own]), "--", color=colour, linewidth=1)
        if all(row.recalibrated is not None for row in own):
            after = np.sqrt([row.recalibrated or 0.0 for row in own])
            axes.plot(x, after, "o", color=colour, markerfacecolor="none", markersize=9)
    ylabel = f"root mean squared error ({rows[0].scale})"
    axes.set(xscale="log", yscale="log", xlabel="ε of a report", ylabel=ylabel)
    axes.set_xticks(
        sorted({row.epsilon for row in rows}), [f"{x:g}" for x in sorted({r.epsilon for r in rows})]
    )
    axes.minorticks_off()
    title = f"{rows[0].statistic} of {rows[0].kind}, {comparison.n_users:,} users"
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)


def fragment(comparison: Comparison) -> str:
    """The picture and the tables, as a part of a page."""
    caption = "Points: simulated. Dashed: foretold with no experiment. Circles: after re-calibration."
    parts = [html.figure(draw(comparison), caption)]
    for title, rows in titled(comparison).items():
        scale = html.paragraph(f"Errors: {rows[0].scale}.")
        parts.append(html.section(title, scale, html.table(COLUMNS, [cells(row) for row in rows])))
    parts += [html.paragraph(note) for note in comparison.notes]
    return "".join(parts)


def page(comparison: Comparison) -> str:
    """One file that needs no network."""
    lead = (
        f"{comparison.n_users:,} users, {comparison.n_sampled} question(s) in each report, {comparison.repeats} "
        f"simulated collections for each line, seed {comparison.seed}. Each table says on which scale its errors are; "
        "those of different tables are not to be compared. This page was made from true values."
    )
    return html.page("Mechanisms compared on these data", lead, fragment(comparison))


def cells(row: Any) -> list[object]:
    """A row under `COLUMNS`."""
    return [
        row.epsilon,
        row.mechanism,
        row.foretold,
        row.simulated,
        row.simulated_se,
        row.recalibrated,
        f"{100 * row.coverage:.1f} %",
    ]
