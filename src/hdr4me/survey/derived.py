"""Derived inputs: categories and vectors that the device computes from other columns; standard library only.

`docs/derived-inputs.md` specifies each function, and `tests/vectors/derived.json` holds the vectors that every client
and engine must reproduce. `Product` (in `numeric.py`) is the derived input that is a number.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import combinations_with_replacement, pairwise, product
from typing import Any, Self

from hdr4me.errors import FormatError
from hdr4me.survey.categorical import MAX_CATEGORIES
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, Fault, dimension_from_dict
from hdr4me.survey.numeric import Numeric
from hdr4me.survey.values import (
    as_number,
    check_name,
    finite,
    is_blank,
    is_missing_number,
    is_unicode,
    label,
    plain,
    refused,
)
from hdr4me.survey.vector import Vector

MAX_SEED = 2**53 - 1  # the largest integer that every parser of JSON reads exactly
_LARGEST = 1e100  # the largest size of a standardized number, so that sums of squares are finite
UNREADABLE = "\ufffd"  # what file readers substitute for a value that is not text


class _Composed(Dimension):
    """A dimension with parts, each of which cleans its own column; the field named after its kind declares them."""

    is_derived = True

    @property
    def parts(self) -> tuple[Dimension, ...]:
        """The dimensions that it is computed from."""
        return tuple(getattr(self, self.kind))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        parts = fields.get(cls.kind)
        if not isinstance(parts, list):
            raise FormatError(f"dimension {fields.get('name')!r}: {cls.kind} must be a list of dimensions")
        return super().from_dict({**fields, cls.kind: [dimension_from_dict(item) for item in parts]})

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {self.kind: [part.to_dict() for part in self.parts]}

    @property
    def leaves(self) -> tuple[Dimension, ...]:
        return self.parts

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for part in self.parts for column in part.columns)

    @property
    def replaces(self) -> bool:
        return all(part.replaces for part in self.parts)

    def _each(self, value: Any) -> list[tuple[Dimension, Any]]:
        """Each part with its raw value; all values are missing unless there is one for each part."""
        complete = isinstance(value, list | tuple) and len(value) == len(self.parts)
        return list(zip(self.parts, value if complete else (None,) * len(self.parts), strict=True))

    def quality(self, value: Any) -> str:
        found = [part.quality(own) for part, own in self._each(value)]
        return next((fault for fault in ("missing", "unknown", "low", "high") if fault in found), "usable")

    def faults(self) -> dict[str, Fault]:
        """Faults are counted if any part has one."""
        what = "and count as that part's default"
        return {
            "missing": Fault("missing in a part", what),
            "unknown": Fault("unknown in a part", what),
            "low": Fault("below the range of a part", "and count as its lower end"),
            "high": Fault("above the range of a part", "and count as its upper end"),
        }


@dataclass(frozen=True)
class Bucket(Dimension):
    """The range that a number lies in, as a category.

    Bucket i holds the values from edge i (included) to edge i + 1 (excluded; the last bucket includes its upper edge).
    Values below the first edge belong to the first bucket, values above the last edge to the last one.

    Parameters
    ----------
    name
        The name of the dimension, and of the column unless `column` is given.
    edges
        At least three increasing numbers.
    default
        The number that replaces a missing value. Without it, missing values are refused.
    column
        The column that holds the number.

    Examples
    --------
    >>> age = Bucket("age", [0, 18, 65, 120])
    >>> age.categories, [age.encode(x, 3) >> 16 for x in (17.9, 18, 300, "66")]
    (('0 to 18', '18 to 65', '65 to 120'), [0, 1, 2, 2])
    """

    kind = "bucket"
    input_kind = "category"
    is_derived = True

    name: str
    edges: Sequence[float]
    default: float | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        edges: Any = self.edges
        numbers = [plain(x) for x in edges] if isinstance(edges, Iterable) else []
        if (
            not all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers)
            or len(numbers) < 3
            or not all(math.isfinite(as_number(x)) for x in numbers)
            or any(a >= b for a, b in pairwise(map(as_number, numbers)))
        ):
            raise refused(self.name, f"edges = {edges!r} must be at least three increasing numbers")
        object.__setattr__(self, "edges", tuple(as_number(x) for x in numbers))
        if self.default is not None and not self.edges[0] <= as_number(self.default) <= self.edges[-1]:
            raise refused(
                self.name, f"default = {self.default!r} must lie between the first and the last edge"
            )
        if self.column is not None:
            check_name(self.column)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The ranges."""
        ends = [label(x) or repr(x) for x in self.edges]
        return tuple(f"{low} to {high}" for low, high in pairwise(ends))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column or self.name,)

    @property
    def example(self) -> float:
        """A number in the first bucket."""
        return (self.edges[0] + self.edges[1]) / 2

    def index(self, value: Any) -> int:
        """The number of the bucket of a raw value, or of the default."""
        number = as_number(value)
        if math.isnan(number):
            middle = (self.edges[0] + self.edges[-1]) / 2
            number = middle if self.default is None else float(self.default)
        return min(max(bisect_right(self.edges, number) - 1, 0), len(self.edges) - 2)

    def encode(self, value: Any, size: int) -> int:
        return self.index(value) << FRACTION_BITS

    def quality(self, value: Any) -> str:
        number = as_number(value)
        if math.isnan(number):
            return "missing" if is_missing_number(value) else "unknown"
        return "low" if number < self.edges[0] else "high" if number > self.edges[-1] else "usable"

    def faults(self) -> dict[str, Fault]:
        """Values outside the edges count in the bucket at that end."""
        ends = {
            "low": Fault(f"below {self.edges[0]:g}", "and count in the first bucket"),
            "high": Fault(f"above {self.edges[-1]:g}", "and count in the last bucket"),
        }
        return super().faults() | {"unknown": Fault("not numbers", "and count as the default")} | ends


