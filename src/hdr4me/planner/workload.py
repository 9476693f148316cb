"""What is to be estimated: groups of dimensions that are alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import Prior, as_prior
from hdr4me.pages.counted import counted

__all__ = ["UNIFORM", "Group", "Workload"]

UNIFORM = as_prior("uniform")


@dataclass(frozen=True)
class Group:
    """So many dimensions alike: of `size` categories, or numbers (size 0) whose values follow `prior`.

    `scale` is the group's tolerance over the plan's own: infinite where nothing is asked of it. `squares` is Σ f² of a
    category's expected frequencies, where they are known. Of a selection a user may have up to `choices` categories,
    and has `chosen` on average, where that is known.
    """

    count: int
    size: int = 0
    prior: Prior = UNIFORM
    scale: float = 1.0
    squares: float | None = None
    choices: int = 0
    chosen: float | None = None

    @property
    def n_coordinates(self) -> int:
        """A mean each, or a frequency for each category; of a selection a share for each, and the number chosen."""
        return self.count * (max(self.size, 1) + (self.choices > 0))

    @property
    def expected_choices(self) -> float:
        """How many categories a user has: 1, or of a selection what is known, and half of the most if nothing is."""
        if not self.choices:
            return 1.0
        return self.choices / 2 if self.chosen is None else self.chosen


@dataclass(frozen=True)
class Workload:
    """Groups of dimensions, numbers first.

    >>> Workload.of_size(750).n_dims, Workload((Group(2), Group(4, size=3))).n_coordinates
    (750, 14)
    """

    groups: tuple[Group, ...]

    @classmethod
    def of(cls, schema: Any) -> Workload:
        """The workload of a schema's dimensions, with nothing known of their values."""
        sizes = Counter(
            (len(dimension.categories), getattr(dimension, "at_most", 0)) for dimension in schema.dimensions
        )
        return cls(
            tuple(Group(count, size, choices=choices) for (size, choices), count in sorted(sizes.items()))
        )

    @classmethod
    def of_size(cls, n_dims: int, n_categories: int | None = None, prior: Prior = UNIFORM) -> Workload:
        """So many dimensions alike: numbers, or categories of one size."""
        if isinstance(n_dims, bool) or not isinstance(n_dims, int) or n_dims < 1:
            raise InvalidInput.of("n_dims", n_dims, "a whole number >= 1")
        if n_categories is None:
            return cls((Group(n_dims, prior=prior),))
        if isinstance(n_categories, bool) or not isinstance(n_categories, int) or n_categories < 2:
            raise InvalidInput.of("n_categories", n_categories, "a whole number >= 2")
        return cls((Group(n_dims, n_categories),))

    @property
    def shape(self) -> tuple[tuple[tuple[int, int], int], ...]:
        """How many dimensions there are of each size and number of choices: what a schema must agree with."""
        sizes: Counter[tuple[int, int]] = Counter()
        for group in self.groups:
            sizes[group.size, group.choices] += group.count
        return tuple(sorted(sizes.items()))

    @property
    def numeric(self) -> int:
        """How many dimensions are numbers."""
        return dict(self.shape).get((0, 0), 0)

    @property
    def categorical(self) -> tuple[tuple[int, int], ...]:
        """The sizes of categories, and how many dimensions have each."""
        return tuple((size, count) for (size, choices), count in self.shape if size and not choices)

    @property
    def selections(self) -> int:
        """How many dimensions are selections."""
        return sum(count for (_, choices), count in self.shape if choices)

    @property
    def prior(self) -> Prior | None:
        """The one prior of all numbers; None if there are several, or no numbers."""
        priors = {group.prior for group in self.groups if not group.size}
        return priors.pop() if len(priors) == 1 else None

    @property
    def n_dims(self) -> int:
        """How many dimensions there are."""
        return sum(group.count for group in self.groups)

    def n_questions(self, mechanism: str) -> int:
        """How many questions there are if this mechanism serves numbers: a pair of them is one question."""
        return self.n_dims - (self.numeric // 2 if mechanism == "pair" else 0)

    @property
    def n_coordinates(self) -> int:
        """How many numbers are estimated: a mean each, a frequency for each category."""
        return sum(group.n_coordinates for group in self.groups)

    @property
    def what(self) -> str:
        """Plain words for what is estimated."""
        frequencies = sum(size * count for size, count in self.categorical)
        shares = sum(size * count for (size, choices), count in self.shape if choices)
        numbers = (
            counted(self.numeric, "mean") if self.numeric else "",
            f"{frequencies:,} frequencies" if frequencies else "",
            counted(shares, "share") if shares else "",
            _choices(self.selections),
        )
        return " and ".join(n for n in numbers if n)


def _choices(n: int) -> str:
    """Words for the mean number of choices of each of n selections."""
    return "" if n == 0 else "the number of choices" if n == 1 else f"{n:,} numbers of choices"
