"""What is asked: the ordered dimensions, numeric or categorical; standard library only."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

from hdr4me.errors import FormatError, InvalidInput

__all__ = ["MAX_DIMENSIONS", "Categorical", "Dimension", "Numeric", "Schema", "label"]

NARROWEST = 1e-290
"""Below this width the number of levels per unit is no longer a float."""
MAX_DIMENSIONS = 65536
"""A report names a dimension in two bytes."""


@dataclass(frozen=True)
class Numeric:
    """A number between `low` and `high`; `default` (the middle unless given) stands for a missing one.

    `curve` names a curve of which this dimension is a point (in the schema's order), `group` a group that it belongs
    to: re-calibration makes use of either, and nothing else does.

    >>> Numeric("age", 0, 120)
    Numeric(name='age', low=0.0, high=120.0, default=60.0)
    """

    name: str
    low: float
    high: float
    default: float = None  # type: ignore[assignment]  # None: the middle, filled in below
    curve: str | None = field(default=None, repr=False)
    group: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in (self.name, self.curve, self.group):
            if name is not None or name is self.name:
                _check_name(name)
        low, high = _finite(self.name, "low", self.low), _finite(self.name, "high", self.high)
        if not low < high or not math.isfinite(high - low):
            raise InvalidInput(f"dimension {self.name!r}: low = {low} must be below high = {high}")
        if high - low < NARROWEST:
            raise InvalidInput(
                f"dimension {self.name!r}: high - low = {high - low} must be at least {NARROWEST}"
            )
        middle = low + (high - low) / 2
        default = middle if self.default is None else _finite(self.name, "default", self.default)
        if not low <= default <= high:
            raise InvalidInput(f"dimension {self.name!r}: default = {default} is outside [{low}, {high}]")
        for end, value in (("low", low), ("high", high), ("default", default)):
            object.__setattr__(self, end, value + 0.0)  # −0.0 and 0.0 have one spelling

    def to_dict(self) -> dict[str, Any]:
        declared = {"curve": self.curve, "group": self.group}
        return {
            "name": self.name,
            "type": "numeric",
            "low": self.low,
            "high": self.high,
            "default": self.default,
        } | {name: value for name, value in declared.items() if value is not None}


@dataclass(frozen=True, init=False)
class Categorical:
    """One of `categories`; `default` (the first unless given) stands for a missing or unknown one.

    Categories are strings; whole numbers and truth values are taken by their `label`.

    >>> Categorical("smoker", ["no", "yes"]).default
    'no'
    >>> Categorical("rooms", [1, 2, 3]).categories
    ('1', '2', '3')
    """

    name: str
    categories: tuple[str, ...]
    default: str

    def __init__(self, name: str, categories: Iterable[Any], default: Any = None) -> None:
        _check_name(name)
        if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
            raise InvalidInput(f"dimension {name!r}: categories = {categories!r} must be a list")
        labels = tuple(self._checked(name, category) for category in categories)
        if len(labels) < 2 or len(labels) > MAX_DIMENSIONS:
            raise InvalidInput(f"dimension {name!r} has {len(labels)} categories: 2 to 65536 are allowed")
        if len(set(labels)) < len(labels):
            twice = next(x for x in labels if labels.count(x) > 1)
            raise InvalidInput(f"dimension {name!r}: category {twice!r} appears twice")
        chosen = labels[0] if default is None else self._checked(name, default)
        if chosen not in labels:
            raise InvalidInput(f"dimension {name!r}: default = {default!r} is not one of its categories")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "categories", labels)
        object.__setattr__(self, "default", chosen)

    @staticmethod
    def _checked(name: str, category: Any) -> str:
        text = label(category)
        if text is None or not _is_unicode(text):
            raise InvalidInput(f"dimension {name!r}: category {category!r} must be a string")
        return text

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The number of each category."""
        return {category: i for i, category in enumerate(self.categories)}

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": "categorical",
            "categories": list(self.categories),
            "default": self.default,
        }


Dimension = Numeric | Categorical


