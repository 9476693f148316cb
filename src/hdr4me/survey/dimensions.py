"""Dimensions: the attributes that are asked, and how a raw value becomes a clean input; standard library only.

A value that is missing or wrong becomes the declared default (or "no value", where a number is optional) and one out of
range its nearest bound. Nothing here raises because of a value, and what is sent afterwards looks the same.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

from hdr4me.channels.channel import Take
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.registry import Registry

__all__ = [
    "DIMENSIONS",
    "FRACTION_BITS",
    "MAX_CATEGORIES",
    "MISSING",
    "Categorical",
    "Dimension",
    "Numeric",
    "as_number",
    "dimension_from_dict",
    "label",
]

FRACTION_BITS = 16
"""A place is an input and sixteen bits of the way to the next one."""
NARROWEST = 1e-290
"""Below this width the number of levels per unit is no longer a float."""
MAX_CATEGORIES = 1_000_000
MISSING = "missing"
"""The category of a missing value where a dimension is optional."""
_WHOLE = re.compile("-?[0-9]+[.]0+")


class Dimension(ABC):
    """An attribute that is asked.

    A dimension of another package derives from this class, registers in `DIMENSIONS`, and reads as a "number", an
    "optional" number or a "category" (see `hdr4me.channels.Take`), which is what channels know.
    """

    kind: ClassVar[str]
    name: str

    @property
    @abstractmethod
    def reads(self) -> str:
        """What a channel must take: "number", "optional" or "category"."""

    @abstractmethod
    def place(self, value: Any, size: int) -> int:
        """Where a raw value lies among the `size` inputs of a channel, times 2^16; a fraction is rounded at random."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The dimension as a survey document has it, `name` and `type` included."""

    @classmethod
    @abstractmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Dimension:
        """Read what `to_dict` wrote, without `type`."""

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the categories of a dimension that reads as one; empty for numbers."""
        return ()

    @property
    def bounds(self) -> tuple[float, float]:
        """What −1 and 1 stand for in the dimension's own units."""
        return (-1.0, 1.0)

    def fits(self, take: Take) -> bool:
        """Whether a channel that takes this can serve the dimension."""
        return take.reads == self.reads and (self.reads != "category" or take.size == len(self.categories))


@dataclass(frozen=True)
class Numeric(Dimension):
    """A number between `low` and `high`.

    Parameters
    ----------
    name
        The column that holds it.
    low, high
        Its range; values outside count as the nearer bound.
    default
        What stands for a missing value: the middle of the range unless given.
    optional
        Whether "no value" is an answer of its own: then the share of users who have a value and the mean among those
        are both estimated, from one report, and `default` is not used.
    curve
        The name of a curve of which this dimension is a point, in the schema's order: hours of a day, ages.
    group
        The name of a group that this dimension belongs to. Re-calibration makes use of either, and nothing else does.

    Examples
    --------
    >>> age = Numeric("age", 0, 120, default=40)
    >>> [age.clean(x) for x in (31, "31", -5, 1e400, float("nan"), None, "?", 10**400, True)]
    [31.0, 31.0, 0.0, 120.0, 40.0, 40.0, 40.0, 120.0, 1.0]
    >>> age.place(60, 3) / 65536
    1.0
    """

    kind = "numeric"

    name: str
    low: float
    high: float
    default: float = None  # type: ignore[assignment]  # None: the middle, filled in below
    optional: bool = False
    curve: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        for field, value in (("curve", self.curve), ("group", self.group)):
            if value is not None and (not isinstance(value, str) or not value or not _is_unicode(value)):
                raise InvalidInput(f"dimension {self.name!r}: {field} = {value!r} must be a name")
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
        if not isinstance(self.optional, bool):
            raise InvalidInput(f"dimension {self.name!r}: optional = {self.optional!r} must be true or false")
        for end, number in (("low", low), ("high", high), ("default", default)):
            object.__setattr__(self, end, number + 0.0)  # −0.0 and 0.0 have one spelling

    @property
    def reads(self) -> str:
        return "optional" if self.optional else "number"

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def clean(self, value: Any) -> float:
        """The value inside [low, high]: NaN, None and what is no number become the default; the rest is clamped.

        Text is read as a number if it is one, as CSV files have it; ±inf is out of range like any other large number.
        """
        found = as_number(value)
        return self.default if math.isnan(found) else min(max(found, self.low), self.high)

    def place(self, value: Any, size: int) -> int:
        found = as_number(value)
        n_levels = size - self.optional
        u = (self.clean(found) - self.low) / (self.high - self.low)
        place = round(u * ((n_levels - 1) << FRACTION_BITS))
        return n_levels << FRACTION_BITS if self.optional and math.isnan(found) else place

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"low": self.low, "high": self.high, "default": self.default}
        declared = {"optional": self.optional or None, "curve": self.curve, "group": self.group}
        fields |= {name: value for name, value in declared.items() if value is not None}
        return {"name": self.name, "type": self.kind, **fields}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Numeric:
        _check_fields(fields, {"name", "low", "high"}, {"default", "optional", "curve", "group"})
        return cls(**fields)


