"""The canonical text of a JSON document, and its SHA-256; standard library only.

The format is RFC 8785 (JSON Canonicalization Scheme), so that a client in any language computes the same fingerprint:
sorted keys, no white space, UTF-8, numbers as ECMAScript prints them.
"""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal
from typing import Any

from hdr4me.errors import InvalidInput

MAX_DEPTH = 32  # no document of this program is nested deeper than 8


def canonical(document: Any) -> str:
    """The canonical text of a JSON value."""
    match document:
        case None | bool():
            return json.dumps(document)
        case int() | float():
            return number(document)
        case str():
            return json.dumps(document, ensure_ascii=False)
        case list() | tuple():
            return "[" + ",".join(map(canonical, document)) + "]"
        case dict():
            pairs = (f"{canonical(key)}:{canonical(document[key])}" for key in sorted(document))
            return "{" + ",".join(pairs) + "}"
        case _:
            raise InvalidInput(f"a value of type {type(document).__name__} has no JSON form")


def number(x: int | float) -> str:
    """`x` as ECMAScript prints it: the shortest digits that parse to the same double."""
    if isinstance(x, int):
        if abs(x) > 2**53:
            raise InvalidInput(f"the integer {x} exceeds 2**53, so JSON parsers would round it")
        return str(x)
    if not math.isfinite(x):
        raise InvalidInput(f"{x} has no JSON form")
    if x == 0:
        return "0"
    # repr gives the same digits as ECMAScript; only the positions of the point and the exponent differ.
    negative, places, exponent = Decimal(repr(x)).normalize().as_tuple()
    digits, sign = "".join(map(str, places)), "-" * negative
    point = len(digits) + int(exponent)
    if 0 < point <= 21:
        tail = digits[point:]
        return sign + digits[:point].ljust(point, "0") + (f".{tail}" if tail else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def fingerprint(document: dict[str, Any]) -> str:
    """SHA-256, in hexadecimal, of the document's canonical text without its own `fingerprint` field."""
    return identities(document)[0]


def identities(document: dict[str, Any]) -> tuple[str, str]:
    """The fingerprint of a document, and that of the same document with an empty name (its series)."""
    fields = {key: canonical(value) for key, value in document.items() if key != "fingerprint"}
    return _digest(fields), _digest({**fields, "name": '""'})


def _digest(fields: dict[str, str]) -> str:
    text = ",".join(f"{canonical(key)}:{fields[key]}" for key in sorted(fields))
    return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An `object_pairs_hook` that refuses duplicate fields, which parsers treat differently."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a field appears twice")
    return document


def parse(text: str | bytes) -> Any:
    """The document in `text`; ValueError if a field is duplicated or the nesting exceeds `MAX_DEPTH`."""
    try:
        document = json.loads(text, object_pairs_hook=no_duplicates)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels") from None
    return shallow(document)


def shallow(document: Any) -> Any:
    """The document itself; ValueError if it is nested deeper than `MAX_DEPTH`."""
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, list | dict)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, list | dict)
        ]
        if not level:
            return document
    raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
