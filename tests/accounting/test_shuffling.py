"""The shuffle accountant against published numbers, exact lower bounds, the closed form and brute force."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

import hdr4me as hd
from hdr4me.accounting import binary
from hdr4me.accounting.excess import Law, log_excess, spread
from hdr4me.accounting.shuffling import Shuffled, amplification, closed_form, local_epsilon, product_blanket
from hdr4me.channels.blanket import (
    Blanket,
    entries_blanket,
    heavy_blanket,
    response_blanket,
    table_blanket,
)
from hdr4me.errors import InvalidInput
from hdr4me.survey import Categorical, Numeric, Schema, Survey

ONE = 1 << 32


def one_number(epsilon: float, mechanism: str) -> Survey:
    return Survey(Schema([Numeric("x", 0, 1)]), epsilon=epsilon, mechanism=mechanism)


def rows_blanket(mechanism: str) -> Blanket:
    rows = one_number(2.0, mechanism).channels[0].rows
    assert rows is not None
    return table_blanket(rows)


def delta_of(blanket: Blanket, epsilon: float, n: int) -> float:
    return math.exp(Shuffled(((blanket, 1.0),), 100.0).log_delta(epsilon, n))


# -- published and earlier numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [("duchi", 0.0848), ("piecewise", 0.1115), ("optimal", 0.1161)],
)
def test_the_tables_give_a_smaller_epsilon_than_the_closed_form(mechanism: str, value: float) -> None:
    found = hd.amplification(one_number(4.0, mechanism), 100_000, 1e-6)
    assert found.epsilon == pytest.approx(value, rel=0.01)
    assert found.closed_form == pytest.approx(0.535, abs=5e-4)
    assert (found.local_epsilon, found.n_reports, found.delta) == (4.0, 100_000, 1e-6)
    assert set(found.to_dict()) == {"epsilon", "delta", "reports", "local_epsilon", "closed_form"}


def exact_response(epsilon: float, n: int, delta: float) -> float:
    """The exact ε of n shuffled binary responses if all other users have the same value.

    The number of ones is 1 + Bin(n−1, q) or Bin(n−1, q), mixed with p and q.
    """
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    k = np.arange(n + 1)
    rest, shifted = binom.pmf(k, n - 1, q), binom.pmf(k - 1, n - 1, q)
    first, second = p * shifted + q * rest, q * shifted + p * rest

    def above(e: float) -> float:
        both = (np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((first, second), (second, first)))
        return math.log(max(both) / delta)

    return float(brentq(above, 1e-6, epsilon))


@pytest.mark.parametrize(("epsilon", "known"), [(1.0, 0.0357), (2.0, 0.0870), (4.0, 0.3146)])
def test_never_below_the_exact_value_of_randomized_response(epsilon: float, known: float) -> None:
    exact = exact_response(epsilon, 10_000, 1e-6)
    assert exact == pytest.approx(known, rel=2e-3)
    found = amplification(one_number(epsilon, "duchi"), 10_000, 1e-6).epsilon
    assert exact < found < 1.002 * exact
    blanket = Shuffled(((response_blanket(math.exp(epsilon)), 1.0),), epsilon).epsilon(10_000, 1e-6)
    assert 1.2 * found < blanket < 1.4 * found


@pytest.mark.parametrize("n", [1_000, 30_000, 300_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_below_the_closed_form_wherever_it_holds(epsilon: float, n: int, delta: float) -> None:
    """Randomized response is the worst of all channels, so this is below it for every survey."""
    closed = closed_form(epsilon, n, delta)
    shuffled = Shuffled(((response_blanket(math.exp(epsilon)), 1.0),), epsilon)
    found = shuffled.epsilon(n, delta)
    assert found <= epsilon
    if closed is not None:
        assert found < closed


def test_a_million_reports() -> None:
    """benchmarks/shuffling.py measures ten million."""
    exact = exact_response(4.0, 10**6, 1e-6)
    found = amplification(one_number(4.0, "duchi"), 10**6, 1e-6).epsilon
    assert exact < found < 1.002 * exact


def test_the_number_of_reports_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdr4me.accounting.shuffling.MOST_REPORTS", 1_000)
    survey = one_number(1.0, "duchi")
    assert amplification(survey, 10**12, 1e-6).epsilon == amplification(survey, 1_000, 1e-6).epsilon


# -- brute force ---------------------------------------------------------------------------------------------------


def exact_delta(rows: list[list[Fraction]], n: int, factor: Fraction) -> Fraction:
    """The largest of Σ (P − factor·Q)₊ over the multisets of n reports, over all neighboring data."""
    inputs = range(len(rows))
    laws: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = {}

    def law(data: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        if data not in laws:
            found: Counter[tuple[int, ...]] = Counter()
            for reports in product(range(len(rows[0])), repeat=n):
                found[tuple(sorted(reports))] += math.prod(  # type: ignore[assignment]
                    (rows[x][y] for x, y in zip(data, reports, strict=True)), start=Fraction(1)
                )
            laws[data] = dict(found)
        return laws[data]

    worst = Fraction(0)
    for others in combinations_with_replacement(inputs, n - 1):
        for x, y in product(inputs, repeat=2):
            first, second = law((*others, x)), law((*others, y))
            worst = max(worst, sum(max(first[z] - factor * second[z], Fraction(0)) for z in first))
    return worst


TABLES: list[list[list[int]]] = [
    [[3, 1], [1, 3]],
    [[5, 2, 1], [2, 4, 2], [1, 2, 5]],
    [[6, 1, 1], [1, 6, 1], [1, 1, 6]],
    [[4, 2, 2], [3, 2, 3], [2, 2, 4]],
]


@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_an_upper_bound_of_the_truth(rows: list[list[int]], n: int) -> None:
    """Every data set of n users, every neighbor, every multiset, in fractions."""
    exact = [[Fraction(w, sum(row)) for w in row] for row in rows]
    for epsilon in (0.05, 0.3, 0.8):
        truth = exact_delta(exact, n, Fraction(math.exp(epsilon)))
        assert float(truth) <= delta_of(table_blanket(rows), epsilon, n)


@pytest.mark.parametrize(("p", "q"), [(0.73, 0.27), (0.9, 0.4), (0.5, 0.05)])
@pytest.mark.parametrize("n", [1, 2, 12, 60])
def test_two_cells_are_exact_for_the_worst_data_of_the_others(p: float, q: float, n: int) -> None:
    """All numbers of other users with either record and both directions, by plain convolution."""

    def worst(epsilon: float) -> float:
        found, factor = 0.0, math.exp(epsilon)
        for k in range(n):
            rest = np.convolve(binom.pmf(np.arange(k + 1), k, p), binom.pmf(np.arange(n - k), n - 1 - k, q))
            first, second = (np.convolve(rest, [1 - x, x]) for x in (p, q))
            for a, b in ((first, second), (second, first)):
                found = max(found, float(np.maximum(a - factor * b, 0.0).sum()))
        return found

    for epsilon in (0.05, 0.2):
        truth = worst(epsilon)
        assert binary.holds(p, q, n, epsilon, truth * (1 + 1e-6))
        assert not binary.holds(p, q, n, epsilon, truth * (1 - 1e-3))
    found = binary.epsilon(p, q, n, 1e-4)
    assert worst(found) <= 1e-4 * (1 + 1e-9)
    assert worst(found * 0.997) > 1e-4


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_sum_equals_a_convolution(n: int) -> None:
    """Against a plain convolution, for a law on the grid (nothing is rounded)."""
    p = np.array([0.1, 0.3, 0.25, 0.15, 0.2])
    direct = np.ones(1)
    for _ in range(n):
        direct = np.convolve(direct, p)
    s = 0.5 * (np.arange(len(direct)) - 3 * n)
    assert math.exp(log_excess(Law(p, -3, 0.5), n)) == pytest.approx(
        float(direct @ np.maximum(s, 0)), rel=1e-9
    )


@pytest.mark.parametrize(("n", "q"), [(100_000, 0.49), (10_000_000, 0.499)])
def test_large_sums_keep_their_digits(n: int, q: float) -> None:
    """Against the binomial law: far inside the stated 10⁻⁶."""
    k = np.arange(n // 2 + 1, n // 2 + int(30 * math.sqrt(n)))
    truth = math.log(float((2 * k - n) @ np.exp(binom.logpmf(k, n, q))))
    assert log_excess(Law(np.array([1 - q, 0.0, q]), -1, 1.0), n) == pytest.approx(truth, abs=1e-7)


def test_far_tails_keep_their_digits() -> None:
    """P(all of 40 are +1) = 1e-40·…: relative accuracy where a plain transform has none."""
    p = np.array([0.9, 0.0, 0.1])
    law, n = Law(p, -1, 1.0), 40
    truth = sum((2 * k - n) * binom.pmf(k, n, 0.1) for k in range(n // 2 + 1, n + 1))
    assert log_excess(law, n) == pytest.approx(math.log(truth), rel=1e-9)
    assert truth < 1e-9
    assert log_excess(Law(np.array([1.0, 0.0]), -1, 1.0), 5) == -math.inf


def test_the_dominating_law_keeps_mass_and_mean() -> None:
    table = rows_blanket("piecewise")
    for factor in (1.0, 1.2, 3.0):
        law, _ = spread([(table, 1.0)], [table.pairs], factor)
        values = (law.first + np.arange(len(law.probabilities))) * law.step
        assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-9)
        assert law.probabilities @ values == pytest.approx(1.0 - factor, abs=1e-9)
        assert law.probabilities.min() >= 0


@pytest.mark.parametrize("mechanism", ["piecewise", "optimal", "laplace"])
def test_the_dominating_law_is_above_every_pair(mechanism: str) -> None:
    table = rows_blanket(mechanism)
    shuffled = Shuffled(((table, 1.0),), 2.0)
    every = shuffled.log_delta(0.2, 3_000)
    rng = np.random.default_rng(3)
    some = table.pairs[rng.choice(len(table.pairs), 20, replace=False)]
    assert max(shuffled.log_delta(0.2, 3_000, [pair[None]]) for pair in some) <= every + 1e-4


# -- other channels, several questions -----------------------------------------------------------------------------


def joint_rows(rows: list[list[int]], n_entries: int) -> list[list[int]]:
    """The whole table of a unary encoding: one row for each category, one cell for each vector."""
    return [
        [
            math.prod(rows[int(e == x)][y] for e, y in enumerate(cells))
            for cells in product(range(len(rows[0])), repeat=n_entries)
        ]
        for x in range(n_entries)
    ]


@pytest.mark.parametrize("rows", [[[3, 1], [2, 2]], [[4, 3, 1], [2, 3, 3]], [[9, 8, 7, 6], [6, 7, 8, 9]]])
@pytest.mark.parametrize("n_entries", [2, 3, 4])
def test_unary_encoding_is_one_channel(rows: list[list[int]], n_entries: int) -> None:
    whole = table_blanket(joint_rows(rows, n_entries))
    short = entries_blanket(rows, n_entries)
    assert short.gamma == pytest.approx(whole.gamma, rel=1e-12)
    assert delta_of(short, 0.1, 500) == pytest.approx(delta_of(whole, 0.1, 500), rel=1e-3)


def test_k_subset_responses() -> None:
    """Randomized response is a k-subset response with k = 1; the smallest overlap bounds every overlap."""
    v, weight = 5, 3 * ONE // 4
    rest = (ONE - weight) // (v - 1)
    response = [[weight if y == x else rest for y in range(v)] for x in range(v)]
    assert delta_of(heavy_blanket(v, 1, weight), 0.1, 800) == pytest.approx(
        delta_of(table_blanket(response, alike=True), 0.1, 800), rel=1e-3
    )
    sets = [{0, 1, 2}, {2, 3, 4}, {0, 2, 4}, {1, 2, 3}]  # of six outputs
    subset = [[20 if y in heavy else 10 for y in range(6)] for heavy in sets]
    bound = heavy_blanket(6, 3, 60, 90)
    assert delta_of(table_blanket(subset), 0.05, 300) <= delta_of(bound, 0.05, 300)


def test_randomized_response_is_the_worst_channel() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        rows = rng.integers(10, 40, (3, 5)).astype(float)
        rows /= rows.sum(axis=1, keepdims=True)
        blanket = table_blanket(rows)
        worst = response_blanket(blanket.largest_ratio)
        assert delta_of(blanket, 0.1, 200) <= delta_of(worst, 0.1, 200) * (1 + 1e-9)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_several_answers_of_two_cells_are_exact(m: int) -> None:
    """The draw of the questions and the m answers, against the table of the whole report."""
    coin = [[3, 1], [1, 3]]
    d = 3
    whole = [
        [
            math.prod(coin[x[j]][y] for j, y in zip(chosen, answers, strict=True))
            for chosen in combinations(range(d), m)
            for answers in product(range(2), repeat=m)
        ]
        for x in product(range(2), repeat=d)
    ]
    short = product_blanket([table_blanket(coin)], [d], m)
    assert short is not None
    assert short.gamma == pytest.approx(table_blanket(whole).gamma)
    assert delta_of(short, 0.1, 400) == pytest.approx(delta_of(table_blanket(whole), 0.1, 400), rel=1e-3)


def test_several_answers_of_other_tables_are_bounded() -> None:
    """Two questions with different tables, both sent: the product's own table is below."""
    first, second = [[5, 2, 1], [2, 4, 2], [1, 2, 5]], [[3, 1], [1, 3]]
    whole = [
        [first[x][a] * second[y][b] for a in range(3) for b in range(2)] for x in range(3) for y in range(2)
    ]
    short = product_blanket([table_blanket(first), table_blanket(second)], [1, 1], 2)
    assert short is not None
    truth, bound = delta_of(table_blanket(whole), 0.2, 400), delta_of(short, 0.2, 400)
    assert truth <= bound < 3 * truth


