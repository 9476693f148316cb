"""What every result carries: which survey, which budget, which level, which version, which day."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

FIELDS = ("survey", "epsilon", "level", "version", "date")


def stamp(survey: str | None, epsilon: float | Sequence[float], level: float | None) -> dict[str, Any]:
    """The five fields that a result carries.

    >>> sorted(stamp("0123", 1.0, 0.95))
    ['date', 'epsilon', 'level', 'survey', 'version']
    """
    version = import_module("hdr4me").__version__  # the package's own file, which stands above every room
    return dict(zip(FIELDS, (survey, epsilon, level, version, _today()), strict=True))


def _today() -> str:
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    return now.date().isoformat()


def in_words(made: Mapping[str, Any]) -> str:
    """The stamp as one line.

    >>> in_words({"survey": None, "epsilon": [1.0, 2.0], "level": 0.95, "version": "0.2", "date": "2026-01-31"})
    'ε = 1, 2; level 0.95; hdr4me 0.2; 2026-01-31'
    """
    budgets = made["epsilon"] if isinstance(made["epsilon"], list | tuple) else [made["epsilon"]]
    parts = [f"survey {made['survey']}"] if made["survey"] else []
    parts.append("ε = " + ", ".join(f"{value:g}" for value in budgets))
    parts += [] if made["level"] is None else [f"level {made['level']:g}"]
    return "; ".join([*parts, f"hdr4me {made['version']}", str(made["date"])])


def on_page(page: str, made: Mapping[str, Any]) -> str:
    """A page of `hdr4me.pages.html` with the stamp at its end."""
    from hdr4me.pages import html

    end = "</body></html>"
    head, _, tail = page.rpartition(end)
    return head + f"<footer>{html.paragraph('Made from ' + in_words(made))}</footer>" + end + tail
