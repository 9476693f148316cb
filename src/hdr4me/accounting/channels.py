"""Where this room reads a survey's channels: everything else works on integers and blankets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hdr4me.survey import Categorical, Survey

if TYPE_CHECKING:
    from hdr4me.accounting.blanket import Blanket

__all__ = ["blankets_of", "redesigned", "rows_of"]


def rows_of(survey: Survey, j: int) -> tuple[tuple[int, ...], ...]:
    """The integer rows of what question j's channel does with one input; they sum to 2^32."""
    return survey.randomizer(j).weights


def blankets_of(survey: Survey) -> list[tuple[Blanket, int]]:
    """The blanket of each different channel, and how many questions it answers."""
    from hdr4me.accounting.blanket import entries_blanket, table_blanket

    counts: dict[tuple[int, int], int] = {}
    for j, index in enumerate(survey.assignment):
        dimension = survey.schema.dimensions[j]
        entries = survey.randomizer(j).kind == "entries"
        size = len(dimension.categories) if entries and isinstance(dimension, Categorical) else 0
        counts[index, size] = counts.get((index, size), 0) + 1
    found = []
    for (index, size), count in counts.items():
        table = survey.randomizers[index]
        blanket = (
            entries_blanket(table.weights, size)
            if size
            else table_blanket(table.weights, alike=table.kind == "category")
        )
        found.append((blanket, count))
    return found


def redesigned(survey: Survey, epsilon: float) -> Survey:
    """The same questions asked by the same mechanisms under another total ε."""
    names = dict.fromkeys(("value", "category", "entries"), "")
    for table in survey.randomizers:
        names[table.kind] = table.mechanism
    return Survey(
        survey.schema,
        epsilon,
        mechanism=names["value"] or "duchi",
        n_sampled=survey.n_sampled,
        categorical="auto"
        if names["category"] and names["entries"]
        else names["category"] or names["entries"] or "auto",
        name=survey.name,
    )
