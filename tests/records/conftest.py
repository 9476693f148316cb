"""Surveys made of hand-written tables, so that engines are tested without designing anything."""

from __future__ import annotations

import pytest

from hdr4me.channels import Entries, HeavySet, Table
from hdr4me.channels.subset import Subset
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey

ONE = 1 << 32


def coin(bias: int = 3) -> Table:
    """Two levels, two cells, at ratio `bias`: Duchi's shape."""
    small = ONE // (1 + bias)
    big = ONE - small
    c = ONE / (big - small)
    return Table("coin", 2.0, {"value": (-c, c)}, ((big, small), (small, big)))


def grr(v: int) -> HeavySet:
    """Generalised randomised response on v categories."""
    return HeavySet("grr", 3.0, Subset(v, 1), ONE - (v - 1) * (ONE // (v + 3)))


def bits(v: int) -> Entries:
    """One code per category: an entry is kept or flipped."""
    small, half = ONE // 4, ONE // 2
    p, q = half / ONE, small / ONE
    return Entries("bits", 3.0, v, (-q / (p - q), (1 - q) / (p - q)), ((ONE - small, small), (half, half)))


@pytest.fixture
def numeric_survey() -> Survey:
    """Six numbers, two sent by each user."""
    schema = Schema(Numeric(f"x{j}", -j - 1, 2 * j + 3, default=j / 2) for j in range(6))
    shared = coin()
    questions = [Question((j,), shared) for j in range(6)]
    return Survey.from_questions(schema, epsilon=4.0, n_sampled=2, questions=questions)


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
    questions = [Question((j,), channel) for j, channel in enumerate((coin(), grr(3), bits(4)))]
    return Survey.from_questions(schema, epsilon=9.0, n_sampled=3, questions=questions)
