"""A draft of a schema from a public sample, as TOML with comments for editing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hdr4me.errors import InvalidInput
from hdr4me.io.reading import read_table
from hdr4me.survey import Schema
from hdr4me.survey.columns import is_text

WARNING = (
    "This draft must come from public data: ranges and categories of private data would publish its extreme values and "
    "its rarest categories. Widen every range to all possible values, and complete every list of categories."
)
_MOST_CATEGORIES = 200  # a string column with more distinct values is left out of the draft


def draft_schema(data: Any) -> str:
    """A draft of a schema from a PUBLIC sample: TOML with comments, to be edited and loaded with `Schema.load`.

    The sample must not be the private data, because ranges and categories would publish its extreme and rarest values
    without noise. `data` is a frame, an Arrow table, a list of dictionaries or files, as for the engines.

    Examples
    --------
    >>> import pandas as pd
    >>> print(draft_schema(pd.DataFrame({"age": [17, 63, 40], "smoker": ["no", "yes", None]})).partition("\\n\\n")[2])
    [[dimensions]]
    name = "age"
    low = 10  # the sample has 17 to 63
    high = 70
    <BLANKLINE>
    [[dimensions]]
    name = "smoker"
    categories = ["no", "yes"]
    optional = true  # 33.3 % of the sample are missing
    <BLANKLINE>
    """
    table = read_table(data)
    blocks = ["\n".join(_lines(name, table.column(name))) for name in table.column_names]
    if not any(block.startswith("[[") for block in blocks):
        raise InvalidInput(
            "no column of the sample can be a dimension: numbers, Booleans or categories are needed"
        )
    return "\n\n".join([f"# {WARNING}", *blocks]) + "\n"


def schema_toml(schema: Schema) -> str:
    """A schema as TOML with comments, to be edited and loaded with `Schema.load`.

    >>> from hdr4me.survey import Numeric
    >>> print(schema_toml(Schema([Numeric("age", 0, 120, optional=True), Numeric("income", 0, 1e5)])))
    [[dimensions]]
    name = "age"
    type = "numeric"
    low = 0.0
    high = 120.0
    optional = true
    <BLANKLINE>
    [[dimensions]]
    name = "income"
    type = "numeric"
    low = 0.0
    high = 100000.0
    # a missing value is refused; to accept it, add a default or optional = true
    <BLANKLINE>
    """
    blocks = []
    for x in schema:
        lines = ["[[dimensions]]", *(f"{key} = {_toml(value)}" for key, value in x.to_dict().items())]
        if not x.replaces and x.columns == (x.name,):
            lines.append("# a missing value is refused; to accept it, add a default or optional = true")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(name: str, column: Any) -> Iterator[str]:
    """The lines of a column: a dimension, or a comment about its omission."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    types, shown = pa.types, _toml(name)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    values = column.drop_null()
    time = types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind)
    n_distinct = len(pc.unique(values)) if number or is_text(kind) or types.is_boolean(kind) else 0
    if not len(values) or not name.strip():
        yield f"# {shown} is left out: it has no {'values' if name.strip() else 'name'}"
    elif not (number or time or is_text(kind) or types.is_boolean(kind)):
        yield f"# {shown} is left out: it is of type {kind}; convert it to a number or to categories"
    elif is_text(kind) and not 2 <= n_distinct <= _MOST_CATEGORIES:
        what = f"{n_distinct:,} distinct values" if n_distinct > 1 else "one value only"
        yield f"# {shown} is left out: it has {what}; use categories_file for a long list of categories"
    else:
        yield "[[dimensions]]"
        yield f"name = {shown}"
        yield from _range(values) if number else _times(values) if time else _categories(values, kind)
        if column.null_count:
            yield f"optional = true  # {100 * column.null_count / len(column):.3g} % of the sample are missing"


def _range(values: Any) -> Iterator[str]:
    found: Any = pc.min_max(values.cast(pa.float64(), safe=False)).as_py()
    least, largest = found["min"], found["max"]
    if not math.isfinite(largest - least):
        raise InvalidInput("a numeric column of the sample has infinite values: remove them")
    step = 10.0 ** math.floor(math.log10((largest - least) or abs(largest) or 1.0))
    low, high = math.floor(least / step) * step, math.ceil(largest / step) * step
    yield f"low = {low:.15g}  # the sample has {least:g} to {largest:g}"
    yield f"high = {high if high > low else low + step:.15g}"


def _times(values: Any) -> Iterator[str]:
    if pa.types.is_time(values.type):
        yield 'start = "00:00"  # for categories instead: part = "hour"'
        yield 'end = "24:00"\nunit = "h"'
        return
    found: Any = pc.min_max(values.cast(pa.date32())).as_py()
    yield f'start = "{found["min"]}"  # for categories instead: part = "weekday" or "month"'
    yield f'end = "{found["max"] + timedelta(days=1)}"'
    yield 'unit = "day"'


def _categories(values: Any, kind: Any) -> Iterator[str]:
    if pa.types.is_boolean(kind):
        yield 'categories = ["false", "true"]'
        return
    found = sorted(str(label) for label in pc.unique(values).to_pylist())
    yield f"categories = {_toml(found)}"
