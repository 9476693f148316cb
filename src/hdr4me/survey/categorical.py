"""One category out of a list, and several categories at once; standard library only.

A value that is missing or not a category becomes the default; clients and engines refuse it if no default is declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from math import comb
from typing import Any, Self

from hdr4me.channels.channel import Input
from hdr4me.channels.privset import MAX_INPUTS, rank
from hdr4me.errors import InvalidInput
from hdr4me.survey.category_file import LONG, CategoryFile, find
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, Fault
from hdr4me.survey.values import check_name, first_twice, is_blank, is_unicode, label, meaning, refused

MAX_CATEGORIES = 1_000_000
MISSING = "missing"  # the category of a missing value where a dimension is optional
SEPARATOR = "|"  # between the choices in a string, as in CSV files


class _Listed(Dimension):
    """A dimension with a list of categories, which may come from a file."""

    is_text = True
    labels: tuple[str, ...]

    @property
    def categories(self) -> tuple[str, ...]:
        return self.labels

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        if "categories_file" in fields and "categories" not in fields:
            name, rest = str(fields.get("name")), dict(fields)
            file = CategoryFile.from_dict(name, rest.pop("categories_file"))
            fields = {**rest, "categories": find(name, file), "file": file.name}
        return super().from_dict(fields)


@dataclass(frozen=True, init=False)
class Categorical(_Listed):
    """One of `categories`.

    Parameters
    ----------
    name
        The name of the column.
    categories
        At least two different strings. Integers and Booleans are converted to strings.
    default
        The replacement for a missing or unknown value. Without it, such values are refused unless `optional`.
    optional
        Whether there is one more category, "missing", which is the default. The share of users without a known value
        is then estimated too.
    file
        The name of a file with the categories, one per line. If there are more than 4,096, survey documents hold the
        file name and a hash of the list instead of the list.

    Examples
    --------
    >>> Categorical("smoker", ["no", "yes"], optional=True).categories
    ('no', 'yes', 'missing')
    >>> smoker = Categorical("smoker", ["no", "yes"], default="no")
    >>> smoker.default, smoker.encode("yes", 2) >> 16, smoker.encode(7, 2) >> 16
    ('no', 1, 0)
    >>> Categorical("children", [1, 2, 3]).categories
    ('1', '2', '3')
    """

    kind = "categorical"
    _column = "CategoryColumn"
    input_kind = "category"

    name: str
    labels: tuple[str, ...]
    default: str | None
    file: CategoryFile | None

    def __init__(
        self,
        name: str,
        categories: Iterable[Any],
        default: Any = None,
        *,
        optional: bool = False,
        file: str | None = None,
    ) -> None:
        check_name(name)
        if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
            raise refused(name, f"categories = {categories!r} must be a list")
        labels = tuple(self._checked(name, category) for category in categories)
        if not isinstance(optional, bool) or (optional and default is not None):
            raise refused(name, "optional must be true or false, and cannot be combined with a default")
        listed = labels
        if optional:
            labels, default = (*labels, MISSING), MISSING
        if not 2 <= len(labels) <= MAX_CATEGORIES:
            n = f"{len(labels)} categor{'y' if len(labels) == 1 else 'ies'}"
            raise InvalidInput(f"dimension {name!r} has {n}: 2 to {MAX_CATEGORIES:,} are allowed")
        if (twice := first_twice(labels)) is not None:
            raise refused(name, f"category {twice!r} appears twice")
        chosen = None if default is None else self._checked(name, default)
        kept = CategoryFile.of(name, file, listed) if file is not None and len(listed) > LONG else None
        self._set(name=name, labels=labels, default=chosen, file=kept)
        if chosen is not None and chosen not in self.index:
            raise refused(name, f"default = {default!r} is not one of its categories")

    @staticmethod
    def _checked(name: str, category: Any) -> str:
        text = label(category)
        if text is None or not is_unicode(text):
            raise refused(name, f"category {category!r} must be a string")
        return text

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The index of each category."""
        return {category: i for i, category in enumerate(self.labels)}

    @cached_property
    def _by_meaning(self) -> Mapping[str, int]:
        """The index of the only category of each meaning."""
        meanings = [meaning(category) for category in self.labels]
        counts = Counter(meanings)
        return {meaning: i for i, meaning in enumerate(meanings) if counts[meaning] == 1}

    @property
    def optional(self) -> bool:
        """Whether "missing" is one of the categories."""
        return self.default == self.labels[-1] == MISSING

    @property
    def fallback(self) -> str:
        """The replacement for a missing value where it is not refused: the default, or the first category."""
        return self.labels[0] if self.default is None else self.default

    def find(self, value: Any) -> int | None:
        """The index of a value's category, or None.

        It is the category that equals the value's label. If there is none, it is the only category with the same
        meaning: `True`, `TRUE` and `true` mean the same, and so do `3.0` and `3`.

        >>> night = Categorical("night", ["False", "True"])
        >>> night.find("True"), night.find("true"), night.find(True), night.find("yes")
        (1, 1, 1, None)
        """
        text = label(value)
        if text is None:
            return None
        found = self.index.get(text)
        return self._by_meaning.get(meaning(text)) if found is None else found

    def clean(self, value: Any) -> int:
        """The index of the value's category, or of the fallback."""
        found = self._index_of(value)
        return self.index[self.fallback] if found is None else found

    def _index_of(self, value: Any) -> int | None:
        try:
            return self.find(value)
        except Exception:  # a value may be an object that raises any exception
            return None

    def encode(self, value: Any, size: int) -> int:
        return self.clean(value) << FRACTION_BITS

    def quality(self, value: Any) -> str:
        if self._index_of(value) is not None:
            return "usable"
        return "missing" if is_blank(value) else "unknown"

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {"name": self.name, "type": self.kind}
        if self.file is None:
            made["categories"] = list(self.labels)
        else:
            made["categories_file"] = asdict(self.file)
            if self.file.count < len(self.labels):
                return made | {"optional": True}
        return made if self.default is None else made | {"default": self.default}