@dataclass(frozen=True, init=False)
class Categorical(Dimension):
    """One of `categories`.

    Parameters
    ----------
    name
        The column that holds it.
    categories
        At least two different strings; whole numbers and truth values are taken by their `label`.
    default
        What stands for a missing or unknown value: the first category unless given.
    optional
        Whether there is one more category, "missing", which is the default: how many have no (known) value is then an
        answer.

    Examples
    --------
    >>> Categorical("smoker", ["no", "yes"], optional=True).categories
    ('no', 'yes', 'missing')
    >>> smoker = Categorical("smoker", ["no", "yes"])
    >>> smoker.default, smoker.place("yes", 2) >> 16, smoker.place(7, 2) >> 16
    ('no', 1, 0)
    >>> Categorical("rooms", [1, 2, 3]).categories
    ('1', '2', '3')
    """

    kind = "categorical"

    name: str
    labels: tuple[str, ...]
    default: str

    def __init__(
        self, name: str, categories: Iterable[Any], default: Any = None, *, optional: bool = False
    ) -> None:
        _check_name(name)
        if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
            raise InvalidInput(f"dimension {name!r}: categories = {categories!r} must be a list")
        labels = tuple(self._checked(name, category) for category in categories)
        if not isinstance(optional, bool) or (optional and default is not None):
            raise InvalidInput(f"dimension {name!r}: optional is true or false, and goes without a default")
        if optional:
            labels, default = (*labels, MISSING), MISSING
        if not 2 <= len(labels) <= MAX_CATEGORIES:
            raise InvalidInput(
                f"dimension {name!r} has {len(labels)} categories: 2 to {MAX_CATEGORIES} are allowed"
            )
        if twice := first_twice(labels):
            raise InvalidInput(f"dimension {name!r}: category {twice!r} appears twice")
        chosen = labels[0] if default is None else self._checked(name, default)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "default", chosen)
        if chosen not in self.index:
            raise InvalidInput(f"dimension {name!r}: default = {default!r} is not one of its categories")

    @staticmethod
    def _checked(name: str, category: Any) -> str:
        text = label(category)
        if text is None or not _is_unicode(text):
            raise InvalidInput(f"dimension {name!r}: category {category!r} must be a string")
        return text

    @property
    def categories(self) -> tuple[str, ...]:
        return self.labels

    @property
    def reads(self) -> str:
        return "category"

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The number of each category."""
        return {category: i for i, category in enumerate(self.labels)}

    @cached_property
    def _by_meaning(self) -> Mapping[str, int]:
        """The number of the only category of each meaning."""
        meanings = [_meaning(category) for category in self.labels]
        counts = Counter(meanings)
        return {meaning: i for i, meaning in enumerate(meanings) if counts[meaning] == 1}

    @property
    def optional(self) -> bool:
        """Whether a missing value is a category of its own."""
        return self.default == self.labels[-1] == MISSING

    def find(self, value: Any) -> int | None:
        """The number of the category that a value names, or None.

        It is the category that is the value's label. If there is none, it is the only category with the label's
        meaning: `True`, `TRUE` and `true` mean the same, and so do `3.0` and `3`.

        >>> night = Categorical("night", ["False", "True"])
        >>> night.find("True"), night.find("true"), night.find(True), night.find("yes")
        (1, 1, 1, None)
        """
        text = label(value)
        if text is None:
            return None
        found = self.index.get(text)
        return self._by_meaning.get(_meaning(text)) if found is None else found

    def clean(self, value: Any) -> int:
        """The number of the category that the value names, or of the default."""
        try:
            found = self.find(value)
        except Exception:  # a value may be an object that raises anything at all
            found = None
        return self.index[self.default] if found is None else found

    def place(self, value: Any, size: int) -> int:
        return self.clean(value) << FRACTION_BITS

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.kind,
            "categories": list(self.labels),
            "default": self.default,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Categorical:
        _check_fields(fields, {"name", "categories"}, {"default", "optional"})
        return cls(**fields)


DIMENSIONS: Registry[type[Dimension]] = Registry(
    "dimension type",
    "dimensions",
    {
        Numeric.kind: Numeric,
        Categorical.kind: Categorical,
        "selection": "hdr4me.survey.selection:Selection",
    },
)


def dimension_from_dict(item: Any) -> Dimension:
    """Read what `to_dict` wrote, or what a person did: `type` may be left out for numbers and categories."""
    if not isinstance(item, Mapping):
        raise FormatError(f"a dimension must be an object, not {item!r}")
    fields = dict(item)
    kind = fields.pop("type", Categorical.kind if "categories" in fields else Numeric.kind)
    if not isinstance(kind, str) or kind not in DIMENSIONS:
        raise FormatError(
            f"dimension {fields.get('name')!r}: type = {kind!r} must be one of {', '.join(DIMENSIONS.names)}"
        )
    return DIMENSIONS[kind].from_dict(fields)


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


def _meaning(text: str) -> str:
    """Truth values in lower case and whole numbers without their zeros after the point; any other text as it is.

    >>> [_meaning(x) for x in ("TRUE", "False", "3.0", "-7.000", "3.5", "Yes")]
    ['true', 'false', '3', '-7', '3.5', 'Yes']
    """
    lower = text.lower()
    if lower in ("true", "false"):
        return lower
    return text.partition(".")[0] if _WHOLE.fullmatch(text) else text


def first_twice(names: Iterable[str]) -> str | None:
    """The first name that was there before, if any."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def as_number(value: Any) -> float:
    """The number that a value is or says, wherever it lies; NaN if it is none. Truth values are 1 and 0.

    >>> [as_number(x) for x in (31, " 31 ", "TRUE", "12 min", None, -(10**400))]
    [31.0, 31.0, 1.0, nan, nan, -inf]
    """
    try:
        if (
            type(value).__name__ == "MaskedConstant"
        ):  # NumPy's missing value, which warns when it becomes a number
            return math.nan
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return float(value.strip().lower() == "true")
        try:
            return float(value)
        except OverflowError:  # a whole number beyond every float
            return math.inf if value > 0 else -math.inf
    except Exception:  # a value may be an object that raises anything at all
        return math.nan


def _check_fields(fields: Mapping[str, Any], needed: set[str], optional: set[str]) -> None:
    if not needed <= set(fields) <= needed | optional:
        raise FormatError(
            f"dimension {fields.get('name')!r} has fields {sorted(fields)}, "
            f"expected {sorted(needed)} and perhaps {', '.join(sorted(optional))}"
        )


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
