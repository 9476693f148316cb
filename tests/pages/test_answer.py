"""Figures of answers."""

from __future__ import annotations

from typing import Any

from hdr4me.pages.answer import as_html, draw, panels_of


def row(statistic, dimension="x", category=None, estimate=1.0, **more):
    ends = {
        "lower": None if estimate is None else estimate - 0.1,
        "upper": None if estimate is None else estimate + 0.1,
    }
    return (
        {"statistic": statistic, "dimension": dimension, "category": category, "estimate": estimate}
        | ends
        | more
    )


ROWS = [
    row("mean"),
    row("mean", "y", estimate=2e6),
    row("frequency", "c", "red"),
    *(row("distribution", "x", f"{i} to {i + 1}") for i in range(50)),
    *(row("mean_by", "x", group, lower=None) for group in ("a", "b", "c")),
    row("quantile", "x", "0.5"),
    *(row("cdf", "x", f"≤ {x}", 0.1 * x) for x in (1, 5, 9)),
    *(row("mean_by", "z", band) for band in ("18-29", "30-39", "40+")),
    *(row("share_by", "c", f"{c} | {g}", 0.5) for g in ("a", "b") for c in ("red", "blue")),
    row("correlation", "x", "y", estimate=0.5),
    row("sd", estimate=None),
]


def test_each_statistic_and_magnitude_has_its_panel():
    titles = [title for _, title, _ in panels_of(ROWS)]
    assert titles == [
        "mean",
        "mean",
        "frequency of c",
        "distribution of x",
        "mean of x by group",
        "quantile of x",
        "cdf of x",
        "mean of z by group",
        "shares of c by group",
        "correlation",
    ]


def test_a_page_needs_no_network_and_names_are_escaped():
    page = as_html([*ROWS, row("mean", "<script>$x$")], "title", "lead")
    assert "<svg" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_nothing_to_draw():
    assert draw([row("sd", estimate=None)]) is None
    assert "<table>" in as_html([], "title", "lead")


def test_ordered_groups_are_a_curve_and_others_are_points():
    figure = draw([row("mean_by", "x", band, 1.0) for band in ("18-29", "30-39", "70+")])
    assert figure is not None
    assert [len(line.get_xdata()) for line in figure.axes[0].get_lines()] == [3]
    figure = draw([row("mean_by", "x", place, 1.0) for place in ("north", "south", "west")])
    assert figure is not None
    assert figure.axes[0].containers  # error bars, and no line between places that have no order


def test_bars_lie_where_their_edges_are():
    figure = draw([row("histogram", "x", "0 to 10", 0.2), row("histogram", "x", "10 to 40", 0.8)])
    assert figure is not None
    bars: list[Any] = list(figure.axes[0].patches)
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [(0.0, 10.0), (10.0, 30.0)]
