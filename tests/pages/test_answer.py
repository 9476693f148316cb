"""Pictures of answers."""

from __future__ import annotations

from hdr4me.pages.answer import as_html, draw, panels_of, png_bytes


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
    row("correlation", "x", "y", estimate=0.5),
    row("sd", estimate=None),
]


def test_each_statistic_has_its_picture_and_units_that_differ_are_apart():
    titles = [title for _, title, _ in panels_of(ROWS)]
    assert titles == [
        "mean",
        "mean",
        "frequency of c",
        "distribution of x",
        "mean_by of x",
        "quantile of x",
        "correlation",
    ]


def test_a_page_needs_no_network_and_names_are_escaped():
    page = as_html([*ROWS, row("mean", "<script>$x$")], "title", "lead")
    assert "<svg" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_png_and_nothing_to_draw():
    assert png_bytes(ROWS).startswith(b"\x89PNG")
    assert draw([row("sd", estimate=None)]) is None
    assert png_bytes([]).startswith(b"\x89PNG")
    assert "<table>" in as_html([], "title", "lead")
