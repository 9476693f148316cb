"""The schema of a survey for tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.survey import Schema
from hdr4me.survey.derived import Joint


def table_schema(schema: Schema, tables: str | int | Sequence[Sequence[str]] = "pairs") -> Schema:
    """The schema of a survey for tables: one joint question for each table.

    Parameters
    ----------
    schema
        The attributes: categories and buckets.
    tables
        "pairs", "triples", a number of attributes, or the names of the attributes of each table.

    Examples
    --------
    >>> from hdr4me.survey import Categorical
    >>> schema = Schema([Categorical(name, ["no", "yes"]) for name in "abc"])
    >>> table_schema(schema).names
    ('a × b', 'a × c', 'b × c')
    """
    if isinstance(tables, str | int):
        sizes: dict[Any, int] = {"pairs": 2, "triples": 3}
        k = sizes.get(tables, tables)
        if not isinstance(k, int) or not 1 <= k <= len(schema):
            raise InvalidInput.of(
                "tables", tables, "pairs, triples, a number of attributes, or lists of names"
            )
        tables = list(combinations(schema.names, k))
    for dimension in schema:
        if not dimension.is_category:
            raise InvalidInput(
                f"dimension {dimension.name!r} has no categories: use a bucket with edges to put a number into a table"
            )
    made = []
    for names in tables:
        parts = [schema[name] for name in names]
        made.append(parts[0] if len(parts) == 1 else Joint(" × ".join(names), parts))
    return Schema(made)
