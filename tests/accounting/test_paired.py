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
    assert "Answers may be stale" in document["note"]
    assert document["rows"][0]["change"]["upper"] > 80  # the true change
    assert "note" not in json.loads(CliRunner().invoke(app, [*command, "--row-budget", "2", "--json"]).stdout)
    with pytest.raises(InvalidInput, match="row_budget = 0 is not allowed"):
        paired_rounds(survey, *weeks, row_budget=0)
