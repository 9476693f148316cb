"""Questions: which are asked how often, what fits them, and the document that carries them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from hdr4me.channels import Draws, Input, KSubset, SystemDraws, Table
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.subset import Subset
from hdr4me.client import Client
from hdr4me.client.client import answer, draw_questions
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey
from hdr4me.survey.canonical import fingerprint
from hdr4me.survey.question import MAX_WEIGHT

ONE = 1 << 32
GOLDEN = Path(__file__).parent.parent / "golden"


def pair() -> Table:
    """Two numbers of two levels, each by a coin of its own at ratio 3."""
    coin = ((3, 1), (1, 3))
    both = [(a, b) for a in (0, 1) for b in (0, 1)]
    rows = tuple(tuple(coin[a][y] * coin[b][z] * (ONE // 16) for y, z in both) for a, b in both)
    decoders = {"value": (-2.0, -2.0, 2.0, 2.0), "value 2": (-2.0, 2.0, -2.0, 2.0)}
    return Table("pair", 2.2, decoders, rows, (Input("number", 2), Input("number", 2)))


def subset(v: int, w: int) -> KSubset:
    return KSubset("subset", 1.0, Subset(v, w), heaviest(1.0, Subset(v, w)))


def weighted(mixed: Survey, weights: Sequence[int], sampled: int = 1, name: str = "") -> Survey:
    """The mixed survey's questions, drawn in proportion to the weights."""
    questions = [replace(q, weight=weight) for q, weight in zip(mixed.questions, weights, strict=True)]
    return Survey.from_questions(mixed.schema, epsilon=12.0, sampled=sampled, questions=questions, name=name)


class Given:
    """Draws of bounded numbers that are given, and notes of the bounds."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = list(numbers)
        self.bounds: list[int] = []

    def bits(self, n: int) -> int:
        raise AssertionError("questions are drawn by bounded numbers")

    def below(self, n: int) -> int:
        self.bounds.append(n)
        number = self.numbers.pop(0)
        assert 0 <= number < n
        return number


# -- how often each is drawn ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [(1, 2, 3, 4), (5, 1, 1, 1), (1, 1, 1, 9)])
def test_each_question_has_as_many_numbers_as_its_weight(mixed: Survey, weights: tuple[int, ...]) -> None:
    """The law, exactly: of the numbers below the sum of the weights each question is chosen by its weight's."""
    survey = weighted(mixed, weights)
    total = sum(weights)
    chosen = Counter(draw_questions(survey, Given([k]))[0] for k in range(total))
    assert [chosen[q] for q in range(4)] == list(weights)
    assert [survey.inclusion(q) for q in range(4)] == [Fraction(weight, total) for weight in weights]


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_without_weights_every_set_of_questions_is_as_likely(mixed: Survey, m: int) -> None:
    """Every path of Floyd's draws, each as likely as any other; as many lead to each set."""
    survey = weighted(mixed, (1, 1, 1, 1), sampled=m)
    bounds = [j + 1 for j in range(4 - m, 4)]
    paths: list[list[int]] = [[]]
    for bound in bounds:
        paths = [[*path, k] for path in paths for k in range(bound)]
    found: Counter[tuple[int, ...]] = Counter()
    for path in paths:
        draws = Given(path)
        found[tuple(draw_questions(survey, draws))] += 1
        assert draws.bounds == bounds
    assert set(found) == set(combinations(range(4), m))
    assert len(set(found.values())) == 1
    assert survey.inclusion(0) == Fraction(m, 4)


def test_a_client_draws_by_weight(mixed: Survey) -> None:
    """4000 reports with the system's randomness: each share within 7 standard deviations, false alarm below 2e-11."""
    survey, n = weighted(mixed, (1, 2, 3, 14)), 4000
    client = Client(survey)
    found = Counter(client.report({}).answers[0][0] for _ in range(n))
    for q in range(4):
        p = float(survey.inclusion(q))
        assert abs(found[q] - n * p) < 7 * math.sqrt(n * p * (1 - p))


def test_weights_need_one_question_for_each_user(mixed: Survey) -> None:
    with pytest.raises(InvalidInput, match="different weights require sampled = 1"):
        weighted(mixed, (1, 1, 1, 2), sampled=2)
    assert not weighted(mixed, (3, 3, 3, 3), sampled=2).weighted


@pytest.mark.parametrize("weight", [0, -1, 1.0, True, MAX_WEIGHT + 1, None])
def test_a_weight_is_a_positive_integer(mixed: Survey, weight: Any) -> None:
    with pytest.raises(InvalidInput, match=r"weight = .* is not allowed: an integer from 1 to 1048576"):
        weighted(mixed, (1, 1, 1, weight))


