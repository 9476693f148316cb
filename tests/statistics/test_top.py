"""The largest categories are printed if they are significantly larger than the others; otherwise none is."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.statistics import answer as answer_module
from hdr4me.statistics.answer import Answer, largest_rows
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

V = 300
SURVEY = Survey(Schema([Categorical("town", [f"t{i}" for i in range(V)]), Numeric("age", 0, 1)]), epsilon=4.0)


def answer(value: np.ndarray, error: float) -> Answer:
    rows = len(value)
    return Answer(
        survey=SURVEY,
        n_reports=10**6,
        statistics=("frequency",) * rows,
        dimensions=("town",) * rows,
        categories=tuple(f"t{i}" for i in range(rows)),
        value=value,
        standard_error=np.full(rows, error),
        n_answers=np.full(rows, 10**6),
        scaled_value=value,
        scaled_error=np.full(rows, error),
        not_significant=np.zeros(rows, bool),
    )


def test_the_top_is_above_the_rest() -> None:
    value = np.zeros(V)
    value[[7, 250, 3]] = 0.3, 0.2, 0.2
    assert answer(value, 0.001).top().categories == ("t7", "t3", "t250")
    assert answer(value, 0.01).top(1).categories == ("t7",)
    assert answer(value, 0.01).top(2).categories == (
        "t7",
    )  # two of equal size are not significantly different
    assert answer(value, 0.5).top().categories == ()


def test_more_significant_categories_than_are_shown() -> None:
    value = np.zeros(V)
    value[:25] = 0.04
    found = answer(value, 0.001)
    shown, (note,) = largest_rows(found, found.table())
    assert [row["category"] for row in shown] == [f"t{i}" for i in range(20)]
    assert "the top 25 of 300 differ significantly from the others; 20 are shown" in note
    better = found.recalibrate("norm_sub")
    assert better.top(25).categories == found.top(25).categories == tuple(f"t{i}" for i in range(25))
    low, high = found.interval(simultaneous=True)
    for row in largest_rows(better, better.table())[0]:
        i = int(row["category"][1:])
        assert abs(row["lower"] - low[i]) < 1e-4
        assert abs(row["upper"] - high[i]) < 1e-4


def test_noise_has_no_top() -> None:
    """Seeded: 200 answers without a difference; at 95 % about 10 name a top at most, and by Bonferroni far fewer."""
    rng = np.random.default_rng(8)
    named = sum(len(answer(rng.normal(0, 0.01, 50), 0.01).top()) > 0 for _ in range(200))
    assert named <= 10


def test_top_refuses_other_answers() -> None:
    with pytest.raises(InvalidInput, match="a positive integer"):
        answer(np.zeros(5), 1.0).top(0)
    with pytest.raises(InvalidInput, match="one dimension"):
        Tally(SURVEY).estimate().top()


def test_units_and_notes_are_computed_once_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for every row: a million rows would take hours. Counted, not timed."""
    looked = []

    def counted(items: Iterable[object]) -> bool:
        looked.append(items)
        return any(items)

    monkeypatch.setattr(answer_module, "any", counted, raising=False)
    assert len(answer(np.zeros(V), 0.01).table()) == V
    assert len(looked) <= 4
