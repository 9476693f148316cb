"""Reading the parts of a channel's document; what is not of the right type is a FormatError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hdr4me.errors import FormatError


def check_fields(
    kind: str, document: Mapping[str, Any], fields: set[str], optional: frozenset[str] = frozenset()
) -> None:
    """The document has these fields and no others."""
    if not fields <= set(document) <= fields | optional:
        article = "an" if kind[0] in "aeiou" else "a"
        raise FormatError(f"{article} {kind} is an object with the fields {', '.join(sorted(fields))}")


def named_epsilon(kind: str, document: Mapping[str, Any]) -> tuple[str, float]:
    """The mechanism's name and the channel's ε."""
    mechanism, epsilon = document["mechanism"], document["epsilon"]
    if not isinstance(mechanism, str) or not is_number(epsilon):
        raise FormatError(f"a {kind}'s mechanism is a string, its epsilon a number")
    return mechanism, float(epsilon)


def numbers(what: str, value: Any) -> tuple[float, ...]:
    """A list of finite numbers."""
    if not _is_list(value) or not all(map(is_number, value)):
        raise FormatError(f"{what} must be a list of numbers")
    return tuple(map(float, value))


def integer_rows(what: str, value: Any) -> tuple[tuple[int, ...], ...]:
    """A list of lists of whole numbers."""
    if not _is_list(value) or not all(_is_list(row) and all(type(w) is int for w in row) for row in value):
        raise FormatError(f"{what} must be lists of whole numbers")
    return tuple(map(tuple, value))


def whole(what: str, value: Any) -> int:
    """A whole number."""
    if type(value) is not int:
        raise FormatError(f"{what} = {value!r} must be a whole number")
    return value


def is_number(value: Any) -> bool:
    """A number that a float can hold, and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
