"""A randomizer that breaks a promise cannot be made."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.mechanisms.table import Table
from hdr4me.survey import Randomizer, Survey

ONE = 1 << 32


@pytest.fixture
def value(mixed: Survey) -> Randomizer:
    return mixed.randomizers[0]


def changed(table: Randomizer, row: int, cell: int, by: int) -> tuple[tuple[int, ...], ...]:
    rows = [list(r) for r in table.weights]
    rows[row][cell] += by
    return tuple(map(tuple, rows))


def test_losses_are_exact(mixed: Survey) -> None:
    three, coin, choice, bits = mixed.randomizers
    assert three.loss == Fraction(7, 3)
    assert coin.loss == 3
    assert choice.loss == Fraction(choice.weights[0][0], choice.weights[0][1]) == 5
    assert bits.loss == 3


def test_levels_and_cumulative(mixed: Survey) -> None:
    assert mixed.randomizers[0].levels == (-1, -0.5, 0, 0.5, 1)
    assert mixed.randomizers[2].levels == (0, 1, 2, 3)
    assert mixed.randomizers[1].cumulative == ((3 * ONE // 4,), (ONE // 4,))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.8}, "leaks a factor of 2.33333333333333, more than"),
        ({"epsilon": 0.0}, "positive"),
        ({"epsilon": float("inf")}, "positive and finite"),
        ({"kind": "values"}, "kind"),
        ({"kind": "entries"}, "5 rows: entries have 2"),
        ({"kind": "category", "decode": (1.0, 2.0)}, "square"),
        ({"decode": (-4.0, 0.0)}, "2 decoded values, expected 3"),
        ({"decode": (-4.0, 0.0, float("nan"))}, "finite"),
        ({"decode": (-4.0, 0.0, 4.0001)}, "not unbiased"),
        ({"weights": ((ONE,),)}, "1 rows and 1 cells"),
        ({"weights": ()}, "0 rows and 0 cells"),
        ({"weights": ((ONE, 0), (0,))}, "sum to 2\\*\\*32"),
        ({"weights": ((ONE, 0), (0, ONE)), "decode": (0.0, 0.0)}, "column 0 has smallest weight 0"),
        ({"weights": ((ONE + 1, -1), (1, ONE - 1))}, "sum to 2"),
    ],
)
def test_broken_promises(value: Randomizer, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(value, **change)


def test_one_unit_of_weight_is_noticed(value: Randomizer, mixed: Survey) -> None:
    with pytest.raises(InvalidInput, match="sum to 2"):
        replace(value, weights=changed(value, 2, 1, 1))
    choice = mixed.randomizers[2]
    with pytest.raises(InvalidInput, match="sum to 2"):
        replace(choice, weights=changed(choice, 0, 1, 1))


def test_a_category_table_has_two_weights(mixed: Survey) -> None:
    choice = mixed.randomizers[2]
    rows = [list(row) for row in choice.weights]
    rows[0][1], rows[0][2] = rows[0][1] + 1, rows[0][2] - 1
    with pytest.raises(InvalidInput, match="square"):
        replace(choice, weights=tuple(map(tuple, rows)))
    with pytest.raises(InvalidInput, match="not unbiased"):
        replace(choice, decode=(1.0, 0.0))


def test_from_a_table_and_through_a_document(mixed: Survey) -> None:
    for table in mixed.randomizers:
        designed = Table(
            table.mechanism,
            table.epsilon,
            np.array(table.levels),
            np.array(table.decode),
            np.array(table.weights),
            table.kind,
        )
        assert Randomizer.from_table(designed) == table
        assert Randomizer.from_dict(table.to_dict()) == table


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"mechanism": 3},
        {"epsilon": "1"},
        {"epsilon": True},
        {"decode": "x"},
        {"decode": ["x"]},
        {"weights": 3},
        {"weights": [[1.5]]},
        {"weights": [True]},
        {"decode": [10**400, 0, 0]},
    ],
)
def test_documents_of_the_wrong_types(value: Randomizer, change: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        Randomizer.from_dict({**value.to_dict(), **change})
    with pytest.raises(FormatError):
        Randomizer.from_dict([])


def test_a_name_that_cannot_be_printed_is_refused(value: Randomizer) -> None:
    with pytest.raises(InvalidInput, match="printable"):
        replace(value, mechanism="\ud800")
