"""What is to be estimated: so many means, and so many frequencies of each size of category."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hdr4me.errors import InvalidInput

__all__ = ["Workload"]


@dataclass(frozen=True)
class Workload:
    """`numeric` means, and for each number of categories how many dimensions have it.

    >>> Workload(750).n_dims, Workload(2, ((3, 4),)).n_coordinates
    (750, 14)
    """

    numeric: int
    categorical: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, schema: Any) -> Workload:
        """The workload of a schema's dimensions."""
        sizes = Counter(len(getattr(dimension, "categories", ())) for dimension in schema.dimensions)
        numeric = sizes.pop(0, 0)
        return cls(numeric, tuple(sorted(sizes.items())))

    @classmethod
    def of_size(cls, n_dims: int, n_categories: int | None = None) -> Workload:
        """So many dimensions alike: numbers, or categories of one size."""
        if isinstance(n_dims, bool) or not isinstance(n_dims, int) or n_dims < 1:
            raise InvalidInput(f"n_dims = {n_dims!r} is not allowed: a whole number >= 1")
        if n_categories is None:
            return cls(n_dims)
        if isinstance(n_categories, bool) or not isinstance(n_categories, int) or n_categories < 2:
            raise InvalidInput(f"n_categories = {n_categories!r} is not allowed: a whole number >= 2")
        return cls(0, ((n_categories, n_dims),))

    @property
    def n_dims(self) -> int:
        """How many dimensions there are."""
        return self.numeric + sum(count for _, count in self.categorical)

    @property
    def n_coordinates(self) -> int:
        """How many numbers are estimated: a mean each, a frequency for each category."""
        return self.numeric + sum(size * count for size, count in self.categorical)

    @property
    def what(self) -> str:
        """Plain words for what is estimated."""
        if not self.categorical:
            return f"{self.numeric:,} means"
        frequencies = f"{self.n_coordinates - self.numeric:,} frequencies"
        return frequencies if not self.numeric else f"{self.numeric:,} means and {frequencies}"
