"""Memoized responses and two stages of noise, verified by exact enumeration in fractions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memoized_attacks
from hdr4me.accounting.repeated import guessed, repeated
from hdr4me.channels import Channel, UnaryEncoding
from hdr4me.channels import Table as TableChannel
from hdr4me.channels.proof import column_ratio, entries_ratio
from hdr4me.channels.table.channel import product_rows
from hdr4me.client import Ledger, MemoizedClient, ledger_file
from hdr4me.client.client import decide
from hdr4me.client.ledger_file import beside
from hdr4me.errors import InvalidInput
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.survey.categorical import Selection
from hdr4me.survey.derived import Bucket, Hash, Joint, Prefix
from hdr4me.survey.times import Calendar, Time

Table = list[list[int]]
Distribution = dict[tuple[Any, ...], Fraction]

TABLES: list[Table] = [
    [[6, 2], [2, 6]],
    [[4, 2], [3, 3], [2, 4]],
    [[3, 1, 1], [2, 1, 2], [1, 1, 3]],
    [[4, 1, 1], [1, 4, 1], [1, 1, 4]],
]
T = 3


def pattern(history: Sequence[Any]) -> tuple[int, ...]:
    """Which moments have equal values: (a, b, a) and (c, d, c) both give (0, 1, 0)."""
    seen: dict[Any, int] = {}
    return tuple(seen.setdefault(x, len(seen)) for x in history)


def memoized_distribution(table: Table, history: Sequence[int]) -> Distribution:
    """The joint distribution of the answers, by enumerating the random words of all rows."""
    total = sum(table[0])
    bounds = [tuple(accumulate(row))[:-1] for row in table]
    counts: defaultdict[tuple[int, ...], int] = defaultdict(int)
    for words in product(range(total), repeat=len(table)):
        counts[tuple(sum(words[row] >= bound for bound in bounds[row]) for row in history)] += 1
    return {observed: Fraction(count, total ** len(table)) for observed, count in counts.items()}


def ratio(first: Distribution, second: Distribution) -> Fraction:
    """The largest ratio of two distributions; raises KeyError if their supports differ."""
    return max(Fraction(p, 1) / second[observed] for observed, p in first.items())


@pytest.mark.parametrize("table", TABLES)
def test_any_two_histories_with_the_same_pattern_of_change(table: Table) -> None:
    """The ratio is at most loss^k for k visited rows: all pairs of histories of three reports, all secrets."""
    loss = column_ratio(table)
    distributions = {
        history: memoized_distribution(table, history) for history in product(range(len(table)), repeat=T)
    }
    attained = Fraction(1)
    for first, second in product(distributions, repeat=2):
        if pattern(first) == pattern(second):
            k = len(set(first))
            assert ratio(distributions[first], distributions[second]) <= loss**k
            attained = (
                max(attained, ratio(distributions[first], distributions[second])) if k == 1 else attained
            )
    assert attained == loss  # an unchanged value loses exactly what one report loses


@pytest.mark.parametrize("table", TABLES)
def test_that_a_value_changed_is_not_hidden(table: Table) -> None:
    """A limit of the bound: some answers of a changed value are impossible for an unchanged one."""
    changed, same = memoized_distribution(table, (0, 1, 1)), memoized_distribution(table, (0, 0, 0))
    assert set(changed) - set(same)


@pytest.mark.parametrize("table", TABLES[1:])
def test_numbers_between_levels(table: Table) -> None:
    """Positions in quarters of a level with one memoized rounding fraction.

    The patterns of two histories must agree for each rounding fraction.
    """
    quarter, loss = 4, column_ratio(table)
    positions = range(quarter * (len(table) - 1) + 1)

    def rows(history: Sequence[int], fraction: int) -> tuple[int, ...]:
        return tuple(place // quarter + (fraction < place % quarter) for place in history)

    by_rows = {
        history: memoized_distribution(table, history) for history in product(range(len(table)), repeat=2)
    }

    def distribution(history: Sequence[int]) -> Distribution:
        mixed: defaultdict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
        for fraction in range(quarter):
            for observed, p in by_rows[rows(history, fraction)].items():
                mixed[observed] += p / quarter
        return dict(mixed)

    distributions = {history: distribution(history) for history in product(positions, repeat=2)}
    compared = 0
    for first, second in product(distributions, repeat=2):
        both = [[rows(history, fraction) for fraction in range(quarter)] for history in (first, second)]
        if all(pattern(a) == pattern(b) for a, b in zip(*both, strict=True)):
            k = max(len(set(visited)) for visited in both[0])
            assert ratio(distributions[first], distributions[second]) <= loss**k
            compared += 1
    assert compared > len(distributions)


@pytest.mark.parametrize("table", [[[3, 1], [2, 2]], [[2, 1, 1], [1, 1, 2]]])
def test_unary_encoding_with_a_word_for_each_row(table: Table) -> None:
    """Three categories, two reports: all vectors of codes, by the product of independent words."""
    loss, v, total = entries_ratio(table), 3, sum(table[0])

    def vector(category: int, codes: Sequence[int]) -> Fraction:
        return math.prod(
            (Fraction(table[int(e == category)][y], total) for e, y in enumerate(codes)), start=Fraction(1)
        )

    vectors = list(product(range(len(table[0])), repeat=v))
    distributions: dict[tuple[int, int], Distribution] = {}
    for a, b in product(range(v), repeat=2):
        distributions[a, b] = {
            (x, y): vector(a, x) * (vector(b, y) if a != b else Fraction(int(x == y)))
            for x, y in product(vectors, repeat=2)
            if a != b or x == y
        }
    for first, second in product(distributions, repeat=2):
        if pattern(first) == pattern(second):
            assert ratio(distributions[first], distributions[second]) <= loss ** len(set(first))


# -- every history under every budget, with the client's own rule ---------------------------------------------------

Record = dict[str, Any]
Shown = tuple[tuple[int, ...], ...]
"""For each question the rows whose memoized responses are reported, one for each report."""


def _categories(name: str) -> list[Any]:
    return [Categorical(name, list("abcd"))]


def _values(name: str, values: Sequence[Any]) -> list[Record]:
    return [{name: value} for value in values]


KINDS: dict[str, tuple[Callable[[str], list[Any]], Callable[[str], list[Record]], dict[str, Any]]] = {
    "number": (lambda n: [Numeric(n, 0, 1)], lambda n: _values(n, (0, 0.5, 1)), {}),
    "optional": (
        lambda n: [Numeric(n, 0, 1, optional=True)],
        lambda n: _values(n, (0, 1, None)),
        {},
    ),
    "pair": (
        lambda n: [Numeric(n, 0, 1), Numeric(n + "2", 0, 1)],
        lambda n: [{n: a, n + "2": b} for a, b in ((0, 0), (1, 0), (0.5, 1))],
        {"pair_questions": 2},
    ),
    "entries": (_categories, lambda n: _values(n, "abd"), {"categorical": "oue"}),
    "grr": (_categories, lambda n: _values(n, "abd"), {"categorical": "grr"}),
    "subset": (
        lambda n: [Categorical(n, list("abcdefgh"))],
        lambda n: _values(n, "aeh"),
        {"categorical": "subset"},
    ),
    "projective": (
        lambda n: [Categorical(n, list("abcdefg"))],
        lambda n: _values(n, "adg"),
        {"categorical": "projective"},
    ),
    "privset": (
        lambda n: [Selection(n, list("abcd"), 2)],
        lambda n: _values(n, ([], ["a"], ["b", "d"])),
        {},
    ),
    "agreement": (
        lambda n: [Numeric(n + x, 0, 1) for x in "123"],
        lambda n: [
            {n + x: v for x, v in zip("123", vs, strict=True)} for vs in ((0, 0, 0), (1, 0, 1), (1, 1, 1))
        ],
        {"block_questions": 3},
    ),
    "missing": (
        lambda n: [Categorical(n, list("abc"), default="a")],
        lambda n: _values(n, ("b", "c", None)),
        {"categorical": "grr"},
    ),
    "time": (
        lambda n: [Time(n, "00:00", "24:00", "h", optional=True)],
        lambda n: _values(n, ("00:00", "24:00", None)),
        {},
    ),
    "calendar": (
        lambda n: [Calendar(n, "weekday")],
        lambda n: _values(n, ("2013-02-01", "2013-02-02", "2013-02-05")),
        {"categorical": "grr"},
    ),
    "bucket": (lambda n: [Bucket(n, [0, 1, 2, 3])], lambda n: _values(n, (0.5, 1.5, 2.5)), {}),
    "hash": (lambda n: [Hash(n, 8, 3)], lambda n: _values(n, ("a", "b", "c")), {}),
    "prefix": (
        lambda n: [Prefix(n, [Hash(n, 8, 3)], 1)],
        lambda n: _values(n, ("ab", "bb", "cb")),
        {},
    ),
    "joint": (
        lambda n: [Joint(n, [Categorical(n + "1", ["f", "m"]), Bucket(n + "2", [0, 18, 120])])],
        lambda n: [{n + "1": a, n + "2": b} for a, b in (("f", 3), ("m", 3), ("m", 80))],
        {"categorical": "grr"},
    ),
}


def survey_of(kind: str, m: int) -> tuple[Survey, list[list[Record]]]:
    """m questions of one kind, all answered, and for each question three records on three rows."""
    dimensions, records, options = KINDS[kind]
    asked = [dimensions(name) for name in "xy"[:m]]
    for group in {"pair_questions", "block_questions"} & set(options):
        options = {**options, group: [[d.name for d in one] for one in asked]}
    schema = Schema([dimension for one in asked for dimension in one])
    survey = Survey(schema, epsilon=1.0 * m, sampled=m, **options)
    return survey, [records(name) for name in "xy"[:m]]


def every_history(
    survey: Survey, records: list[list[Record]], budget: int, reports: int, period: int = 99
) -> dict[Shown, Shown]:
    """The rows shown for every history of `reports` reports, each value being one of three rows for each question.

    The client's own `decide` runs on every prefix once; its channels are made to show their row. The budget, in rows,
    renews after `period` reports.
    """
    found: dict[Shown, Shown] = {}
    m, secret = len(records), bytes(32)

    def go(history: Shown, shown: Shown, known: tuple[str, ...], left: int) -> None:
        t = len(history[0])
        if t == reports:
            found[history] = shown
            return
        left = left if t % period else budget
        for values in product(range(3), repeat=m):
            record = {k: v for own, x in zip(records, values, strict=True) for k, v in own[x].items()}
            answers, new = decide(survey, secret, record, known, left)
            go(
                tuple((*h, x) for h, x in zip(history, values, strict=True)),
                tuple((*s, row) for s, (_, row) in zip(shown, answers, strict=True)),
                (*known, *new),
                left - len(new),
            )

    go(((),) * m, ((),) * m, (), budget)
    return found


def until_spent(history: Shown, budget: int, period: int = 99) -> tuple[tuple[Any, ...], int]:
    """The pattern of equality while budget is left, and the rows paid for.

    The neighboring relation of docs/over-time.md, implemented independently of the client: for each report and each
    question in order, which of the question's earlier values comes again, until `budget` values were new. A value that
    comes while the budget is spent is ignored.
    """
    known: list[list[int]] = [[] for _ in history]
    steps: list[int | None] = []
    left = budget
    for t, values in enumerate(zip(*history, strict=True)):
        left = left if t % period else budget
        for q, value in enumerate(values):
            if left and value not in known[q]:
                known[q].append(value)
                left -= 1
                steps.append(len(known[q]) - 1)
            else:
                steps.append(known[q].index(value) if left else None)
    return tuple(steps), sum(map(len, known))


def worst_ratios(channel: Channel) -> Callable[[int, int], Fraction]:
    """The largest ratio of the probabilities of one output under two rows, by enumeration."""
    outputs = list(channel.outputs())

    @cache
    def distribution(row: int) -> list[Fraction]:
        return [channel.probability(row, output) for output in outputs]

    @cache
    def ratio(first: int, second: int) -> Fraction:
        assert sum(distribution(first)) == 1
        return max(p / q for p, q in zip(distribution(first), distribution(second), strict=True) if p or q)

    return ratio


def joint_ratio(
    survey: Survey, first: Shown, second: Shown, ratios: list[Callable[[int, int], Fraction]]
) -> Fraction:
    """The largest ratio of the joint distributions of all answers.

    Different rows have independent answers and a repeated row repeats its answer, so for equal patterns the
    distributions are products and the largest ratio is the product of the rows' largest ratios. Different patterns have
    no bound.
    """
    total = Fraction(1)
    for one, other, ratio in zip(first, second, ratios, strict=True):
        assert pattern(one) == pattern(other), "which answers are equal differs: no bound holds"
        for pair in set(zip(one, other, strict=True)):
            total *= ratio(*pair)
    return total


@pytest.fixture
def rows_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Channel, TableChannel, UnaryEncoding):
        monkeypatch.setattr(kind, "repeat", lambda self, x, memoized, fresh: (x,))


@pytest.mark.parametrize(("m", "reports"), [(1, 3), (1, 4), (2, 3)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("rows_are_shown")
def test_histories_alike_until_the_budget_is_spent(kind: str, m: int, reports: int) -> None:
    """All pairs of histories: equal patterns up to the moment at which the budget is spent, arbitrary afterwards.

    Their joint distributions are within loss^K for K rows paid for. With a budget of one report there is no condition:
    any two histories are within the loss of that report.
    """
    survey, records = survey_of(kind, m)
    assert [len(q.dimensions) for q in survey.questions] == [len(KINDS[kind][0]("x"))] * m
    ratios = [worst_ratios(question.channel) for question in survey.questions]
    loss = max(question.channel.likelihood_ratio for question in survey.questions)
    for budget in range(m, m + 3):
        groups: defaultdict[Any, set[Shown]] = defaultdict(set)
        for history, shown in every_history(survey, records, budget, reports).items():
            groups[until_spent(history, budget)].add(shown)
        assert budget > m or len(groups) == 1  # one report: every history is alike
        attained = Fraction(1)
        for (_, paid), alike in groups.items():
            for first, second in product(alike, repeat=2):
                found = joint_ratio(survey, first, second, ratios)
                assert found <= loss**paid
                attained = max(attained, found)
        assert attained > 1


@pytest.mark.parametrize(("kind", "m", "reports"), [("grr", 1, 4), ("number", 1, 4), ("grr", 2, 3)])
@pytest.mark.usefixtures("rows_are_shown")
def test_a_budget_that_renews(kind: str, m: int, reports: int) -> None:
    """Renewed after two reports: histories that are alike while budget is left, and arbitrary while it is spent."""
    survey, records = survey_of(kind, m)
    ratios = [worst_ratios(question.channel) for question in survey.questions]
    loss = max(question.channel.likelihood_ratio for question in survey.questions)
    for budget in range(m, m + 2):
        groups: defaultdict[Any, set[Shown]] = defaultdict(set)
        for history, shown in every_history(survey, records, budget, reports, period=2).items():
            groups[until_spent(history, budget, period=2)].add(shown)
        assert max(paid for _, paid in groups) > budget
        for (_, paid), alike in groups.items():
            for first, second in product(alike, repeat=2):
                assert joint_ratio(survey, first, second, ratios) <= loss**paid


def test_the_product_of_ratios_is_the_ratio_of_the_enumerated_distributions() -> None:
    """`joint_ratio` against enumerated joint distributions."""
    survey, _ = survey_of("grr", 1)
    channel = survey.questions[0].channel

    def distribution(shown: Sequence[int]) -> Distribution:
        found: defaultdict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
        rows = sorted(set(shown))
        for observed in product(channel.outputs(), repeat=len(rows)):
            answers = dict(zip(rows, observed, strict=True))
            found[tuple(answers[row] for row in shown)] += math.prod(
                (channel.probability(row, y) for row, y in answers.items()), start=Fraction(1)
            )
        return dict(found)

    for first, second in [((0, 1, 0), (2, 0, 2)), ((0, 0, 1), (3, 3, 3 - 2)), ((1, 1, 1), (2, 2, 2))]:
        expected = joint_ratio(survey, (first,), (second,), [worst_ratios(channel)])
        assert ratio(distribution(first), distribution(second)) == expected
    with pytest.raises(AssertionError, match="no bound"):
        joint_ratio(survey, ((0, 1, 0),), ((0, 1, 1),), [worst_ratios(channel)])


# -- two stages ------------------------------------------------------------------------------------------------------

STAGES: list[tuple[Table, Table]] = [
    ([[7, 1], [1, 7]], [[3, 1], [1, 3]]),
    ([[5, 2, 1], [2, 4, 2], [1, 2, 5]], [[4, 1, 1], [1, 4, 1], [1, 1, 4]]),
    ([[4, 2], [3, 3], [2, 4]], [[5, 2, 1], [1, 2, 5]]),
]


def ratio_of_reports(first: Table, second: Table, n_reports: int) -> Fraction:
    """The largest ratio of the probabilities of any reports of one unchanged row, under two rows."""
    sequences = list(product(range(len(second[0])), repeat=n_reports))
    return column_ratio(
        [
            [
                sum(w * math.prod(second[z][y] for y in cells) for z, w in enumerate(row))
                for cells in sequences
            ]
            for row in first
        ]
    )


def bound_of_reports(first: Table, second: Table, n_reports: int) -> Fraction:
    return min(column_ratio(first), column_ratio(product_rows(first, second)) ** n_reports)


@pytest.mark.parametrize(("first", "second"), STAGES)
def test_the_composite_table_is_proven(first: Table, second: Table) -> None:
    rows = product_rows(first, second)
    assert {sum(row) for row in rows} == {sum(first[0]) * sum(second[0])}
    losses = [ratio_of_reports(first, second, n) for n in range(1, 6)]
    assert losses[0] == column_ratio(rows) < min(column_ratio(first), column_ratio(second))
    assert losses == sorted(losses)  # more reports tell more …
    for n, loss in enumerate(
        losses, start=1
    ):  # … but never more than the memoized stage, nor than fresh reports would
        assert loss <= bound_of_reports(first, second, n)
    assert losses[-1] < column_ratio(first)


def test_one_report_of_two_stages_is_one_table_of_the_same_contraction() -> None:
    """c∞ = 3/4, c_i = 1/2: the product is the response with c = 3/8, whose loss is (1 + c)/(1 − c) = 11/5."""
    rows = product_rows([[7, 1], [1, 7]], [[3, 1], [1, 3]])
    assert column_ratio(rows) == (1 + Fraction(3, 8)) / (1 - Fraction(3, 8))
    assert [ratio_of_reports(*STAGES[0], n) for n in (2, 3)] == [4, Fraction(95, 17)]


def test_tables_of_sixteen_bits_make_a_table_of_a_survey() -> None:
    """Row sums of 2^16 multiply to 2^32: the composite is proven and carried like any other table."""
    one = 1 << 16
    rows = product_rows(
        [[60_000, one - 60_000], [one - 60_000, 60_000]], [[50_000, one - 50_000], [one - 50_000, 50_000]]
    )
    assert {sum(row) for row in rows} == {1 << 32}


@pytest.mark.parametrize("n_reports", [1, 2, 5])
def test_the_second_moment_of_several_reports(n_reports: int) -> None:
    """By enumeration of all memoized responses and reports, for t = ±1 and every share in between."""
    memoized, instant = Fraction(3, 4), Fraction(1, 2)
    for t in (Fraction(-1), Fraction(0), Fraction(1, 3)):
        moment = Fraction(0)
        for answer in (-1, 1):
            chance = (1 + answer * memoized * t) / 2
            for observed in product((-1, 1), repeat=n_reports):
                p = chance * math.prod(((1 + y * answer * instant) / 2 for y in observed), start=Fraction(1))
                moment += p * (Fraction(sum(observed), n_reports) / (memoized * instant)) ** 2
        assert moment == (1 + (instant**-2 - 1) / n_reports) / memoized**2


def staged_distribution(first: Table, second: Table, shown: Sequence[int]) -> Distribution:
    """The joint distribution of the reports: a memoized cell for each row, and fresh noise in each report."""
    one, two = sum(first[0]), sum(second[0])
    found: Distribution = {}
    for observed in product(range(len(second[0])), repeat=len(shown)):
        p = Fraction(1)
        for row in set(shown):
            moments = [y for y, s in zip(observed, shown, strict=True) if s == row]
            p *= sum(
                Fraction(w, one)
                * math.prod((Fraction(second[z][y], two) for y in moments), start=Fraction(1))
                for z, w in enumerate(first[row])
            )
        found[observed] = p
    return found


@pytest.mark.parametrize(("first", "second"), [pair for pair in STAGES if len(pair[0]) == 3])
@pytest.mark.usefixtures("rows_are_shown")
def test_two_stages_over_every_history(first: Table, second: Table) -> None:
    """Any two histories are within loss_second^T; neighbors are also within (loss of the first stage)^K.

    For the latter each row that is shown n times loses at most min(loss of the first stage, loss^n).
    """
    survey, records = survey_of("grr", 1)
    rows = {x: k for k, x in enumerate((0, 1, 3))}
    fresh = column_ratio(second)
    for budget in (1, 2, 3):
        groups: defaultdict[Any, set[tuple[int, ...]]] = defaultdict(set)
        for history, shown in every_history(survey, records, budget, T).items():
            groups[until_spent(history, budget)].add(tuple(rows[x] for x in shown[0]))
        distributions = {
            shown: staged_distribution(first, second, shown) for alike in groups.values() for shown in alike
        }
        for a, b in product(distributions, repeat=2):
            assert ratio(distributions[a], distributions[b]) <= fresh**T
        for (_, paid), alike in groups.items():
            for a, b in product(alike, repeat=2):
                found = ratio(distributions[a], distributions[b])
                assert found <= column_ratio(first) ** paid
                assert found <= math.prod(bound_of_reports(first, second, a.count(row)) for row in set(a))


@pytest.mark.usefixtures("rows_are_shown")
def test_two_stages_of_a_unary_encoding_over_every_history() -> None:
    """The same for a unary encoding: its bits are independent, so their largest ratios are multiplied."""
    survey, records = survey_of("grr", 1)
    channel = Survey(Schema([Categorical("x", list("abcd"))]), epsilon=1.0, memoized_epsilon=3.0).channels[0]
    stages = getattr(channel, "stages", None)
    assert stages is not None
    first, second = [list(row) for row in stages.first], [list(row) for row in stages.second]
    memoized, fresh = entries_ratio(first), column_ratio(second)

    @cache
    def entry(pattern_of_rows: tuple[int, ...], present: frozenset[int]) -> Distribution:
        """The reports of one bit: for each report its row, and the rows in which the bit is present."""
        numbers = sorted(set(pattern_of_rows))
        table = [first[int(row in present)] for row in numbers]
        return staged_distribution(table, second, [numbers.index(row) for row in pattern_of_rows])

    def largest(a: tuple[int, ...], b: tuple[int, ...]) -> Fraction:
        return math.prod(
            (ratio(entry(a, frozenset({e})), entry(b, frozenset({e}))) for e in range(4)), start=Fraction(1)
        )

    for budget in (1, 2, 3):
        groups: defaultdict[Any, set[tuple[int, ...]]] = defaultdict(set)
        for history, shown in every_history(survey, records, budget, T).items():
            groups[until_spent(history, budget)].add(shown[0])
        everything = sorted({shown for alike in groups.values() for shown in alike})
        for a, b in product(everything, repeat=2):
            assert largest(a, b) <= fresh ** (4 * T)
        for (_, paid), alike in groups.items():
            for a, b in product(alike, repeat=2):
                assert largest(a, b) <= memoized**paid


# -- attacks ---------------------------------------------------------------------------------------------------------


def test_the_figures_of_the_attack() -> None:
    """A yes/no attribute, ε = 1, every day for thirty days."""
    assert round(100 * guessed(1.0, 30), 1) == 99.6
    assert round(100 * guessed(1.0, 1), 1) == 73.1


@pytest.mark.parametrize("memoized", [False, True])
def test_the_figures_simulated(memoized: bool) -> None:
    """Majority votes of 200,000 people; five standard errors, seeded."""
    rng = np.random.default_rng(30)
    n, days, p = 200_000, 30, math.e / (1 + math.e)
    right = days * rng.binomial(1, p, n) if memoized else rng.binomial(days, p, n)
    wins = (right > days / 2) + (right == days / 2) * rng.integers(0, 2, n)
    expected = guessed(1.0, 1 if memoized else days)
    assert abs(wins.mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / n)


def test_attacks_after_the_budget_is_spent_succeed_no_better_than_the_bound_allows() -> None:
    """300 fixed secrets, two rows paid for; benchmarks/memoized_attacks.py has 10,000 (nothing here is random).

    The same attacks on a rule that chooses among stored answers by the value are far above the bound.
    """
    found, bits = memoized_attacks.outcomes(300)
    assert [one.attack for one in found if not one.within] == []
    assert 23 < bits < 27  # of 50, by guessing
    broken, read = memoized_attacks.outcomes(300, "nearest")
    assert [one.within for one in broken] == [False, False, True, True]
    assert read > 45


def test_the_reports_of_two_secret_histories_are_identical_once_the_budget_is_spent(tmp_path: Path) -> None:
    """With real ledgers: the same secret gives the same reports, whatever the values are."""
    severity = Survey(
        Schema([Categorical("severity", ["none", "low", "high", "severe"])]), epsilon=1.0, categorical="grr"
    )
    weekly = Survey(Schema([Numeric("x", 0, 100)]), epsilon=1.0)
    for survey, name, paid, secrets in (
        (severity, "severity", ("none", "severe"), [("low", "none"), ("high", "severe")]),
        (weekly, "x", (0, 100), [(20, 80, 80, 0, 20), (80, 20, 80, 100, 55)]),
    ):
        observed = set()
        for i, values in enumerate(secrets):
            path = tmp_path / f"{name}-{i}.json"
            beside(path, "secret").write_bytes(bytes(range(32)))
            client = MemoizedClient(survey, Ledger(path, reports_per_survey=2))
            observed.add(tuple(client.report({name: value}) for value in (*paid, *values)))
        assert len(observed) == 1


def test_a_failing_disk_gives_the_same_outcomes_for_all_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 27 histories of three reports, budgets of one to three rows, and each of the first eight writes failing.

    Which reports are released depends on the write that fails and on nothing else.
    """
    survey = Survey(Schema([Categorical("x", ["0", "1", "2"])]), epsilon=1.0, categorical="grr")
    real, writes = ledger_file.write_text, []  # type: ignore[attr-defined]

    def failing(*arguments: Any, **options: Any) -> None:
        writes.append(arguments)
        if len(writes) - 1 == fails_at:
            raise OSError(28, "No space left on device")
        real(*arguments, **options)

    def outcomes(history: Sequence[str], budget: int, path: Path) -> list[str]:
        beside(path, "secret").write_bytes(bytes(32))
        client = MemoizedClient(survey, Ledger(path, reports_per_survey=budget))
        found = []
        writes.clear()
        for value in history:
            try:
                client.report({"x": value})
            except OSError:
                found.append("error")
            else:
                found.append("released")
        return found

    monkeypatch.setattr(ledger_file, "write_text", failing)
    monkeypatch.setattr("hdr4me.atomic._sync", lambda _: None)
    for budget, fails_at in product((1, 2, 3), range(8)):
        seen = set()
        for history in product("012", repeat=3):
            folder = tmp_path / f"{budget}-{fails_at}-{''.join(history)}"
            folder.mkdir()
            seen.add(tuple(outcomes(history, budget, folder / "ledger.json")))
        assert len(seen) == 1
        assert ("error" in seen.pop()) == (
            fails_at < 7
        )  # the first report writes three files, the others two


