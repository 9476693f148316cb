"""A survey in plain words, as blocks of plain text: the page that shows them puts no text in as HTML."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hdr4me.explanation import explain
from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.survey import Survey

__all__ = ["explained"]


@lru_cache(maxsize=16)
def explained(survey: Survey, audience: str = "user") -> dict[str, Any]:
    """The explanation of a survey as a title, a lead and blocks; the last ones asked for are kept.

    Parameters
    ----------
    survey
        The survey.
    audience
        "user" or "dpo", as for `hdr4me.explain`.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, name="Ages")
    >>> found = explained(survey)
    >>> found["title"], found["blocks"][0]
    ('Ages', {'heading': 'What is asked', 'level': 2})
    """
    page = explain(survey, audience)
    return {"title": page.title, "lead": page.lead, "blocks": [_plain(block) for block in page.blocks]}


def _plain(block: Block) -> dict[str, Any]:
    if isinstance(block, Heading):
        return {"heading": block.text, "level": block.level}
    if isinstance(block, Text):
        return {"text": block.text}
    if isinstance(block, Table):
        return {"columns": list(block.columns), "rows": [[_cell(item) for item in row] for row in block.rows]}
    return {"text": block.caption}


def _cell(item: object) -> str:
    return "–" if item is None else f"{item:.6g}" if isinstance(item, float) else str(item)
