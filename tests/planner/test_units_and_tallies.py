"""A plan in own units with the units' names, and a tally of an earlier collection as its prior."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_wine

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.planner import plan
from hdr4me.simulation.collection import simulate_tally

FLIGHTS = hd.Schema([hd.Numeric("delay", -60, 300, unit="min"), hd.Numeric("distance", 0, 3000)])
SETTING = {"schema": FLIGHTS, "users": 300_000, "epsilon": 2.0, "mechanisms": ["piecewise"]}


def test_a_unit_is_part_of_the_document_and_must_be_a_word() -> None:
    again = hd.Schema.from_dict(FLIGHTS.to_dict())
    assert again.dimensions[0].unit == "min"  # type: ignore[attr-defined]
    assert "unit" not in again.dimensions[1].to_dict()
    for bad in ("", " min", 3):
        with pytest.raises(InvalidInput, match="unit"):
            hd.Numeric("x", 0, 1, unit=bad)  # type: ignore[arg-type]


def test_a_tolerance_may_name_the_unit_that_the_schema_gives() -> None:
    plain = plan(tolerance={"delay": 5.0}, **SETTING)  # type: ignore[arg-type]
    named = plan(tolerance={"delay": "5 min"}, **SETTING)  # type: ignore[arg-type]
    assert named.requested_own == plain.requested_own == {"delay": 5.0}
    assert "The tolerance ±5 min for delay is met with" in named.summary
    assert "means" not in named.summary  # nothing is asked of the distance, and nothing is promised of it
    assert " min for delay (95 % probability). " in named.summary
    both = plan(tolerance={"delay": 5.0, "distance": 100.0}, **SETTING)  # type: ignore[arg-type]
    assert " for distance; jointly they are ±" in both.summary


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delay": "5 h"}, r"own units \('min'\)"),
        ({"distance": "5 miles"}, r"own units \(the schema gives no unit\)"),
        ({"delay": "five min"}, "a positive number in the dimension's own units"),
        ({"delay": "-5 min"}, "a positive number in the dimension's own units"),
    ],
)
def test_another_unit_is_refused_with_a_sentence(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        plan(tolerance=given, **SETTING)  # type: ignore[arg-type]


def test_a_plain_tolerance_is_also_shown_in_own_units() -> None:
    found = plan(tolerance=0.1, **SETTING)  # type: ignore[arg-type]
    assert "±0.1 of a range scaled to [-1, 1] (±18 min for delay, ±150 for distance) is met" in found.summary
    document = found.to_dict()
    assert document["tolerances"] == pytest.approx({"delay": 18.0, "distance": 150.0})
    assert document["units"] == {"delay": "min"}


def test_an_answer_shows_the_unit() -> None:
    survey = hd.Survey(FLIGHTS, epsilon=2.0, mechanism="duchi", sampled=2)
    tally = hd.Tally(survey)
    tally.counts[:] = 500
    tally.n_reports = 1000
    answer = tally.estimate()
    assert answer.units == ("min", "")
    assert [row["unit"] for row in answer.table()] == ["min", ""]


@pytest.fixture(scope="module")
def pilot() -> hd.Tally:
    """Delays near 0 and distances near 1,000: 20,000 people, ε = 6 for both; seeded."""
    rng = np.random.default_rng(1)
    survey = hd.Survey(FLIGHTS, epsilon=6.0, sampled=2)
    values = [rng.normal(0, 10, 20_000), rng.normal(1000, 100, 20_000)]
    return simulate_tally(pa.table(dict(zip(FLIGHTS.names, values, strict=True))), survey, seed=1)


def test_a_tally_is_a_prior(pilot: hd.Tally) -> None:
    """The spread found is the truth's within a tenth of the range."""
    edges, weights = pilot.priors()["delay"]
    middle = (edges[1:] + edges[:-1]) / 2
    assert weights @ middle == pytest.approx(0, abs=18)
    assert np.sqrt(weights @ (middle - weights @ middle) ** 2) < 50
    setting = {"users": 100_000, "epsilon": 4.0, "mechanisms": ["piecewise"]}
    given = plan(prior=pilot, **setting)  # type: ignore[arg-type]
    assert given.best.schema is pilot.survey.schema  # the survey's own, where no other is given
    even = plan(schema=FLIGHTS, **setting)  # type: ignore[arg-type]
    assert given.best.mse < 0.8 * even.best.mse
    one = plan(schema=FLIGHTS, prior={"delay": pilot}, **setting)  # type: ignore[arg-type]
    assert given.best.mse < one.best.mse < even.best.mse


def test_a_tally_without_information_is_refused() -> None:
    schema = hd.Schema([hd.Numeric("x", 0, 1)])
    empty = hd.Tally(hd.Survey(schema, mechanism="duchi"))
    with pytest.raises(InvalidInput, match="does not determine the distribution of any dimension"):
        plan(prior=empty, users=1000, epsilon=1.0)
    with pytest.raises(InvalidInput, match="needs a schema"):
        plan(prior=empty, users=1000, dims=1, epsilon=1.0)


def test_categories_of_a_tally_are_frequencies() -> None:
    survey = hd.Survey(hd.Schema([hd.Categorical("c", ["a", "b", "c"])]), epsilon=3.0, categorical="grr")
    tally = hd.Tally(survey)
    tally.counts[:] = [900, 50, 50]
    tally.n_reports = 1000
    shares = tally.priors()["c"]
    assert shares["a"] > 0.9
    assert plan(prior=tally, users=1000, epsilon=1.0).best.workload.groups[0].squares > 0.8
    other = hd.Schema([hd.Categorical("d", ["a", "b"])])
    with pytest.raises(InvalidInput, match="a tally of d"):
        plan(prior=tally, schema=other, users=1000, epsilon=1.0)


def test_each_row_keeps_its_own_tolerance_on_real_data() -> None:
    """Wines with a skewed number, a symmetric one and three classes; values given, 200 seeded collections.

    Each row is within its own predicted 95 % tolerance in 95 % of the collections, to 4 standard errors (6.2 %), and
    the frequencies have a smaller tolerance than the least accurate row.
    """
    wine = load_wine()
    rng = np.random.default_rng(7)
    rows = rng.integers(0, len(wine.target), 3000)
    columns = {name: wine.data[rows, wine.feature_names.index(name)] for name in ("proline", "alcohol")}
    table = pa.table(columns | {"kind": [str(x) for x in wine.target[rows]]})
    schema = hd.Schema(
        [
            hd.Numeric("proline", 200, 1800),
            hd.Numeric("alcohol", 10, 16),
            hd.Categorical("kind", ["0", "1", "2"]),
        ]
    )
    values = {name: table[name].to_pylist() for name in table.column_names}
    found = plan(schema=schema, users=3000, epsilon=4.0, prior=values, mechanisms=["duchi"])
    kept, survey = found.own_units, found.best.survey()
    truth = np.array([*(c.mean() for c in columns.values()), *(np.bincount(wine.target[rows]) / 3000)])
    widths = np.array([kept["proline"]["each"], kept["alcohol"]["each"], *[kept["kind"]["each"]] * 3])
    errors = np.array(
        [simulate_tally(table, survey, seed=seed).estimate().value - truth for seed in range(200)]
    )
    assert (np.abs(errors) <= widths).mean(axis=0) == pytest.approx(np.full(5, 0.95), abs=0.062)
    assert kept["kind"]["each"] < found.best.tolerance_each
