"""Tables from joint questions: fitted shares, intervals, ratios, synthetic records."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2, norm

import hdr4me as hd
from hdr4me.contingency import fit as fits
from hdr4me.contingency import table_schema, tables
from hdr4me.contingency.fit import Measured, fit
from hdr4me.contingency.tables import _cramers_v
from hdr4me.errors import InvalidInput
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics.pairs import fieller
from hdr4me.survey import Schema
from hdr4me.survey.derived import Bucket

USERS = 200_000


@pytest.fixture(scope="module")
def people() -> pa.Table:
    """The survey of Fair (1978), 6,366 women, resampled."""
    from statsmodels.datasets import fair

    data = fair.load_pandas().data
    rng = np.random.default_rng(1)
    rows = data.iloc[rng.integers(0, len(data), USERS)]
    return pa.table(
        {
            "rate": [f"{x:g}" for x in rows.rate_marriage],
            "religion": [f"{x:g}" for x in rows.religious],
            "occupation": [f"{x:g}" for x in rows.occupation],
            "children": rows.children.to_numpy(),
            "affair": ["yes" if x > 0 else "no" for x in rows.affairs],
        }
    )


SCHEMA = Schema(
    [
        hd.Categorical("rate", list("12345")),
        hd.Categorical("religion", list("1234")),
        hd.Categorical("occupation", list("123456")),
        Bucket("children", [0, 1, 3, 6]),
        hd.Categorical("affair", ["no", "yes"]),
    ]
)


def truth(people: pa.Table, names: tuple[str, ...]) -> Any:
    codes, shape = [], []
    for name in names:
        dimension = SCHEMA[name]
        column = dimension.clean_column([people[name].combine_chunks()], len(dimension.categories))
        codes.append(np.asarray(column.lut)[np.asarray(column.array)])
        shape.append(len(dimension.categories))
    return (
        np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape) / USERS
    )


@pytest.fixture(scope="module")
def found(people: pa.Table) -> Any:
    survey = hd.Survey(table_schema(SCHEMA), epsilon=1.0)
    return tables(simulate_tally(people, survey, seed=3))


def distance(first: Any, second: Any) -> float:
    return 0.5 * float(np.abs(first - second).sum())


def test_tables_of_two_and_three_are_nearer_than_independence(people: pa.Table, found: Any) -> None:
    for k in (2, 3):
        fitted, apart = [], []
        for names in combinations(SCHEMA.names, k):
            true = truth(people, names)
            independent: Any = np.ones(())
            for name in names:
                independent = np.multiply.outer(independent, found.table(name).shares)
            fitted.append(distance(found.table(*names).shares, true))
            apart.append(distance(independent, true))
        assert np.mean(fitted) < np.mean(apart)


def test_the_direct_estimates_are_far_worse(people: pa.Table, found: Any) -> None:
    """The fit has about 61 % of the direct distance: it stops early, where noise may explain the rest."""
    pairs = list(combinations(SCHEMA.names, 2))
    fitted = np.mean([distance(found.table(*names).shares, truth(people, names)) for names in pairs])
    direct = np.mean([distance(found.table(*names).direct, truth(people, names)) for names in pairs])
    assert fitted < 0.65 * direct


def test_strong_relations_are_fitted_closely(people: pa.Table) -> None:
    """At ε = 4 the fit has 78 % of the direct distance; at a loss of noise alone it stopped at 94 %."""
    survey, fitted, direct = hd.Survey(table_schema(SCHEMA), epsilon=4.0), [], []
    for seed in range(2):
        found = tables(simulate_tally(people, survey, seed=seed))
        for names in combinations(SCHEMA.names, 2):
            table, true = found.table(*names), truth(people, names)
            fitted.append(distance(table.shares, true))
            direct.append(distance(table.direct, true))
    assert np.mean(fitted) < 0.85 * np.mean(direct)


def test_tables_agree_with_one_another_and_in_any_order(found: Any) -> None:
    one = found.table("rate", "affair").shares
    assert np.allclose(one, found.table("affair", "rate").shares.T)
    assert np.allclose(one.sum(axis=1), found.table("rate").shares)
    assert np.allclose(found.table("rate", "affair", "religion").shares.sum(axis=2), one)
    assert np.all(one >= 0)
    assert one.sum() == pytest.approx(1)


def test_intervals_cover(people: pa.Table) -> None:
    """4 collections, 143 cells each: at least 93 % of 572 intervals; by 95 % a false alarm has a chance below 2 %."""
    survey, inside = hd.Survey(table_schema(SCHEMA), epsilon=2.0), []
    for seed in range(4):
        fitted = tables(simulate_tally(people, survey, seed=seed))
        for names in combinations(SCHEMA.names, 2):
            table, true = fitted.table(*names), truth(people, names)
            inside.append(((table.lower <= true) & (true <= table.upper)).ravel())
    assert np.concatenate(inside).mean() > 0.93


def test_intervals_of_margins_cover(people: pa.Table) -> None:
    """Tables of two and of one from questions about three: 8 collections, 1,304 intervals, 92.5 to 98.5 % hold.

    The ten tables of two have 143 cells and the five of one have 20. Cells of a collection are correlated: the range is
    four standard errors of 300 independent intervals. The fit extends intervals, so that coverage is above 95 %.
    """
    survey, inside = hd.Survey(table_schema(SCHEMA, "triples"), epsilon=4.0), []
    for seed in range(8):
        fitted = tables(simulate_tally(people, survey, seed=seed))
        for names in (x for k in (1, 2) for x in combinations(SCHEMA.names, k)):
            table, true = fitted.table(*names), truth(people, names)
            assert table.measured
            assert not table.note
            inside.append(((table.lower <= true) & (true <= table.upper)).ravel())
    assert 0.925 < np.concatenate(inside).mean() < 0.985


def test_several_questions_about_a_table_count_by_their_precision(people: pa.Table) -> None:
    """Tables of two and three together give less error, at equal numbers of answers, than either alone."""
    width = {}
    for kinds in (["pairs"], ["triples"], ["pairs", "triples"]):
        survey = hd.Survey(table_schema(SCHEMA, kinds), epsilon=4.0)
        found = tables(simulate_tally(people, survey, seed=1))
        width[tuple(kinds)] = found.table("rate", "affair").standard_error.mean() / np.sqrt(
            len(found.sources)
        )
    both = width.pop(("pairs", "triples"))
    assert both < min(width.values())


def test_attributes_asked_alone_are_independent(people: pa.Table) -> None:
    found = tables(simulate_tally(people, hd.Survey(SCHEMA, epsilon=2.0), seed=1))
    assert found.independent
    assert "assumed to be independent" in repr(found)
    one, two = found.table("affair"), found.table("rate", "affair")
    assert one.measured
    assert np.allclose(two.shares, np.outer(found.table("rate").shares, one.shares))
    assert "assume independence" in two.note
    assert np.isnan(two.lower).all()
    assert np.all((one.lower < one.shares) & (one.shares < one.upper))


def test_conditional_shares_and_risks(people: pa.Table, found: Any) -> None:
    true = truth(people, ("rate", "affair"))
    rows = found.table("rate", "affair").conditional("rate")
    assert len(rows) == 10
    for row in rows:
        share = true[int(row["rate"]) - 1]
        exact = share[int(row["affair"] == "yes")] / share.sum()
        if row["lower"] is not None:
            assert row["lower"] - 0.05 < exact < row["upper"] + 0.05
    risk = found.table("rate", "affair").relative_risk(("affair", "yes"), "3", "5")
    assert risk["lower"] < risk["relative_risk"] < risk["upper"]
    assert risk["relative_risk"] > 1


def three(n: int, seed: int) -> pa.Table:
    """Smoking is four times as frequent among men."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, n), rng.uniform(0, 120, n)
    smoker = (rng.random(n) < np.where(sex, 0.4, 0.1)).astype(int)
    return pa.table({"sex": np.array(["f", "m"])[sex], "smoker": np.array(["no", "yes"])[smoker], "age": age})


