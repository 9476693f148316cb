"""Surveys made of hand-written tables, so that engines are tested without designing anything."""

from __future__ import annotations

import pytest

from hdr4me.survey import Categorical, Numeric, Randomizer, Schema, Survey

ONE = 1 << 32


def coin(bias: int = 3) -> Randomizer:
    """Two levels, two cells, at ratio `bias`: Duchi's shape."""
    small = ONE // (1 + bias)
    big = ONE - small
    c = ONE / (big - small)
    return Randomizer("coin", 2.0, "value", (-c, c), ((big, small), (small, big)))


def grr(v: int) -> Randomizer:
    """Generalised randomised response on v categories."""
    other = ONE // (v + 3)
    own = ONE - (v - 1) * other
    p, q = own / ONE, other / ONE
    rows = tuple(tuple(own if i == k else other for k in range(v)) for i in range(v))
    return Randomizer("grr", 3.0, "category", ((1 - q) / (p - q), -q / (p - q)), rows)


def bits() -> Randomizer:
    """One code per category: an entry is kept or flipped."""
    small, half = ONE // 4, ONE // 2
    rows = ((ONE - small, small), (half, half))
    p, q = half / ONE, small / ONE
    return Randomizer("bits", 3.0, "entries", (-q / (p - q), (1 - q) / (p - q)), rows)


@pytest.fixture
def numeric_survey() -> Survey:
    """Six numbers, two sent by each user."""
    schema = Schema(Numeric(f"x{j}", -j - 1, 2 * j + 3, default=j / 2) for j in range(6))
    return Survey.from_tables(schema, epsilon=4.0, n_sampled=2, randomizers=(coin(),), assignment=(0,) * 6)


@pytest.fixture
def mixed_survey() -> Survey:
    """A number, a category and one of entries; all are sent."""
    schema = Schema(
        [
            Numeric("age", 0, 120, default=30),
            Categorical("colour", ["red", "green", "blue"], default="green"),
            Categorical("rooms", [1, 2, 3, 4], default=2),
        ]
    )
    return Survey.from_tables(
        schema, epsilon=9.0, n_sampled=3, randomizers=(coin(), grr(3), bits()), assignment=(0, 1, 2)
    )
