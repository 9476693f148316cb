"""Sums over hyperplanes by Fourier transforms are those by definition, to the last unit."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.channels import KSubset
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.projective import Projective, n_points
from hdr4me.channels.projective.field import dot
from hdr4me.channels.projective.response import hyperplane_sums
from hdr4me.channels.subset import Subset


def by_definition(family: Projective, counts: list[int]) -> list[int]:
    """The reports in each category's hyperplane, one by one."""
    points = [family.vector(y) for y in range(family.n_outputs)]
    return [
        sum(n for y, n in zip(points, counts, strict=True) if dot(points[x], y, family.order) == 0)
        for x in range(family.size)
    ]


@pytest.mark.parametrize(
    ("q", "t"),
    [
        *((2, 2), (2, 6), (3, 2), (3, 4), (4, 2), (4, 4), (5, 3), (7, 3), (13, 2), (17, 3), (19, 2)),
        *((8, 3), (9, 3), (16, 2), (16, 3), (25, 2), (27, 2), (32, 2), (49, 2)),
    ],
)
def test_hyperplane_sums(q: int, t: int) -> None:
    family = Projective(n_points(q, t), q, t)
    counts = np.random.default_rng(q * 100 + t).integers(0, 1000, family.n_outputs)
    assert hyperplane_sums(counts, q, t).tolist() == by_definition(family, counts.tolist())


@pytest.mark.parametrize(("q", "t"), [(2, 8), (3, 5), (4, 4), (17, 3), (8, 3), (9, 3)])
def test_large_counts_are_exact(q: int, t: int) -> None:
    """Counts of 50 bits: a float transform of them as they are would be off by more than one."""
    family = Projective(n_points(q, t) - 1, q, t)
    counts = np.random.default_rng(q).integers(0, 1 << 50, family.n_outputs)
    made = KSubset("projective", 1.0, family, heaviest(1.0, family))
    assert made.response.cells(counts)[:, 1].tolist() == by_definition(family, counts.tolist())


def test_other_families() -> None:
    """Counters of sets are the supports; a family without a quick way is asked itself."""
    family = Subset(5, 2)
    made = KSubset("subset", 1.0, family, heaviest(1.0, family))
    counts = np.array([1, 2, 3, 4, 0])
    assert made.response.cells(counts)[:, 1].tolist() == counts.tolist()

    class Renamed(Subset):
        name = "renamed"

    renamed = KSubset("x", 1.0, Renamed(5, 2), made.weight)
    assert renamed.response.cells(counts)[:, 1].tolist() == counts.tolist()