def label(value: Any) -> str | None:
    """The category that a value names: itself, a whole number's digits, `true` or `false`; else None.

    >>> [label(x) for x in ("red", 3, 3.0, True, 2.5, None)]
    ['red', '3', '3', 'true', None, None]
    """
    value = _plain(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return str(int(value))
    if isinstance(value, Integral):
        return str(int(value))
    return None


class Schema:
    """The ordered dimensions of a survey; every name is there once.

    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> len(schema), schema.names
    (2, ('age', 'smoker'))
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        self.dimensions: tuple[Dimension, ...] = tuple(dimensions)
        for dimension in self.dimensions:
            if not isinstance(dimension, Numeric | Categorical):
                raise InvalidInput(f"{dimension!r} is not a dimension: use Numeric or Categorical")
        if not 1 <= len(self.dimensions) <= MAX_DIMENSIONS:
            raise InvalidInput(f"a schema of {len(self.dimensions)} dimensions: 1 to 65536 are allowed")
        self.names: tuple[str, ...] = tuple(dimension.name for dimension in self.dimensions)
        self._index = {name: j for j, name in enumerate(self.names)}
        if len(self._index) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InvalidInput(f"dimension {twice!r} appears twice: names must differ")

    def __len__(self) -> int:
        return len(self.dimensions)

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self.dimensions)

    def __getitem__(self, name: str) -> Dimension:
        return self.dimensions[self.index(name)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.dimensions == other.dimensions

    def __hash__(self) -> int:
        return hash(self.dimensions)

    def __repr__(self) -> str:
        return f"Schema({list(self.dimensions)!r})"

    def index(self, name: str) -> int:
        """The number of the dimension called `name`."""
        if name not in self._index:
            raise InvalidInput(f"no dimension is called {name!r}")
        return self._index[name]

    def to_dict(self) -> dict[str, Any]:
        """A plain document, for JSON."""
        return {"dimensions": [dimension.to_dict() for dimension in self.dimensions]}

    @classmethod
    def from_dict(cls, document: Any) -> Schema:
        """Read what `to_dict` wrote, or what a person did: `type` may be left out."""
        if not isinstance(document, Mapping) or set(document) != {"dimensions"}:
            raise FormatError("a schema is an object with one field, dimensions")
        if not isinstance(document["dimensions"], list):
            raise FormatError("dimensions must be a list")
        return cls(_dimension(item) for item in document["dimensions"])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a JSON or a TOML file (by its suffix)."""
        try:
            text = Path(path).read_bytes().decode("utf-8")
            document = tomllib.loads(text) if str(path).endswith(".toml") else json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path} is not a schema: {error}".replace("\n", " ")) from error
        try:
            return cls.from_dict(document)
        except (FormatError, InvalidInput) as error:
            raise FormatError(f"{path} is not a schema: {error}") from error

    @classmethod
    def infer(
        cls,
        path: str | os.PathLike[str],
        *,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Schema:
        """Take names and types from a Parquet or CSV file; ranges and categories come from the caller.

        A numeric column without a range, or a text column without categories, is an error: reading them off
        the data would publish its extreme or its rarest record.
        """
        from hdr4me.survey.infer import infer

        return infer(path, ranges=ranges or {}, categories=categories or {}, columns=columns)


def _dimension(item: Any) -> Dimension:
    if not isinstance(item, Mapping):
        raise FormatError(f"a dimension must be an object, not {item!r}")
    fields = dict(item)
    kind = fields.pop("type", "categorical" if "categories" in fields else "numeric")
    allowed = {"numeric": {"low", "high"}, "categorical": {"categories"}}.get(
        kind if isinstance(kind, str) else ""
    )
    name = fields.get("name")
    if allowed is None:
        raise FormatError(f"dimension {name!r}: type = {kind!r} must be numeric or categorical")
    needed = allowed | {"name"}
    optional = {"default", "curve", "group"} if kind == "numeric" else {"default"}
    if not needed <= set(fields) <= needed | optional:
        raise FormatError(
            f"dimension {name!r} has fields {sorted(fields)}, expected {sorted(needed)} and default"
        )
    return Numeric(**fields) if kind == "numeric" else Categorical(**fields)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name or not _is_unicode(name):
        raise InvalidInput(
            f"name = {name!r} is not allowed: a dimension's name is a string that is not empty"
        )


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)  # half a pair has no UTF-8


def _plain(value: Any) -> Any:
    """A NumPy scalar as Python's own, without importing NumPy."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def _finite(name: str, field: str, value: Any) -> float:
    given = _plain(value)
    number = math.nan
    if isinstance(given, int | float) and not isinstance(given, bool):
        try:
            number = float(given)
        except OverflowError:
            number = math.inf
    if not math.isfinite(number):
        raise InvalidInput(f"dimension {name!r}: {field} = {value!r} must be a finite number")
    return number