SMOKERS = Schema(
    [
        hd.Categorical("sex", ["f", "m"]),
        Bucket("age", [0, 18, 65, 120]),
        hd.Categorical("smoker", ["no", "yes"]),
    ]
)


@pytest.mark.parametrize(
    "schema",
    [table_schema(SMOKERS), table_schema(SMOKERS, 3), Schema([*SMOKERS, *table_schema(SMOKERS)])],
    ids=["pairs", "triples", "also alone"],
)
def test_shares_by_group_come_from_the_joint_question(schema: Schema) -> None:
    """Four shares within 5 standard errors of the users' own; the seed is fixed."""
    records = three(40_000, 1)
    tally = simulate_tally(records, hd.Survey(schema, epsilon=2.0), seed=2)
    found = tally.ask("share_by", ["smoker", "sex"])
    assert found.categories == ("no | f", "yes | f", "no | m", "yes | m")
    own = [np.mean(np.array(records["smoker"])[np.array(records["sex"]) == g] == "yes") for g in "fm"]
    assert np.all(np.abs(found.value[1::2] - own) < 5 * found.standard_error[1::2])
    assert np.allclose(found.value[::2] + found.value[1::2], 1)
    low, high = found.interval()
    assert np.all((low < found.value) & (found.value < high))
    with pytest.raises(InvalidInput, match="no option 'p'"):
        tally.ask("share_by", ["smoker", "sex"], p=0.5)


