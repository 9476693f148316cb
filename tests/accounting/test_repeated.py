"""Permanent answers and two stages of noise, proven by listing everything, in fractions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np
import pytest

from hdr4me.accounting.composite import composite, second_moment
from hdr4me.accounting.repeated import guessed, repeated
from hdr4me.channels.proof import column_loss, entries_loss
from hdr4me.errors import InvalidInput

Table = list[list[int]]
Law = dict[tuple[Any, ...], Fraction]

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


def permanent_law(table: Table, history: Sequence[int]) -> Law:
    """The joint law of the answers, by listing the words of all rows and applying the client's rule to them."""
    total = sum(table[0])
    bounds = [tuple(accumulate(row))[:-1] for row in table]
    counts: defaultdict[tuple[int, ...], int] = defaultdict(int)
    for words in product(range(total), repeat=len(table)):
        counts[tuple(sum(words[row] >= bound for bound in bounds[row]) for row in history)] += 1
    return {told: Fraction(count, total ** len(table)) for told, count in counts.items()}


def ratio(first: Law, second: Law) -> Fraction:
    """The largest ratio of two laws; raises if one of them cannot happen under the other."""
    return max(Fraction(p, 1) / second[told] for told, p in first.items())


@pytest.mark.parametrize("table", TABLES)
def test_any_two_histories_with_the_same_pattern_of_change(table: Table) -> None:
    """Within loss^k for k rows visited: every pair of histories of three moments, every outcome of the secret."""
    loss = column_loss(table)
    laws = {history: permanent_law(table, history) for history in product(range(len(table)), repeat=T)}
    attained = Fraction(1)
    for first, second in product(laws, repeat=2):
        if pattern(first) == pattern(second):
            k = len(set(first))
            assert ratio(laws[first], laws[second]) <= loss**k
            attained = max(attained, ratio(laws[first], laws[second])) if k == 1 else attained
    assert attained == loss  # an unchanged value loses exactly what one report loses


@pytest.mark.parametrize("table", TABLES)
def test_that_a_value_changed_is_not_hidden(table: Table) -> None:
    """The other side, said honestly: some answers of a changed value are impossible for an unchanged one."""
    changed, same = permanent_law(table, (0, 1, 1)), permanent_law(table, (0, 0, 0))
    assert set(changed) - set(same)


@pytest.mark.parametrize("table", TABLES[1:])
def test_numbers_between_levels(table: Table) -> None:
    """Positions in quarters of a level with one rounding fraction for ever.

    The patterns of two histories must agree for each rounding fraction.
    """
    quarter, loss = 4, column_loss(table)
    positions = range(quarter * (len(table) - 1) + 1)

    def rows(history: Sequence[int], fraction: int) -> tuple[int, ...]:
        return tuple(place // quarter + (fraction < place % quarter) for place in history)

    by_rows = {history: permanent_law(table, history) for history in product(range(len(table)), repeat=2)}

    def law(history: Sequence[int]) -> Law:
        mixed: defaultdict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
        for fraction in range(quarter):
            for told, p in by_rows[rows(history, fraction)].items():
                mixed[told] += p / quarter
        return dict(mixed)

    laws = {history: law(history) for history in product(positions, repeat=2)}
    compared = 0
    for first, second in product(laws, repeat=2):
        both = [[rows(history, fraction) for fraction in range(quarter)] for history in (first, second)]
        if all(pattern(a) == pattern(b) for a, b in zip(*both, strict=True)):
            k = max(len(set(visited)) for visited in both[0])
            assert ratio(laws[first], laws[second]) <= loss**k
            compared += 1
    assert compared > len(laws)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("limit", [1, 2])
def test_at_the_limit_the_nearest_row_that_was_paid_for(table: Table, limit: int) -> None:
    """With one row paid for, ANY two histories are within the loss of one report, changes included."""
    loss = column_loss(table)

    def answered(history: Sequence[int]) -> tuple[int, ...]:
        paid: list[int] = []
        shown = []
        for row in history:
            if row not in paid and len(paid) < limit:
                paid.append(row)
            shown.append(row if row in paid else min(paid, key=lambda r: (abs(r - row), r)))
        return tuple(shown)

    laws = {h: permanent_law(table, answered(h)) for h in product(range(len(table)), repeat=T)}
    for first, second in product(laws, repeat=2):
        if limit == 1 or pattern(answered(first)) == pattern(answered(second)):
            assert ratio(laws[first], laws[second]) <= loss**limit


@pytest.mark.parametrize("table", [[[3, 1], [2, 2]], [[2, 1, 1], [1, 1, 2]]])
def test_entries_with_a_word_for_each_row(table: Table) -> None:
    """Three categories, two moments: all vectors of codes, by the product of independent words."""
    loss, v, total = entries_loss(table), 3, sum(table[0])

    def vector(category: int, codes: Sequence[int]) -> Fraction:
        return math.prod(
            (Fraction(table[int(e == category)][y], total) for e, y in enumerate(codes)), start=Fraction(1)
        )

    vectors = list(product(range(len(table[0])), repeat=v))
    laws: dict[tuple[int, int], Law] = {}
    for a, b in product(range(v), repeat=2):
        laws[a, b] = {
            (x, y): vector(a, x) * (vector(b, y) if a != b else Fraction(int(x == y)))
            for x, y in product(vectors, repeat=2)
            if a != b or x == y
        }
    for first, second in product(laws, repeat=2):
        if pattern(first) == pattern(second):
            assert ratio(laws[first], laws[second]) <= loss ** len(set(first))


# -- two stages ------------------------------------------------------------------------------------------------------

STAGES: list[tuple[Table, Table]] = [
    ([[7, 1], [1, 7]], [[3, 1], [1, 3]]),
    ([[5, 2, 1], [2, 4, 2], [1, 2, 5]], [[4, 1, 1], [1, 4, 1], [1, 1, 4]]),
    ([[4, 2], [3, 3], [2, 4]], [[5, 2, 1], [1, 2, 5]]),
]


@pytest.mark.parametrize(("first", "second"), STAGES)
def test_the_composite_table_is_proven(first: Table, second: Table) -> None:
    two = composite(first, second)
    assert {sum(row) for row in two.rows} == {sum(first[0]) * sum(second[0])}
    assert two.exact_loss(1) == two.loss
    losses = [two.exact_loss(n) for n in range(1, 6)]
    assert losses == sorted(losses)  # more reports tell more …
    for n, loss in enumerate(losses, start=1):
        assert loss <= two.bound(
            n
        )  # … but never more than the permanent answer, nor than fresh reports would
    assert losses[-1] < two.permanent_loss
    assert two.loss < min(two.permanent_loss, column_loss(second))


def test_one_report_of_two_stages_is_one_table_of_the_same_contraction() -> None:
    """c∞ = 3/4, c_i = 1/2: the product is the response with c = 3/8, whose loss is (1 + c)/(1 − c) = 11/5."""
    two = composite([[7, 1], [1, 7]], [[3, 1], [1, 3]])
    assert two.loss == (1 + Fraction(3, 8)) / (1 - Fraction(3, 8))


def test_tables_of_sixteen_bits_make_a_table_of_a_survey() -> None:
    """Row sums of 2^16 multiply to 2^32: the composite is proven and carried like any other table."""
    one = 1 << 16
    two = composite(
        [[60_000, one - 60_000], [one - 60_000, 60_000]], [[50_000, one - 50_000], [one - 50_000, 50_000]]
    )
    assert {sum(row) for row in two.rows} == {1 << 32}


@pytest.mark.parametrize("n_reports", [1, 2, 5])
def test_the_second_moment_of_several_reports(n_reports: int) -> None:
    """By listing all permanent answers and all reports, for t = ±1 and every share in between."""
    permanent, instant = Fraction(3, 4), Fraction(1, 2)
    for t in (Fraction(-1), Fraction(0), Fraction(1, 3)):
        moment = Fraction(0)
        for answer in (-1, 1):
            chance = (1 + answer * permanent * t) / 2
            for told in product((-1, 1), repeat=n_reports):
                p = chance * math.prod(((1 + y * answer * instant) / 2 for y in told), start=Fraction(1))
                moment += p * (Fraction(sum(told), n_reports) / (permanent * instant)) ** 2
        assert float(moment) == pytest.approx(second_moment(0.75, 0.5, n_reports), rel=1e-12)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([[1, 2], [1, 1]], [[1, 1], [1, 1]]),
        ([[1, 1], [2]], [[1, 1], [1, 1]]),
        ([[-1, 3], [1, 1]], [[1, 1], [1, 1]]),
        ([[1, 1], [1, 1]], [[1, 1]]),
        ([], [[1, 1]]),
    ],
)
def test_tables_that_do_not_fit(first: Table, second: Table) -> None:
    with pytest.raises(InvalidInput, match=r"table|rows"):
        composite(first, second)