def test_a_survey_with_every_kind_of_question() -> None:
    schema = Schema(
        [Numeric(f"x{i}", 0, 1) for i in range(5)]
        + [Categorical("pet", ["no", "cat", "dog"]), Categorical("town", [str(i) for i in range(30)])]
    )
    found = []
    for m in (1, 2, 3):
        survey = Survey(schema, epsilon=3.0, mechanism="duchi", sampled=m)
        found.append(amplification(survey, 50_000, 1e-6).epsilon)
    assert all(0.01 < epsilon < 0.2 for epsilon in found)
    assert found == sorted(found, reverse=True)  # answers under ε/m hide better than one under ε


def test_one_of_two_questions_with_different_tables() -> None:
    """The table of the whole report, all pairs of records: including those that agree in one question."""
    first, second = [[5, 2, 1], [2, 4, 2], [1, 2, 5]], [[7, 1], [3, 5], [1, 7]]
    whole = [[*first[x], *second[y]] for x in range(3) for y in range(3)]
    shuffled = Shuffled(((table_blanket(first), 0.5), (table_blanket(second), 0.5)), 9.0)
    for epsilon, n in ((0.1, 300), (0.3, 50), (0.02, 5)):
        truth = math.log(delta_of(table_blanket(whole), epsilon, n))
        assert truth - 1e-3 <= shuffled.log_delta(epsilon, n) <= truth + 0.3


