"""Changes to bytes and to JSON documents, by a seeded generator."""

from __future__ import annotations

import copy
import json
import struct
from random import Random
from typing import Any

__all__ = ["change_bytes", "change_document", "flip", "odd_value", "to_text"]

_EDGES = (0, 1, -1, 7, 255, 256, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, -(2**31), -(2**63))


def flip(data: bytes, random: Random) -> bytes:
    """One bit changed."""
    changed = bytearray(data)
    changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def change_bytes(data: bytes, random: Random) -> bytes:
    """One change: a bit, a byte, a number at an edge, a part cut out, repeated, put in, moved or zeroed."""
    if not data:
        return random.randbytes(3)
    at, length = random.randrange(len(data)), random.choice((1, 2, 4, 8, 16, 64))
    match random.randrange(9):
        case 0 | 1:
            return flip(data, random)
        case 2:
            return data[:at] + random.randbytes(1) + data[at + 1 :]
        case 3:  # a size, an offset or a count, as binary formats hold it
            kind = random.choice("hiq")
            number = random.choice(_EDGES) % (1 << 8 * struct.calcsize(kind))
            packed = number.to_bytes(struct.calcsize(kind), "little")
            at -= at % random.choice((1, 4, 8))
            return data[:at] + packed + data[at + len(packed) :]
        case 4:
            return data[:at] + data[at + length :]
        case 5:
            return data[:at] + data[at : at + length] * random.choice((2, 3, 50)) + data[at + length :]
        case 6:
            return data[:at] + random.randbytes(length) + data[at:]
        case 7:
            return data[: at + 1]
        case _:
            return data[:at] + bytes(len(data[at : at + length])) + data[at + length :]


_VALUES: tuple[Any, ...] = (
    *(*_EDGES, None, True, False, 0.5, 1e308, -0.0, 1e-320, float("nan"), float("inf"), 10**30),
    *("", "x" * 300, "1", "\x1b[2J", "\ud800", "\u202e", "NaN", [], {}, [[]], [0], {"a": 1}),
)


def odd_value(random: Random) -> Any:
    """A JSON value that nobody expects."""
    value = random.choice(_VALUES)
    return copy.deepcopy(value) if isinstance(value, list | dict) else value


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document, as its container and its key or index."""
    found: list[tuple[Any, Any]] = []
    stack = [document]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            keys = list(item) if isinstance(item, dict) else range(len(item))
            for key in keys:
                found.append((item, key))
                stack.append(item[key])
    return found


def change_document(document: Any, random: Random) -> Any:
    """A copy with one change: a value, a field, an element or a whole branch."""
    try:
        document = copy.deepcopy(document)
    except RecursionError:  # nested deeply by a change before
        return document
    places = _places(document)
    if not places:
        return odd_value(random)
    parent, key = random.choice(places)
    match random.randrange(8):
        case 0 | 1 | 2:
            parent[key] = odd_value(random)
        case 3:
            value = parent[key]
            if isinstance(value, int | float) and not isinstance(value, bool):
                parent[key] = value + random.choice((-1, 1, 0.5, 2**31))
            elif isinstance(value, str):
                parent[key] = value + random.choice("a0\x00é")
            else:
                parent[key] = [value]
        case 4:
            del parent[key]
        case 5:
            other, place = random.choice(places)
            parent[key] = copy.deepcopy(other[place])
        case 6 if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        case 6:
            parent[key + "x"] = parent[key]
        case _:
            for _ in range(random.choice((2, 5, 5, 40, 40, 400))):
                parent[key] = [parent[key]]
    return document


def to_text(document: Any, random: Random) -> str:
    """The document as JSON, in one of the ways that JSON can be written; now and then with a field twice."""
    try:
        marks = random.choice(((",", ":"), (", ", ": "), (" ,\t", " :  ")))
        text = json.dumps(document, separators=marks, ensure_ascii=random.random() < 0.5)
    except (RecursionError, ValueError):
        text = "[" * 5000
    if random.random() < 0.02 and text.startswith("{"):
        text = '{"format":"x",' + text[1:]
    return text.replace("\n", " ")