# -- attacks ---------------------------------------------------------------------------------------------------------


def test_the_figures_of_the_attack() -> None:
    """A yes/no attribute, ε = 1, every day for thirty days."""
    assert round(100 * guessed(1.0, 30), 1) == 99.6
    assert round(100 * guessed(1.0, 1), 1) == 73.1


@pytest.mark.parametrize("permanent", [False, True])
def test_the_figures_simulated(permanent: bool) -> None:
    """200,000 people by majority; five standard errors, seeded."""
    rng = np.random.default_rng(30)
    n, days, p = 200_000, 30, math.e / (1 + math.e)
    right = days * rng.binomial(1, p, n) if permanent else rng.binomial(days, p, n)
    wins = (right > days / 2) + (right == days / 2) * rng.integers(0, 2, n)
    expected = guessed(1.0, 1 if permanent else days)
    assert abs(wins.mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / n)


def test_no_other_rule_guesses_better() -> None:
    """All 2^(2^3) rules for three answers: the best is the larger count."""
    p = Fraction(3, 4)
    yes = {
        told: math.prod((p if y else 1 - p for y in told), start=Fraction(1))
        for told in product((0, 1), repeat=3)
    }
    best = sum(max(yes[told], yes[tuple(1 - y for y in told)]) for told in yes) / 2
    assert float(best) == pytest.approx(guessed(math.log(3.0), 3), rel=1e-12)


def test_large_budgets_and_many_rounds() -> None:
    assert guessed(800.0, 5) == 1.0
    assert guessed(1e-9, 1000) == pytest.approx(0.5, abs=1e-6)
    assert guessed(0.5, 100_001) <= 1.0


def test_the_statement() -> None:
    weekly = repeated(1.0, 2, 53)
    assert weekly.fresh == 53
    assert [weekly.permanent(k) for k in (1, 2, 100)] == [Fraction(1, 2), 1, Fraction(53, 2)]
    text = "\n".join(weekly.lines())
    for said in ("53 rounds", "ε = 53 in total", "permanent", "Not hidden", "deleted", "cloned"):
        assert said in text
    assert weekly.to_dict()["permanent_epsilon_for_each_new_row"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 1, 1), "epsilon"),
        ((math.nan, 1, 1), "epsilon"),
        ((True, 1, 1), "epsilon"),
        ((1.0, 0, 1), "n_sampled"),
        ((1.0, 1, 0), "rounds"),
        ((1.0, 1, 1.5), "rounds"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} = "):
        repeated(*arguments)
