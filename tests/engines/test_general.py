"""Records to reports for any channels: every counter as often as the channel's exact law says, on every way there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hdr4me.channels import Channel, Input, KSubset, SystemDraws, Table, UnaryEncoding
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.response import Response
from hdr4me.channels.subset import Subset
from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey
from hdr4me.survey.layout import Layout
from hdr4me.tally import Tally

ONE = 1 << 32
SIGMAS = 7
"""A share further than this from the truth is a failure: false alarm 3e-12 for each, and some 2000 are looked at."""


def subset(v: int, w: int) -> KSubset:
    return KSubset("subset", 1.0, Subset(v, w), heaviest(1.0, Subset(v, w)))


def optional() -> Table:
    """Two levels or no value: 1/2 for the truth, 1/4 for each of the others."""
    rows = tuple(tuple(ONE // 2 if x == y else ONE // 4 for y in range(3)) for x in range(3))
    decoders = {"value": (-4.0, 4.0, 0.0), "present": (2.0, 2.0, -2.0)}
    return Table("optional", 0.7, decoders, rows, (Input("optional", 3),))


def pair() -> Table:
    """Two numbers of two levels, each by a coin of its own at ratio 3."""
    coin = ((3, 1), (1, 3))
    both = [(a, b) for a in (0, 1) for b in (0, 1)]
    rows = tuple(tuple(coin[a][y] * coin[b][z] * (ONE // 16) for y, z in both) for a, b in both)
    decoders = {"value": (-2.0, -2.0, 2.0, 2.0), "value 2": (-2.0, 2.0, -2.0, 2.0)}
    return Table("pair", 2.2, decoders, rows, (Input("number", 2), Input("number", 2)))


SCHEMA = Schema(
    [
        Numeric("age", 0, 120, default=30),
        Numeric("debt", 0, 1, optional=True),
        Categorical("colour", range(10), default=4),
        Numeric("left", -1, 1),
        Categorical("town", range(300), default=0),
        Numeric("right", -1, 1),
        Categorical("pet", ["none", "cat", "dog"], default="none"),
    ]
)
RECORDS: dict[str, dict[str, Any]] = {
    "values": {
        "age": 87,
        "debt": 0.25,
        "colour": 7,
        "left": 0.5,
        "town": 299,
        "right": -1,
        "pet": "dog",
    },
    "gaps": {"age": math.nan, "town": "nowhere", "left": 5, "pet": None},
}
INPUTS: dict[str, list[dict[int, float]]] = {
    # question by question: the channel's inputs and how likely rounding makes them
    "values": [{2: 0.1, 3: 0.9}, {0: 0.75, 1: 0.25}, {7: 1.0}, {0: 0.25, 2: 0.75}, {299: 1.0}, {2: 1.0}],
    "gaps": [{1: 1.0}, {2: 1.0}, {4: 1.0}, {2: 0.5, 3: 0.5}, {0: 1.0}, {0: 1.0}],
}
WEIGHTS = (1, 4, 2, 2, 3, 8)


@pytest.fixture(scope="module")
def channels(mixed: Survey) -> list[tuple[tuple[int, ...], Channel]]:
    """A table, an optional number, sets of one byte, a pair, sets of two bytes, unary encoding."""
    return [
        ((0,), mixed.channels[0]),
        ((1,), optional()),
        ((2,), subset(10, 3)),
        ((3, 5), pair()),
        ((4,), subset(300, 81)),
        ((6,), mixed.channels[3]),
    ]


def survey_of(
    channels: Sequence[tuple[tuple[int, ...], Channel]], sampled: int, weights: Sequence[int]
) -> Survey:
    questions = [Question(*parts, weight) for parts, weight in zip(channels, weights, strict=True)]
    return Survey.from_questions(SCHEMA, epsilon=14.0, sampled=sampled, questions=questions)


@pytest.fixture(params=["one of six", "by weight", "three of six", "all"])
def survey(request: pytest.FixtureRequest, channels: Any) -> Survey:
    m, weights = {
        "one of six": (1, (1,) * 6),
        "by weight": (1, WEIGHTS),
        "three of six": (3, (1,) * 6),
        "all": (6, (1,) * 6),
    }[request.param]
    made = survey_of(channels, m, weights)
    assert not made.byte_wise
    return made


def counter_law(channel: Channel, inputs: Mapping[int, float]) -> list[float]:
    """P(a report adds to each counter), from the channel's own fractions."""
    if isinstance(channel, KSubset):
        p, q = channel.shares
        return [p if c in inputs else q for c in range(channel.n_counters)]
    if isinstance(channel, UnaryEncoding):
        return [w / ONE for k in range(channel.size) for w in channel.weights[k in inputs]]
    return [
        float(sum(Fraction(share) * channel.probability(x, (y,)) for x, share in inputs.items()))
        for y in range(channel.n_counters)
    ]


