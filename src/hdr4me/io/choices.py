"""Which types of column can hold several choices."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from hdr4me.errors import InvalidInput
from hdr4me.io.texts import is_text
from hdr4me.survey import Selection
from hdr4me.survey.dimensions import as_number

__all__ = ["check_choices"]

_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


def check_choices(kind: Any, dimension: Selection) -> None:
    """Refuse a column of a type that can never be a set of the dimension's categories.

    Lists of categories and texts can; single numbers and truth values can where the categories are such.
    """
    if not _may_name(kind, dimension):
        raise InvalidInput(
            f"column {dimension.name!r} is of type {kind}: lists of categories, or texts with '|' between them, "
            "are expected"
        )


def _may_name(kind: Any, dimension: Selection) -> bool:
    if any(getattr(pa.types, f"is_{name}", _is_none)(kind) for name in _LISTS) or pa.types.is_dictionary(
        kind
    ):
        return _may_name(kind.value_type, dimension)
    if is_text(kind) or pa.types.is_null(kind):
        return True
    if pa.types.is_boolean(kind):
        return bool(dimension.choices([True, False])[0])
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return number and any(_is_number(category) for category in dimension.categories)


def _is_none(kind: Any) -> bool:
    """For a type that this version of Arrow does not have."""
    return False


def _is_number(category: str) -> bool:
    return category.lower() not in ("true", "false") and math.isfinite(as_number(category))
