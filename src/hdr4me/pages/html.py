"""Self-contained HTML pages with text, tables, figures and provenance."""

from __future__ import annotations

import html
import io
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FIELDS = ("survey", "epsilon", "confidence", "version", "date")  # the provenance of every result
_LONG = 30  # characters of a text that may be wrapped, but into lines of some width
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1d2329; background: #fff; max-width: 62rem;
       margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { font-size: 1.3rem; margin-top: 2.4rem; border-bottom: 1px solid #d9dee3; padding-bottom: .25rem; }
p.lead { color: #55606b; margin-top: 0; }
table { border-collapse: collapse; font-size: .9rem; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #e6eaee; text-align: right; }
th { vertical-align: bottom; }
td { white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
td.text { white-space: normal; }
td.long { min-width: 11rem; }
thead th { border-bottom: 2px solid #aab4bd; }
figure { margin: 1.2rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #55606b; font-size: .9rem; }
code { background: #f2f4f6; padding: .1rem .3rem; border-radius: 3px; overflow-wrap: anywhere; }
"""


def page(title: str, lead: str, *parts: str) -> str:
    """The complete document; `parts` are HTML from the functions below."""
    name = html.escape(title)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{name}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{name}</h1><p class='lead'>{html.escape(lead)}</p>" + "\n".join(parts) + "</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A heading and its content."""
    return f"<h2>{html.escape(title)}</h2>" + "\n".join(parts)


def paragraph(text: str) -> str:
    """Plain text, escaped; `code` between backticks."""
    return "<p>" + re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text)) + "</p>"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns of texts to the left, numbers to the right."""
    texts = [
        all(item is None or isinstance(item, str) for item in column) for column in zip(*rows, strict=True)
    ]
    kinds = [" class='text'" if is_text else "" for is_text in texts or [False] * len(columns)]
    heads = "".join(f"<th{kind}>{html.escape(str(x))}</th>" for kind, x in zip(kinds, columns, strict=True))
    lines = ("".join(map(_cell, kinds, row)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def cell_text(item: object) -> str:
    """A cell of a table as text: a dash for None, four digits of a number."""
    return "–" if item is None or item != item else f"{item:.4g}" if isinstance(item, float) else str(item)


def _cell(kind: str, item: object) -> str:
    large = isinstance(item, int | float) and 1e4 <= abs(item) < 1e15
    text = f"{item:,.0f}" if large else cell_text(item)
    if kind and len(text) > _LONG:
        kind = " class='text long'"
    return f"<td{kind}>{html.escape(text)}</td>"


def figure(drawing: Figure, caption: str) -> str:
    """A matplotlib figure as inline SVG with a caption."""
    return f"<figure>{svg(drawing)}<figcaption>{html.escape(caption)}</figcaption></figure>"


def log_ticks(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, without exponents."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def svg(drawing: Figure) -> str:
    """The SVG element of a figure, with deterministic bytes."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "hdr4me", "svg.fonttype": "none"}):
        drawing.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def provenance(
    survey: str | None, epsilon: float | Sequence[float], confidence: float | None
) -> dict[str, Any]:
    """The provenance that every result includes."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    version = import_module("hdr4me").__version__  # the package itself is above every layer
    return dict(zip(FIELDS, (survey, epsilon, confidence, version, now.date().isoformat()), strict=True))


def in_words(made: Mapping[str, Any]) -> str:
    """The provenance as one line, such as 'ε = 1, 2; confidence 0.95; hdr4me 0.2; 2026-01-31'."""
    budgets = made["epsilon"] if isinstance(made["epsilon"], list | tuple) else [made["epsilon"]]
    parts = [f"survey {made['survey']}"] if made["survey"] else []
    parts.append("ε = " + ", ".join(f"{value:g}" for value in budgets))
    parts += [] if made["confidence"] is None else [f"confidence {made['confidence']:g}"]
    return "; ".join([*parts, f"hdr4me {made['version']}", str(made["date"])])


def on_page(text: str, made: Mapping[str, Any]) -> str:
    """A page with its provenance at the end."""
    head, end, tail = text.rpartition("</body></html>")
    return head + f"<footer>{paragraph('Made from ' + in_words(made))}</footer>" + end + tail