def test_questions_drawn_unequally_count_by_their_weight() -> None:
    """A rarely drawn question has little weight: the mixture lies between its parts, near the frequent one."""
    schema = Schema([Numeric("x", 0, 1), Categorical("p", [str(i) for i in range(12)])])

    def found(weights: dict[str, int]) -> float:
        survey = Survey(schema, epsilon=3.0, mechanism="duchi", categorical="oue", weights=weights)
        return Shuffled.of(survey).log_delta(0.05, 5_000)

    number, even, choice = found({"x": 1000, "p": 1}), found({}), found({"x": 1, "p": 1000})
    assert choice < even < number
    alone = Shuffled.of(one_number(3.0, "duchi")).log_delta(0.05, 5_000)
    assert number == pytest.approx(alone, rel=1e-2)


def test_too_many_kinds_fall_back_to_randomized_response(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = Survey(
        Schema([Numeric("x", 0, 1), Numeric("y", 0, 1)]), epsilon=2.0, mechanism="duchi", sampled=2
    )
    close = amplification(survey, 5_000, 1e-6).epsilon
    monkeypatch.setattr("hdr4me.accounting.shuffling.product_blanket", lambda *_: None)
    loose = amplification(survey, 5_000, 1e-6).epsilon
    assert (
        close
        < loose
        == pytest.approx(Shuffled(((response_blanket(math.exp(2.0)), 1.0),), 2.0).epsilon(5_000, 1e-6))
    )


# -- the inverse, the ends, bad input ------------------------------------------------------------------------------


def test_the_inverse_satisfies_the_guarantee() -> None:
    survey = one_number(1.0, "duchi")
    found = local_epsilon(survey, 100_000, 1e-6, 0.0848)
    assert found == pytest.approx(4.0, rel=0.01)
    assert amplification(one_number(found, "duchi"), 100_000, 1e-6).epsilon <= 0.0848
    assert local_epsilon(survey, 100_000, 1e-6, 5.0, most=3.0) == 3.0
    assert local_epsilon(survey, 1, 1e-6, 0.5) == pytest.approx(0.5, rel=2e-3)
    mixed = Survey(Schema([Numeric("x", 0, 1), Categorical("p", ["a", "b"])]), mechanism="duchi")
    assert local_epsilon(mixed, 10_000, 1e-6, 0.1) > 1.5


def test_one_report_keeps_the_local_epsilon_and_a_large_delta_needs_none() -> None:
    assert amplification(one_number(1.0, "duchi"), 1, 1e-6).epsilon == 1.0
    assert amplification(one_number(1.0, "duchi"), 1_000, 0.9).epsilon <= 1e-9
    assert closed_form(4.0, 10, 1e-6) is None


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "9"])
def test_the_number_of_reports_is_a_positive_integer(n: Any) -> None:
    with pytest.raises(InvalidInput, match="n_reports = "):
        amplification(one_number(1.0, "duchi"), n, 1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1, math.nan, math.inf, "1e-6", True, 1e-200])
def test_delta_is_between_0_and_1(delta: Any) -> None:
    with pytest.raises(InvalidInput, match="delta = "):
        amplification(one_number(1.0, "duchi"), 100, delta)


def test_other_bad_input() -> None:
    survey = one_number(1.0, "duchi")
    with pytest.raises(InvalidInput, match="must be a Survey"):
        amplification("survey", 100, 1e-6)  # type: ignore[arg-type]
    for central in (0, -1, math.inf, math.nan, None):
        with pytest.raises(InvalidInput, match="central_epsilon = "):
            local_epsilon(survey, 100, 1e-6, central)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="most = "):
        local_epsilon(survey, 100, 1e-6, 1.0, most=0)


def test_tables_without_information_and_products_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = table_blanket([[1, 1], [1, 1]])
    product_of_two = product_blanket([blind], [3], 2)
    assert product_of_two is not None
    assert product_of_two.gamma == pytest.approx(1.0)
    assert delta_of(product_of_two, 0.1, 10) == 0.0
    monkeypatch.setattr("hdr4me.accounting.shuffling._MOST_ATOMS", 3)
    assert product_blanket([table_blanket([[3, 1], [1, 3]])], [3], 2) is None
