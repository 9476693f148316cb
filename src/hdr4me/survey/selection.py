"""A dimension with several categories at once; standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

from hdr4me.channels.channel import Take
from hdr4me.channels.privset import MAX_INPUTS, rank
from hdr4me.errors import InvalidInput
from hdr4me.survey.categorical import Categorical, listed
from hdr4me.survey.category_file import CategoryFile
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, Fault
from hdr4me.survey.values import check_fields

if TYPE_CHECKING:
    from hdr4me.survey.columns import Column


SEPARATOR = "|"
"""Between the choices of a text, as CSV files have them."""


@dataclass(frozen=True, init=False)
class Selection(Dimension):
    """Any of `categories`, at most `at_most` of them.

    A value is a list of categories, or a text with `|` between them. Choices that are no category are passed over. Of
    too many choices the first ones in the schema's order count. No value means: nothing chosen, unless it is optional.

    Parameters
    ----------
    name
        The column that holds it.
    categories
        At least two different strings without `|`.
    at_most
        How many of them count.
    optional
        Whether there is one more category, "missing", for a value that is missing or names no category: how many have
        no (known) value is then an answer. An empty list, or a text of bars alone, is nothing chosen.
    file
        The name of a file that holds the categories (see `Categorical`).

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
        labels = known.labels
        n_own = len(labels) - optional
        for category in labels:
            if SEPARATOR in category or not category.strip():
                raise InvalidInput(
                    f"dimension {name!r}: category {category!r} must not be blank or have {SEPARATOR!r} in it"
                )
        if type(at_most) is not int or not 1 <= at_most <= n_own:
            raise InvalidInput(
                f"dimension {name!r}: at_most = {at_most!r} must be a whole number from 1 to {n_own}"
            )
        if comb(len(labels) + at_most, at_most) > MAX_INPUTS:
            raise InvalidInput(
                f"dimension {name!r}: {at_most} of {len(labels)} categories make too many sets: lower at_most"
            )
        for field, value in (
            ("name", name),
            ("labels", labels),
            ("at_most", at_most),
            ("file", known.file),
            ("optional", optional),
        ):
            object.__setattr__(self, field, value)

    @cached_property
    def _known(self) -> Categorical:
        return Categorical(self.name, self.labels)

    @property
    def categories(self) -> tuple[str, ...]:
        return self.labels

    @property
    def reads(self) -> str:
        return "selection"

    def choices(self, value: Any) -> tuple[set[int], int]:
        """The numbers of the categories that a value names, and how many choices name none."""
        try:
            if isinstance(value, str):
                parts: list[Any] = [part.strip() for part in value.split(SEPARATOR)]
            elif isinstance(value, Mapping | bytes) or value is None:
                parts = []
            else:
                parts = list(value) if isinstance(value, Iterable) else [value]
            found = [self._known.find(part) for part in parts if part is not None and part != ""]
        except Exception:  # a value may be an object that raises anything at all
            return set(), 1
        return {k for k in found if k is not None}, found.count(None)

    def clean(self, value: Any) -> tuple[int, ...]:
        """The numbers of the categories that count, in increasing order."""
        found, wrong = self.choices(value)
        if self.optional and not found and (wrong or not self._is_set(value)):
            return (len(self.labels) - 1,)
        return tuple(sorted(found)[: self.at_most])

    @staticmethod
    def _is_set(value: Any) -> bool:
        """Whether a value that names nothing is a set all the same, rather than no value."""
        if isinstance(value, str):
            return SEPARATOR in value
        return isinstance(value, Iterable) and not isinstance(value, Mapping | bytes)

    def place(self, value: Any, size: int) -> int:
        """The number of the set of choices, filled up with dummies to `at_most` items."""
        chosen = self.clean(value)
        v = len(self.labels)
        dummies = range(v, v + self.at_most - len(chosen))
        return rank((*chosen, *dummies)) << FRACTION_BITS

    def fits(self, take: Take) -> bool:
        return take == Take("selection", comb(len(self.labels) + self.at_most, self.at_most))

    def faults(self) -> dict[str, Fault]:
        nothing = "missing" if self.optional else "nothing chosen"
        return {
            "missing": Fault("missing", "", True),
            "unknown": Fault(
                "none of the categories", f"and count as {nothing} (in text, {SEPARATOR!r} separates choices)"
            ),
            "low": Fault("partly unknown", "and only the known categories count", True),
            "high": Fault(
                f"more than {self.at_most} choices",
                "of which the first ones in the schema's order count",
                True,
            ),
        }

    def clean_column(self, columns: Sequence[Any], size: int) -> Column:
        from hdr4me.survey.columns import SelectionColumn

        return SelectionColumn(self, columns[0], size)

    def to_dict(self) -> dict[str, Any]:
        if self.file is None:
            own = self.labels[: len(self.labels) - self.optional]
            categories: dict[str, Any] = {"categories": list(own)}
        else:
            categories = {"categories_file": self.file.to_dict()}
        made = {"name": self.name, "type": self.kind, **categories, "at_most": self.at_most}
        return made | ({"optional": True} if self.optional else {})

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Selection:
        check_fields(listed(fields), {"name", "categories", "at_most"}, {"optional", "file"})
        return cls(**listed(fields))
