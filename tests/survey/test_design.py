"""A new survey takes its tables from the mechanisms; dimensions that need the same one share it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.survey.design import categorical_choice

SCHEMA = Schema(
    [
        Numeric("age", 0, 120),
        Categorical("smoker", ["no", "yes"]),
        Numeric("height", 0, 250),
        Categorical("town", [str(i) for i in range(40)]),
        Categorical("owner", ["no", "yes"]),
    ]
)


def test_tables_are_shared() -> None:
    survey = Survey(SCHEMA, epsilon=1.0, mechanism="duchi")
    assert survey.assignment == (0, 1, 0, 2, 1)
    assert [table.kind for table in survey.randomizers] == ["value", "category", "entries"]
    assert [survey.n_codes(j) for j in range(5)] == [1, 1, 1, 40, 1]
    assert Survey.from_json(survey.to_json()) == survey


@pytest.mark.parametrize(
    "name", ["laplace", "scdf", "staircase", "duchi", "piecewise", "hybrid", "square_wave", "optimal"]
)
def test_every_mechanism_can_be_deployed(name: str) -> None:
    survey = Survey(SCHEMA, epsilon=2.0, mechanism=name, n_sampled=2)
    assert Survey.from_json(survey.to_json()) == survey
    assert all(table.epsilon <= 1.0 for table in survey.randomizers)


@pytest.mark.parametrize(
    ("categorical", "kinds"), [("grr", {"category"}), ("oue", {"entries"}), ("histogram", {"entries"})]
)
def test_a_categorical_mechanism_can_be_asked_for(categorical: str, kinds: set[str]) -> None:
    survey = Survey(SCHEMA, epsilon=2.0, mechanism="piecewise", categorical=categorical)
    assert {survey.randomizer(j).kind for j in (1, 3, 4)} == kinds
    assert Survey.from_json(survey.to_json()) == survey


def test_the_same_question_gives_the_same_fingerprint() -> None:
    assert Survey(SCHEMA, epsilon=1.0) == Survey(SCHEMA, epsilon=1.0)
    assert Survey(SCHEMA, epsilon=1.0) != Survey(SCHEMA, epsilon=1.0, mechanism="duchi")


def test_a_mechanism_object_can_be_given() -> None:
    made = mechanism("staircase", epsilon=0.5, variant="variance")
    survey = Survey(SCHEMA, epsilon=1.0, mechanism=made, n_sampled=2, categorical="histogram")
    assert survey.randomizers[0].epsilon == 0.5


@pytest.mark.parametrize(
    "change",
    [
        {"categorical": "rappor"},
        {"mechanism": "gauss"},
        {"mechanism": 3},
        {"mechanism": "square-wave"},
        {"epsilon": 0.0},
        {"n_sampled": 6},
        {"schema": Schema([Categorical("x", [str(i) for i in range(300)])]), "categorical": "grr"},
    ],
)
def test_what_is_not_allowed(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Survey(**{"schema": SCHEMA, "epsilon": 1.0, **change})


def test_a_mechanism_that_spends_too_much_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"spends 1\.0 on each of 2 values"):
        Survey(SCHEMA, epsilon=1.0, mechanism=mechanism("duchi", epsilon=1.0), n_sampled=2)


def test_the_choice_is_the_smaller_variance() -> None:
    """GRR: (v − 2 + e^ε)/(e^ε − 1)²; OUE: 4e^ε/(e^ε − 1)²; beyond 256 categories only OUE has room."""
    for epsilon in (0.1, 1.0, 3.0):
        for v in range(2, 100):
            grr = v - 2 + math.exp(epsilon)
            assert categorical_choice(epsilon, v) == ("grr" if grr < 4 * math.exp(epsilon) else "oue")
    assert categorical_choice(8.0, 256) == "grr"
    assert categorical_choice(8.0, 257) == "oue"
    assert categorical_choice(5000.0, 3) == "grr"
