"""The workload of a plan: groups of equal dimensions, and the errors of answers that need no data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import Prior, as_prior, mean_law, table_priors
from hdr4me.pages.text import listed
from hdr4me.survey.categorical import MAX_CATEGORIES

UNIFORM = as_prior("uniform")
Floats = NDArray[np.float64]
Shape = tuple[int, int, int, int]

_SPREAD = 1.0 / 3.0  # the mean square of means that are uniform on [−1, 1]


@dataclass(frozen=True)
class Group:
    """`count` equal dimensions: of `size` categories, vectors of `length`, or numbers whose values follow `prior`.

    `scale` is the ratio of the group's tolerance to the plan's, infinite without a tolerance. If known, `squares` is
    Σ f² of categories or |E x|² of vectors of norm 1, `energy` E|x|², `chosen` the mean number of at most `choices`
    categories, and `present` the share of users with an optional value.
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

    @classmethod
    def of(cls, dimension: Any, prior: Prior = UNIFORM) -> Group:
        """The group of one dimension; the prior is for numbers."""
        size, choices, length, optional = size_of(dimension)
        law = UNIFORM if size or length else prior
        return cls(1, size, law, choices=choices, length=length, optional=bool(optional))

    @property
    def shape(self) -> Shape:
        """The `size_of` of each of the dimensions."""
        return self.size, self.choices, self.length, int(self.optional)

    @property
    def is_number(self) -> bool:
        """Whether the dimensions are numbers that are not optional."""
        return not any(self.shape)

    @property
    def n_coordinates(self) -> int:
        """The number of means, frequencies and coordinates, and of numbers chosen and shares."""
        return self.count * (max(self.size, self.length, 1) + (self.choices > 0) + self.optional)

    @property
    def row_names(self) -> tuple[str, ...]:
        """What is estimated of each of the dimensions."""
        first = "coordinate" if self.length else "mean"
        if self.size:
            first = "chosen" if self.choices else "frequency"
        return first, *(["number chosen"] if self.choices else []), *(["share"] if self.optional else [])

    @property
    def expected_present(self) -> float:
        """The share of users with an optional value, 0.9 by default."""
        return 0.9 if self.present is None else self.present

    @property
    def expected_choices(self) -> float:
        """The mean number of categories of a user: 1, or for a selection the given number or half of the maximum."""
        if not self.choices:
            return 1.0
        return self.choices / 2 if self.chosen is None else self.chosen

    @property
    def population(self) -> tuple[Floats, Floats]:
        """The expected values of one coordinate, NaN for "no value", and the shares of the users with them.

        Moments are linear in x and x², so that two values ±√E x² represent vectors and uniform numbers.
        """
        if self.size:
            f = self.expected_choices / self.size
            return np.array([0.0, 1.0]), np.array([1.0 - f, f])
        values, shares = self.prior.values, self.prior.shares
        if self.is_number and self.prior.uniform:
            return np.array([-1.0, 1.0]) * math.sqrt(self.prior.mean_square), np.array([0.5, 0.5])
        if self.length:
            energy = self.length / (self.length + 2) if self.energy is None else self.energy
            mean = math.sqrt((self.squares or 0.0) / self.length)
            size = math.sqrt(max(energy / self.length, mean**2))
            up = 0.5 + (mean / (2 * size) if size else 0.0)
            values, shares = np.array([size, -size]), np.array([up, 1.0 - up])
        if not self.optional:
            return values, shares
        π = self.expected_present
        return np.append(values, np.nan), np.append(π * shares, 1.0 - π)


