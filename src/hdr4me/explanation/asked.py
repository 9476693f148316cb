"""The questions of a survey in words, and a record to show a report of."""

from __future__ import annotations

from typing import Any

from hdr4me.pages.counted import counted, listed
from hdr4me.pages.document import Table
from hdr4me.survey import Categorical, Dimension, Numeric, Selection, Survey, Vector

__all__ = ["example_record", "questions_table", "together"]

_SHOWN = 6
_LINES = 30


def questions_table(survey: Survey) -> Table:
    """A line for each dimension: its name and what may be said."""
    rows: list[list[object]] = [[d.name, _answers(d)] for d in survey.schema]
    if len(rows) > _LINES:
        rest = len(rows) - _LINES
        rows = [*rows[:_LINES], ["…", f"and {rest:,} more, listed in the document"]]
    return Table(["about", "what your device holds"], rows)


def together(survey: Survey) -> list[str]:
    """A sentence for each question that is about several dimensions.

    >>> from hdr4me.survey import Schema
    >>> schema = Schema([Numeric(name, 0, 1) for name in "abcd"])
    >>> together(Survey(schema, epsilon=4.0, pairs=[("a", "d")]))
    ['a and d are one question: one random answer stands for both.']
    """
    said = []
    several = [question for question in survey.questions if len(question.dimensions) > 1]
    for question in several[:_SHOWN]:
        names = [survey.schema.names[j] for j in question.dimensions]
        rounded = (
            " Before that, each is rounded at random to one of the two ends of its range."
            if question.channel.mechanism == "agreement"
            else ""
        )
        both = "both" if len(names) == 2 else f"all {len(names)}"
        said.append(f"{_and(names)} are one question: one random answer stands for {both}.{rounded}")
    rest = len(several) - len(said)
    return [*said, f"And so are the numbers of {counted(rest, 'more question')}."] if rest else said


def _and(names: list[str]) -> str:
    """Names in a sentence; of many the first ones and the last one."""
    return listed([*names[: _SHOWN - 1], "…", names[-1]] if len(names) > _SHOWN else names)


def _answers(dimension: Dimension) -> str:
    if isinstance(dimension, Numeric):
        text = f"a number from {dimension.low:g} to {dimension.high:g}"
        missing = "nothing" if dimension.optional else f"{dimension.default:g} if there is none"
        return f"{text}, or {missing}"
    if isinstance(dimension, Selection):
        own = dimension.categories[: len(dimension.categories) - dimension.optional]
        return f"at most {dimension.at_most} of: {_first(own)}" + (
            ", or missing" if dimension.optional else ""
        )
    if isinstance(dimension, Categorical):
        return f"one of: {_first(dimension.categories)}"
    if isinstance(dimension, Vector):
        numbers = counted(dimension.length, "number")
        return f"a vector of {numbers}, of norm {dimension.norm:g} at most, or " + (
            "nothing" if dimension.optional else "0 if there is none"
        )
    return f"a {dimension.kind}"


def _first(names: tuple[str, ...]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" … and {rest:,} more" if rest > 0 else "")


def example_record(survey: Survey) -> dict[str, Any]:
    """Somebody's values, made up: a third of the way through each range, the first of the categories, and a vector
    along its first coordinate.
    """
    record: dict[str, Any] = {}
    for dimension in survey.schema:
        if isinstance(dimension, Numeric):
            record[dimension.name] = float(f"{dimension.low + (dimension.high - dimension.low) / 3:.3g}")
        elif isinstance(dimension, Selection):
            record[dimension.name] = list(dimension.categories[:1])
        elif isinstance(dimension, Vector):
            first = float(f"{dimension.norm / 3:.3g}")
            record[dimension.name] = [first, *[0.0] * (dimension.length - 1)]
        elif dimension.categories:
            record[dimension.name] = dimension.categories[0]
    return record