@dataclass(frozen=True)
class Joint(_Composed):
    """Several categories as one: the combination of the values of its parts.

    One answer about a combination under the whole budget has far less error than several answers under a part of it
    each. The categories are all combinations, the last part varying fastest.

    Parameters
    ----------
    name
        The name of the dimension.
    joint
        The parts: two or more categories of one column each (`Categorical`, `Bucket`, `Hash`, `Prefix`). Each reads its
        own column by its own rule for missing and unknown values.

    Examples
    --------
    >>> from hdr4me.survey import Categorical
    >>> both = Joint("who", [Categorical("sex", ["f", "m"]), Bucket("age", [0, 18, 120])])
    >>> both.columns, both.categories[1], both.encode(("f", 40), 4) >> 16
    (('sex', 'age'), 'f × 18 to 120', 1)
    """

    kind = "joint"
    _column = "JointColumn"
    input_kind = "category"

    name: str
    joint: Sequence[Dimension] = field(hash=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        parts = tuple(self.joint)
        if len(parts) < 2 or not all(isinstance(x, Dimension) and x.is_category for x in parts):
            raise refused(self.name, "joint must be a list of two or more categories")
        if len({x.name for x in parts}) < len(parts) or any(isinstance(x, Joint) for x in parts):
            raise refused(
                self.name, "the parts of joint must be different dimensions, none of them joint itself"
            )
        several = next((x.name for x in parts if len(x.columns) > 1), None)
        if several is not None:
            raise refused(self.name, f"part {several!r} of joint reads several columns: only one is allowed")
        size = math.prod(len(x.categories) for x in parts)
        if size > MAX_CATEGORIES:
            raise refused(
                self.name, f"its parts have {size:,} combinations: at most {MAX_CATEGORIES:,} are allowed"
            )
        object.__setattr__(self, "joint", parts)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many categories each part has."""
        return tuple(len(part.categories) for part in self.joint)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """All combinations."""
        return tuple(" × ".join(labels) for labels in product(*(part.categories for part in self.joint)))

    def encode(self, value: Any, size: int) -> int:
        found = 0
        for part, own in self._each(value):
            found = found * len(part.categories) + (part.encode(own, len(part.categories)) >> FRACTION_BITS)
        return found << FRACTION_BITS


@dataclass(frozen=True)
class Hash(Dimension):
    """The bucket of a text: a category of a text whose possible values are not known in advance.

    The bucket is the first eight bytes of the SHA-256 of `seed`, a colon and the text, in UTF-8, modulo `buckets`. The
    text is used as it is: without a change of case, spaces or Unicode normalization.

    Parameters
    ----------
    name
        The name of the dimension, and of the column unless `column` is given.
    buckets
        The number of buckets, from 2 to 1,000,000.
    seed
        A public integer from 0 to 2⁵³ − 1.
    default
        The text that replaces a missing or unusable value. Without it, such values are refused.
    column
        The column that holds the text.

    Examples
    --------
    >>> word = Hash("word", buckets=1024, seed=7)
    >>> word.bucket("apple"), word.encode("apple", 1024) >> 16
    (185, 185)
    >>> word.debiased(1 / 1024), round(word.debiased(0.25), 4)  # the mean share of a bucket is no evidence of a word
    (0.0, 0.2493)
    """

    kind = "hash"
    input_kind = "category"
    is_derived = True
    is_text = True

    name: str
    buckets: int
    seed: int = 0
    default: str | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        for key, value, low, high in (
            ("buckets", self.buckets, 2, MAX_CATEGORIES),
            ("seed", self.seed, 0, MAX_SEED),
        ):
            if type(value) is not int or not low <= value <= high:
                raise refused(self.name, f"{key} = {value!r} must be an integer from {low} to {high:,}")
        if self.default is not None and (not isinstance(self.default, str) or _text(self.default) is None):
            raise refused(self.name, f"default = {self.default!r} must be a text that is not blank")
        if self.column is not None:
            check_name(self.column)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The buckets."""
        return tuple(f"bucket {k}" for k in range(self.buckets))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column or self.name,)

    @property
    def expected(self) -> str:
        return "a text"

    def bucket(self, text: str) -> int:
        """The number of the bucket of a text."""
        found = sha256(f"{self.seed}:{text}".encode()).digest()
        return int.from_bytes(found[:8], "big") % self.buckets

    def debiased(self, share: float) -> float:
        """The share of a word whose bucket has this share: B buckets, f → (B·f − 1)/(B − 1).

        The other words are in the same bucket with probability 1/B each, over the choice of the seed.
        """
        return (self.buckets * share - 1) / (self.buckets - 1)

    def encode(self, value: Any, size: int) -> int:
        text = _text(value)
        return self.bucket((self.default or "") if text is None else text) << FRACTION_BITS

    def quality(self, value: Any) -> str:
        if _text(value) is not None:
            return "usable"
        return "missing" if is_blank(value) else "unknown"

    def faults(self) -> dict[str, Fault]:
        """Anything that is not text counts as the default."""
        return super().faults() | {"unknown": Fault("not text", "and count as the default")}


