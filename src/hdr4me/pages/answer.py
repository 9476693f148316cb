"""The picture of an answer: means with intervals, frequencies, densities, quantiles, curves for ordered groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hdr4me.pages import html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["as_html", "draw", "panels_of", "png_bytes"]

Row = dict[str, Any]
_BAR, _MARK, _FAINT = "#0b6e99", "#d1495b", "#9fc5d6"
_MOST_PANELS, _MOST_ROWS = 60, 40
_BINS = ("distribution", "histogram")
_CURVES = ("cdf", "mean_by")


def panels_of(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """The rows of each picture: (statistic, title, rows); single numbers of one statistic and size share one picture.

    Parameters
    ----------
    rows
        Rows of `Answer.table()`; rows without an estimate are left out.

    Examples
    --------
    >>> row = {"statistic": "mean", "dimension": "age", "category": None, "estimate": 40.0, "lower": 39, "upper": 41}
    >>> [(statistic, title) for statistic, title, _ in panels_of([row, row | {"dimension": "height"}])]
    [('mean', 'mean')]
    """
    found: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if row["estimate"] is not None:
            single = row["category"] is None or row["statistic"] in ("covariance", "correlation")
            title = row["statistic"] if single else f"{row['statistic']} of {row['dimension']}"
            found.setdefault((row["statistic"], title, _size(row) if single else 0), []).append(row)
    return [(statistic, title, part) for (statistic, title, _), part in found.items()]


def _size(row: Row) -> int:
    """The power of 100 that a row's numbers reach: units that differ more have pictures of their own."""
    largest = max(abs(row[end]) for end in ("estimate", "lower", "upper") if row[end] is not None)
    return (
        0 if row["statistic"] in ("share", "correlation") else math.floor(math.log(max(largest, 1e-300), 100))
    )


def draw(rows: Sequence[Row]) -> Figure | None:
    """All pictures under one another in two columns; None if nothing is known."""
    from matplotlib.figure import Figure

    panels = panels_of(rows)[:_MOST_PANELS]
    if not panels:
        return None
    n_lines = math.ceil(len(panels) / 2)
    figure = Figure(figsize=(11.5, 3.4 * n_lines), layout="constrained")
    axes = figure.subplots(n_lines, 2, squeeze=False).ravel()
    for (statistic, title, part), place in zip(panels, axes, strict=False):
        _panel(place, statistic, part[:_MOST_ROWS])
        more = f" (first {_MOST_ROWS} of {len(part)})" if len(part) > _MOST_ROWS else ""
        place.set_title(_plain(title + more), fontsize=10, loc="left")
        place.spines[["top", "right"]].set_visible(False)
        place.grid(alpha=0.25)
    for place in axes[len(panels) :]:
        place.set_visible(False)
    return figure


def _panel(axes: Axes, statistic: str, rows: list[Row]) -> None:
    value = [row["estimate"] for row in rows]
    low = [row["estimate"] if row["lower"] is None else min(row["lower"], row["estimate"]) for row in rows]
    high = [row["estimate"] if row["upper"] is None else max(row["upper"], row["estimate"]) for row in rows]
    reach = [
        [v - a for v, a in zip(value, low, strict=True)],
        [b - v for v, b in zip(value, high, strict=True)],
    ]
    labels = [_plain(_label(row)) for row in rows]
    places = list(range(len(rows)))
    if statistic in _BINS:
        axes.bar(places, value, width=0.96, color=_FAINT, edgecolor=_BAR, linewidth=0.6)
        axes.errorbar(places, value, yerr=reach, fmt="none", ecolor=_MARK, elinewidth=1)
        _ticks(axes, places, labels)
    elif statistic in _CURVES or (statistic.endswith("_by") and len(rows) > 2):
        axes.plot(places, value, color=_BAR, marker="o", markersize=3)
        axes.fill_between(places, low, high, color=_FAINT, alpha=0.5, linewidth=0)
        _ticks(axes, places, labels)
    else:
        axes.errorbar(
            value, places, xerr=reach, fmt="o", color=_BAR, ecolor=_MARK, elinewidth=1.2, markersize=4
        )
        axes.set_yticks(places, labels, fontsize=8)
        axes.invert_yaxis()
        if statistic == "frequency":
            axes.barh(places, value, color=_FAINT, zorder=0)


def _label(row: Row) -> str:
    if row["category"] is None:
        return str(row["dimension"])
    if row["statistic"] in ("covariance", "correlation"):
        return f"{row['dimension']}, {row['category']}"
    return str(row["category"])


def _ticks(axes: Axes, places: list[int], labels: list[str]) -> None:
    step = max(1, len(places) // 8)
    axes.set_xticks(places[::step], labels[::step], rotation=30, ha="right", fontsize=7)


def _plain(text: str) -> str:
    """Other people's names: no formulas, no control characters."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("$", r"\$")[:60]


def as_html(rows: Sequence[Row], title: str, lead: str) -> str:
    """One page with the pictures and the rows; it needs no network.

    Parameters
    ----------
    rows
        Rows of `Answer.table()`.
    title, lead
        The heading, and the line under it.
    """
    drawing = draw(rows)
    columns = [c for c in rows[0] if any(row.get(c) not in (None, "") for row in rows)] if rows else []
    parts = [] if drawing is None else [html.figure(drawing, "Estimates with their intervals.")]
    parts.append(html.table(columns, [[row.get(column) for column in columns] for row in rows]))
    return html.page(title, lead, *parts)


def png_bytes(rows: Sequence[Row]) -> bytes:
    """The pictures alone."""
    import io

    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    (draw(rows) or Figure()).savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
