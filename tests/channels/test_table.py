"""A table that breaks a promise cannot be made; its proof, its sampler and its decoders by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from hdr4me.channels import Input, Table, channel_from_dict
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.mechanisms.table import TableMechanism as Designed
from hdr4me.survey import Survey

ONE = 1 << 32
QUARTER = ONE // 4


def optional() -> Table:
    """Two levels or no value, by generalized randomized response: 1/2 for the truth and 1/4 for each of the others."""
    rows = tuple(tuple(2 * QUARTER if x == y else QUARTER for y in range(3)) for x in range(3))
    decoders = {"value": (-4.0, 4.0, 0.0), "present": (2.0, 2.0, -2.0)}
    return Table("optional", 0.7, decoders, rows, (Input("optional", 3),))


def pair() -> Table:
    """Two numbers of two levels, each by a coin of its own at ratio 3: four inputs, four cells."""
    coin = ((3, 1), (1, 3))
    rows = tuple(
        tuple(coin[a][y] * coin[b][z] * (ONE // 16) for y in (0, 1) for z in (0, 1))
        for a in (0, 1)
        for b in (0, 1)
    )
    decoders = {"value": (-2.0, -2.0, 2.0, 2.0), "value 2": (-2.0, 2.0, -2.0, 2.0)}
    return Table("pair", 2.2, decoders, rows, (Input("number", 2), Input("number", 2)))


def odd() -> Table:
    """An optional number of three levels and a plain one of two: the first part is the most significant."""
    three = tuple(tuple(5 if x == y else 1 for y in range(4)) for x in range(4))
    three = tuple(tuple(w * (ONE // 8) for w in row) for row in three)
    solve = np.linalg.solve(np.array(three) / ONE, [[-1, 1], [0, 1], [1, 1], [0, 0]])
    coin = ((3, 1), (1, 3))
    rows = tuple(tuple(w * c // 4 for w in row for c in part) for row in three for part in coin)
    decoders = {
        "value": tuple(np.repeat(solve[:, 0], 2)),
        "present": tuple(np.repeat(solve[:, 1], 2)),
        "value 2": (-2.0, 2.0) * 4,
    }
    return Table("odd", 3.0, decoders, rows, (Input("optional", 4), Input("number", 2)))


@pytest.fixture
def value(mixed: Survey) -> Table:
    table = mixed.channels[0]
    assert isinstance(table, Table)
    return table


@pytest.fixture(params=["three", "coin", "optional", "pair"])
def table(request: pytest.FixtureRequest, mixed: Survey) -> Table:
    found = {"three": mixed.channels[0], "coin": mixed.channels[1], "optional": optional(), "pair": pair()}
    return found[request.param]  # type: ignore[return-value]


def changed(table: Table, row: int, cell: int, by: int) -> tuple[tuple[int, ...], ...]:
    rows = [list(r) for r in table.weights]
    rows[row][cell] += by
    return tuple(map(tuple, rows))


def test_losses_are_exact(mixed: Survey) -> None:
    three, coin, choice, bits = mixed.channels
    assert three.likelihood_ratio == Fraction(7, 3)
    assert coin.likelihood_ratio == 3
    assert choice.rows is not None
    assert choice.likelihood_ratio == Fraction(choice.rows[0][0], choice.rows[0][1]) == 5
    assert bits.likelihood_ratio == 3
    assert (optional().likelihood_ratio, pair().likelihood_ratio) == (2, 9)


def test_targets(value: Table) -> None:
    assert value.targets == {"value": (-1, -0.5, 0, 0.5, 1)}
    assert optional().targets == {"value": (-1, 1, 0), "present": (1, 1, 0)}
    assert pair().targets == {"value": (-1, -1, 1, 1), "value 2": (-1, 1, -1, 1)}


def test_the_first_part_is_the_most_significant() -> None:
    assert odd().targets == {
        "value": (-1, -1, 0, 0, 1, 1, 0, 0),
        "present": (1, 1, 1, 1, 1, 1, 0, 0),
        "value 2": (-1, 1) * 4,
    }
    assert odd().n_inputs == 8


def test_the_proof_by_enumeration(table: Table, prove: Callable[..., None]) -> None:
    prove(table)


def test_decoders_are_unbiased_in_fractions(table: Table) -> None:
    for name, decode in table.decoders.items():
        for row, target in zip(table.weights, table.targets[name], strict=True):
            assert sum(Fraction(y) * w for y, w in zip(decode, row, strict=True)) == Fraction(target) * ONE


def test_the_sampler_follows_the_table(table: Table, exact_law: Callable[..., Any]) -> None:
    """Of the 2^32 words each cell is picked by as many as its weight."""
    for x, row in enumerate(table.weights):
        expected = {(y,): Fraction(w, ONE) for y, w in enumerate(row)}
        assert exact_law(table, x, list(accumulate(row))[:-1]) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.8}, "leaks a factor of 2.33333333333333, more than"),
        ({"epsilon": 0.0}, "positive"),
        ({"epsilon": float("inf")}, "positive and finite"),
        ({"epsilon": float("nan")}, "positive and finite"),
        ({"decoders": {"value": (-4.0, 0.0)}}, "needs 3 finite values"),
        ({"decoders": {"value": (-4.0, 0.0, float("nan"))}}, "finite"),
        ({"decoders": {"value": (-4.0, 0.0, 4.0001)}}, "is biased"),
        ({"decoders": {}}, "has decoders none: expected value"),
        ({"decoders": {"values": (-4.0, 0.0, 4.0)}}, "has decoders values: expected value"),
        (
            {"decoders": {"value": (-4.0, 0.0, 4.0), "present": (1.0, 1.0, 1.0)}},
            "has decoders value, present: expected value",
        ),
        ({"parts": (Input("number", 4),)}, "5 rows for 4 inputs"),
        ({"parts": (Input("category", 5),)}, "not a number with levels"),
        ({"parts": (Input("number", 5), Input("number", 1))}, "1 inputs for a number"),
        ({"parts": (Input("optional", 2),)}, "2 inputs for a optional"),
        ({"weights": ((ONE,),), "parts": ()}, "1 inputs for a number"),
        ({"weights": (), "parts": ()}, "0 inputs for a number"),
        ({"weights": ((ONE,), (ONE,)), "parts": ()}, "2 rows and 1 cells"),
        ({"weights": ((ONE, 0), (0,)), "parts": ()}, "sum to 2\\*\\*32"),
        (
            {"weights": ((ONE, 0), (0, ONE)), "parts": (), "decoders": {"value": (-1.0, 1.0)}},
            "column 0 has smallest weight 0",
        ),
        ({"weights": ((ONE + 1, -1), (1, ONE - 1)), "parts": ()}, "sum to 2"),
    ],
)
def test_broken_promises(value: Table, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(value, **change)


def test_one_unit_of_weight_is_noticed(value: Table) -> None:
    with pytest.raises(InvalidInput, match="sum to 2"):
        replace(value, weights=changed(value, 2, 1, 1))


def test_a_cell_that_is_never_reported_decodes_to_nothing() -> None:
    """Its value would be in no mean, and so excuse nothing; a user who reported it would count for a great deal."""
    rows = ((3 * QUARTER, 0, QUARTER), (QUARTER, 0, 3 * QUARTER))
    assert Table("gap", 1.1, {"value": (-2.0, 0.0, 2.0)}, rows).likelihood_ratio == 3
    for large in (1e-9, 7.0, 1e200):
        with pytest.raises(InvalidInput, match="has a nonzero value for an unused cell"):
            Table("gap", 1.1, {"value": (-2.0, large, 2.0)}, rows)


def test_a_cell_that_is_hardly_ever_reported_excuses_no_error() -> None:
    """One word in 2^32 decodes to a thousand million: the tolerance is weighed by probability."""
    rows = ((3 * QUARTER - 1, 1, QUARTER), (QUARTER, 1, 3 * QUARTER - 1))
    shift = 1e9 / ONE
    fair = (-2.0 - shift, 1e9, 2.0 - shift)
    assert Table("rare", 1.1, {"value": fair}, rows)
    with pytest.raises(InvalidInput, match="is biased"):
        Table("rare", 1.1, {"value": (fair[0] * (1 + 1e-5), *fair[1:])}, rows)


def test_from_a_designed_table(value: Table) -> None:
    designed = Designed(
        "three",
        0.85,
        np.array(value.targets["value"]),
        np.array(value.decoders["value"]),
        np.array(value.weights),
    )
    assert designed.channel() == value


def test_through_a_document(table: Table) -> None:
    again = channel_from_dict(table.to_dict())
    assert again == table
    assert again.to_dict() == table.to_dict()
    assert (again.inputs, again.fields, again.rows) == (table.inputs, table.fields, table.weights)


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"kind": "tables"},
        {"kind": 3},
        {"mechanism": 3},
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": 10**400},
        {"decoders": "x"},
        {"decoders": {"value": "x"}},
        {"decoders": {"value": ["x"]}},
        {"decoders": {"value": [10**400, 0, 0]}},
        {"decoders": {"value": [float("nan"), 0, 0]}},
        {"weights": 3},
        {"weights": [[1.5]]},
        {"weights": [True]},
        {"weights": [[True]]},
        {"takes": []},
        {"takes": {}},
        {"takes": [3]},
        {"takes": [{"reads": "number"}]},
        {"takes": [{"reads": 5, "size": 5}]},
        {"takes": [{"reads": "number", "size": 5.0}]},
    ],
)
def test_documents_of_the_wrong_types(value: Table, change: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        channel_from_dict({**value.to_dict(), **change})


@pytest.mark.parametrize("document", [[], None, "table", {}, {"kind": "table"}])
def test_no_document_at_all(document: Any) -> None:
    with pytest.raises(FormatError):
        channel_from_dict(document)


def test_a_name_that_cannot_be_printed_is_refused(value: Table) -> None:
    for name in ("\ud800", "", "a\nb", None):
        with pytest.raises(InvalidInput, match="printable"):
            replace(value, mechanism=name)  # type: ignore[arg-type]