def _text(value: Any) -> str | None:
    """The text of a value, as for categories (`label`); None if it is blank, unreadable or has no UTF-8 form."""
    try:
        text = label(value)
    except Exception:  # a value may be an object that raises any exception
        return None
    return None if text is None or is_blank(text) or not is_unicode(text) or UNREADABLE in text else text


@dataclass(frozen=True)
class Prefix(_Composed):
    """The beginning of a text, as its part understands it: a category, or a bucket of a hash.

    Parameters
    ----------
    name
        The name of the dimension.
    prefix
        A list of one part, a `Categorical` or a `Hash`, which reads its own column.
    length
        The number of Unicode code points that are kept.

    Examples
    --------
    >>> from hdr4me.survey import Categorical
    >>> area = Prefix("area", [Categorical("zip", ["10", "12", "20"])], length=2)
    >>> area.columns, area.encode("12047", 3) >> 16, area.quality("99999")
    (('zip',), 1, 'unknown')
    """

    kind = "prefix"
    input_kind = "category"
    is_text = True

    name: str
    prefix: Sequence[Dimension] = field(hash=False)
    length: int

    def __post_init__(self) -> None:
        check_name(self.name)
        parts = tuple(self.prefix)
        if len(parts) != 1 or not (parts[0].is_text and parts[0].is_category) or parts[0].kind == self.kind:
            raise refused(self.name, "prefix must be a list of one categorical or hash dimension")
        if type(self.length) is not int or not 1 <= self.length <= MAX_SEED:
            raise refused(self.name, f"length = {self.length!r} must be a positive integer")
        object.__setattr__(self, "prefix", parts)

    @property
    def leaves(self) -> tuple[Dimension, ...]:
        return (self,)

    @property
    def categories(self) -> tuple[str, ...]:
        return self.prefix[0].categories

    @property
    def expected(self) -> str:
        return f"a text that begins with {self.prefix[0].expected}"

    def _cut(self, value: Any) -> Any:
        text = _text(value)
        return value if text is None else text[: self.length]

    def encode(self, value: Any, size: int) -> int:
        return self.prefix[0].encode(self._cut(value), size)

    def quality(self, value: Any) -> str:
        return self.prefix[0].quality(self._cut(value))

    def faults(self) -> dict[str, Fault]:
        return self.prefix[0].faults()


