"""The tables of a new survey come from the mechanisms; dimensions that need the same table share it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from category_laws import grr, oue

from hdr4me.channels import Channel, KSubset
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.proof import exp_lower
from hdr4me.channels.subset import Subset
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.categorical import categorical_choice, subset_selection
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

SCHEMA = Schema(
    [
        Numeric("age", 0, 120),
        Categorical("smoker", ["no", "yes"]),
        Numeric("height", 0, 250),
        Categorical("town", [str(i) for i in range(40)]),
        Categorical("owner", ["no", "yes"]),
    ]
)


def channel_of(survey: Survey, name: str) -> Channel:
    return survey.questions[survey.question_of(name)].channel


def test_channels_are_shared() -> None:
    survey = Survey(SCHEMA, epsilon=1.0, mechanism="duchi")
    numbers = [survey.channels.index(question.channel) for question in survey.questions]
    assert numbers == [0, 1, 0, 2, 1]
    assert [channel.kind for channel in survey.channels] == ["table", "heavy_set", "heavy_set"]
    assert [channel.mechanism for channel in survey.channels] == ["duchi", "grr", "subset"]
    assert [len(question.channel.fields) for question in survey.questions] == [1, 1, 1, 11, 1]
    assert Survey.from_json(survey.to_json()) == survey


@pytest.mark.parametrize(
    "name", ["laplace", "scdf", "staircase", "duchi", "piecewise", "hybrid", "square_wave", "optimal"]
)
def test_every_mechanism_can_be_deployed(name: str) -> None:
    survey = Survey(SCHEMA, epsilon=2.0, mechanism=name, sampled=2)
    assert Survey.from_json(survey.to_json()) == survey
    assert all(channel.epsilon <= 1.0 for channel in survey.channels)


@pytest.mark.parametrize(
    ("categorical", "kinds"),
    [
        ("grr", {"grr"}),
        ("subset", {"grr", "subset"}),
        ("oue", {"oue"}),
        ("histogram", {"histogram-piecewise"}),
    ],
)
def test_a_categorical_mechanism_can_be_asked_for(categorical: str, kinds: set[str]) -> None:
    survey = Survey(SCHEMA, epsilon=2.0, mechanism="piecewise", categorical=categorical)
    assert {channel_of(survey, name).mechanism for name in ("smoker", "town", "owner")} == kinds
    assert Survey.from_json(survey.to_json()) == survey


def test_the_same_question_gives_the_same_fingerprint() -> None:
    assert Survey(SCHEMA, epsilon=1.0) == Survey(SCHEMA, epsilon=1.0)
    assert Survey(SCHEMA, epsilon=1.0) != Survey(SCHEMA, epsilon=1.0, mechanism="duchi")


def test_a_mechanism_object_can_be_given() -> None:
    made = mechanism("staircase", epsilon=0.5, variant="variance")
    survey = Survey(SCHEMA, epsilon=1.0, mechanism=made, sampled=2, categorical="histogram")
    assert survey.channels[0].epsilon == 0.5


@pytest.mark.parametrize(
    "change",
    [
        {"categorical": "rappor"},
        {"mechanism": "gauss"},
        {"mechanism": 3},
        {"mechanism": "square-wave"},
        {"epsilon": 0.0},
        {"sampled": 6},
        {"weights": {"nobody": 2}},
        {"weights": {"age": 0}},
        {"weights": {"age": 2}, "sampled": 2},
    ],
)
def test_what_is_not_allowed(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r" = .* is not (allowed|known): |different weights"):
        Survey(**{"schema": SCHEMA, "epsilon": 1.0, **change})


def test_a_mechanism_that_spends_too_much_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"spends 1\.0 on each of 2 answers"):
        Survey(SCHEMA, epsilon=1.0, mechanism=mechanism("duchi", epsilon=1.0), sampled=2)


def total_error(channel: KSubset) -> float:
    """n·E‖f̂ − f‖² from the variances of one report about each category."""
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    return (channel.n_counters - 1) * absent + present


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 3.0, 5.0])
def test_the_choice_is_the_best_of_all_sizes(epsilon: float) -> None:
    """Every size of sets is tried: none has a smaller error; sets of one are called by their name, GRR."""
    for v in (2, 3, 4, 5, 8, 16, 30, 60):
        chosen = subset_selection(epsilon, v)
        others = []
        for w in range(1, v):
            family = Subset(v, w)
            others.append(total_error(KSubset("subset", epsilon, family, heaviest(epsilon, family))))
        assert total_error(chosen) <= min(others) * (1 + 1e-6)
        size = chosen.per_report
        assert chosen.mechanism == categorical_choice(epsilon, v) == ("grr" if size == 1 else "subset")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_subset_selection_beats_what_there_was_before(epsilon: float) -> None:
    """GRR and OUE, by their own tables: the error is never larger, and smaller for more than a few categories."""
    for v in (2, 4, 10, 40, 200):
        found = total_error(subset_selection(epsilon, v))
        absent, present = grr(epsilon, v).channel().response.marginal().moments([0.0, 1.0]).variance([1.0])  # type: ignore[attr-defined]
        assert found <= ((v - 1) * absent + present) * (1 + 1e-6)
        absent, present = oue(epsilon).channel(v).response.marginal().moments([0.0, 1.0]).variance([1.0])  # type: ignore[attr-defined]
        assert found < (v - 1) * absent + present


def test_many_categories_and_large_budgets() -> None:
    assert categorical_choice(8.0, 256) == categorical_choice(8.0, 257) == "grr"
    assert categorical_choice(2.0, 257) == "subset"
    assert categorical_choice(1.0, 257) == "projective"
    assert categorical_choice(5000.0, 3) == "grr"
    survey = Survey(Schema([Categorical("x", [str(i) for i in range(300)])]), epsilon=8.0)
    assert survey.channels[0].mechanism == "grr"
    assert (survey.report_size, survey.byte_wise) == (4, False)


# -- numbers that are asked together, and numbers that may be missing -------------------------------------------------

JOINT = Schema(
    [
        Numeric("age", 0, 100),
        Numeric("debt", 0, 10, optional=True),
        Numeric("height", 0, 2),
        Numeric("weight", 0, 200),
    ]
)


@pytest.fixture(scope="module")
def joint() -> Survey:
    return Survey(JOINT, epsilon=1.0, pair_questions=[("height", "age")], weights={"age": 2})


def test_a_pair_is_one_question(joint: Survey) -> None:
    """Whatever order its names are given in, a pair stands in the schema's order, where its first dimension stands."""
    assert [question.dimensions for question in joint.questions] == [(0, 2), (1,), (3,)]
    assert [question.weight for question in joint.questions] == [2, 1, 1]
    inputs = [[input_.input_kind for input_ in channel.inputs] for channel in joint.channels]
    assert inputs == [["number", "number"], ["optional"], ["number"]]
    assert all(channel.likelihood_ratio <= exp_lower(1.0) for channel in joint.channels)
    again = Survey.from_json(joint.to_json())
    assert again == joint
    assert again.questions == joint.questions