def test_weights_by_name() -> None:
    schema = Schema([Numeric("age", 0, 120), Categorical("pet", ["cat", "dog"])])
    survey = Survey(schema, mechanism="duchi", weights={"pet": 3})
    assert [question.weight for question in survey.questions] == [1, 3]
    assert (survey.weighted, survey.byte_wise) == (True, False)
    assert survey.inclusion(1) == Fraction(3, 4)


# -- what fits -------------------------------------------------------------------------------------------------------

SCHEMA = Schema(
    [
        Numeric("age", 0, 120),
        Numeric("height", 0, 2.5),
        Categorical("pet", ["cat", "dog", "none"]),
        Numeric("debt", 0, 1, optional=True),
    ]
)


def questions_of(mixed: Survey) -> dict[str, Question]:
    optional = Table(
        "optional",
        0.7,
        {"value": (-4.0, 4.0, 0.0), "present": (2.0, 2.0, -2.0)},
        tuple(tuple(ONE // 2 if x == y else ONE // 4 for y in range(3)) for x in range(3)),
        (Input("optional", 3),),
    )
    coin = mixed.channels[1]
    return {
        "pair": Question((0, 1), pair()),
        "age": Question((0,), coin),
        "height": Question((1,), coin),
        "pet": Question((2,), subset(3, 1)),
        "debt": Question((3,), optional),
        "two for one": Question((0, 1), coin),
        "one for two": Question((0,), pair()),
        "pet as a number": Question((2,), coin),
        "age as a category": Question((0,), subset(3, 1)),
        "too few pets": Question((2,), subset(2, 1)),
        "too many pets": Question((2,), subset(4, 1)),
        "debt as a plain number": Question((3,), coin),
        "age as an optional number": Question((0,), optional),
        "age with a category": Question((0, 2), pair()),
        "nothing": Question((), coin),
        "nobody": Question((7,), coin),
        "before the first": Question((-1,), coin),
        "by name": Question(("age",), coin),  # type: ignore[arg-type]
    }


def survey_of(mixed: Survey, *names: str) -> Survey:
    every = questions_of(mixed)
    return Survey.from_questions(SCHEMA, epsilon=5.0, sampled=1, questions=[every[name] for name in names])


@pytest.mark.parametrize("names", [("pair", "pet", "debt"), ("age", "height", "pet", "debt")])
def test_what_fits(mixed: Survey, names: tuple[str, ...]) -> None:
    survey = survey_of(mixed, *names)
    assert Survey.from_json(survey.to_json()) == survey
    assert [survey.question_of(name) for name in SCHEMA.names] == [
        q for q, question in enumerate(survey.questions) for _ in question.dimensions
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("pair", "pet"), "every dimension must be in exactly one question"),
        (("pair", "age", "pet", "debt"), "exactly one question"),
        (("age", "height", "debt", "pet"), "in the order of their first dimensions"),
        (("two for one", "pet", "debt"), "'age', 'height' cannot use channel 'coin'"),
        (("one for two", "height", "pet", "debt"), "'age' cannot use channel 'pair'"),
        (
            ("age", "height", "pet as a number", "debt"),
            "'pet' cannot use channel 'coin', which accepts a number of 2",
        ),
        (("age as a category", "height", "pet", "debt"), "accepts a category of 3 inputs"),
        (("age", "height", "too few pets", "debt"), "accepts a category of 2 inputs"),
        (("age", "height", "too many pets", "debt"), "accepts a category of 4 inputs"),
        (("age", "height", "pet", "debt as a plain number"), "'debt' cannot use channel 'coin'"),
        (("age as an optional number", "height", "pet", "debt"), "'age' cannot use channel 'optional'"),
        (("age with a category", "height", "debt"), "'age', 'pet' cannot use channel 'pair'"),
        (("age", "height", "pet", "debt", "nothing"), "question"),
        (("age", "height", "pet", "debt", "nobody"), "the schema does not have"),
        (("age", "height", "pet", "debt", "before the first"), "the schema does not have"),
        (("age", "height", "pet", "debt", "by name"), "the schema does not have"),
    ],
)
def test_what_does_not_fit(mixed: Survey, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        survey_of(mixed, *names)


def test_sampled_counts_questions(mixed: Survey) -> None:
    every = questions_of(mixed)
    questions = [every[name] for name in ("pair", "pet", "debt")]
    with pytest.raises(InvalidInput, match=r"sampled = 4 is not allowed: it must be between 1 and .* 3"):
        Survey.from_questions(SCHEMA, epsilon=50.0, sampled=4, questions=questions)


class Echo(Table):
    """Sends its input, so that a test can see it."""

    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        return (x,)


def test_a_pair_is_two_numbers_in_one_input(mixed: Survey) -> None:
    """The first dimension of the question is the more significant, whatever the schema's order is."""
    echo = Echo("pair", 2.2, pair().decoders, pair().weights, pair().parts)
    rest = survey_of(mixed, "pair", "pet", "debt").questions[1:]
    survey = Survey.from_questions(SCHEMA, epsilon=5.0, sampled=1, questions=[Question((0, 1), echo), *rest])
    found = [
        answer(survey, 0, {"age": age, "height": height}, SystemDraws())
        for age in (0, 120)
        for height in (0, 2.5)
    ]
    assert found == [(0,), (1,), (2,), (3,)]


# -- the document ----------------------------------------------------------------------------------------------------


def test_the_document_of_version_2(mixed: Survey) -> None:
    document = json.loads(mixed.to_json())
    assert (document["format"], document["version"]) == ("hdr4me-survey", 2)
    assert document["questions"] == [{"dimensions": [j], "channel": j} for j in range(4)]
    assert [channel["kind"] for channel in document["channels"]] == ["table", "table", "heavy_set", "entries"]
    assert document["channels"][2]["family"] == {"name": "subset", "size": 4, "chosen": 1}


def test_weights_and_sets_survive_the_document(mixed: Survey) -> None:
    for weights in ((1, 2, 3, 4), (1, 1, 1, 1)):
        survey = weighted(mixed, weights)
        again = Survey.from_json(survey.to_json())
        assert again == survey
        assert again.questions == survey.questions
        assert ('"weight"' in json.dumps(json.loads(survey.to_json())["questions"])) == survey.weighted
    schema = Schema([Categorical("town", range(1000))])
    wide = Survey.from_questions(
        schema, epsilon=1.0, sampled=1, questions=[Question((0,), subset(1000, 269))]
    )
    assert Survey.from_json(wide.to_json()).questions == wide.questions
    assert (
        len(wide.to_json()) < 12_000
    )  # mostly the names of the categories: a million weights are not written


@pytest.mark.parametrize("weight", [0, 1.5, "2", MAX_WEIGHT + 1, None])
def test_a_tampered_weight_is_refused(mixed: Survey, weight: Any) -> None:
    document = json.loads(weighted(mixed, (1, 2, 3, 4)).to_json())
    document["questions"][0]["weight"] = weight
    with pytest.raises(FormatError):
        Survey.from_json(json.dumps(document))
    document["fingerprint"] = fingerprint({k: v for k, v in document.items() if k != "fingerprint"})
    with pytest.raises(FormatError, match="weight"):
        Survey.from_json(json.dumps(document))


def test_another_weight_is_another_survey(mixed: Survey) -> None:
    survey = weighted(mixed, (1, 2, 3, 4))
    document = json.loads(survey.to_json())
    document["questions"][0]["weight"] = 2
    with pytest.raises(FingerprintMismatch, match=survey.fingerprint[:12]):
        Survey.from_json(json.dumps(document))


def test_two_spellings_of_one_survey_are_refused(mixed: Survey) -> None:
    """Equal weights are not written: a document that writes them has a fingerprint that the survey does not have."""
    document = json.loads(mixed.to_json())
    del document["fingerprint"]
    for question in document["questions"]:
        question["weight"] = 1
    document["fingerprint"] = fingerprint(document)
    with pytest.raises(FingerprintMismatch):
        Survey.from_json(json.dumps(document))


# -- the series ------------------------------------------------------------------------------------------------------


def test_a_renamed_survey_is_of_the_same_series(mixed: Survey, other: Survey) -> None:
    assert mixed.fingerprint != other.fingerprint
    assert mixed.series == other.series
    assert Survey.from_json(other.to_json()).series == mixed.series


def test_another_survey_is_of_another_series(mixed: Survey, all_sent: Survey) -> None:
    found = [
        mixed,
        all_sent,
        weighted(mixed, (1, 1, 1, 1)),
        weighted(mixed, (1, 1, 1, 2)),
        weighted(mixed, (2, 1, 1, 1)),
        Survey.from_questions(mixed.schema, epsilon=13.0, sampled=2, questions=mixed.questions),
    ]
    assert len({survey.series for survey in found}) == len(found)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.survey.json")), ids=lambda path: path.name)
def test_a_renamed_golden_survey_is_of_the_same_series(path: Path) -> None:
    survey = Survey.load(path)
    document = {k: v for k, v in json.loads(path.read_text(encoding="utf-8")).items() if k != "fingerprint"}
    document["name"] = "renamed"
    renamed = Survey.from_json(json.dumps({**document, "fingerprint": fingerprint(document)}))
    assert renamed.series == survey.series
    assert renamed.fingerprint != survey.fingerprint
