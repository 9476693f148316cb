"""The base class of all dimensions; standard library only."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

from hdr4me.channels.channel import Input
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.registry import Registry
from hdr4me.survey.values import as_number, is_blank, is_missing_number, refused

if TYPE_CHECKING:
    from hdr4me.survey.columns import Column

FRACTION_BITS = 16  # a position is an input with a fraction of sixteen bits towards the next input
FAULTS = ("missing", "unknown", "low", "high")  # the ways in which a value can be unusable
UNDECLARED = "the schema declares neither a default nor optional"


class Fault(NamedTuple):
    """A kind of faulty value: its description, its effect, and whether the value is usable nevertheless.

    A fault without an effect is a valid answer and is not reported.
    """

    what: str
    effect: str
    usable: bool = False


@cache
def _parameters(kind: type[Dimension]) -> tuple[list[str], list[str]]:
    """The names of the required and of the optional parameters of a kind of dimension."""
    found = signature(kind).parameters.values()
    needed = [parameter.name for parameter in found if parameter.default is Parameter.empty]
    return needed, [parameter.name for parameter in found if parameter.name not in needed]


_ESTIMATED = {
    "number": ("mean",),
    "optional": ("mean",),
    "vector": ("mean",),
    "category": ("frequency",),
    "selection": ("chosen", "number chosen"),
}


def _value_in(record: Mapping[str, Any], name: str) -> Any:
    """The raw value of a column; None if a user-defined mapping raises an exception."""
    try:
        return record.get(name)
    except Exception:
        return None


class Dimension(ABC):
    """An attribute that the survey asks for.

    A dimension of another package derives from this class and registers in `DIMENSIONS`. Its `input_kind` is "number",
    "optional" (a number that may be missing) or "category" (see `hdr4me.channels.Input`), the kinds that channels
    accept. Its rule for one value, `encode`, cleans whole columns too: `clean_column` applies it to each distinct
    value. The data-quality counts come from `quality`, which a categorical dimension overrides if it can recognize
    unknown values.

    Examples
    --------
    >>> from hdr4me.survey import Numeric
    >>> age = Numeric("age", 0, 120)
    >>> isinstance(age, Dimension), age.input_kind, age.bounds
    (True, 'number', (0.0, 120.0))
    """

    kind: ClassVar[str]
    _column: ClassVar[str] = "DistinctColumn"  # the class in `columns.py` that cleans whole columns
    is_text: ClassVar[bool] = False  # its column holds texts, which are used as they are written
    is_time: ClassVar[bool] = False  # its column holds dates or times
    _unknown: ClassVar[str | None] = None  # the words for unknown values, if they have their own
    name: str

    @property
    @abstractmethod
    def input_kind(self) -> str:
        """The kind of input that its channel must accept: "number", "optional" or "category"."""

    @abstractmethod
    def encode(self, value: Any, size: int) -> int:
        """The position of a raw value among the `size` inputs of a channel, times 2^16; clients round it randomly."""

    def to_dict(self) -> dict[str, Any]:
        """The dimension in a survey document: `name`, `type` and all parameters that are neither None nor False."""
        needed, optional = _parameters(type(self))
        parameters = {name: getattr(self, name) for name in (*needed, *optional)}
        document = {
            key: value for key, value in parameters.items() if value is not None and value is not False
        }
        return {"name": self.name, "type": self.kind} | document

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The dimension from the output of `to_dict` without `type`."""
        needed, optional = _parameters(cls)
        if not set(needed) <= set(fields) <= {*needed, *optional}:
            raise FormatError(
                f"dimension {fields.get('name')!r} has fields {sorted(fields)}, "
                f"expected {sorted(needed)} and optionally {', '.join(sorted(optional))}"
            )
        made: Any = cls
        return cast(Self, made(**fields))

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the categories; empty for numbers."""
        return ()

    @property
    def half_range(self) -> float:
        """Own units per unit of the scale [−1, 1]: half the range, the norm of a vector, 1 for a frequency."""
        low, high = self.bounds
        return 1.0 if self.categories else (high - low) / 2

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics that are estimated by default."""
        return _ESTIMATED.get(self.input_kind, ()) + (("share",) if self.has_gaps else ())

    @property
    def rows(self) -> tuple[str | None, ...]:
        """The rows of an answer: one for each category, or a single row for a number."""
        return self.categories or (None,)

    @property
    def is_number(self) -> bool:
        """Whether it is a number that is not optional."""
        return self.input_kind == "number"

    @property
    def is_category(self) -> bool:
        """Whether it is a category."""
        return self.input_kind == "category"

    @property
    def bounds(self) -> tuple[float, float]:
        """The values of −1 and 1 in the dimension's own units."""
        return (-1.0, 1.0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a record that hold its value: its own name, or the columns that it is computed from."""
        return (self.name,)

    @property
    def is_derived(self) -> bool:
        """Whether it is computed from its columns, so that its clean values are not values of a column."""
        return self.columns != (self.name,)

    @property
    def leaves(self) -> tuple[Dimension, ...]:
        """The dimensions whose rules clean the columns: itself, or the parts that it is derived from."""
        return (self,)

    def value_in(self, record: Mapping[str, Any]) -> Any:
        """Its raw value in a record: that of its column, or a tuple for several columns."""
        columns = self.columns
        if len(columns) == 1:
            return _value_in(record, columns[0])
        return tuple(_value_in(record, name) for name in columns)

    def within(self, others: Mapping[str, Dimension]) -> Dimension:
        """The dimension in a schema of these dimensions, by name; itself unless it is computed from others."""
        return self

    def fits(self, input_: Input) -> bool:
        """Whether a channel with this input supports the dimension."""
        return input_.input_kind == self.input_kind and (
            self.input_kind != "category" or input_.size == len(self.categories)
        )

    @property
    def expected(self) -> str:
        """A usable value, in words."""
        return "one of the categories" if self.categories else "a number"

    @property
    def replaces(self) -> bool:
        """Whether missing and unknown values have a declared treatment: a default, or `optional`."""
        return getattr(self, "default", None) is not None or bool(getattr(self, "optional", self.has_gaps))

    def check(self, value: Any) -> None:
        """Refuse a missing or unknown value unless a default or `optional` is declared; the error has no value.

        >>> from hdr4me.survey import Numeric
        >>> Numeric("age", 0, 120, default=40).check(None)
        >>> Numeric("age", 0, 120).check("1,000")
        Traceback (most recent call last):
        hdr4me.errors.InvalidInput: dimension 'age': the value is not a number, and the schema declares neither ...
        """
        found = self.quality(value)
        if found in ("missing", "unknown") and not self.replaces:
            what = "missing" if found == "missing" else f"not {self.expected}"
            raise refused(self.name, f"the value is {what}, and {UNDECLARED}")

    @property
    def accepts_blank(self) -> bool:
        """Whether an empty field of a text file is a value rather than missing."""
        return "" in self.categories

    def number(self, value: Any) -> float:
        """The number that a raw value represents; NaN if there is none."""
        return as_number(value)

    @property
    def unit_label(self) -> str:
        """The unit of its numbers in an answer; empty if there is none."""
        return getattr(self, "unit", None) or ""

    def quality(self, value: Any) -> str:
        """The fault of a raw value, one of `FAULTS`, or "usable"."""
        if self.input_kind not in ("number", "optional"):
            return "missing" if is_blank(value) else "usable"
        number, (low, high) = self.number(value), self.bounds
        if math.isnan(number):
            return "missing" if is_missing_number(value) else "unknown"
        return "low" if number < low else "high" if number > high else "usable"

    def faults(self) -> dict[str, Fault]:
        """The treatment of faulty values, by the names in `FAULTS`."""
        default = getattr(self, "fallback", getattr(self, "default", None))
        replacement = (
            f"{default:g}" if isinstance(default, float) else repr(default) if default else "the default"
        )
        if not self.replaces and replacement != "the default":
            replacement += ", because no default is declared"
        optional = bool(getattr(self, "optional", self.has_gaps))
        missing = Fault("missing", "" if optional else f"and count as {replacement}", optional)
        if self.categories:
            what = self._unknown or "none of the categories"
            return {"missing": missing, "unknown": Fault(what, f"and count as {replacement}")}
        low, high = self.bounds
        return {
            "missing": missing,
            "unknown": Fault(
                self._unknown or "not numbers", f"and count as {'missing' if optional else replacement}"
            ),
            "low": Fault(f"below {low:g}", f"and count as {low:g}"),
            "high": Fault(f"above {high:g}", f"and count as {high:g}"),
        }

    def clean_column(self, columns: Sequence[Any], size: int) -> Column:
        """The Arrow arrays of `columns`, clean for a channel with `size` inputs, with counts of faulty values."""
        import pyarrow as pa

        from hdr4me.survey import columns as module

        try:
            made: Column = getattr(module, self._column)(self, columns, size)
        except pa.ArrowException:  # its message may contain a value
            raise InvalidInput(
                f"column {self.name!r} cannot be converted from type {columns[0].type}: convert it to numbers, strings "
                "or times first"
            ) from None
        return made

    @property
    def has_gaps(self) -> bool:
        """Whether "no value" is a valid answer, so that the share of users with a value is estimated."""
        return self.input_kind == "optional"


DIMENSIONS: Registry[type[Dimension]] = Registry(
    "dimension type",
    "dimensions",
    {
        "numeric": "hdr4me.survey.numeric:Numeric",
        "categorical": "hdr4me.survey.categorical:Categorical",
        "selection": "hdr4me.survey.categorical:Selection",
        "product": "hdr4me.survey.numeric:Product",
        "vector": "hdr4me.survey.vector:Vector",
        "time": "hdr4me.survey.times:Time",
        "calendar": "hdr4me.survey.times:Calendar",
        "bucket": "hdr4me.survey.derived:Bucket",
        "joint": "hdr4me.survey.derived:Joint",
        "hash": "hdr4me.survey.derived:Hash",
        "prefix": "hdr4me.survey.derived:Prefix",
        "outer": "hdr4me.survey.derived:Outer",
    },
)


_GUESSED = {  # the type of a dimension with this field
    "product": "product",
    "joint": "joint",
    "edges": "bucket",
    "buckets": "hash",
    "prefix": "prefix",
    "outer": "outer",
    "start": "time",
    "part": "calendar",
}


def dimension_from_dict(item: Any) -> Dimension:
    """The dimension of a document; `type` may be omitted except for selections and vectors."""
    if not isinstance(item, Mapping):
        raise FormatError(f"a dimension must be an object, not {item!r}")
    fields = dict(item)
    listed = "categories" in fields or "categories_file" in fields
    guessed = next((kind for key, kind in _GUESSED.items() if key in fields), "numeric")
    kind = fields.pop("type", "categorical" if listed else guessed)
    if not isinstance(kind, str) or kind not in DIMENSIONS:
        raise FormatError(
            f"dimension {fields.get('name')!r}: type = {kind!r} must be one of {', '.join(DIMENSIONS.names)}"
        )
    return DIMENSIONS[kind].from_dict(fields)
