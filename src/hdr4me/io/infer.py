"""A schema from the column names and types of a file of records; ranges and categories come from the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa

from hdr4me.errors import InvalidInput, suggestion
from hdr4me.io.reading import as_files, column_types, file_kind, read_table
from hdr4me.io.text import is_header
from hdr4me.survey import Categorical, Dimension, Numeric, Schema
from hdr4me.survey.category_file import read_list
from hdr4me.survey.columns import is_text
from hdr4me.survey.times import Calendar, Moment, Time

_WILD = "*?["
_NOT_TEXT = ("number", "truth", "time")
_SHOWN = 8  # names in a message
_FIRST_LINE = (
    "the first line of a CSV file must have the names of the columns (--delimiter sets the separator)"
)
_EXAMPLE = "2013-01-01:2013-12-31"


def infer_schema(
    records: Any,
    *,
    ranges: Mapping[str, tuple[Any, Any]] | None = None,
    categories: Mapping[str, Sequence[Any] | str | Path] | None = None,
    columns: Sequence[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    optional: Sequence[str] = (),
) -> Schema:
    """One dimension for each column, or each of `columns`; only names and types come from the records.

    Ranges and categories must be given: those of the data would publish its extreme or its rarest record. Only Boolean
    columns need neither. A name may be a pattern with `*`, `?` or `[...]`, for all columns that match and are not named
    themselves.

    Parameters
    ----------
    records
        A frame, an Arrow table, a list of dictionaries, or files (`RecordFiles`), of which the first one is used.
    ranges, categories
        (low, high) of numeric dimensions, and the categories of categorical ones. For dates and times, the range is a
        pair of ISO 8601 strings, and the categories are "weekday", "month" or "hour". A `Path` is a file with one
        category per line.
    columns
        The columns to include, in this order; all columns of the records unless given.
    defaults
        The replacements for missing values.
    optional
        Columns for which a missing value is a valid answer.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [31], "smoker": ["no"], "born": ["1993-05-01"]})
    >>> schema = infer_schema(
    ...     people,
    ...     ranges={"age": (0, 120), "born": ("1900-01-01", "2020-01-01")},
    ...     categories={"smoker": ["no", "yes"]},
    ... )
    >>> [dimension.kind for dimension in schema]
    ['numeric', 'categorical', 'time']
    """
    files = as_files(records)
    named = [*(ranges or {}), *(categories or {}), *(columns or ())]
    hints = [name for name in named if not any(c in name for c in _WILD)]
    found = read_table(records).schema if files is None else column_types(files, hints)
    kinds = {field.name: _kind(field.type) for field in found}
    file = f"the {type(records).__name__}" if files is None else files.files()[0]
    unknown = (
        files is not None
        and file_kind(file) in ("text", "excel")
        and not is_header(list(kinds), [name for name, kind in kinds.items() if kind in _NOT_TEXT], named)
    )

    def shown(names: Iterable[str]) -> str:
        """The names of columns, or their positions if the names may be a record."""
        listed = [f"column {list(kinds).index(x) + 1}" if unknown else repr(x) for x in names]
        more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
        return ", ".join(listed[:_SHOWN]) + more

    def matching(pattern: str) -> list[str]:
        if unknown and not any(map(str.isalnum, pattern)):
            raise InvalidInput(
                f"{pattern!r} selects all of the first line of {file}, which may be a record: name the columns instead"
            )
        wild = pattern not in kinds and any(c in pattern for c in _WILD)
        names = [name for name in kinds if name == pattern or (wild and fnmatchcase(name, pattern))]
        if not names:
            hint = f" among {len(kinds):,}; {_FIRST_LINE}" if unknown else suggestion(pattern, kinds)
            raise InvalidInput(f"{file} has no column {pattern!r}{hint}")
        return names

    def expanded(given: Mapping[str, Any]) -> dict[str, Any]:
        """The entries by column: a column's own name counts before a pattern, and two patterns must not meet."""
        by: dict[str, str] = {}
        for pattern in given:
            for name in matching(pattern):
                if name in by and name not in given:
                    raise InvalidInput(f"{pattern!r} and {by[name]!r} both match {shown([name])}")
                by[name] = name if name in given else pattern
        return {name: given[pattern] for name, pattern in by.items()}

    bounds, lists, chosen = expanded(ranges or {}), expanded(categories or {}), expanded(defaults or {})
    optional_names = expanded(dict.fromkeys(optional, True))
    selected = dict.fromkeys(name for x in (kinds if columns is None else columns) for name in matching(x))
    if twice := [name for name in selected if name in bounds and name in lists]:
        raise InvalidInput(f"{shown(twice)}: a range and categories are given, only one of them applies")
    lacks = {
        "number": "numeric columns without a range",
        "text": "text columns without categories",
        "time": "columns of dates or times without a range (or categories: weekday, month or hour)",
    }
    undeclared = [x for x in selected if x not in bounds and x not in lists]
    found_lacks = [
        f"{what}: {shown(names)}"
        for kind, what in lacks.items()
        if (names := [x for x in undeclared if kinds[x] == kind])
    ]
    if found_lacks:
        raise InvalidInput(
            f"{'; '.join(found_lacks)}; give each a range or categories, or select the columns of the survey"
            + (" (the first line may be a record, so columns are numbered)" if unknown else "")
        )
    return Schema(
        _dimension(x, kinds[x], bounds.get(x), lists.get(x), chosen.get(x), x in optional_names)
        for x in selected
    )


