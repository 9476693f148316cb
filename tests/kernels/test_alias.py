"""Alias tables stand for their weights exactly: every unit of 2^32 is accounted for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.kernels.exact.perturb import alias_row, alias_table, columns_bits

TOTAL = 1 << 32


@st.composite
def rows(draw: st.DrawFn) -> list[int]:
    """Integer weights that sum to 2^32, zeros and lopsided ones included."""
    cuts = sorted(draw(st.lists(st.integers(0, TOTAL), max_size=255)))
    return [b - a for a, b in zip([0, *cuts], [*cuts, TOTAL], strict=True)]


@given(rows(), st.integers(0, 3))
def test_entries_reconstruct_the_weights(
    alias_weights: Callable[..., Any], row: list[int], spare: int
) -> None:
    bits = columns_bits(len(row)) + spare
    entries = np.array([alias_row(row, bits)], np.uint32)
    weights = alias_weights(entries, bits)[0]
    assert weights[: len(row)].tolist() == row
    assert not weights[len(row) :].any()


@given(rows())
def test_no_word_yields_a_cell_outside_the_row(row: list[int]) -> None:
    bits = columns_bits(len(row))
    entries = np.array(alias_row(row, bits))
    assert ((entries & ((1 << bits) - 1)) < len(row)).all()


def test_selection_rule_gives_the_weights_by_full_enumeration() -> None:
    """A row whose weights are multiples of 2^20: enumerate one word per 2^20 block of the selection rule."""
    row = [w << 20 for w in (1, 4, 1000, 91, 3000)]
    bits = columns_bits(len(row))
    entries = alias_row(row, bits)
    mask = (1 << bits) - 1
    counts = np.zeros(len(row), int)
    for unit in range(1 << 12):
        for column in range(1 << bits):
            word = (unit << 20) | column
            entry = entries[column]
            counts[word & mask if word < (entry & ~mask) else entry & mask] += 1
    assert (counts * (1 << (20 - bits)) == row).all()


@pytest.mark.parametrize("row", [[1, 2], [-1, TOTAL + 1], [TOTAL, 0, 0]])
def test_refuses_rows_that_are_not_weights(row: list[int]) -> None:
    with pytest.raises(ValueError, match="2\\*\\*32"):
        alias_row(row, 1)


def test_table_is_rows_side_by_side() -> None:
    weights = np.array([[TOTAL, 0], [1, TOTAL - 1]])
    assert alias_table(weights, 1).tolist() == [alias_row(row, 1) for row in weights.tolist()]
