"""The picture of an answer: means with intervals, frequencies, densities, quantiles, curves for ordered groups."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hdr4me.pages import html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]
_BAR, _MARK, _FAINT = "#0b6e99", "#d1495b", "#9fc5d6"
_COLOURS = ("#0b6e99", "#d1495b", "#d38a00", "#3a7d44", "#6c4f9c", "#8d6a4f")
_MOST_PANELS, _MOST_ROWS = 60, 40
_BINS = ("distribution", "histogram")
_TITLES = {"mean_by": "mean of {} by group", "share_by": "shares of {} by group", "sd": "standard deviation"}
_POINT: dict[str, Any] = {"fmt": "o", "color": _BAR, "ecolor": _MARK, "capsize": 3}
_LOW, _HIGH = 1.7, 3.2
"""Inches: the largest height of a low picture, and the height of a curve."""


def panels_of(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """The rows of each picture: (statistic, title, rows); single numbers of one statistic and size share one picture.

    >>> row = {"statistic": "mean", "dimension": "age", "category": None, "estimate": 40.0, "lower": 39, "upper": 41}
    >>> [(statistic, title) for statistic, title, _ in panels_of([row, row | {"dimension": "height"}])]
    [('mean', 'mean')]
    """
    found: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if row["estimate"] is not None:
            statistic = row["statistic"]
            single = row["category"] is None or statistic in ("covariance", "correlation")
            title = _TITLES.get(statistic, statistic if single else f"{statistic} of {{}}")
            title = title.replace("{}", str(row["dimension"]))
            found.setdefault((statistic, title, _size(row) if single else 0), []).append(row)
    return [(statistic, title, part) for (statistic, title, _), part in found.items()]


def _size(row: Row) -> int:
    """The power of 100 that a row's numbers reach: units that differ more have pictures of their own."""
    if row["statistic"] in ("share", "correlation"):
        return 0
    largest = max(abs(row[end]) for end in ("estimate", "lower", "upper") if row[end] is not None)
    return math.floor(math.log(max(largest, 1e-300), 100))


def draw(rows: Sequence[Row]) -> Figure | None:
    """All pictures under one another in two columns; None if nothing is known."""
    from matplotlib.figure import Figure

    panels = panels_of(rows)[:_MOST_PANELS]
    if not panels:
        return None
    # Pictures of few rows are low, and stand beside others that are as low.
    panels.sort(key=lambda panel: _height(panel[0], panel[2]) > _LOW)
    lines = [panels[i : i + 2] for i in range(0, len(panels), 2)]
    heights = [max(_height(statistic, part) for statistic, _, part in line) for line in lines]
    figure = Figure(figsize=(11.5, sum(heights)), layout="constrained")
    grid = figure.subplots(len(lines), 2, squeeze=False, gridspec_kw={"height_ratios": heights})
    for line, places in zip(lines, grid, strict=True):
        for (statistic, title, part), place in zip(line, places, strict=False):
            _panel(place, statistic, part[:_MOST_ROWS])
            more = f" (first {_MOST_ROWS} of {len(part)})" if len(part) > _MOST_ROWS else ""
            place.set_title(_plain(title + more), fontsize=10, loc="left")
            place.spines[["top", "right"]].set_visible(False)
            place.tick_params(labelsize=8)
            place.grid(alpha=0.25)
            place.set_axisbelow(True)
        for place in places[len(line) :]:
            place.set_visible(False)
    return figure


def _height(statistic: str, rows: Sequence[Row]) -> float:
    """Inches: pictures with a row for each number are as high as they need, the others are all as high."""
    if statistic in _BINS or statistic == "cdf" or statistic.endswith("_by"):
        return _HIGH
    return 0.85 + 0.26 * min(len(rows), _MOST_ROWS)


def _panel(axes: Axes, statistic: str, rows: list[Row]) -> None:
    value = [row["estimate"] for row in rows]
    low = [row["estimate"] if row["lower"] is None else min(row["lower"], row["estimate"]) for row in rows]
    high = [row["estimate"] if row["upper"] is None else max(row["upper"], row["estimate"]) for row in rows]
    reach = [
        [v - a for v, a in zip(value, low, strict=True)],
        [b - v for v, b in zip(value, high, strict=True)],
    ]
    labels = [_plain(_label(row)) for row in rows]
    places = [float(k) for k in range(len(rows))]
    if statistic in _BINS:
        _bars(axes, labels, value, reach)
    elif statistic == "cdf":
        _curve(axes, [float(label.removeprefix("≤ ")) for label in labels], value, low, high)
        axes.set_ylim(0, 1)
    elif statistic == "share_by":
        _shares(axes, rows)
    elif statistic.endswith("_by"):
        if _ordered(labels):
            _curve(axes, places, value, low, high)
        else:
            axes.errorbar(places, value, yerr=reach, elinewidth=1.2, **_POINT)
            axes.margins(x=0.1)
        _ticks(axes, places, labels)
    else:
        axes.errorbar(value, places, xerr=reach, elinewidth=1.4, markersize=4, **_POINT)
        axes.set_yticks(places, labels)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.margins(x=0.1)
        if statistic == "frequency":
            axes.barh(places, value, color=_FAINT, zorder=0, height=0.7)


