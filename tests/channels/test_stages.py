"""Answers of two stages: a memoized and a fresh table, proven by fractions and by enumeration of all draws."""

from fractions import Fraction
from itertools import product

import pytest

import hdr4me as hd
from hdr4me.channels import Table, UnaryEncoding, channel_from_dict
from hdr4me.channels.proof import ONE, column_ratio, entries_ratio, exp_lower
from hdr4me.channels.table.channel import STAGE_ONE, Stages, product_rows
from hdr4me.channels.table.design import staged_category, staged_number
from hdr4me.errors import FormatError, InvalidInput

BUDGETS = [(0.1, 0.2), (0.5, 1.0), (1.0, 3.0), (1.0, 8.0), (2.0, 2.5), (4.0, 6.0)]


@pytest.mark.parametrize(("epsilon", "memoized"), BUDGETS)
def test_both_losses_are_within_their_budgets_and_close_to_them(epsilon: float, memoized: float) -> None:
    for channel, loss in (
        (staged_number(epsilon, memoized), column_ratio),
        (staged_category(epsilon, memoized, 5), entries_ratio),
    ):
        stages = channel.stages
        assert stages is not None
        assert product_rows(stages.first, stages.second) == channel.weights
        assert exp_lower(epsilon) * Fraction(99, 100) <= channel.likelihood_ratio <= exp_lower(epsilon)
        most = exp_lower(memoized)
        assert most * Fraction(96, 100) <= loss(stages.first) <= most


@pytest.mark.parametrize(("epsilon", "memoized"), BUDGETS)
def test_one_report_loses_nothing_by_the_second_stage(epsilon: float, memoized: float) -> None:
    from hdr4me.mechanisms import mechanism

    alone = mechanism("duchi", epsilon=epsilon).exact().channel()
    staged = staged_number(epsilon, memoized)
    assert isinstance(alone, Table)
    assert staged.decoders["value"][1] == pytest.approx(alone.decoders["value"][1], rel=2e-3)
    e = float(exp_lower(epsilon))
    assert staged_category(epsilon, memoized, 6).response.marginal().moments([0.0, 1.0]).variance([1.0])[
        0
    ] == pytest.approx(4 * e / (e - 1) ** 2, rel=3e-3)


class Words:
    """Draws that are given."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self.words = list(words)

    def bits(self, n: int) -> int:
        assert n == 16
        return self.words.pop(0)

    def below(self, n: int) -> int:
        raise AssertionError("no such draw")


def test_the_sampler_has_the_law_of_the_product() -> None:
    """Every pair of words that can decide differently, weighed by how many words decide alike."""
    channel = staged_number(1.0, 2.0)
    stages = channel.stages
    assert stages is not None
    for row in (0, 1):
        found = [0, 0]
        turned_first, turned_second = stages.first[0][1], stages.second[0][1]
        # The words below and from each bound of a row decide alike.
        cut_first = STAGE_ONE - turned_first if row == 0 else turned_first
        for low, high in ((0, cut_first), (cut_first, STAGE_ONE)):
            kept = int(low >= cut_first)
            cut = STAGE_ONE - turned_second if kept == 0 else turned_second
            for start, stop in ((0, cut), (cut, STAGE_ONE)):
                for a, b in product((low, high - 1), (start, stop - 1)):
                    cell = channel.repeat(row, Words((a,)), Words((b,)))
                    assert cell == channel.repeat(row, Words((low,)), Words((start,)))
                found[cell[0]] += (high - low) * (stop - start)
        assert tuple(found) == channel.weights[row]
        assert sum(found) == ONE


def test_a_document_keeps_its_stages_and_wrong_ones_are_refused() -> None:
    for channel in (staged_number(1.0, 2.0), staged_category(1.0, 2.0, 3)):
        document = channel.to_dict()
        assert channel_from_dict(document) == channel
        worse = {**document, "stages": {**document["stages"], "epsilon": 1.9}}
        with pytest.raises(InvalidInput, match="in all its reports of one value, leaks a factor"):
            channel_from_dict(worse)
        first = document["stages"]["first"]
        other = {**document, "stages": {**document["stages"], "first": first[::-1]}}
        with pytest.raises(InvalidInput, match="do not multiply to its weights"):
            channel_from_dict(other)
        for stages in (
            [],
            {},
            {"epsilon": 2.0, "first": [], "second": []},
            {"epsilon": "2", "first": first, "second": first},
        ):
            with pytest.raises(FormatError):
                channel_from_dict({**document, "stages": stages})
    with pytest.raises(InvalidInput, match="weights that sum to 65536"):
        Stages(1.0, ((1, 2), (2, 1)), ((1, 2), (2, 1))).check("x", ((1, 1), (1, 1)))


def test_a_survey_with_memoized_responses() -> None:
    schema = hd.Schema([hd.Numeric("age", 0, 120), hd.Categorical("mood", ["low", "fair", "good"])])
    survey = hd.Survey(schema, epsilon=1.0, sampled=2, memoized_epsilon=3.0)
    assert [type(channel) for channel in survey.channels] == [Table, UnaryEncoding]
    assert survey.memoized_epsilon == 3.0
    assert hd.Survey(schema, epsilon=1.0, sampled=2).memoized_epsilon == 1.0
    again = hd.Survey.from_json(survey.to_json())
    assert again == survey
    assert again.channels == survey.channels


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"memoized_epsilon": 1.0},
            "memoized_epsilon = 1.0 is not allowed: a finite number above epsilon = 1",
        ),
        ({"memoized_epsilon": float("inf")}, "memoized_epsilon = inf is not allowed"),
        ({"memoized_epsilon": True}, "memoized_epsilon = True"),
        ({"memoized_epsilon": 2.0, "mechanism": "piecewise"}, "memoized_epsilon chooses the mechanisms"),
        ({"memoized_epsilon": 2.0, "categorical": "grr"}, "memoized_epsilon chooses the mechanisms"),
        (
            {"memoized_epsilon": 2.0, "pair_questions": [("a", "b")]},
            "numbers and categories only, not a pair or block",
        ),
    ],
)
def test_options_that_memoized_epsilon_excludes(options: dict, words: str) -> None:
    schema = hd.Schema([hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1)])
    with pytest.raises(InvalidInput, match=words):
        hd.Survey(schema, epsilon=1.0, **options)


def test_an_optional_number_has_one_stage_only() -> None:
    with pytest.raises(InvalidInput, match="numbers and categories only, not 'a'"):
        hd.Survey(hd.Schema([hd.Numeric("a", 0, 1, optional=True)]), epsilon=1.0, memoized_epsilon=2.0)
