"""Explanations: correct numbers, and an example report that the survey accepts."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hdr4me as hd
from hdr4me.cli.app import app
from hdr4me.errors import InvalidInput
from hdr4me.explanation.explain import example_report
from hdr4me.explanation.odds import guess, report_ratio, share
from hdr4me.io.report import decode

MIXED = hd.Schema(
    [
        hd.Numeric("age", 0, 120),
        hd.Numeric("income", 0, 5e5, optional=True),
        hd.Categorical("town", [f"town {i}" for i in range(500)]),
        hd.Selection("pets", ["cat", "dog", "fish"], at_most=2),
    ]
)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_every_kind_of_question_is_explained_and_the_example_is_a_report(m: int) -> None:
    survey = hd.Survey(MIXED, epsilon=2.0, sampled=m, name="Towns & <pets>")
    for audience in ("user", "dpo"):
        page = hd.explain(survey, audience)
        text = page.markdown()
        assert "a number from 0 to 500000, or no value" in text
        assert "and 494 more" in text
        assert "at most 2 of: cat, dog, fish" in text
        assert ("Annex" in text) is (audience == "dpo")
        assert "<h1>Towns &amp; &lt;pets&gt;</h1>" in page.html()
        assert text == hd.explain(survey, audience).markdown()  # the example's noise is fixed
    report = decode(example_report(survey), survey)
    assert len(report.answers) == m


def test_a_guess_is_bayes_rule_at_the_proven_loss() -> None:
    survey = hd.Survey(hd.Schema([hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1)]), epsilon=1.0, sampled=2)
    loss = report_ratio(survey)
    assert loss == survey.questions[0].channel.likelihood_ratio ** 2
    assert guess(0.5, loss) == pytest.approx(float(loss / (1 + loss)))
    assert guess(Fraction(1, 10), 9) == pytest.approx(0.5)
    shown = re.search(r"a coin toss \(50 %\) \| at most ([\d.]+) %", hd.explain(survey).markdown())
    assert shown is not None
    assert float(shown[1]) / 100 >= guess(0.5, loss)
    assert float(shown[1]) / 100 <= guess(0.5, loss) + 0.001 + 1e-12


def test_a_share_is_rounded_up() -> None:
    for k in range(1, 1000):
        value = k / 1000 + 1e-6 / 3
        shown = share(value)
        assert shown == "almost 100 %" or float(shown[:-2]) / 100 >= value


def test_memoized_responses_with_two_stages_have_their_own_bound() -> None:
    text = hd.explain(
        hd.Survey(hd.Schema([hd.Numeric("a", 0, 1)]), epsilon=1.0, memoized_epsilon=2.0)
    ).markdown()
    assert f"can rise to {share(1 / (1 + math.exp(-2)))}." in text
    assert "hides when a value changed" in text


def test_bad_input() -> None:
    survey = hd.Survey(hd.Schema([hd.Numeric("a", 0, 1)]))
    with pytest.raises(InvalidInput, match="audience = 'press' is not allowed: one of user, dpo"):
        hd.explain(survey, "press")
    with pytest.raises(InvalidInput, match="survey = 3 is not allowed"):
        hd.explain(3)


def test_on_the_command_line(tmp_path: Path) -> None:
    survey = hd.Survey(MIXED, epsilon=2.0)
    survey.save(tmp_path / "survey.json")
    run = CliRunner().invoke
    result = run(app, ["explain", str(tmp_path / "survey.json")])
    assert result.exit_code == 0
    assert result.output == hd.explain(survey).markdown()
    for name in ("page.md", "page.html"):
        arguments = [
            "explain",
            str(tmp_path / "survey.json"),
            "--audience",
            "dpo",
            "-o",
            str(tmp_path / name),
        ]
        assert run(app, arguments).exit_code == 0
    assert (tmp_path / "page.md").read_text("utf-8") == hd.explain(survey, "dpo").markdown()
    assert (tmp_path / "page.html").read_text("utf-8") == hd.explain(survey, "dpo").html()
    numbers = json.loads(run(app, ["explain", str(tmp_path / "survey.json"), "--json"]).stdout)
    assert numbers["guess_of_one_half_becomes"] == guess(0.5, report_ratio(survey))
    with pytest.raises(InvalidInput, match=r"page.pdf is not allowed: a .md or .html file"):
        run(
            app,
            ["explain", str(tmp_path / "survey.json"), "-o", str(tmp_path / "page.pdf")],
            catch_exceptions=False,
        )


def test_a_vector_is_described_by_its_length_and_norm() -> None:
    survey = hd.Survey(hd.Schema([hd.Vector("grad", length=3, norm=2.5)]), epsilon=4.0)
    text = hd.explain(survey, "user").markdown()
    assert "a vector of 3 numbers with a norm of at most 2.5 |" in text
    assert '{"grad": [0.833, 0.0, 0.0]}' in text
    long = hd.Survey(hd.Schema([hd.Vector("grad", length=1000)]), epsilon=1.0)
    assert "characters in total" in hd.explain(long, "user").markdown()


def test_missing_values_are_explained() -> None:
    schema = hd.Schema([hd.Numeric("a", 0, 1, default=0.5), hd.Categorical("c", ["x", "y"], default="y")])
    text = hd.explain(hd.Survey(schema)).markdown()
    assert "a number from 0 to 1, or 0.5 if it is missing" in text
    assert "one of: x, y; y if it is missing" in text
    refusal = (
        "It sends no report if any value is missing or unusable and this table has no replacement for it."
    )
    assert refusal not in text
    assert refusal in hd.explain(hd.Survey(hd.Schema([hd.Numeric("a", 0, 1)]))).markdown()


def test_an_optional_vector() -> None:
    survey = hd.Survey(hd.Schema([hd.Vector("grad", length=3, norm=2.5, optional=True)]), epsilon=4.0)
    text = hd.explain(survey, "user").markdown()
    assert "a vector of 3 numbers with a norm of at most 2.5, or no value" in text
    assert '{"grad": [0.833, 0.0, 0.0]}' in text


def test_an_optional_selection() -> None:
    survey = hd.Survey(hd.Schema([hd.Selection("l", ["a", "b"], 1, optional=True)]), epsilon=4.0)
    assert "at most 1 of: a, b, or missing" in hd.explain(survey, "user").markdown()


def test_questions_about_several_numbers() -> None:
    schema = hd.Schema([hd.Numeric(f"x{j}", 0, 1) for j in range(40)])
    pairs = hd.explain(
        hd.Survey(schema, epsilon=4.0, pair_questions=[(f"x{j}", f"x{j + 1}") for j in range(0, 40, 2)])
    )
    assert "x0 and x1 are one question: one randomized answer covers both." in pairs.markdown()
    assert "14 further questions also cover several numbers each." in pairs.markdown()
    block = hd.explain(hd.Survey(schema, epsilon=8.0, block_questions=[schema.names])).markdown()
    assert "x0, x1, x2, x3, x4, … and x39 are one question: one randomized answer covers all 40." in block
    assert "first rounded at random to one end of its range" in block
    assert "one question" not in hd.explain(hd.Survey(schema, epsilon=4.0)).markdown()


def test_derived_inputs_are_described_by_what_they_are_made_from() -> None:
    zip_, words = hd.Categorical("zip", ["10", "12"]), hd.Hash("word", 16)
    numbers = [hd.Numeric("x", 0, 1), hd.Numeric("y", 0, 2)]
    schema = hd.Schema(
        [
            hd.Joint("both", [hd.Bucket("age", [0, 18, 120]), hd.Prefix("area", [zip_], 2)]),
            words,
            hd.Outer("moments", numbers, [0, 0], [1, 1], 3),
            *numbers,
            hd.Product("xy", ["x", "y"]),
        ]
    )
    text = hd.explain(hd.Survey(schema, epsilon=1.0)).markdown()
    for sentence in (
        "age (one of: 0 to 18, 18 to 120) and area (the first 2 characters of a text: one of: 10, 12), asked together",
        "one random answer represents the combination",
        "a text, of which only its bucket counts (one of 16, which other texts share)",
        "x (a number from 0 to 1) and y (a number from 0 to 2), asked together: one random answer represents all their",
        "the product of x and y: one random answer represents both",
        '"word": "example"',
    ):
        assert sentence in text


def test_the_annex_has_the_margins_of_the_plan() -> None:
    """In own units, as the plan and the survey document have them."""
    schema = hd.Schema([hd.Numeric("delay", -30, 210, unit="min"), hd.Categorical("late", ["no", "yes"])])
    plan = hd.plan(schema=schema, epsilon=2.0, tolerance=0.1)
    page = hd.explain(plan.best.survey(schema), "dpo").markdown()
    assert "delay ±12 min and late ±0.1; all at once with 95 % probability" in page
    assert "planned margins" not in hd.explain(hd.Survey(schema), "dpo").markdown()