def test_a_group_without_a_significant_share_has_no_shares() -> None:
    records = three(300, 1)
    tally = simulate_tally(records, hd.Survey(table_schema(SMOKERS), epsilon=0.1), seed=2)
    found = tally.ask("share_by", ["smoker", "sex"])
    assert np.isnan(found.value).all()
    assert set(found.status) == {"not significant: more reports are needed"}
    rows = tables(tally).table("sex", "smoker").conditional("sex")
    assert all(row["lower"] is None for row in rows)
    risk = tables(tally).table("sex", "smoker").relative_risk(("smoker", "yes"), "m", "f")
    assert risk["lower"] is None


def test_intervals_of_ratios_and_associations_cover() -> None:
    """60 collections: at least 50 of the intervals of each of four numbers; by 95 % a false alarm in 500 runs."""
    survey, records = hd.Survey(table_schema(SMOKERS), epsilon=3.0), three(20_000, 3)
    sex, smoker = (np.array(records[x]) for x in ("sex", "smoker"))
    shares = np.array([np.mean(smoker[sex == g] == "yes") for g in "fm"])
    true = np.array([[np.mean((sex == g) & (smoker == s)) for s in ("no", "yes")] for g in "fm"])
    inside = []
    for seed in range(60):
        tally = simulate_tally(records, survey, seed=seed)
        low, high = tally.ask("share_by", ["smoker", "sex"]).interval()
        table = tables(tally).table("sex", "smoker")
        risk = table.relative_risk(("smoker", "yes"), "m", "f")
        v = table.cramers_v()[1]
        assert v[0] is not None
        assert v[1] is not None
        inside.append(
            [
                *(
                    (low <= x) & (x <= high)
                    for low, x, high in zip(low[1::2], shares, high[1::2], strict=True)
                ),
                risk["lower"] <= shares[1] / shares[0] <= risk["upper"],
                v[0] <= _cramers_v(true) <= v[1],
            ]
        )
    assert np.sum(inside, axis=0).min() >= 50


def test_the_ends_of_an_interval_of_a_ratio_are_at_the_limit_of_a_test() -> None:
    top, bottom, covariance = 0.1, 0.3, np.array([[0.002, 0.001], [0.001, 0.003]])
    z = norm.ppf(0.95)
    for end in fieller(top, bottom, covariance[0, 0], covariance[0, 1], covariance[1, 1], 0.9):
        weights = np.array([1, -float(end)])
        assert abs(weights @ [top, bottom]) == pytest.approx(z * np.sqrt(weights @ covariance @ weights))
    assert np.isnan(fieller(0.1, 0.05, 0.002, 0.0, 0.003, 0.95)).all()


def test_variances_alone_are_a_covariance_without_correlation(found: Any) -> None:
    table = found.table("rate", "occupation")
    variances = np.arange(1.0, 31.0) * 1e-5
    alone, matrix = (replace(table, dependence=lambda x=x: x) for x in (variances, np.diag(variances)))
    assert alone.cramers_v()[1] == pytest.approx(matrix.cramers_v()[1])
    assert alone.conditional("occupation") == matrix.conditional("occupation")
    risks = [x.relative_risk(("rate", "5"), "3", "4") for x in (alone, matrix)]
    assert risks[0] == pytest.approx(risks[1])


def test_associations_are_sorted_and_have_intervals(found: Any) -> None:
    rows = found.associations()
    values = [row["cramers_v"] for row in rows]
    assert values == sorted(values, reverse=True)
    assert all(row["lower"] <= row["cramers_v"] <= row["upper"] for row in rows)
    assert {rows[0]["first"], rows[0]["second"]} == {"rate", "affair"}