def _bars(axes: Axes, labels: list[str], value: list[float], reach: list[list[float]]) -> None:
    """Shares between edges: one bar each, where it lies on the axis and as wide as it is."""
    edges = [tuple(float(end) for end in label.split(" to ")) for label in labels]
    middles, widths = [(a + b) / 2 for a, b in edges], [b - a for a, b in edges]
    axes.bar(middles, value, width=widths, color=_FAINT, edgecolor="white", linewidth=0.8)
    axes.errorbar(middles, value, yerr=reach, fmt="none", ecolor=_MARK, elinewidth=1)
    axes.set_xlim(edges[0][0], edges[-1][1])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("share", fontsize=8)


def _curve(axes: Axes, x: list[float], value: list[float], low: list[float], high: list[float]) -> None:
    axes.fill_between(x, low, high, color=_FAINT, alpha=0.5, linewidth=0)
    axes.plot(x, value, color=_BAR, marker="o", markersize=3)


def _shares(axes: Axes, rows: list[Row]) -> None:
    """The share of each category in each group: the groups side by side, a colour for each category."""
    pairs = [str(row["category"]).partition(" | ")[::2] for row in rows]
    own, groups = (list(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
    for k, category in enumerate(own):
        part = [(groups.index(g), row) for (c, g), row in zip(pairs, rows, strict=True) if c == category]
        x = [place + 0.6 * ((k + 0.5) / len(own) - 0.5) for place, _ in part]
        value = [row["estimate"] for _, row in part]
        reach = [
            [max(abs(row["estimate"] - (row[end] or 0.0)), 0.0) for _, row in part]
            for end in ("lower", "upper")
        ]
        look: Any = {"fmt": "o", "color": _COLOURS[k % len(_COLOURS)], "markersize": 4, "elinewidth": 1.2}
        axes.errorbar(x, value, yerr=reach, label=_plain(category), **look)
    axes.set_ylim(0, 1.25 * max(row["upper"] or row["estimate"] for row in rows))
    axes.legend(fontsize=7, frameon=False, ncols=min(len(own), 4), loc="upper right")
    _ticks(axes, [float(k) for k in range(len(groups))], [_plain(group) for group in groups])


def _ordered(labels: list[str]) -> bool:
    """Whether the groups are steps of a scale: every name begins with a number, and the numbers rise.

    >>> _ordered(["18-29", "30-39", "70+"]), _ordered(["north", "south"])
    (True, False)
    """
    found = [re.match(r"\D{0,3}(-?\d+(?:\.\d+)?)", label) for label in labels]
    numbers = [float(match.group(1)) for match in found if match is not None]
    return len(numbers) == len(labels) > 1 and all(a < b for a, b in pairwise(numbers))


def _label(row: Row) -> str:
    if row["category"] is None:
        return str(row["dimension"])
    if row["statistic"] in ("covariance", "correlation"):
        return f"{row['dimension']}, {row['category']}"
    return str(row["category"])


def _ticks(axes: Axes, places: list[float], labels: list[str]) -> None:
    step = max(1, -(-len(places) // 12))
    axes.set_xticks(places[::step], labels[::step], rotation=20 if len(places) > 4 else 0, fontsize=8)


def _plain(text: str) -> str:
    """Other people's names: no formulas, no control characters."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("$", r"\$")[:60]


def as_html(rows: Sequence[Row], title: str, lead: str, notes: Sequence[str] = ()) -> str:
    """One page with the pictures and the rows; it needs no network."""
    drawing = draw(rows)
    columns = [c for c in rows[0] if any(row.get(c) not in (None, "") for row in rows)] if rows else []
    parts = [] if drawing is None else [html.figure(drawing, "Estimates with their intervals.")]
    parts += [html.paragraph(note) for note in notes]
    parts.append(html.table(columns, [[row.get(column) for column in columns] for row in rows]))
    return html.page(title, lead, *parts)
