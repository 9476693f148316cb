"""One tolerance from the plan through the survey document to the dashboard."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.collector.app import _plan
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.simulation.collection import simulate_tally
from hdr4me.survey import Tolerance

SCHEMA = hd.Schema([hd.Numeric(name, 0, 10) for name in "abcd"] + [hd.Categorical("e", ["x", "y", "z"])])


def test_a_plan_writes_its_tolerance_into_the_survey() -> None:
    plan = hd.plan(schema=SCHEMA, epsilon=2.0, tolerance=0.05, mechanisms=["duchi"])
    survey = plan.best.survey()
    assert survey.tolerance == Tolerance({"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25, "e": 0.05})
    assert hd.Survey.from_json(survey.to_json()).tolerance == survey.tolerance
    named = {"a": 0.5, "e": 0.1}
    other = hd.plan(
        schema=SCHEMA, epsilon=2.0, tolerance=named, probability=0.9, per_dimension=True, mechanisms=["duchi"]
    )
    assert other.best.survey().tolerance == Tolerance(named, 0.9, jointly=False)


def test_a_survey_without_a_tolerance_has_no_key() -> None:
    survey = hd.plan(schema=SCHEMA, users=1000, epsilon=2.0, mechanisms=["duchi"]).best.survey()
    assert survey.tolerance is None
    assert "tolerance" not in json.loads(survey.to_json())


@pytest.mark.parametrize("jointly", [True, False])
def test_the_reports_that_are_needed_are_those_of_the_plan(jointly: bool) -> None:
    """From the errors of 40,000 seeded reports of uniform values: the planned number of users, to 8 %.

    The variance of an answer is about the population and therefore 4 % larger than that of a plan, which is about these
    users; the number of reports of each row is known to 1 %.
    """
    plan = hd.plan(
        schema=SCHEMA, epsilon=2.0, tolerance=0.05, per_dimension=not jointly, mechanisms=["duchi"]
    )
    survey, rng = plan.best.survey(), np.random.default_rng(1)
    columns = {name: rng.uniform(0, 10, 40_000) for name in "abcd"} | {
        "e": rng.choice(["x", "y", "z"], 40_000)
    }
    tally = simulate_tally(pa.table(columns), survey, seed=1)
    found = _plan(tally, survey, None)
    assert found["tolerance"] == 0.05
    assert found["half_width"] < 0.05  # 40,000 reports are more than are needed
    assert found["reports_needed"] == pytest.approx(plan.best.users, rel=0.08)
    plain = hd.Survey.from_questions(SCHEMA, epsilon=2.0, sampled=survey.sampled, questions=survey.questions)
    if jointly:  # the same tolerance by `hdr4me serve --tolerance 0.05`
        assert _plan(tally, plain, 0.05) == found
    unknown = {"tolerance": 0.05, "half_width": None, "reports_needed": None}
    few = simulate_tally(pa.table(columns).slice(0, 2), survey, seed=1)  # some row has fewer than two answers
    assert _plan(None, survey, None) == _plan(few, survey, None) == unknown


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"by_dimension": {"q": 1.0}, "probability": 0.95, "jointly": True}, "at least one of a, b"),
        ({"by_dimension": {"a": -1.0}, "probability": 0.95, "jointly": True}, "a positive number"),
        ({"by_dimension": {"a": 1.0}, "probability": 1.5, "jointly": True}, "between 0 and 1"),
        ({"by_dimension": {"a": 1.0}, "probability": 0.95, "jointly": 1}, "true or false"),
        ({"by_dimension": {"a": 1.0}}, "an object with"),
        (0.05, "an object with"),
    ],
)
def test_a_wrong_tolerance_in_a_document_is_an_error(given: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Tolerance.from_dict(given, SCHEMA)


def test_a_changed_tolerance_is_noticed() -> None:
    survey = hd.plan(schema=SCHEMA, epsilon=2.0, tolerance=0.05, mechanisms=["duchi"]).best.survey()
    document = json.loads(survey.to_json())
    document["tolerance"]["probability"] = 0.5
    with pytest.raises(hd.errors.FingerprintMismatch):
        hd.Survey.from_json(json.dumps(document))
    document["tolerance"] = {"by_dimension": {}}
    with pytest.raises(FormatError):
        hd.Survey.from_json(json.dumps(document))
