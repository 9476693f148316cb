"""One call from records to a tally or to estimates."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hdr4me as hd
from hdr4me.io import RecordsWarning

SCHEMA = hd.Schema([hd.Numeric("age", 0, 120), hd.Categorical("smoker", ["no", "yes"])])
PEOPLE = pd.DataFrame({"age": [30.0, 44.0, 62.0] * 10_000, "smoker": ["no", "no", "yes"] * 10_000})


def test_collect_counts_every_record() -> None:
    survey = hd.Survey(SCHEMA, epsilon=4.0, sampled=2)
    tally = hd.collect(PEOPLE, survey)
    assert tally.n_reports == 30_000
    assert tally.survey is survey


def test_run_estimates() -> None:
    """Seven standard errors: a false alarm in 10^11 runs. The reports have no seed."""
    answer = hd.run(PEOPLE, SCHEMA, epsilon=4.0)
    truth = np.array([136 / 3, 2 / 3, 1 / 3])
    assert (np.abs(answer.value - truth) < 7 * answer.standard_error + 1e-9).all()
    assert hd.run(PEOPLE, SCHEMA, 4.0, sampled=2).survey.sampled == 2


def test_unusable_values_are_reported() -> None:
    some = PEOPLE.assign(age=["thirty"] * 1000 + ["30"] * 29_000)
    declared = hd.Schema([hd.Numeric("age", 0, 120, default=45), SCHEMA["smoker"]])
    with pytest.warns(RecordsWarning, match="age"):
        hd.collect(some, hd.Survey(declared, epsilon=1.0))
    with pytest.raises(hd.errors.InvalidInput, match="age"):
        hd.collect(some, hd.Survey(SCHEMA, epsilon=1.0))
    with pytest.raises(hd.errors.InvalidInput, match="age"):
        hd.collect(PEOPLE.assign(age="thirty"), hd.Survey(SCHEMA, epsilon=1.0))


def test_a_file_is_accepted(tmp_path: Path) -> None:
    PEOPLE.head(300).to_csv(tmp_path / "people.csv", index=False)
    assert hd.run(tmp_path / "people.csv", SCHEMA, 4.0).n_reports == 300


def test_unusable_values_are_refused_unless_allowed_and_the_answer_shows_them() -> None:
    survey = hd.Survey(hd.Schema([hd.Numeric("age", 0, 120, default=40)]), epsilon=1.0)
    frame = pd.DataFrame({"age": ["1,000"] * 50 + ["30"] * 50})
    with pytest.raises(hd.errors.InvalidInput, match="allow_unusable=True"):
        hd.collect(frame, survey)
    warned = r"50 of 100 values \(50 %\) are not numbers and count as 40"
    with pytest.warns(RecordsWarning, match=warned):
        tally = hd.collect(frame, survey, allow_unusable=True)
    with pytest.warns(RecordsWarning, match=warned):
        answer = hd.run(frame, survey.schema, allow_unusable=True)
    assert [x.table()[0]["note"][:29] for x in (answer, tally.estimate())] == [
        "50 of 100 values (50 %) are n"
    ] * 2