def _dimension(
    name: str, kind: str, bounds: Any, categories: Sequence[Any] | Path | None, default: Any, optional: bool
) -> Dimension:
    if isinstance(categories, str):
        return Calendar(name, categories, default, optional=optional)
    if bounds is not None and (isinstance(bounds, str) or len(bounds) != 2):
        raise InvalidInput(f"range of {name!r} = {bounds!r} must be a pair (low, high)")
    if bounds is not None and any(isinstance(end, str | date) for end in bounds):
        if default is not None:
            raise InvalidInput(
                f"column {name!r} is a date or time, which cannot have a default: use optional"
            )
        return Time(name, bounds[0], bounds[1], _unit(*bounds), optional)
    if categories is not None or (kind == "truth" and bounds is None):
        if isinstance(categories, Path):
            listed, file = read_list(categories), categories.name
        else:
            listed, file = tuple(("false", "true") if categories is None else categories), None
        made = Categorical(name, listed, default, optional=optional, file=file)
        if kind == "truth" and made.find(True) is None and made.find(False) is None:
            raise InvalidInput(
                f"column {name!r} holds Booleans, but neither true nor false is one of its categories"
            )
        return made
    if kind == "time":
        raise InvalidInput(
            f"column {name!r} holds dates or times: its range is two of these, such as {_EXAMPLE}"
        )
    if kind not in ("number", "truth", "text"):  # a column of numbers and other texts is text
        raise InvalidInput(
            f"column {name!r} is of type {kind}: only numbers, strings, Booleans, dates and times are supported"
        )
    assert bounds is not None  # checked by `infer_schema`
    if optional and default is not None:
        raise InvalidInput(f"column {name!r} is optional, so it cannot have a default")
    try:
        default = None if default is None else float(default)
    except (TypeError, ValueError):
        raise InvalidInput(f"default of {name!r} = {default!r} must be a number") from None
    return Numeric(name, bounds[0], bounds[1], default, optional)


def _unit(start: Any, end: Any) -> str:
    """Days for a range of dates, hours for a range of times of day."""
    moments = [Moment.of(x) for x in (start, end)]
    return "h" if all(moment is not None and moment.day is None for moment in moments) else "day"


def _kind(column: Any) -> str:
    types = pa.types
    if types.is_dictionary(column):
        column = column.value_type
    if types.is_boolean(column):
        return "truth"
    if types.is_integer(column) or types.is_floating(column) or types.is_decimal(column):
        return "number"
    if types.is_timestamp(column) or types.is_date(column) or types.is_time(column):
        return "time"
    binary = types.is_binary(column) or types.is_large_binary(column) or types.is_binary_view(column)
    return "text" if types.is_null(column) or (is_text(column) and not binary) else str(column)
