"""A schema from the column names and types of a file of records; ranges and categories come from the caller."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from hdr4me.errors import InvalidInput
from hdr4me.io.reading import column_types, file_kind
from hdr4me.io.source import RecordFiles
from hdr4me.survey import Categorical, Dimension, Numeric, Schema
from hdr4me.survey.columns import is_text
from hdr4me.survey.values import suggestion

_WILD = "*?["


def infer_schema(
    path: str | os.PathLike[str],
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    columns: Sequence[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    optional: Sequence[str] = (),
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Schema:
    """One dimension for each column, or each of `columns`; only names and types come from the file.

    Ranges and categories must be given: those of the data would publish its extreme or its rarest record. Only Boolean
    columns need neither. A name may be a pattern with `*`, `?` or `[...]`, for all columns that match and are not named
    themselves.

    Parameters
    ----------
    path
        A file of records, or a folder or pattern, of which the first file is used.
    ranges, categories
        (low, high) of numeric dimensions, and the categories of categorical ones.
    columns
        The columns to include, in this order; all columns of the file unless given.
    defaults
        The replacements for missing values.
    optional
        Columns for which a missing value is a valid answer.
    encoding, delimiter
        The encoding and the delimiter of a text file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("age,smoker\\n31,no\\n")
    ...     infer_schema(path, ranges={"age": (0, 120)}, categories={"smoker": ["no", "yes"]}).names
    ('age', 'smoker')
    """
    files = RecordFiles(path, encoding=encoding, delimiter=delimiter)
    named = [*(ranges or {}), *(categories or {}), *(columns or ())]
    found = column_types(files, [name for name in named if not any(c in name for c in _WILD)])
    kinds = {field.name: _kind(field.type) for field in found}
    file = files.files()[0]
    # The first line of a text file is a header if it has one of the given names; otherwise it may be a record.
    unknown = file_kind(file) == "text" and not any(name in kinds for name in named)

    def shown(names: Iterable[str]) -> str:
        """The names of columns, or their positions if the names may be a record."""
        return ", ".join(f"column {list(kinds).index(x) + 1}" if unknown else repr(x) for x in names)

    def matching(pattern: str) -> list[str]:
        wild = pattern not in kinds and any(c in pattern for c in _WILD)
        names = [name for name in kinds if name == pattern or (wild and fnmatchcase(name, pattern))]
        if not names:
            raise InvalidInput(
                f"{file} has no column {pattern!r}" + (suggestion(pattern, kinds) if not unknown else "")
            )
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
    wanted = expanded(dict.fromkeys(optional, True))
    asked = dict.fromkeys(name for x in (kinds if columns is None else columns) for name in matching(x))
    if twice := [name for name in asked if name in bounds and name in lists]:
        raise InvalidInput(f"{shown(twice)}: a range and categories are given, only one of them applies")
    lacks = {"number": "numeric columns without a range", "text": "text columns without categories"}
    for kind, what in lacks.items():
        if names := [x for x in asked if kinds[x] == kind and x not in bounds and x not in lists]:
            raise InvalidInput(
                f"{what}: {shown(names)}; give each a range or categories, or select the columns of the survey"
            )
    return Schema(
        _dimension(x, kinds[x], bounds.get(x), lists.get(x), chosen.get(x), x in wanted) for x in asked
    )


def _dimension(
    name: str, kind: str, bounds: Any, categories: Sequence[Any] | None, default: Any, optional: bool
) -> Dimension:
    if categories is not None or (kind == "truth" and bounds is None):
        listed = ["false", "true"] if categories is None else categories
        made = Categorical(name, listed, default, optional=optional)
        if kind == "truth" and made.find(True) is None and made.find(False) is None:
            raise InvalidInput(
                f"column {name!r} holds Booleans, but neither true nor false is one of its categories"
            )
        return made
    if kind not in ("number", "truth", "text"):  # numbers among which something else stood are text
        raise InvalidInput(
            f"column {name!r} is of type {kind}: only numbers, strings and Booleans are supported"
        )
    if isinstance(bounds, str) or len(bounds) != 2:
        raise InvalidInput(f"range of {name!r} = {bounds!r} must be a pair (low, high)")
    if optional and default is not None:
        raise InvalidInput(f"column {name!r} is optional, so it cannot have a default")
    try:
        default = None if default is None else float(default)
    except (TypeError, ValueError):
        raise InvalidInput(f"default of {name!r} = {default!r} must be a number") from None
    return Numeric(name, bounds[0], bounds[1], default, optional)


def _kind(column: Any) -> str:
    types = pa.types
    if types.is_dictionary(column):
        column = column.value_type
    if types.is_boolean(column):
        return "truth"
    if types.is_integer(column) or types.is_floating(column) or types.is_decimal(column):
        return "number"
    binary = types.is_binary(column) or types.is_large_binary(column) or types.is_binary_view(column)
    return "text" if types.is_null(column) or (is_text(column) and not binary) else str(column)
