"""Representations of objects in a terminal and in a notebook."""

from pathlib import Path

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.pages.html import table
from hdr4me.tally import Tally


@pytest.fixture(scope="module")
def survey() -> hd.Survey:
    many = [hd.Categorical("town", [f"town {i}" for i in range(300)])]
    return hd.Survey(
        hd.Schema([hd.Numeric(f"x{i}", 0, 1) for i in range(30)] + many), epsilon=1.0, name="<b>"
    )


@pytest.fixture(scope="module")
def things(survey: hd.Survey) -> dict[str, object]:
    tally = Tally(survey)
    tally.counts[:] = 100
    tally.n_reports = 1000
    answer = tally.estimate()
    return {
        "survey": survey,
        "plan": hd.plan(users=10_000, dims=20, epsilon=1.0),
        "tally": tally,
        "answer": answer,
        "recalibration": hd.recalibrate(np.linspace(-0.2, 0.2, 50), 0.1),
        "audit": hd.audit(
            hd.Survey(hd.Schema([hd.Numeric("a", 0, 1)]), epsilon=1.0, mechanism="duchi"), 2000
        ),
        "channel": survey.channels[0],
        "question": survey.questions[0],
        "option": hd.plan(users=1000, dims=2, epsilon=1.0).best,
        "ledger": hd.Ledger("ledger.json", every="week"),
        "explanation": hd.explain(survey),
    }


def test_a_repr_is_one_short_line(things: dict[str, object]) -> None:
    for name, thing in things.items():
        text = repr(thing)
        assert len(text) < 500, name
        assert "\n" not in text, name
        assert "object at 0x" not in text, name


@pytest.mark.parametrize("name", ["survey", "plan", "tally", "answer", "recalibration", "audit"])
def test_a_notebook_shows_a_table_and_escapes_names(things: dict[str, object], name: str) -> None:
    shown = things[name]._repr_html_()  # type: ignore[attr-defined]
    assert "<table>" in shown
    assert "<b>" not in shown
    assert len(shown) < 400_000


def test_a_long_table_states_how_many_rows_it_omits(things: dict[str, object]) -> None:
    for name in ("survey", "tally"):
        assert "and 11 more questions" in things[name]._repr_html_()  # type: ignore[attr-defined]


def test_a_ledger_shows_its_path(tmp_path: Path) -> None:
    assert repr(hd.Ledger(tmp_path / "a.json", limit=None)) == f"<Ledger {tmp_path / 'a.json'}: no limit>"


@pytest.mark.parametrize("name", ["schema", "client", "option", "explanation", "memoized"])
def test_a_notebook_shows_other_objects(survey: hd.Survey, things: dict[str, object], name: str) -> None:
    more = {"schema": survey.schema, "client": hd.Client(survey), "memoized": things["explanation"]}
    shown = (things | more)[name]._repr_html_()  # type: ignore[attr-defined]
    assert "<table>" in shown
    assert "<b>" not in shown.replace("<b>:", "")


def test_an_answer_is_a_frame_and_a_figure(things: dict[str, object]) -> None:
    answer: hd.Answer = things["answer"]  # type: ignore[assignment]
    frame = answer.to_pandas()
    assert list(frame["dimension"]) == list(answer.dimensions)
    assert frame.loc[0, "estimate"] == answer.value[0]
    assert answer.to_polars().shape == frame.shape
    assert answer.plot().get_suptitle() == "<b>"
    assert answer._ipython_key_completions_()[:2] == ["x0", "x1"]


def test_a_plan_is_a_table(things: dict[str, object]) -> None:
    plan: hd.Plan = things["plan"]  # type: ignore[assignment]
    rows = plan.table()
    assert len(rows) == len(plan)
    assert (rows[0]["mechanism"], rows[0]["mse"]) == (plan.best.mechanism, plan.best.mse)


def test_a_large_budget_gives_a_warning() -> None:
    schema = hd.Schema([hd.Numeric("a", 0, 1)])
    with pytest.warns(hd.errors.PrivacyWarning, match="factor of 7e"):
        hd.Survey(schema, epsilon=200.0, mechanism="duchi")


def test_a_figure_says_which_rows_it_omits() -> None:
    """Of many categories only those that differ significantly are drawn, which a note below the figure states."""
    survey = hd.Survey(hd.Schema([hd.Categorical("town", [f"town {i}" for i in range(300)])]), epsilon=1.0)
    tally = Tally(survey)
    tally.counts[:], tally.n_reports = 100, 1000
    drawn = tally.estimate().plot()
    assert len(drawn.axes) == 1
    assert "of 300 estimates is shown" in " ".join(drawn.get_supxlabel().split())


def test_a_table_aligns_columns_and_groups_numbers() -> None:
    shown = table(["name", "none", "users", "share"], [["a", None, 30_000, "< 0.001"], ["b", "x", 2e4, 0.25]])
    assert "<th class='text'>none</th><th>users</th><th>share</th>" in shown
    assert "<td class='text'>–</td><td>30,000</td><td>&lt; 0.001</td>" in shown