@dataclass(frozen=True, init=False)
class Selection(_Listed):
    """Any of `categories`, at most `at_most` of them.

    A value is a list of categories, or a string with `|` between them. Unknown choices are ignored. If there are too
    many choices, the first in the schema's order count. An empty list or string means that nothing is chosen. A missing
    value is refused unless the dimension is optional.

    Parameters
    ----------
    name
        The name of the column.
    categories
        At least two different strings without `|`.
    at_most
        The largest number of choices that count.
    optional
        Whether there is one more category, "missing", for a value that is missing or has no known category. The share
        of such users is then estimated too. An empty list, or a string of bars only, means nothing chosen.
    file
        The name of a file with the categories (see `Categorical`).

    Examples
    --------
    >>> spoken = Selection("spoken", ["de", "en", "fr", "it"], at_most=2)
    >>> spoken.clean(["fr", "de"]), spoken.clean("it|en|de"), spoken.clean(["nl"]), spoken.clean(None)
    ((0, 2), (0, 1), (), ())
    >>> asked = Selection("spoken", ["de", "en"], at_most=2, optional=True)
    >>> asked.categories, asked.clean(None), asked.clean(["nl"]), asked.clean([])
    (('de', 'en', 'missing'), (2,), (2,), ())
    """

    kind = "selection"
    _column = "SelectionColumn"
    input_kind = "selection"

    name: str
    labels: tuple[str, ...]
    at_most: int
    file: CategoryFile | None
    optional: bool

    def __init__(
        self,
        name: str,
        categories: Iterable[Any],
        at_most: int,
        *,
        optional: bool = False,
        file: str | None = None,
    ) -> None:
        known = Categorical(name, categories, optional=optional, file=file)
        labels, n_own = known.labels, len(known.labels) - optional
        for category in labels:
            if SEPARATOR in category or not category.strip():
                raise refused(name, f"category {category!r} must not be blank or contain {SEPARATOR!r}")
        if type(at_most) is not int or not 1 <= at_most <= n_own:
            raise refused(name, f"at_most = {at_most!r} must be an integer from 1 to {n_own}")
        if comb(len(labels) + at_most, at_most) > MAX_INPUTS:
            raise refused(name, f"{at_most} of {len(labels)} categories make too many sets: lower at_most")
        self._set(name=name, labels=labels, at_most=at_most, file=known.file, optional=optional)

    @cached_property
    def _known(self) -> Categorical:
        return Categorical(self.name, self.labels)

    def choices(self, value: Any) -> tuple[set[int], int]:
        """The indices of the categories in a value, and the number of unknown choices."""
        try:
            if isinstance(value, str):
                parts: list[Any] = [part.strip() for part in value.split(SEPARATOR)]
            elif isinstance(value, Mapping | bytes):
                return set(), 1
            elif is_blank(value):
                parts = []
            else:
                parts = list(value) if isinstance(value, Iterable) else [value]
            found = [self._known.find(part) for part in parts if part is not None and part != ""]
        except Exception:  # a value may be an object that raises any exception
            return set(), 1
        return {k for k in found if k is not None}, found.count(None)

    def clean(self, value: Any) -> tuple[int, ...]:
        """The indices of the categories that count, in increasing order."""
        found, wrong = self.choices(value)
        if self.optional and not found and (wrong or not self._is_set(value)):
            return (len(self.labels) - 1,)
        return tuple(sorted(found)[: self.at_most])

    @property
    def expected(self) -> str:
        return "a list of the categories (an empty list means that nothing is chosen)"

    @property
    def accepts_blank(self) -> bool:
        return not self.optional  # nothing is chosen

    def quality(self, value: Any) -> str:
        if is_blank(value) and (self.optional or not isinstance(value, str)):
            return "missing"
        found, wrong = self.choices(value)
        if wrong:
            return "low" if found else "unknown"
        return "high" if len(found) > self.at_most else "usable"

    @staticmethod
    def _is_set(value: Any) -> bool:
        """Whether a value without a category is an empty set rather than missing."""
        if isinstance(value, str):
            return SEPARATOR in value
        return isinstance(value, Iterable) and not isinstance(value, Mapping | bytes)

    def encode(self, value: Any, size: int) -> int:
        """The index of the set of choices, padded with dummies to `at_most` items."""
        chosen, v = self.clean(value), len(self.labels)
        dummies = range(v, v + self.at_most - len(chosen))
        return rank((*chosen, *dummies)) << FRACTION_BITS

    def fits(self, input_: Input) -> bool:
        return input_ == Input("selection", comb(len(self.labels) + self.at_most, self.at_most))

    def faults(self) -> dict[str, Fault]:
        nothing = "missing" if self.optional else "nothing chosen"
        return {
            "missing": Fault("missing", "" if self.optional else f"and count as {nothing}", self.optional),
            "unknown": Fault(
                "none of the categories", f"and count as {nothing} ({SEPARATOR!r} separates choices)"
            ),
            "low": Fault("partly unknown", "and only the known categories count", True),
            "high": Fault(
                f"more than {self.at_most} choices", "of which the first in the schema's order count", True
            ),
        }

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {"name": self.name, "type": self.kind}
        if self.file is None:
            made["categories"] = list(self.labels[: len(self.labels) - self.optional])
        else:
            made["categories_file"] = asdict(self.file)
        return made | {"at_most": self.at_most} | ({"optional": True} if self.optional else {})
