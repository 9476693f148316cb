"""Paired differences of memoized responses equal those of the tallies, with the standard error of the changes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hdr4me.accounting.rounds import paired_rounds
from hdr4me.cli.app import app
from hdr4me.client import Client, Ledger, MemoizedClient
from hdr4me.client.client import decide
from hdr4me.errors import InvalidInput
from hdr4me.io import Report
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

N = 300
BEFORE = {"age": 30, "debt": -500, "colour": "red", "pet": "cat"}
AFTER = {"age": 90, "debt": -500, "colour": "blue", "pet": "cat"}


def answers(survey: Survey, record: dict[str, Any], device: int) -> tuple[tuple[int, ...], ...]:
    secret = hashlib.sha256(b"device %d" % device).digest()  # fixed: the test is deterministic
    return decide(survey, secret, record, (), survey.sampled)[0]


def test_the_difference_equals_that_of_the_tallies_with_a_smaller_error(all_sent: Survey) -> None:
    """One device in ten changes its age and color."""
    first = [answers(all_sent, BEFORE, i) for i in range(N)]
    second = [answers(all_sent, AFTER if i % 10 == 0 else BEFORE, i) for i in range(N)]
    rows = paired_rounds(all_sent, first, second)
    tables = [
        Tally(all_sent).add(Report(all_sent.fingerprint, reported) for reported in each).estimate().table()
        for each in (first, second)
    ]
    assert [(row["dimension"], row["category"]) for row in rows] == [
        (row["dimension"], row["category"]) for row in tables[0]
    ]
    for row, before, after in zip(rows, *tables, strict=True):
        assert row["estimate"] == pytest.approx(after["estimate"] - before["estimate"], abs=1e-9)
        assert row["users"] == N
        if row["dimension"] in ("debt", "pet"):
            assert (row["estimate"], row["standard_error"]) == (0.0, 0.0)
        else:
            unpaired = np.hypot(before["standard_error"], after["standard_error"])
            assert 0 < row["standard_error"] < 0.75 * unpaired


def test_only_users_of_both_rounds_are_paired(mixed: Survey) -> None:
    """With fresh draws of questions some users answer a question only once."""
    first = [((0, 1), (1, 0)), ((0, 1), (2, 0)), ((1, 1), (3, 0, 0, 1))]
    second = [((0, 0), (2, 0)), ((0, 2), (2, 1)), ((1, 1), (3, 0, 0, 1))]
    users = {(row["dimension"], row["category"]): row for row in paired_rounds(mixed, first, second)}
    assert users["age", None]["users"] == 2
    assert users["age", None]["estimate"] == pytest.approx(60 * (-4.0 + 4.0) / 2)
    assert users["colour", "red"]["users"] == 1
    assert users["colour", "red"]["estimate"] is None
    assert users["colour", "red"]["status"] == "fewer than two users in both rounds"


def test_several_categories_and_optional_numbers() -> None:
    schema = Schema([Categorical("town", [str(i) for i in range(9)]), Numeric("pay", 0, 10, optional=True)])
    survey = Survey(schema, epsilon=2.0, sampled=2, categorical="subset")
    reported = [answers(survey, {"town": "3", "pay": 4}, i) for i in range(20)]
    rows = paired_rounds(survey, reported, reported, row_budget=2)
    assert [row["status"] for row in rows] == ["ok"] * 9 + ["not defined for an optional number"]


def test_unequal_numbers_of_users_are_refused(mixed: Survey) -> None:
    with pytest.raises(InvalidInput, match="3 and 2 users cannot be paired"):
        paired_rounds(mixed, [()] * 3, [()] * 2)


def test_answers_after_the_row_budget_is_spent_are_not_printed_as_certain(tmp_path: Path) -> None:
    """400 users move from 10 to 90 with the default ledger: the second week repeats the first."""
    survey = Survey(Schema([Numeric("load", 0, 100)]), epsilon=4.0, mechanism="duchi")
    weeks: list[list[Any]] = [[], []]
    for i in range(400):
        secret = hashlib.sha256(b"device %d" % i).digest()
        first = decide(survey, secret, {"load": 10}, (), 1)
        weeks[0].append(first[0])
        weeks[1].append(decide(survey, secret, {"load": 90}, first[1], 0)[0])
    assert weeks[0] == weeks[1]
    (row,) = paired_rounds(survey, *weeks)
    assert (row["estimate"], row["standard_error"], row["slack"]) == (0.0, 0.0, 100.0)
    assert row["status"].startswith("may be stale")
    assert paired_rounds(survey, *weeks, row_budget=2)[0]["status"] == "ok"
    for k, week in enumerate(weeks):
        Tally(survey).add(Report(survey.fingerprint, reported) for reported in week).save(tmp_path / f"{k}")
    command = ["rounds", str(tmp_path / "0"), str(tmp_path / "1")]
    found = CliRunner().invoke(app, [*command, "--json"])
    document = json.loads(found.stdout)
    assert "cannot be estimated" in document["note"]
    assert document["rows"][0]["change"]["upper"] > 80  # the true change
    assert "note" not in json.loads(CliRunner().invoke(app, [*command, "--row-budget", "2", "--json"]).stdout)
    with pytest.raises(InvalidInput, match="row_budget = 0 is not allowed"):
        paired_rounds(survey, *weeks, row_budget=0)


STALE = "may be stale after round 1: give the number of the round"


@pytest.fixture
def declared() -> Tally:
    """The second week of 400 users who moved from 10 to 90, if the survey declares the row budget."""
    survey = Survey(Schema([Numeric("load", 0, 100), Categorical("pet", ["cat", "dog"])]), 4.0, row_budget=1)
    tally = Tally(survey)
    for i in range(400):
        secret = hashlib.sha256(b"device %d" % i).digest()
        _, paid = decide(survey, secret, {"load": 10, "pet": "cat"}, (), 1)
        reported, _ = decide(survey, secret, {"load": 90, "pet": "dog"}, paid, 0)
        tally.add([Report(survey.fingerprint, reported)])
    return tally


def test_one_late_tally_of_a_survey_with_a_row_budget_has_no_intervals(declared: Tally) -> None:
    """Nothing about the second week is printed as certain, by any statistic, before or after re-calibration."""
    answers = [declared.estimate(), declared.estimate().recalibrate()]
    answers += [declared.ask(name) for name in ("variance", "sd", "quantile", "distribution")]
    for answer in answers:
        assert set(answer.status) == {STALE}
        assert np.isnan(answer.interval()).all()
        assert {(row["lower"], row["upper"], row["standard_error"]) for row in answer.table()} == {
            (None,) * 3
        }
    declared.round_number = 2
    assert set(declared.estimate().status) == {"may be stale: the row budget of 1 is spent before round 2"}
    declared.round_number = 1  # then the same counts would be current
    assert set(declared.estimate().status) == {"ok"}
    assert np.isfinite(declared.estimate().interval()).all()


def test_the_number_of_a_later_round_states_that_responses_are_memoized(declared: Tally) -> None:
    undeclared = Tally(Survey(declared.survey.schema, 4.0))
    undeclared.counts, undeclared.n_reports = declared.counts, declared.n_reports
    assert set(undeclared.estimate().status) == {"ok"}
    undeclared.round_number = 2
    assert set(undeclared.estimate().status) == {"may be stale: the row budget of 1 is spent before round 2"}


def test_the_commands_say_that_a_late_tally_may_be_stale(declared: Tally, tmp_path: Path) -> None:
    path = tmp_path / "week-2.tally"
    declared.save(path)
    command = ["estimate", str(path)]
    assert "may be stale after round 1: give --round-number" in CliRunner().invoke(app, command).stdout
    rows = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["rows"]
    assert [(row["lower"], row["status"]) for row in rows] == [(None, STALE)] * 3
    assert "lower" in CliRunner().invoke(app, [*command, "--round-number", "1"]).stdout
    change = CliRunner().invoke(app, ["rounds", str(path), str(path), "--json"])
    assert "cannot be estimated" in json.loads(change.stdout)["note"]  # the survey's own row budget


def test_a_row_budget_is_part_of_the_document_and_only_if_it_is_declared(tmp_path: Path) -> None:
    schema = Schema([Numeric("load", 0, 100)])
    plain, declared = Survey(schema, 1.0), Survey(schema, 1.0, row_budget=3)
    assert "row_budget" not in plain.to_json()
    assert Survey.from_json(declared.to_json()).row_budget == 3
    assert declared.series != plain.series
    ledger = Ledger(tmp_path / "ledger.json")
    with pytest.raises(
        InvalidInput, match="reports_per_survey = 1 is not allowed: the survey's row_budget, 3"
    ):
        MemoizedClient(declared, ledger)
    assert MemoizedClient(declared, Ledger(tmp_path / "ledger.json", reports_per_survey=3)).report(
        {"load": 5}
    )
    for wrong in (0, -1, True, 1.5, "3", 65_537):
        with pytest.raises(InvalidInput, match="row_budget"):
            Survey(schema, 1.0, row_budget=wrong)  # type: ignore[arg-type]


def test_two_stages_without_a_declared_budget_have_the_budget_of_the_default_ledger() -> None:
    survey = Survey(Schema([Categorical("pet", ["cat", "dog"])]), 1.0, memoized_epsilon=3.0)
    tally = Tally(survey).add(Client(survey).report({"pet": "cat"}) for _ in range(10))
    assert set(tally.estimate().status) == {STALE}