def test_joint_answers_are_the_truth(joint: Survey) -> None:
    """40,000 users, the system's randomness: every row within 7 of its standard errors; false alarm below 2e-11."""
    n = 40_000
    records = pa.table(
        {
            "age": [20.0, 70.0] * (n // 2),
            "debt": pa.array([2.0, None] * (n // 2)),
            "height": [1.5, 1.9] * (n // 2),
            "weight": [60.0, 90.0] * (n // 2),
        }
    )
    tally = Tally(joint)
    for block in Local(threads=1).reports(records, joint):
        tally.add_block(block)
    answer = tally.estimate()
    for name, truth in (("age", 45.0), ("debt", 2.0), ("height", 1.7), ("weight", 75.0)):
        row = answer.means[name]
        assert row.status == ("ok",)
        assert abs(row.value[0] - truth) < 7 * row.standard_error[0], name
    share = answer.of("share")["debt"]
    assert abs(share.value[0] - 0.5) < 7 * share.standard_error[0]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("age",)], "two names of numeric dimensions"),
        (["ab"], "two names of numeric dimensions"),
        ([("age", "age")], "each dimension once"),
        ([("age", "height"), ("height", "weight")], "dimensions that are in no other pair or block"),
        ([("age", "debt")], "numbers that are not optional: leave an optional one out"),
        ([("age", "nobody")], "no dimension is called 'nobody'"),
    ],
)
def test_pairs_that_are_not_allowed(pairs: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Survey(JOINT, epsilon=1.0, pair_questions=pairs)


@pytest.mark.parametrize("what", ["pair_questions", "block_questions"])
def test_the_error_for_a_category_in_a_pair_or_block(what: str) -> None:
    schema = Schema([Numeric("age", 0, 120), Categorical("l", ["a", "b"])])
    together: Any = {what: [("age", "l")]}
    with pytest.raises(InvalidInput, match="numbers only; 'l' is a category, leave it out"):
        Survey(schema, epsilon=4.0, **together)


def test_the_error_for_one_category_uses_the_singular() -> None:
    with pytest.raises(InvalidInput, match="dimension 'l' has 1 category: 2 to"):
        Categorical("l", ["a"])


def test_a_weight_is_given_to_the_first_of_a_pair() -> None:
    with pytest.raises(
        InvalidInput, match="weights = 'height' is not allowed: the name of a question's first"
    ):
        Survey(JOINT, epsilon=1.0, pair_questions=[("age", "height")], weights={"height": 2})
