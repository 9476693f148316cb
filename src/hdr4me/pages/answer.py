"""An answer as figures, an HTML page, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput, MissingDependency
from hdr4me.pages import html

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]
Floats = NDArray[np.float64]
_BAR, _MARK, _FAINT = "#0b6e99", "#d1495b", "#9fc5d6"
_COLORS = ("#0b6e99", "#d1495b", "#d38a00", "#3a7d44", "#6c4f9c", "#8d6a4f")
_MOST_PANELS, _MOST_ROWS = 60, 40
_BINS = ("distribution", "histogram")
_FIRST = ("dimension", "category", "statistic", "unit")
_TITLES = {
    "mean_by": "mean of {} by group",
    "share_by": "shares of {} by group",
    "sd": "standard deviation",
    "chosen": "choices of {}",
    "share": "share of users with a value",
}
_POINT: dict[str, Any] = {"fmt": "o", "color": _BAR, "ecolor": _MARK, "capsize": 3}
_WIDTH, _HIGH = 5.75, 3.2  # inches: the width of a panel, and the height of a curve


def panels_of(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """The panels of a figure as (statistic, title, rows); numbers of one statistic and unit share one."""
    panels: dict[tuple[str, str, object], list[Row]] = {}
    for row in rows:
        if row["estimate"] is not None:
            statistic = row["statistic"]
            single = row["category"] is None or statistic in ("covariance", "correlation")
            title = _TITLES.get(statistic, statistic if single else f"{statistic} of {{}}")
            title = title.replace("{}", str(row["dimension"]))
            unit = row.get("unit") or (_size(row) if single else 0)
            title += f" ({row['unit']})" if row.get("unit") else ""
            panels.setdefault((statistic, title, unit), []).append(row)
    return [(statistic, title, part) for (statistic, title, _), part in panels.items()]


def _size(row: Row) -> int:
    """The magnitude of the numbers of a row, as a power of 100; other magnitudes have separate panels."""
    if row["statistic"] in ("share", "correlation"):
        return 0
    largest = max(abs(row[end]) for end in ("estimate", "lower", "upper") if row[end] is not None)
    return math.floor(math.log(max(largest, 1e-300), 100))


def draw(rows: Sequence[Row]) -> Figure | None:
    """A figure with all panels, in two columns if there are several; None if there is no estimate."""
    from matplotlib.figure import Figure

    panels = panels_of(rows)[:_MOST_PANELS]
    if not panels:
        return None
    # Panels of similar height share a line.
    panels.sort(key=lambda panel: _height(panel[0], panel[2]))
    n_columns = min(2, len(panels))
    lines = [panels[i : i + n_columns] for i in range(0, len(panels), n_columns)]
    heights = [max(_height(statistic, part) for statistic, _, part in line) for line in lines]
    figure = Figure(figsize=(_WIDTH * n_columns, sum(heights)), layout="constrained")
    grid = figure.subplots(len(lines), n_columns, squeeze=False, gridspec_kw={"height_ratios": heights})
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


def plot(rows: Sequence[Row], title: str, notes: Sequence[str] = ()) -> Figure:
    """The figure of `draw` with the name of the survey as title and notes below; an error if there is no estimate."""
    drawing = draw(rows)
    if drawing is None:
        raise InvalidInput("there is no estimate to plot: more reports are needed")
    if title:
        drawing.suptitle(_plain(title), fontsize=12)
    if notes:
        width = 80 if drawing.get_figwidth() < 2 * _WIDTH else 160
        lines = [line for note in notes for line in wrap(_plain(note, 300), width)]
        drawing.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8)
    return drawing


def as_polars(table: pa.Table) -> Any:
    """An Arrow table as a polars data frame."""
    try:
        import polars
    except ModuleNotFoundError:
        raise MissingDependency("polars is not installed: pip install polars") from None
    return polars.from_arrow(table)


def _height(statistic: str, rows: Sequence[Row]) -> float:
    """The height in inches: panels with one line per row grow with the rows, the others have a fixed height."""
    if statistic in _BINS or statistic == "cdf" or statistic.endswith("_by"):
        return _HIGH
    return 0.85 + 0.26 * min(len(rows), _MOST_ROWS)


def _panel(axes: Axes, statistic: str, rows: list[Row]) -> None:
    value, lower, upper = (
        np.array([row[key] for row in rows], float) for key in ("estimate", "lower", "upper")
    )
    # A missing end of an interval is replaced by the estimate.
    low, high = np.fmin(value, lower), np.fmax(value, upper)
    reach = np.array([value - low, high - value])
    labels = [_label(row) for row in rows]
    places = np.arange(len(rows))
    if statistic in _BINS:  # one bar per bin, with its position and width
        edges = np.array([label.split(" to ") for label in labels], float)
        middles = edges.mean(axis=1)
        axes.bar(middles, value, width=np.diff(edges)[:, 0], color=_FAINT, edgecolor="white", linewidth=0.8)
        axes.errorbar(middles, value, yerr=reach, fmt="none", ecolor=_MARK, elinewidth=1)
        axes.set_xlim(edges[0, 0], edges[-1, 1])
        axes.set_ylim(bottom=0)
        axes.set_ylabel("share", fontsize=8)
    elif statistic == "cdf" or (statistic == "mean_by" and _ordered(labels)):
        x = [float(label.removeprefix("≤ ")) for label in labels] if statistic == "cdf" else places
        axes.fill_between(x, low, high, color=_FAINT, alpha=0.5, linewidth=0)
        axes.plot(x, value, color=_BAR, marker="o", markersize=3)
        if statistic == "cdf":
            axes.set_ylim(0, 1)
        else:
            _ticks(axes, labels)
    elif statistic == "share_by":
        _shares(axes, rows, value, reach)
    elif statistic.endswith("_by"):
        axes.errorbar(places, value, yerr=reach, elinewidth=1.2, **_POINT)
        axes.margins(x=0.1)
        _ticks(axes, labels)
    else:
        axes.errorbar(value, places, xerr=reach, elinewidth=1.4, markersize=4, **_POINT)
        axes.set_yticks(places, labels)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.margins(x=0.1)
        if statistic == "frequency":
            axes.barh(places, value, color=_FAINT, zorder=0, height=0.7)


def _shares(axes: Axes, rows: list[Row], value: Floats, reach: Floats) -> None:
    """The share of each category in each group, with one color per category."""
    names = np.array([str(row["category"]).partition(" | ")[::2] for row in rows])
    own, groups = (list(dict.fromkeys(column.tolist())) for column in names.T)
    for k, category in enumerate(own):
        mine = names[:, 0] == category
        x = [groups.index(group) + 0.6 * ((k + 0.5) / len(own) - 0.5) for group in names[mine, 1].tolist()]
        look: Any = {"fmt": "o", "color": _COLORS[k % len(_COLORS)], "markersize": 4, "elinewidth": 1.2}
        axes.errorbar(x, value[mine], yerr=reach[:, mine], label=_plain(category), **look)
    axes.set_ylim(0, 1.25 * float((value + reach[1]).max()))
    axes.legend(fontsize=7, frameon=False, ncols=min(len(own), 4), loc="upper right")
    _ticks(axes, [_plain(group) for group in groups])


def _ordered(labels: list[str]) -> bool:
    """Whether the groups are ordered: every name begins with a number, and the numbers increase."""
    found = [re.match(r"\D{0,3}(-?\d+(?:\.\d+)?)", label) for label in labels]
    numbers = [float(match.group(1)) for match in found if match is not None]
    return len(numbers) == len(labels) > 1 and all(a < b for a, b in pairwise(numbers))


def _label(row: Row) -> str:
    both = row["statistic"] in ("covariance", "correlation")
    parts = (row["dimension"] if both or row["category"] is None else None, row["category"])
    return _plain(", ".join(str(part) for part in parts if part is not None))


def _ticks(axes: Axes, labels: list[str]) -> None:
    step = max(1, -(-len(labels) // 12))
    positions = range(0, len(labels), step)
    axes.set_xticks(positions, labels[::step], rotation=20 if len(labels) > 4 else 0, fontsize=8)


def _plain(text: str, most: int = 60) -> str:
    """A text with names from a file, at most so long, without formulas and control characters."""
    text = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(c if c.isprintable() else "?" for c in text).replace("$", r"\$")


def as_html(rows: Sequence[Row], title: str, lead: str, notes: Sequence[str] = ()) -> str:
    """A self-contained page with the figures and the rows."""
    drawing = draw(rows)
    usual: dict[str, Any] = {"status": "ok"}
    columns = (
        [c for c in rows[0] if any(row.get(c) not in (None, "", usual.get(c)) for row in rows)]
        if rows
        else []
    )
    columns.sort(key=lambda column: column not in _FIRST)
    parts = [] if drawing is None else [html.figure(drawing, "Estimates with confidence intervals.")]
    parts += [html.paragraph(note) for note in notes]
    lines = [[row.get(column) for column in columns] for row in rows]
    for before, line in zip(reversed(rows[:-1]), reversed(lines[1:]), strict=True):
        if line and line[0] == before.get(columns[0]):
            line[0] = ""  # a dimension is named in its first row
    parts.append(html.table([column.replace("_", " ") for column in columns], lines))
    return html.page(title, lead, *parts)


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], made: Mapping[str, Any]) -> str:
    """A CSV file whose last columns are the provenance, because many programs do not support comment lines."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [*columns, *made], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    # A spreadsheet would execute a text that begins like a formula.
    writer.writerows(
        {k: f"'{v}" if isinstance(v, str) and v[:1] in _FORMULA else v for k, v in {**row, **made}.items()}
        for row in rows
    )
    return buffer.getvalue()


def as_parquet(rows: Sequence[Row], columns: Sequence[str], made: Mapping[str, Any]) -> bytes:
    """A Parquet file with the provenance in its schema's metadata, under keys such as `hdr4me.survey`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types: dict[str, Any] = dict.fromkeys(("estimate", "standard_error", "lower", "upper"), pa.float64())
    types["answers"] = pa.int64()
    fields = [(name, types.get(name, pa.string())) for name in columns]
    schema = pa.schema(fields, metadata={f"hdr4me.{key}": str(value) for key, value in made.items()})
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), buffer)
    return buffer.getvalue()
