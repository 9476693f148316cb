"""The schema of a survey for tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hdr4me.errors import InvalidInput
from hdr4me.survey import Schema
from hdr4me.survey.derived import Joint

SIZES = {"one-way": 1, "pairs": 2, "triples": 3}
_ALLOWED = f"{', '.join(SIZES)}, a number of attributes from 1 to that of the schema, or lists of names"


def table_schema(schema: Schema, tables: str | int | Sequence[str | int | Sequence[str]] = "pairs") -> Schema:
    """The schema of a survey for tables: one joint question for each table.

    Parameters
    ----------
    schema
        The attributes: categories and buckets.
    tables
        "one-way", "pairs", "triples", a number of attributes, or a list of these and of the names of the attributes of
        a table.

    Examples
    --------
    >>> from hdr4me.survey import Categorical
    >>> schema = Schema([Categorical(name, ["no", "yes"]) for name in "abc"])
    >>> table_schema(schema).names
    ('a × b', 'a × c', 'b × c')
    >>> table_schema(schema, ["one-way", ("a", "b")]).names
    ('a', 'b', 'c', 'a × b')
    """
    for dimension in schema:
        if not dimension.is_category:
            raise InvalidInput(
                f"tables need categories, and dimension {dimension.name!r} is a number: leave it out, or write it in a "
                "schema file with edges, such as edges=[0, 18, 65, 120], in place of low and high"
            )
    chosen: dict[frozenset[str], Sequence[str]] = {}
    for item in [tables] if isinstance(tables, str | int) else tables:
        size = SIZES.get(item, item) if isinstance(item, str) else item
        if isinstance(size, str) or (isinstance(size, int) and not 1 <= size <= len(schema)):
            raise InvalidInput.of("tables", tables, _ALLOWED)
        for names in combinations(schema.names, size) if isinstance(size, int) else [size]:
            chosen.setdefault(frozenset(names), names)
    made = []
    for names in chosen.values():
        parts = [schema[name] for name in names]
        made.append(parts[0] if len(parts) == 1 else Joint(" × ".join(names), parts))
    return Schema(made)
