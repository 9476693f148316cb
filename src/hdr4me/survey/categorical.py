"""One of some categories; standard library only.

A value that is missing or names no category becomes the default. Nothing here raises because of a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hdr4me.errors import InvalidInput
from hdr4me.survey.category_file import LONG, CategoryFile, find
from hdr4me.survey.dimension import FRACTION_BITS, Dimension
from hdr4me.survey.values import check_fields, check_name, first_twice, is_blank, is_unicode, label, meaning

if TYPE_CHECKING:
    from hdr4me.survey.columns import Column


MAX_CATEGORIES = 1_000_000
MISSING = "missing"
"""The category of a missing value where a dimension is optional."""


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
    file
        The name of a file that holds the categories, one a line. If there are more than 4,096 of them, documents have
        the name and a hash of the list instead of the list.

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
            raise InvalidInput(f"dimension {name!r}: categories = {categories!r} must be a list")
        labels = tuple(self._checked(name, category) for category in categories)
        if not isinstance(optional, bool) or (optional and default is not None):
            raise InvalidInput(f"dimension {name!r}: optional is true or false, and goes without a default")
        listed = labels
        if optional:
            labels, default = (*labels, MISSING), MISSING
        if not 2 <= len(labels) <= MAX_CATEGORIES:
            raise InvalidInput(
                f"dimension {name!r} has {len(labels)} categor{'y' if len(labels) == 1 else 'ies'}: "
                f"2 to {MAX_CATEGORIES} are allowed"
            )
        if twice := first_twice(labels):
            raise InvalidInput(f"dimension {name!r}: category {twice!r} appears twice")
        chosen = labels[0] if default is None else self._checked(name, default)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "default", chosen)
        kept = CategoryFile.of(name, file, listed) if file is not None and len(listed) > LONG else None
        object.__setattr__(self, "file", kept)
        if chosen not in self.index:
            raise InvalidInput(f"dimension {name!r}: default = {default!r} is not one of its categories")

    @staticmethod
    def _checked(name: str, category: Any) -> str:
        text = label(category)
        if text is None or not is_unicode(text):
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
        meanings = [meaning(category) for category in self.labels]
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
        return self._by_meaning.get(meaning(text)) if found is None else found

    def clean(self, value: Any) -> int:
        """The number of the category that the value names, or of the default."""
        try:
            found = self.find(value)
        except Exception:  # a value may be an object that raises anything at all
            found = None
        return self.index[self.default] if found is None else found

    def place(self, value: Any, size: int) -> int:
        return self.clean(value) << FRACTION_BITS

    def quality(self, value: Any) -> str:
        if self.find(value) is not None:
            return "usable"
        return "missing" if is_blank(value) else "unknown"

    def clean_column(self, columns: Sequence[Any], size: int) -> Column:
        from hdr4me.survey.columns import CategoryColumn

        return CategoryColumn(self, columns[0])

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {"name": self.name, "type": self.kind}
        if self.file is None:
            return made | {"categories": list(self.labels), "default": self.default}
        added = self.file.count < len(self.labels)
        return (
            made
            | {"categories_file": self.file.to_dict()}
            | ({"optional": True} if added else {"default": self.default})
        )

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Categorical:
        check_fields(listed(fields), {"name", "categories"}, {"default", "optional", "file"})
        return cls(**listed(fields))


def listed(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A dimension's fields with the categories that its `categories_file` names by their hash."""
    if "categories_file" not in fields or "categories" in fields:
        return fields
    name = str(fields.get("name"))
    wanted = CategoryFile.from_dict(name, fields["categories_file"])
    rest = {key: value for key, value in fields.items() if key != "categories_file"}
    return {**rest, "categories": find(name, wanted), "file": wanted.name}