def test_no_other_rule_guesses_better() -> None:
    """Of all 2^(2^3) decision rules for three answers, the majority is the best."""
    p = Fraction(3, 4)
    yes = {
        observed: math.prod((p if y else 1 - p for y in observed), start=Fraction(1))
        for observed in product((0, 1), repeat=3)
    }
    best = sum(max(yes[observed], yes[tuple(1 - y for y in observed)]) for observed in yes) / 2
    assert float(best) == pytest.approx(guessed(math.log(3.0), 3), rel=1e-12)


def test_large_budgets_and_many_rounds() -> None:
    assert guessed(800.0, 5) == 1.0
    assert guessed(1e-9, 1000) == pytest.approx(0.5, abs=1e-6)
    assert guessed(0.5, 100_001) <= 1.0


def test_the_statement() -> None:
    weekly = repeated(1.0, 2, 53)
    assert weekly.to_dict()["fresh_epsilon"] == 53
    text = "\n".join(weekly.lines())
    for said in ("53 rounds", "ε = 53 in total", "memoized", "not hidden", "deleted", "cloned"):
        assert said in text
    assert weekly.to_dict()["memoized_epsilon_for_each_new_row"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 1, 1), "epsilon"),
        ((math.nan, 1, 1), "epsilon"),
        ((True, 1, 1), "epsilon"),
        ((1.0, 0, 1), "sampled"),
        ((1.0, 1, 0), "rounds"),
        ((1.0, 1, 1.5), "rounds"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} = "):
        repeated(*arguments)
