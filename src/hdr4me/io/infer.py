"""A schema from the column names and types of a file of records; ranges and categories come from the caller."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from hdr4me.errors import InvalidInput
from hdr4me.io.origin import RecordFiles
from hdr4me.io.reading import column_types, file_kind
from hdr4me.survey import Categorical, Dimension, Numeric, Schema
from hdr4me.survey.columns import is_text

_WILD = "*?["


@dataclass(frozen=True)
class _Types:
    """The columns of a file: number, truth or text each, or the name of another type."""

    file: str
    kinds: dict[str, str]
    is_text: bool

    def shown(self, names: Iterable[str]) -> str:
        """The columns as a message calls them: of a text file by their places, since its first line may be a record."""
        places = {name: f"column {i + 1}" for i, name in enumerate(self.kinds)}
        return ", ".join(places[name] if self.is_text else repr(name) for name in names)

    def matching(self, pattern: str) -> list[str]:
        """The columns that a name or a pattern stands for."""
        if pattern in self.kinds:
            return [pattern]
        wild = any(c in pattern for c in _WILD)
        found = [name for name in self.kinds if wild and fnmatchcase(name, pattern)]
        if not found:
            raise InvalidInput(f"{self.file} has no column {pattern!r}")
        return found


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
    """One dimension for each column, or each of `columns`; only names and types are taken from the file.

    Reading ranges or categories off the data would publish its extreme or its rarest record.

    Columns of truth values need nothing else; every other one needs a range or categories, and the error says which
    lack them. A name may be a pattern with `*`, `?` or `[...]`, for all columns that match and have no entry of their
    own.

    Parameters
    ----------
    path
        A file of records; of a folder or pattern, the first file.
    ranges, categories
        (low, high) of numeric dimensions, and the categories of categorical ones.
    columns
        The columns to ask, in this order; all of the file, in its order, unless given.
    defaults
        What stands for a missing value.
    optional
        Columns for which a missing value is an answer of its own.
    encoding, delimiter
        How a text file is read.

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
    types = _Types(first := files.files()[0], kinds, file_kind(first) == "text")
    bounds, lists = _expanded(types, ranges or {}), _expanded(types, categories or {})
    chosen = _expanded(types, defaults or {})
    wanted = _expanded(types, dict.fromkeys(optional, True))
    patterns = list(types.kinds) if columns is None else columns
    asked = list(dict.fromkeys(name for pattern in patterns for name in types.matching(pattern)))
    twice = [name for name in asked if name in bounds and name in lists]
    if twice:
        raise InvalidInput(
            f"{types.shown(twice)}: a range and categories are given, only one of them applies"
        )
    for kind, what in (
        ("number", "numeric columns without a range"),
        ("text", "text columns without categories"),
    ):
        lacking = [name for name in asked if types.kinds[name] == kind and name not in {**bounds, **lists}]
        if lacking:
            raise InvalidInput(
                f"{what}: {types.shown(lacking)}; give each its range or its categories, or name only the columns that "
                "are to be asked"
            )
    return Schema(
        _dimension(name, types.kinds[name], bounds, lists, chosen.get(name), name in wanted) for name in asked
    )


def _expanded(types: _Types, given: Mapping[str, Any]) -> dict[str, Any]:
    """The entries by column: a column's own name counts before a pattern, and two patterns must not meet."""
    found = {name: value for name, value in given.items() if name in types.kinds}
    by: dict[str, str] = {}
    for pattern, value in given.items():
        for name in types.matching(pattern):
            if name in given:
                continue
            if name in by:
                raise InvalidInput(f"{pattern!r} and {by[name]!r} both match {types.shown([name])}")
            by[name], found[name] = pattern, value
    return found


def _dimension(
    name: str,
    kind: str,
    ranges: Mapping[str, Any],
    categories: Mapping[str, Sequence[Any]],
    default: Any,
    optional: bool,
) -> Dimension:
    if name in categories or (kind == "truth" and name not in ranges):
        made = Categorical(name, categories.get(name, ["false", "true"]), default, optional=optional)
        if kind == "truth" and made.find(True) is None and made.find(False) is None:
            raise InvalidInput(
                f"column {name!r} holds truth values, and its categories have neither true nor false"
            )
        return made
    if kind not in ("number", "truth", "text"):  # numbers among which something else stood are text
        raise InvalidInput(
            f"column {name!r} is of type {kind}: only numbers, texts and truth values can be asked"
        )
    pair = ranges[name]
    if isinstance(pair, str) or len(pair) != 2:
        raise InvalidInput(f"range of {name!r} = {pair!r} must be a pair (low, high)")
    if optional and default is not None:
        raise InvalidInput(f"column {name!r} is optional, so it goes without a default")
    try:
        default = None if default is None else float(default)
    except (TypeError, ValueError):
        raise InvalidInput(f"default of {name!r} = {default!r} must be a number") from None
    return Numeric(name, pair[0], pair[1], default, optional)


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