@dataclass(frozen=True)
class Workload:
    """Groups of dimensions, numbers first; `places` gives each dimension's group in the schema's order."""

    groups: tuple[Group, ...]
    places: tuple[int, ...] = ()

    @classmethod
    def of(cls, schema: Any) -> Workload:
        """The workload of a schema's dimensions without information about their values."""
        return cls.grouped([Group.of(dimension) for dimension in schema.dimensions])

    @classmethod
    def grouped(cls, dimensions: Sequence[Group]) -> Workload:
        """The workload of dimensions, each given as a group of one, in the schema's order."""
        count = Counter(dimensions)
        order = sorted(count, key=lambda group: group.shape)
        at = {group: k for k, group in enumerate(order)}
        groups = tuple(replace(group, count=count[group]) for group in order)
        return cls(groups, tuple(at[x] for x in dimensions))

    @classmethod
    def of_size(cls, dims: int, category_count: int | None = None, prior: Prior = UNIFORM) -> Workload:
        """The workload of `dims` numbers, or of `dims` dimensions with `category_count` categories."""
        if category_count is None:
            return cls((Group(dims, prior=prior),))
        if type(category_count) is not int or not 2 <= category_count <= MAX_CATEGORIES:
            raise InvalidInput.of(
                "category_count", category_count, f"an integer from 2 to {MAX_CATEGORIES:,}"
            )
        return cls((Group(dims, category_count),))

    @staticmethod
    def number_names(schema: Any) -> list[str]:
        """The names of the numbers that are not optional."""
        return [dimension.name for dimension in schema.dimensions if not any(size_of(dimension))]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The groups of the numbers that are not optional, in the order of the dimensions."""
        places = self.places or (k for k, group in enumerate(self.groups) for _ in range(group.count))
        return tuple(k for k in places if self.groups[k].is_number)

    @cached_property
    def pairs(self) -> Counter[tuple[int, int]]:
        """The number of pairs of neighboring numbers for each two groups."""
        return Counter(zip(self.numbers[::2], self.numbers[1::2], strict=False))

    @cached_property
    def pair_laws(self) -> tuple[Prior, Prior]:
        """The priors that the table of all pairs is designed for: the mean of the first and of the second numbers."""
        paired = [self.groups[k].prior for k in self.numbers[: len(self.numbers) // 2 * 2]]
        return mean_law(paired[::2]), mean_law(paired[1::2])

    @cached_property
    def table_priors(self) -> dict[int, Prior]:
        """The prior that the table of a single number is designed for, by group."""
        designed = table_priors([self.groups[k].prior for k in self.numbers])
        return dict(zip(self.numbers, designed, strict=True))

    @cached_property
    def shape(self) -> Counter[Shape]:
        """The number of dimensions of each `size_of`, which a schema must match."""
        return Counter(group.shape for group in self.groups for _ in range(group.count))

    @cached_property
    def numeric(self) -> int:
        """The number of dimensions that are numbers and not optional."""
        return sum(group.count for group in self.groups if group.is_number)

    @cached_property
    def optional(self) -> int:
        """The number of optional numbers."""
        return sum(group.count for group in self.groups if group.optional and not group.length)

    @property
    def has_optional(self) -> bool:
        """Whether any number or vector is optional."""
        return any(group.optional for group in self.groups)

    @cached_property
    def categorical(self) -> tuple[tuple[int, int], ...]:
        """The numbers of categories, and the number of dimensions with each."""
        return tuple(sorted((x[0], count) for x, count in self.shape.items() if x[0] and not x[1]))

    @property
    def selections(self) -> int:
        """The number of selections."""
        return sum(group.count for group in self.groups if group.choices)

    @cached_property
    def dims(self) -> int:
        """The number of dimensions."""
        return sum(group.count for group in self.groups)

    @cached_property
    def n_coordinates(self) -> int:
        """The number of estimates: means, frequencies, coordinates of vectors, numbers chosen and shares."""
        return sum(group.n_coordinates for group in self.groups)

    @property
    def what(self) -> str:
        """The estimates in words."""
        n = Counter[str]()
        for group in self.groups:
            kind = "coordinate" if group.length else "mean"
            if group.size:
                kind = "share" if group.choices else "frequency"
            n[kind] += group.count * max(group.size, group.length, 1)
            n["share of users with a value"] += group.count * group.optional
            n["number of choices"] += group.count * bool(group.choices)
        names = {
            "mean": "means",
            "coordinate": "coordinates",
            "share of users with a value": "shares of users with a value",
            "frequency": "frequencies",
            "share": "shares",
            "number of choices": "numbers of choices",
        }
        return listed([f"{n[one]:,} {one if n[one] == 1 else more}" for one, more in names.items() if n[one]])


def size_of(dimension: Any) -> Shape:
    """The number of categories of a dimension, the most choices, a vector's length, and 1 if it is optional."""
    own = getattr(dimension, "at_most", 0), getattr(dimension, "length", 0)
    shape = len(dimension.categories), *own, int(dimension.has_gaps)
    if not any(shape) and not dimension.is_number:
        words = f"plans and comparisons do not support dimensions of input kind {dimension.input_kind!r}"
        raise InvalidInput.of("schema", dimension.name, words)
    return shape


class Baseline(NamedTuple):
    """The MSE of zero for every mean and frequency, and of zero for means and 1/v for frequencies."""

    zeros: float
    even: float


def zipf_squares(size: int) -> float:
    """Σ f² for Zipf's frequencies f_k ∝ 1/k of `size` categories."""
    rank = np.arange(1, size + 1)
    return float(np.sum(1.0 / rank**2) / np.sum(1.0 / rank) ** 2)


def baseline(workload: Workload) -> Baseline:
    """The baselines per coordinate, for means uniform on [−1, 1] or the ball, uniform shares and Zipf frequencies."""
    zeros = even = 0.0
    for group in workload.groups:
        less, square = 0.0, _SPREAD
        if group.length:
            square = group.length / (group.length + 2) if group.squares is None else group.squares
        elif group.size:
            total = group.expected_choices
            square = zipf_squares(group.size) * total**2 if group.squares is None else group.squares
            less = min(total**2 / group.size, square)
        beside = _SPREAD if group.choices or group.optional else 0.0
        zeros += group.count * (square + beside)
        even += group.count * (square - less + beside / 4)
    return Baseline(zeros / workload.n_coordinates, even / workload.n_coordinates)
