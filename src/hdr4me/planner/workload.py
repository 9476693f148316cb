"""What is to be estimated: groups of dimensions that are alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import Prior, as_prior, mean_law, table_priors
from hdr4me.pages.counted import counted, listed

__all__ = ["UNIFORM", "Group", "Workload", "size_of"]

UNIFORM = as_prior("uniform")


@dataclass(frozen=True)
class Group:
    """So many dimensions alike: of `size` categories, vectors of `length`, or numbers whose values follow `prior`.

    `scale` is the group's tolerance over the plan's own: infinite where nothing is asked of it. `squares` is Σ f² of a
    category's expected frequencies, or |E x|² of a vector, where they are known. Of a selection a user may have up to
    `choices` categories, and has `chosen` on average, where that is known. A vector x is on the scale on which its
    largest norm is 1; `energy` is E|x|², where that is known. Of numbers or vectors that are `optional` the share
    `present` of users have one, where that is known, and `prior`, `squares` and `energy` are about those.
    """

    count: int
    size: int = 0
    prior: Prior = UNIFORM
    scale: float = 1.0
    squares: float | None = None
    choices: int = 0
    chosen: float | None = None
    length: int = 0
    energy: float | None = None
    optional: bool = False
    present: float | None = None

    @property
    def is_number(self) -> bool:
        """Whether the dimensions are numbers that everybody has."""
        return not self.size and not self.length and not self.optional

    @property
    def n_coordinates(self) -> int:
        """A mean each, or a frequency for each category; of a selection a share for each, and the number chosen.

        Of a vector the mean of each coordinate; of what is optional also the share of users who have it.
        """
        return self.count * (max(self.size, self.length, 1) + (self.choices > 0) + self.optional)

    @property
    def expected_present(self) -> float:
        """The share of users who have what is optional: what is known, and 0.9 if nothing is."""
        return 0.9 if self.present is None else self.present

    @property
    def expected_energy(self) -> float:
        """E|x|² of a vector: what is known, and d/(d + 2), of vectors spread evenly in the ball, if nothing is."""
        return self.length / (self.length + 2) if self.energy is None else self.energy

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
    places: tuple[int, ...] = ()
    """The number of each dimension's group in the schema's order; one group after the other if left out."""

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The groups of the numbers that everybody has, in the order of the dimensions."""
        places = self.places or (k for k, group in enumerate(self.groups) for _ in range(group.count))
        return tuple(k for k in places if self.groups[k].is_number)

    @cached_property
    def pairs(self) -> Counter[tuple[int, int]]:
        """How many pairs of neighbouring numbers are of these two groups."""
        return Counter(zip(self.numbers[::2], self.numbers[1::2], strict=False))

    @cached_property
    def pair_laws(self) -> tuple[Prior, Prior]:
        """What the table of all pairs is designed for: the mean law of the first numbers, and of the second ones."""
        paired = [self.groups[k].prior for k in self.numbers[: len(self.numbers) // 2 * 2]]
        return mean_law(paired[::2]), mean_law(paired[1::2])

    @cached_property
    def table_priors(self) -> dict[int, Prior]:
        """What the table of a number by itself is designed for, by its group."""
        designed = table_priors([self.groups[k].prior for k in self.numbers])
        return dict(zip(self.numbers, designed, strict=True))

    @classmethod
    def of(cls, schema: Any) -> Workload:
        """The workload of a schema's dimensions, with nothing known of their values."""
        sizes = Counter(size_of(dimension) for dimension in schema.dimensions)
        return cls(
            tuple(
                Group(count, size, choices=choices, length=length, optional=bool(optional))
                for (size, choices, length, optional), count in sorted(sizes.items())
            )
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
    def shape(self) -> tuple[tuple[tuple[int, int, int, int], int], ...]:
        """How many dimensions there are of each `size_of`: what a schema must agree with."""
        sizes: Counter[tuple[int, int, int, int]] = Counter()
        for group in self.groups:
            sizes[group.size, group.choices, group.length, int(group.optional)] += group.count
        return tuple(sorted(sizes.items()))

    @property
    def numeric(self) -> int:
        """How many dimensions are numbers that everybody has."""
        return dict(self.shape).get((0, 0, 0, 0), 0)

    @property
    def optional(self) -> int:
        """How many dimensions are optional numbers."""
        return dict(self.shape).get((0, 0, 0, 1), 0)

    @property
    def categorical(self) -> tuple[tuple[int, int], ...]:
        """The sizes of categories, and how many dimensions have each."""
        return tuple((size, count) for (size, choices, *_), count in self.shape if size and not choices)

    @property
    def selections(self) -> int:
        """How many dimensions are selections."""
        return sum(count for (_, choices, *_), count in self.shape if choices)

    @property
    def vectors(self) -> tuple[tuple[int, int], ...]:
        """The lengths of vectors that everybody has, and how many dimensions have each."""
        return tuple(
            (length, count) for (_, _, length, optional), count in self.shape if length and not optional
        )

    @property
    def optional_vectors(self) -> tuple[tuple[int, int], ...]:
        """The lengths of optional vectors, and how many dimensions have each."""
        return tuple((length, count) for (_, _, length, optional), count in self.shape if length and optional)

    @property
    def prior(self) -> Prior | None:
        """The one prior of all numbers; None if there are several, or no numbers."""
        priors = {group.prior for group in self.groups if group.is_number}
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
        """How many numbers are estimated: a mean each, a frequency for each category, a vector's coordinates."""
        return sum(group.n_coordinates for group in self.groups)

    @property
    def what(self) -> str:
        """Plain words for what is estimated."""
        frequencies = sum(size * count for size, count in self.categorical)
        shares = sum(size * count for (size, choices, *_), count in self.shape if choices)
        means = self.numeric + self.optional
        vectors = (*self.vectors, *self.optional_vectors)
        coordinates = sum(length * count for length, count in vectors)
        present = self.optional + sum(count for _, count in self.optional_vectors)
        numbers = (
            counted(means, "mean") if means else "",
            counted(coordinates, "coordinate") if coordinates else "",
            counted(present, "share") + " of users with a value" if present else "",
            f"{frequencies:,} frequencies" if frequencies else "",
            counted(shares, "share") if shares else "",
            _choices(self.selections),
        )
        return listed([n for n in numbers if n])


def size_of(dimension: Any) -> tuple[int, int, int, int]:
    """How many categories a dimension has, how many may be chosen at once, a vector's length, 1 if it is optional."""
    vector = dimension.reads == "vector"
    optional = dimension.optional if vector else dimension.reads == "optional"
    length = dimension.length if vector else 0
    return len(dimension.categories), getattr(dimension, "at_most", 0), length, int(optional)


def _choices(n: int) -> str:
    """Words for the mean number of choices of each of n selections."""
    return "" if n == 0 else "the number of choices" if n == 1 else f"{n:,} numbers of choices"
