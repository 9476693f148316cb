"""Which dimensions of an answer are points of a curve, and which belong together: from names, or from the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.survey import Schema

__all__ = ["structure_of"]


def structure_of(
    schema: Schema,
    names: Sequence[str],
    order: Sequence[Any] | None = None,
    groups: Iterable[Any] | Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The options `order` and `groups` of `hdr4me.recalibrate` for numbers called `names`; empty if none is declared.

    Parameters
    ----------
    schema
        Where `curve` and `group` of the dimensions are declared, which is used if neither of the next two is given.
    names
        The numbers that are re-calibrated together.
    order
        A list of names along a curve, or several such lists.
    groups
        Lists of names that belong together.
    """
    numbers = [x.name for x in schema if not x.is_category]
    if order is None and groups is None:
        order = list(_by_label((x.name, getattr(x, "curve", None)) for x in schema).values())
        groups = list(_by_label((x.name, getattr(x, "group", None)) for x in schema).values())
    told = _listed(order)
    curves = [told] if told and isinstance(told[0], str) else told
    together = _listed(groups.values() if isinstance(groups, Mapping) else groups)
    place: dict[str, int] = {}
    label: dict[str, str] = {}
    for kind, given, lists, words in (
        ("order", order, curves, "a list of names along a curve, or several such lists"),
        ("groups", groups, together, "lists of names that belong together"),
    ):
        if lists is None or any(_listed(members) is None for members in lists):
            raise InvalidInput.of(kind, given, words)
        for number, members in enumerate(lists):
            for position, name in enumerate(members):
                if name not in numbers:
                    raise InvalidInput.of(kind, name, f"names of numeric dimensions: {', '.join(numbers)}")
                if name in label:
                    raise InvalidInput.of(kind, name, "each name may be in one curve or group")
                label[name] = f"{kind} {number}"
                if kind == "order":
                    place[name] = position
    if not label:
        return {}
    return {"order": [place.get(name) for name in names], "groups": [label.get(name) for name in names]}


def _listed(given: Any) -> list[Any] | None:
    """The members of a list, none if nothing is given; None for what is no list."""
    if given is None:
        return []
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None


def _by_label(pairs: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, label in pairs:
        if label is not None:
            found.setdefault(label, []).append(name)
    return found