def check(found: int, n: int, p: float, what: object) -> None:
    assert abs(found - n * p) <= SIGMAS * math.sqrt(n * p * (1 - p)), (what, found, n * p)


def check_tally(tally: Tally, n: int, inputs: Sequence[Mapping[int, float]]) -> None:
    """How often each question was asked, and every counter given that."""
    survey, layout = tally.survey, Layout.of(tally.survey)
    assert (tally.n_reports, tally.rejected) == (n, {})
    for q, question in enumerate(survey.questions):
        answers = tally.n_answers(q)
        check(answers, n, float(survey.inclusion(q)), ("asked", q))
        law = counter_law(question.channel, inputs[q])
        for counter, (count, p) in enumerate(
            zip(layout.of_question(tally.counts, q).tolist(), law, strict=True)
        ):
            check(count, answers, p, (q, counter))


def table_of(record: Mapping[str, Any], n: int) -> pa.Table:
    return pa.table({name: pa.array([record.get(name)] * n) for name in SCHEMA.names})


@pytest.mark.parametrize("kind", RECORDS)
def test_a_batch_follows_the_exact_law(survey: Survey, kind: str) -> None:
    n = 20_000
    tally = Tally(survey)
    for block in Local(threads=1).reports(
        table_of(RECORDS[kind], n), survey, on_quality=lambda quality: None
    ):
        tally.add_block(block)
    check_tally(tally, n, INPUTS[kind])


@pytest.mark.parametrize("kind", RECORDS)
def test_a_client_follows_the_same_law(channels: Any, kind: str) -> None:
    """The plain way, user by user: the same survey, the same bounds."""
    n, survey = 1500, survey_of(channels, 3, (1,) * 6)
    client = Client(survey)
    check_tally(Tally(survey).add(client.report(RECORDS[kind]) for _ in range(n)), n, INPUTS[kind])


def test_a_matrix_follows_the_same_law(channels: Any) -> None:
    """Categories by their numbers; a missing value is NaN."""
    n, survey = 20_000, survey_of(channels, 1, WEIGHTS)
    row = np.array([87, math.nan, 7, 0.5, 299, -1, 2])
    tally = Tally(survey)
    for block in Local(threads=1).reports(np.tile(row, (n, 1)), survey):
        tally.add_block(block)
    check_tally(tally, n, [INPUTS["values"][0], {2: 1.0}, *INPUTS["values"][2:]])


def test_users_are_not_mixed_up(channels: Any) -> None:
    """At a budget where hardly anything is randomized every report answers its own user's record."""
    family = Subset(200, 2)
    schema = Schema([Categorical(name, range(200)) for name in "abc"])
    certain = KSubset("subset", 30.0, family, ONE - 1)
    survey = Survey.from_questions(
        schema, epsilon=60.0, sampled=2, questions=[Question((j,), certain) for j in range(3)]
    )
    values = np.random.default_rng(2).integers(0, 200, (3000, 3))
    columns = {name: values[:, j] for j, name in enumerate("abc")}
    (block,) = Local(threads=1).reports(pa.table(columns), survey)
    slots = block.reshape(3000, 2, 4)
    for j in range(2):
        truth = values[np.arange(3000), slots[:, j, 0]]
        # One set in 2^32 does not hold the truth: three of 3000 are missed once in 10^17 runs.
        assert (slots[:, j, 2:] == truth[:, None]).any(axis=1).sum() >= 2998