def test_synthetic_records_have_the_fitted_tables(found: Any) -> None:
    """50,000 records: each cell within 5 standard errors; the seed is fixed."""
    rows = found.sample(50_000, seed=1)
    assert rows.column_names == list(SCHEMA.names)
    assert rows.equals(found.sample(50_000, seed=1))
    drawn = rows.group_by(["rate", "affair"]).aggregate([([], "count_all")]).to_pylist()
    table = found.table("rate", "affair")
    for row in drawn:
        share = table.shares[int(row["rate"]) - 1, int(row["affair"] == "yes")]
        assert abs(row["count_all"] / 50_000 - share) < 5 * np.sqrt(share / 50_000)


def test_a_table_that_was_not_asked_has_no_intervals(found: Any) -> None:
    table = found.table("rate", "affair", "religion")
    assert not table.measured
    assert "follow from the fitted model" in table.note
    assert np.isnan(table.lower).all()
    assert table.rows()[0]["lower"] is None


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda found: found.table("rate", "age"), "'age' is not an attribute: known are rate, religion"),
        (lambda found: found.table("rate", "rate"), "one or more different attributes"),
        (lambda found: found.table(), "one or more different attributes"),
        (lambda found: found.sample(0, seed=1), "a positive integer"),
        (lambda found: found.table("rate", "affair").conditional("age"), "one of the two attributes"),
        (lambda found: found.table("rate").cramers_v(), "belongs to two attributes"),
        (
            lambda found: found.table("rate", "affair").relative_risk(("age", "1"), "1", "2"),
            "outcome = 'age'",
        ),
        (
            lambda found: found.table("rate", "affair").relative_risk(("rate", "9"), "no", "yes"),
            "outcome = '9'",
        ),
        (lambda found: found.table("rate", "affair").relative_risk(("rate", "1"), "no", "x"), "other = 'x'"),
        (
            lambda found: table_schema(Schema([hd.Numeric("x", 0, 1)]), 1),
            "leave it out, or write it in a schema file",
        ),
        (lambda found: table_schema(SCHEMA, "all"), "pairs, triples, a number of attributes"),
        (lambda found: table_schema(SCHEMA, [("rate", "affair"), "all"]), "pairs, triples, a number of"),
        (lambda found: table_schema(SCHEMA, 6), "a number of attributes from 1"),
    ],
)
def test_refusals_are_sentences(found: Any, work: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        work(found)


def test_a_survey_without_categories_has_no_tables() -> None:
    survey = hd.Survey(Schema([hd.Numeric("x", 0, 1)]), epsilon=1.0)
    with pytest.raises(InvalidInput, match="has no joint questions"):
        tables(hd.Tally(survey))


def noisy(shape: tuple[int, ...], rows: Any, variance: float, rng: Any) -> tuple[list[Measured], list[Any]]:
    measured = []
    for a, b in combinations(range(len(shape)), 2):
        share = np.bincount(rows[:, a] * shape[b] + rows[:, b], minlength=shape[a] * shape[b]) / len(rows)
        noise = rng.normal(size=share.size) * np.sqrt(variance)
        measured.append(Measured((a, b), (share + noise).reshape(shape[a], shape[b]), variance))
    margins = [np.bincount(rows[:, j], minlength=k) / len(rows) for j, k in enumerate(shape)]
    return measured, margins


def chain(n: int, attributes: int, rng: Any) -> Any:
    """Each attribute repeats the one before it three times out of four."""
    rows = np.empty((n, attributes), np.int64)
    rows[:, 0] = rng.integers(0, 3, n)
    for j in range(1, attributes):
        rows[:, j] = np.where(rng.random(n) < 0.75, rows[:, j - 1], rng.integers(0, 3, n))
    return rows


def test_a_large_domain_is_a_tree_of_cliques_and_agrees_with_one_clique(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    rows = chain(100_000, 6, rng)
    measured, margins = noisy((3,) * 6, rows, 1e-6, rng)
    whole = fit((3,) * 6, measured, margins)
    assert len(whole.cliques) == 1
    monkeypatch.setattr(fits, "ONE_CLIQUE", 10)
    monkeypatch.setattr(fits, "LARGEST_CLIQUE", 27)
    parts = fit((3,) * 6, measured, margins)
    assert len(parts.cliques) > 1
    for names in [(0, 1), (0, 2), (2, 4), (0, 5)]:
        true = next(t.shares for t in measured if t.names == names)
        assert distance(parts.table(names), true) < 0.02
        assert distance(whole.table(names), true) < 0.02
    drawn = parts.sample(20_000, np.random.default_rng(1))
    assert (
        distance(
            np.bincount(drawn[:, 2] * 3 + drawn[:, 3], minlength=9).reshape(3, 3) / 20_000,
            parts.table((2, 3)),
        )
        < 0.02
    )


def test_twenty_attributes_of_noise_stay_independent() -> None:
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 5, (50_000, 20))
    measured, margins = noisy((5,) * 20, rows, 4e-4, rng)
    found = fit((5,) * 20, measured, margins)
    pairs = [table.names for table in measured]
    fitted = np.mean([distance(found.table(names), np.full((5, 5), 1 / 25)) for names in pairs])
    assert fitted < 0.02  # the measured tables are at a distance of 0.2


def test_the_fit_stays_at_independence_where_the_noise_is_larger(people: pa.Table) -> None:
    """8 collections of 1,000 users at ε = .5: the fit is at most 2 % worse than independence (before: 9 %)."""
    survey, ratios = hd.Survey(table_schema(SCHEMA), epsilon=0.5), []
    for seed in range(8):
        few = people.slice(1_000 * seed, 1_000)
        found = tables(simulate_tally(few, survey, seed=seed))
        fitted, apart = [], []
        for names in combinations(SCHEMA.names, 2):
            true = truth(few, names) * USERS / 1_000
            fitted.append(distance(found.table(*names).shares, true))
            apart.append(distance(np.outer(*(found.table(x).shares for x in names)), true))
        ratios.append(np.mean(fitted) / np.mean(apart))
    assert np.mean(ratios) < 1.02


def test_designs_are_ranked_by_the_distance_on_public_data(people: pa.Table) -> None:
    """With 60,000 users at ε = 4 joint questions win; with 500 users at ε = .2 nothing beats independence by much."""
    many = hd.plan_tables(SCHEMA, users=60_000, epsilon=4.0, data=people, repeats=1, seed=1)
    assert many[-1]["design"] == "one-way"
    assert many[1]["two_way"] < 0.7 * many[-1]["two_way"]
    few = hd.plan_tables(SCHEMA, users=500, epsilon=0.2, data=people, repeats=10, seed=1)
    assert few[0]["design"] == "one-way"


def test_without_data_the_noise_is_that_of_a_direct_table(people: pa.Table) -> None:
    """The mean distance of 10 tables in 3 collections is within 10 % of its prediction (standard error 3 %)."""
    predicted = next(
        row for row in hd.plan_tables(SCHEMA, users=USERS, epsilon=1.0) if row["design"] == "pairs"
    )
    survey, found = hd.Survey(table_schema(SCHEMA), epsilon=1.0), []
    for seed in range(3):
        fitted = tables(simulate_tally(people, survey, seed=seed))
        for names in combinations(SCHEMA.names, 2):
            found.append(distance(fitted.table(*names).direct, truth(people, names)))
    assert np.mean(found) == pytest.approx(predicted["noise"], rel=0.1)


def associated(attributes: int, scores: list[float]) -> list[bool]:
    """Which fitted 3 × 3 tables of all pairs of attributes depart from independence.

    Independence fits each measured table so many standard deviations worse than noise alone would make it.
    """
    pattern, variance, free = np.outer([1.0, -1.0, 0.0], [1.0, 0.0, -1.0]), 1e-6, 4
    pairs = list(combinations(range(attributes), 2))
    squares = [variance * (free + score * np.sqrt(2 * free)) for score in scores]
    measured = [
        Measured(pair, 1 / 9 + pattern * np.sqrt(square / np.sum(pattern**2)), variance)
        for pair, square in zip(pairs, squares, strict=True)
    ]
    found = fit([3] * attributes, measured, [np.full(3, 1 / 3)] * attributes).tables(pairs)
    return [bool(np.abs(found[pair] - 1 / 9).max() > 1e-6) for pair in pairs]


def test_independence_is_left_from_three_standard_deviations_on() -> None:
    """Noise alone is beyond three in 1.4 % of single tables and for 15 together in 0.4 % (2.25: 3.5 and 2 %)."""
    assert associated(2, [2.8]) == [False]
    assert associated(2, [3.2]) == [True]
    for tables_, most in ((1, 0.015), (15, 0.005)):
        free = 4 * tables_
        assert chi2.sf(free + 3 * np.sqrt(2 * free), free) < most


def test_a_single_table_among_many_is_left_from_four_standard_deviations_on() -> None:
    """15 tables together agree with independence. Noise alone is beyond four in 0.4 % of single tables."""
    rest = [0.0] * 14
    assert associated(6, [3.8, *rest]) == [False] * 15
    assert associated(6, [4.2, *rest]) == [True] + [False] * 14
