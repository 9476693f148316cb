"""Small-sample intervals, exact or conservative, cover; large samples keep the normal law to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import hdr4me as hd
from hdr4me.framework.small_samples import (
    category_interval,
    gamma_tail,
    noise_reach,
    ratio_interval,
    share_interval,
    skew_size,
    weighted_interval,
)
from hdr4me.statistics.answer import NOT_SIGNIFICANT
from hdr4me.statistics.calibrate import functional
from hdr4me.statistics.intervals import NORMAL, SMALL_SAMPLE, SMALL_SAMPLE_NOTE, is_small, quantile
from hdr4me.statistics.statistic import estimate
from hdr4me.survey.layout import Layout


@dataclass(frozen=True)
class Counts:
    """Simulated counts instead of a tally."""

    survey: hd.Survey
    counts: Any
    n_reports: int

    @property
    def layout(self) -> Layout:
        return Layout.of(self.survey)


def drawn(rng: np.random.Generator, rows: Any, values: Any, r: int) -> Any:
    """Cell counts of r of the users."""
    levels, cells = rows.shape
    asked = rng.choice(values, r, replace=False) if r < values.size else values
    place = (asked + 1) / 2 * (levels - 1)
    level = np.minimum(np.floor(place).astype(int), levels - 2)
    level = level + (rng.random(r) < place - level)
    edges = (rows.cumsum(axis=1) + np.arange(levels)[:, None]).ravel()
    cell = np.searchsorted(edges, level + rng.random(r), side="right") - level * cells
    return np.bincount(np.clip(cell, 0, cells - 1), minlength=cells)


def test_weighted_means_of_two_values_are_clopper_and_pearsons() -> None:
    y, counts = np.array([-2.0, 0.0, 2.0]), np.array([[7.0, 0.0, 13.0], [30.0, 0.0, 1.0]])
    low, high = weighted_interval(y, counts)
    low_share, high_share = share_interval(counts[:, 2], counts.sum(axis=1))
    assert np.allclose(low, -2 + 4 * low_share, atol=0.01)  # the saddlepoint's error is some thousandths
    assert np.allclose(high, -2 + 4 * high_share, atol=0.01)
    exact_low, exact_high = weighted_interval([-2.0, 2.0], counts[:, [0, 2]])
    assert np.allclose(exact_low, -2 + 4 * low_share)
    assert np.allclose(exact_high, -2 + 4 * high_share)


def test_a_weighted_mean_against_simulated_weights() -> None:
    """400,000 seeded weights have a standard error of 0.00025 at a probability of 0.025."""
    rng = np.random.default_rng(1)
    z, shapes = np.linspace(-1.2, 0.8, 9), np.array([3.0, 0, 2, 5, 1, 0, 2, 1, 1])
    weights = rng.gamma(np.maximum(shapes, 1e-9), size=(400_000, 9)) * (shapes > 0)
    assert gamma_tail(z[None], shapes[None], np.zeros(1))[0][0] == pytest.approx(
        float(np.mean(weights @ z > 0)), rel=0.02
    )


def test_all_reports_at_an_end() -> None:
    low, high = weighted_interval([-2.0, 0.0, 2.0], [[0, 0, 20]])
    assert high[0] == 2.0
    assert low[0] == pytest.approx(-2 + 4 * 0.025 ** (1 / 20), abs=0.01)


def test_a_ratio_is_a_mean_where_the_denominator_is_one() -> None:
    counts = np.array([4.0, 9.0, 21.0])
    low, high = weighted_interval([-1.0, 0.2, 1.0], counts)
    assert ratio_interval([-1.0, 0.2, 1.0], np.ones(3), counts) == pytest.approx((low[0], high[0]), abs=1e-4)
    assert ratio_interval([-9.0, 9.0, 0.0], [1.0, 1.0, 0.0], [1, 1, 2]) == (-1.0, 1.0)


def test_two_groups_are_the_exact_law() -> None:
    """Every k that neither tail refuses, by convolution."""
    n, p, q = 60, 0.8, 0.1
    for named in (0, 3, 20, 55, 60):
        kept = []
        for k in range(n + 1):
            mass = np.convolve(binom.pmf(np.arange(k + 1), k, p), binom.pmf(np.arange(n - k + 1), n - k, q))
            if mass[named:].sum() > 0.025 and mass[: named + 1].sum() > 0.025:
                kept.append(k)
        low, high = category_interval(np.array([float(named)]), n, p, q, all_answered=True)
        if kept:
            assert (round(low[0] * n), round(high[0] * n)) == (kept[0], kept[-1])
        else:
            assert high[0] - low[0] <= 1 / n
        wide_low, wide_high = category_interval(np.array([float(named)]), n, p, q)
        assert min(wide_low[0], 1.0) <= low[0] + 1 / n
        assert high[0] <= max(wide_high[0], 0.0) + 1 / n


def test_noise_tails_are_normal_in_large_samples_and_wider_in_small_ones() -> None:
    table = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon=8.0).questions[0].channel
    moments = functional(table.response.marginal())  # type: ignore[arg-type]
    rows, decode, sd = moments.rows, moments.decode, float(np.sqrt(moments.row_variances.max()))
    many = noise_reach(rows, decode, 100_000, 0.95)
    assert np.allclose(many, 1.96 * sd / np.sqrt(100_000), rtol=0.05)
    small_sample = noise_reach(rows, decode, 20, 0.95)
    assert min(small_sample) > 1.5 * 1.96 * sd / np.sqrt(20)
    assert skew_size(rows, decode) > sd


@pytest.mark.parametrize(("level", "needed"), [(0.9, 11.4), (0.95, 27.5), (0.99, 107.7)])
def test_the_normal_law_needs_this_many_effective_answers(level: float, needed: float) -> None:
    """As measured by benchmarks/small_samples.py: to change it, run that again."""
    assert is_small([0.99 * needed, 1.01 * needed, np.nan], level).tolist() == [True, False, True]


CASES = [
    ("duchi", 8.0, 50, 500, "rare", 0.76),
    ("duchi", 4.0, 20, 200, "skewed", 0.84),
    ("piecewise", 8.0, 50, 500, "rare", 0.86),
    ("optimal", 8.0, 20, 200, "rare", 0.61),
    ("optimal", 4.0, 200, 2000, "rare", 1.0),
    ("piecewise", 8.0, 20, 20, "two", 0.93),
]


@pytest.mark.no_cover
@pytest.mark.parametrize(("mechanism", "epsilon", "r", "n", "values", "normal"), CASES)
def test_small_samples_of_skewed_values_are_covered(
    mechanism: str, epsilon: float, r: int, n: int, values: str, normal: float
) -> None:
    """Of 320 seeded intervals of 95 % at least 93 % hold, and 20 of them at once in at least 14 of 16 groups.

    A law of 95 % has fewer than 93 % with probability 6 %, and fewer than 14 of 16 with 4 %; these laws hold in 96 %
    and more. By the normal law fewer than `normal` of the intervals hold.
    """
    rng, rows_of = np.random.default_rng(11), 320
    truth = {
        "rare": np.where(np.arange(n) < n // 50, 1.0, -1.0),
        "skewed": 2 * rng.beta(0.5, 10, n) - 1,
        "two": np.where(np.arange(n) % 2, 1.0, -1.0),
    }[values]
    schema = hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(rows_of)])
    survey = hd.Survey(schema, epsilon=epsilon * rows_of, mechanism=mechanism, sampled=rows_of)
    rows = survey.questions[0].channel.response.marginal().rows  # type: ignore[arg-type]
    counts = np.concatenate([drawn(rng, rows, truth, r) for _ in range(rows_of)])
    answer = estimate(Counts(survey, counts, n))
    assert SMALL_SAMPLE in answer.laws()
    low, high = answer.interval()
    reach = quantile(0.95, answer.n_answers) * answer.standard_error
    assert np.mean((low <= truth.mean()) & (truth.mean() <= high)) >= 0.93
    assert np.mean(np.abs(answer.value - truth.mean()) <= reach) < normal
    groups = [answer._select(np.arange(k, k + 20)) for k in range(0, rows_of, 20)]
    ends = [group.interval(simultaneous=True) for group in groups]
    assert sum(bool(np.all((a <= truth.mean()) & (truth.mean() <= b))) for a, b in ends) >= 14


@pytest.mark.no_cover
def test_rare_categories_are_covered_at_once() -> None:
    """100 categories, 2,000 reports, ε = 7: all at once in at least 93 % of 60 seeded runs; the normal law: 85 %."""
    size, n, rng = 100, 2000, np.random.default_rng(12)
    survey = hd.Survey(
        hd.Schema([hd.Categorical("c", map(str, range(size)))]), epsilon=7.0, categorical="grr"
    )
    own = np.exp(7.0) / (np.exp(7.0) + size - 1)
    rows = np.full((size, size), (1 - own) / (size - 1)) + np.eye(size) * (own - (1 - own) / (size - 1))
    truth = np.where(np.arange(size) == 0, n, 0)
    kept, normal = [], []
    for _ in range(60):
        counts = sum(rng.multinomial(int(k), row) for k, row in zip(truth, rows, strict=True))
        answer = estimate(Counts(survey, np.asarray(counts), n))
        low, high = answer.interval(simultaneous=True)
        kept.append(bool(np.all((low <= truth / n) & (truth / n <= high))))
        reach = quantile(0.95, answer.n_answers, size) * answer.standard_error
        normal.append(bool(np.all(np.abs(answer.value - truth / n) <= reach)))
    assert np.mean(kept) >= 0.93
    assert np.mean(normal) < 0.90


def test_the_answer_says_which_law_it_used() -> None:
    survey = hd.Survey(hd.Schema([hd.Numeric("x", 0, 10)]), epsilon=1.0, mechanism="duchi")
    small_sample = estimate(Counts(survey, np.array([12, 18]), 30))
    assert small_sample.laws() == (SMALL_SAMPLE,)
    assert small_sample.table()[0]["note"] == SMALL_SAMPLE_NOTE
    assert small_sample["x"].interval() == small_sample.interval()
    many = estimate(Counts(survey, np.array([400, 600]), 1000))
    assert many.laws() == (NORMAL,)
    assert "note" not in many.table()[0]
    reach = quantile(0.95, many.n_answers) * many.standard_error
    assert many.interval()[0].tolist() == (many.value - reach).tolist()
    assert many.recalibrate().laws() == ("own",)


def test_further_out_the_normal_law_needs_more() -> None:
    survey = hd.Survey(hd.Schema([hd.Numeric("x", 0, 10)]), epsilon=1.0, mechanism="duchi")
    answer = estimate(Counts(survey, np.array([200, 240]), 440))
    assert answer.laws(0.95) == (NORMAL,)
    assert answer.laws(0.9999) == (SMALL_SAMPLE,)


@pytest.mark.no_cover
def test_optional_numbers_have_an_interval_in_small_samples() -> None:
    """The share and the mean among those: both lie in their intervals, which lie in the range."""
    schema = hd.Schema([hd.Numeric("x", 0, 10, optional=True)])
    survey, rng = hd.Survey(schema, epsilon=8.0), np.random.default_rng(13)
    weights = np.array(survey.questions[0].channel.weights, np.float64)  # type: ignore[attr-defined]
    rows = weights / weights.sum(axis=1, keepdims=True)
    kept = []
    for _ in range(40):
        counts = rng.multinomial(28, rows[0]) + rng.multinomial(2, rows[-2]) + rng.multinomial(10, rows[-1])
        answer = estimate(Counts(survey, counts, 400))
        low, high = answer.of("mean").interval()
        assert answer.of("mean").laws() == (SMALL_SAMPLE,)
        kept.append(bool(low[0] <= 10 * 2 / 30 <= high[0]))
    assert np.mean(kept) >= 0.93


@pytest.mark.no_cover
def test_means_that_are_printed_because_of_a_lucky_share_are_covered() -> None:
    """13 % have a value near the lower end: the share is significant in some of the tallies, which are all printed.

    Without the smaller error probability 85 to 90 % of these intervals cover. Of 600 seeded tallies about 180 are
    printed; coverage of 98 % falls below 94 % with a probability of 10⁻⁴. The others have their intervals too.
    """
    survey, rng = (
        hd.Survey(hd.Schema([hd.Numeric("x", 0, 80, optional=True)]), epsilon=1.0),
        np.random.default_rng(8),
    )
    weights = np.array(survey.questions[0].channel.weights, np.float64)  # type: ignore[attr-defined]
    rows = weights / weights.sum(axis=1, keepdims=True)
    covered: dict[str, list[bool]] = {"ok": [], NOT_SIGNIFICANT: []}
    for _ in range(600):
        counts = rng.multinomial(130, rows[1]) + rng.multinomial(870, rows[-1])
        truth = 80 / (len(rows) - 2)
        (row,) = (row for row in estimate(Counts(survey, counts, 1000)).table() if row["statistic"] == "mean")
        assert 0 <= row["lower"] <= row["upper"] <= 80 or row["status"] == "ok"
        covered[row["status"]].append(row["lower"] <= truth <= row["upper"])
    assert len(covered["ok"]) > 100
    assert min(map(np.mean, covered.values())) > 0.94


def test_rows_that_are_not_significant_count_in_simultaneous_intervals() -> None:
    """It has an interval too, so simultaneous intervals are as wide as if its status were ok."""
    survey = hd.Survey(hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(3)]), epsilon=3.0)
    tally = hd.Tally(survey)
    for block in hd.engines.Local().reports(np.zeros((5_000, 3)), survey):
        tally = tally.add_block(block)
    answer = tally.estimate()
    doubtful = replace(answer, not_significant=np.array([False, False, True]))
    assert doubtful.status[2] == NOT_SIGNIFICANT
    for one, other in zip(
        doubtful.interval(simultaneous=True), answer.interval(simultaneous=True), strict=True
    ):
        np.testing.assert_array_equal(one[:2], other[:2])