# -- samplers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda mixed: mixed.channels[0],
        lambda mixed: mixed.channels[3],
        lambda mixed: subset(5, 2),
        lambda mixed: subset(4, 1),
        lambda mixed: subset(6, 5),
        lambda mixed: optional(),
        lambda mixed: pair(),
    ],
    ids=["table", "entries", "sets of 2", "sets of 1", "sets of 5", "optional", "pair"],
)
@pytest.mark.parametrize("sampler", ["quick", "one by one"])
def test_samplers_follow_the_probability_of_every_output(
    mixed: Survey, make: Callable[[Survey], Channel], sampler: str
) -> None:
    """Whole outputs, not only counters: what goes together in a set or a vector has its exact probability."""
    channel, n = make(mixed), 20_000 if sampler == "quick" else 3000
    response = channel.response if sampler == "quick" else Response(channel)
    draws = SecureDraws()
    for x in {0, channel.n_inputs - 1}:
        outputs = response.sample(np.full(n, x), draws)
        found, counts = np.unique(outputs, axis=0, return_counts=True)
        seen = dict(zip(map(tuple, found.tolist()), counts.tolist(), strict=True))
        assert all(channel.is_output(output) for output in seen)
        for output in channel.outputs():
            check(seen.get(output, 0), n, float(channel.probability(x, output)), (x, output))


def test_a_kind_without_a_sampler_is_asked_user_by_user() -> None:
    class Unknown(Table):
        kind = "unknown"
        response_class = "hdr4me.channels.response:Response"

    table = Unknown("coin", 1.1, {"value": (-2.0, 2.0)}, ((3 * ONE // 4, ONE // 4), (ONE // 4, 3 * ONE // 4)))
    assert type(table.response) is Response
    outputs = table.response.sample(np.array([0, 1] * 5000), SecureDraws())
    check(int(outputs[::2].sum()), 5000, 0.25, "low")
    check(int(outputs[1::2].sum()), 5000, 0.75, "high")


def test_more_categories_than_the_kernel_draws_sets_of() -> None:
    channel = subset(70_000, 2)
    outputs = channel.response.sample(np.array([69_999, 0]), SecureDraws())
    assert all(channel.is_output(output) for output in outputs.tolist())


def test_bounded_numbers_are_uniform() -> None:
    draws, n = SecureDraws(), 30_000
    for bound in (1, 2, 3, 7):
        found = np.bincount(draws.below(bound, n), minlength=bound)
        for count in found.tolist():
            check(count, n, 1 / bound, bound)
    large = draws.below(3 << 30, 2000)  # a quarter of the words are drawn anew
    check(int((large < 1 << 30).sum()), 2000, 1 / 3, "large")
    assert large.max() < 3 << 30
    single = SystemDraws(draws.bits)
    assert all(0 <= single.below(5) < 5 for _ in range(100))
    assert all(0 <= single.bits(3) < 8 for _ in range(100))


def test_sets_are_uniform() -> None:
    """Each of the ten pairs of five; every number of them in increasing order."""
    n = 30_000
    found, counts = np.unique(SecureDraws().subsets(n, 5, 2), axis=0, return_counts=True)
    assert len(found) == 10
    assert (found[:, 0] < found[:, 1]).all()
    for count in counts.tolist():
        check(count, n, 0.1, "pair")


# -- answers ---------------------------------------------------------------------------------------------------------


def test_the_answer_is_the_truth(channels: Any) -> None:
    """A weighted survey of every kind of channel: each row within 7 of its own standard errors of what is true."""
    n, survey = 60_000, survey_of(channels, 1, WEIGHTS)
    tally = Tally(survey)
    for kind in RECORDS:
        for block in Local(threads=1).reports(
            table_of(RECORDS[kind], n // 2), survey, on_quality=lambda quality: None
        ):
            tally.add_block(block)
    answer = tally.estimate()
    truth = {"age": (87 + 30) / 2, "left": (0.5 + 1) / 2, "right": (-1 + 0) / 2}
    for name, mean in truth.items():
        row = answer.means[name]
        assert abs(row.value[0] - mean) < SIGMAS * row.standard_error[0], name
    share, debt = answer.of("share")["debt"], answer.means["debt"]
    assert abs(share.value[0] - 0.5) < SIGMAS * share.standard_error[0]
    assert abs(debt.value[0] - 0.25) < SIGMAS * debt.standard_error[0]
    for name, held in (("colour", ("7", "4")), ("town", ("299", "0")), ("pet", ("dog", "none"))):
        found = answer.frequencies(name)
        expected = np.array([0.5 * (category in held) for category in found.categories])
        assert (np.abs(found.value - expected) < SIGMAS * found.standard_error).all(), name