@dataclass(frozen=True, init=False)
class Outer(_Composed, Vector):
    """All products of two of several standardized numbers, as one vector: the second moments for a regression.

    With each number x cleaned by its part and z = (x − shift)/scale, the vector holds z_i·z_i and √2·z_i·z_j for i < j,
    ordered as (1,1), (1,2), …, (2,2), …. Its norm is Σ z², and a longer vector is scaled to `norm`.

    Parameters
    ----------
    name
        The name of the dimension.
    outer
        The parts: two or more numbers that are not optional. Each reads its own column.
    shift, scale
        Public constants, one for each number: about its mean and its standard deviation.
    norm
        The largest norm of the vector, about the number of parts plus 1.

    Examples
    --------
    >>> both = Outer("moments", [Numeric("x", 0, 10), Numeric("y", 0, 4)], shift=[5, 2], scale=[5, 2], norm=3)
    >>> both.columns, both.rows
    (('x', 'y'), ('x·x', '√2·x·y', 'y·y'))
    >>> [round(x, 4) for x in both.clean((10, 0))]
    [1.0, -1.4142, 1.0]
    """

    kind = "outer"
    _column = "OuterColumn"

    outer: Sequence[Dimension] = field(default=(), hash=False)
    shift: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def __init__(
        self,
        name: str,
        outer: Sequence[Dimension],
        shift: Iterable[float],
        scale: Iterable[float],
        norm: float,
    ) -> None:
        check_name(name)
        parts = tuple(outer)
        if len(parts) < 2 or not all(isinstance(x, Numeric) and not x.optional for x in parts):
            raise refused(name, "outer must be a list of two or more numbers that are not optional")
        if len({x.name for x in parts}) < len(parts):
            raise refused(name, "the parts of outer must be different dimensions")
        constants = {}
        for key, given in (("shift", shift), ("scale", scale)):
            values: list[Any] = list(given) if isinstance(given, Iterable) else []
            if len(values) != len(parts):
                raise refused(name, f"{key} must be a list of {len(parts)} numbers, one for each part")
            constants[key] = tuple(finite(name, key, x) + 0.0 for x in values)
        for part, middle, unit in zip(parts, *constants.values(), strict=True):
            if unit <= 0 or max(abs(end - middle) for end in part.bounds) / unit > _LARGEST:
                raise refused(name, f"scale = {unit} of {part.name!r} must be positive and not tiny")
        length = len(parts) * (len(parts) + 1) // 2
        fields = {"name": name, "length": length, "norm": norm, "optional": False, "outer": parts}
        for key, value in (fields | constants).items():
            object.__setattr__(self, key, value)
        self.__post_init__()

    @property
    def rows(self) -> tuple[str | None, ...]:
        names = [part.name for part in self.parts]
        return tuple(
            f"{a}·{b}" if a == b else f"√2·{a}·{b}" for a, b in combinations_with_replacement(names, 2)
        )

    def point(self, value: Any) -> list[float]:
        """The input of a channel: a vector of the unit ball."""
        pairs = zip(self._each(value), self.shift, self.scale, strict=True)
        z = [(part.clean(own) - shift) / scale for (part, own), shift, scale in pairs]  # type: ignore[attr-defined]
        return outer_point(z, self.norm, max)

    def clean(self, value: Any) -> tuple[float, ...]:
        return tuple(self.norm * x for x in self.point(value))

    def numbers(self, value: Any) -> list[float] | None:
        return list(self.clean(value))


def outer_point(z: Sequence[Any], norm: float, larger: Any) -> list[Any]:
    """The entries of `Outer` in the unit ball, of numbers or of arrays: the order of operations is specified."""
    total = z[0] * z[0]
    for x in z[1:]:
        total = total + x * x
    size = larger(total, norm)
    places = combinations_with_replacement(range(len(z)), 2)
    return [z[i] * z[j] / size if i == j else z[i] * z[j] * math.sqrt(2) / size for i, j in places]
