"""Standard errors that mean what they say: z-scores are N(0, 1) and intervals cover, for every exact mechanism.

Each run is one survey of many like dimensions, every dimension one replicate. All runs are seeded. The truth is the
mean over the users who reported.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kstest

from hdr4me.statistics import quantile
from hdr4me.statistics.calibrate import functional, indicator_moments, value_moments
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

NUMERIC = ["laplace", "scdf", "staircase", "duchi", "piecewise", "hybrid", "square_wave", "optimal"]
CATEGORICAL = ["grr", "oue", "histogram"]
FALSE_ALARM = 1e-5
DIMS, ANSWERS = 8000, 300


def check(z: np.ndarray, answers: np.ndarray, step: np.ndarray | float) -> None:
    """KS against N(0, 1) and two-sided coverage of the 95 % interval.

    False alarms: KS 1e-5; the coverage of k intervals has standard deviation 0.22/√k, 0.0024 for 8000, so leaving
    95 % ± 1 % by chance is a matter of 4 standard deviations, 6e-5. A mean of two-valued reports lies on a lattice;
    z is spread evenly over its step (about 0.12 standard errors) before the comparison with a continuous law.
    """
    rng = np.random.default_rng(5)
    spread = z + step * rng.uniform(-0.5, 0.5, z.shape)
    assert kstest(spread, "norm").pvalue > FALSE_ALARM, (z.mean(), z.std())
    assert abs(np.mean(np.abs(spread) <= quantile(0.95, answers)) - 0.95) < 0.01


def skewed(n: int) -> np.ndarray:
    """Values on [-1, 1] with mean −0.29 and standard deviation 0.60, in a scrambled order."""
    quantiles = np.linspace(0.0005, 0.9995, n) ** 1.8
    return np.random.default_rng(1).permutation(2 * quantiles - 1)


def numeric_survey(mechanism: object, d: int, m: int, epsilon: float) -> Survey:
    schema = Schema([Numeric(f"x{j}", -1, 1) for j in range(d)])
    return Survey(schema, epsilon=m * epsilon, mechanism=mechanism, sampled=m)


@pytest.mark.no_cover
@pytest.mark.parametrize("sampled", ["one", "all"])
@pytest.mark.parametrize("name", NUMERIC)
def test_numeric_mechanisms(simulate, name: str, sampled: str) -> None:
    """Duchi's two cells do not determine the variance of the values; with all dimensions sent its users are equal."""
    survey = numeric_survey(name, DIMS, 1 if sampled == "one" else DIMS, epsilon=1.5)
    n = DIMS * ANSWERS if sampled == "one" else ANSWERS
    base = skewed(ANSWERS)
    if name == "duchi" and sampled == "all":
        base = np.full(ANSWERS, 0.3)
    tally = Tally(survey)
    rng = np.random.default_rng(2026)
    tally.add_block(simulate(survey, n, lambda j, users: base[(users + 7 * j) % ANSWERS], rng))
    answer = tally.estimate()
    decode = np.array(survey.channels[0].decoders["value"])  # type: ignore[attr-defined]
    step = (decode[1] - decode[0]) / answer.n_answers / answer.scaled_error if len(decode) == 2 else 0.0
    check((answer.scaled_value - base.mean()) / answer.scaled_error, answer.n_answers, step)


@pytest.mark.no_cover
@pytest.mark.parametrize("sampled", ["one", "all"])
@pytest.mark.parametrize("name", CATEGORICAL)
def test_categorical_mechanisms(simulate, name: str, sampled: str) -> None:
    """One category of each dimension, in turn: those of one dimension are not independent."""
    d = DIMS // 2
    labels = ["a", "b", "c", "d"]
    schema = Schema([Categorical(f"x{j}", labels) for j in range(d)])
    m = 1 if sampled == "one" else d
    survey = Survey(schema, epsilon=1.5 * m, sampled=m, categorical=name, mechanism="piecewise")
    n = d * ANSWERS if sampled == "one" else ANSWERS
    base = np.random.default_rng(3).permutation(np.repeat([0, 1, 2, 3], [30, 60, 90, 120]))
    truth = np.bincount(base) / ANSWERS
    rng = np.random.default_rng(2027)
    tally = Tally(survey).add_block(
        simulate(survey, n, lambda j, users: base[(users + 7 * j) % ANSWERS], rng)
    )
    answer = tally.estimate()
    every = np.arange(d)
    value, errors, answers = (
        array.reshape(d, 4)[every, every % 4]
        for array in (answer.value, answer.standard_error, answer.n_answers)
    )
    z = (value - truth[every % 4]) / errors
    decode = survey.channels[0].decode  # type: ignore[attr-defined]
    check(z, answers, abs(decode[1] - decode[0]) / answers / errors if len(decode) == 2 else 0.0)


@pytest.mark.no_cover
def test_duchi_errs_on_the_safe_side(simulate) -> None:
    """With every dimension sent and users who differ, Duchi's error is a little too large and never too small.

    s² = C² − θ̂² where C² − mean(t²) is true: the ratio is known here, and the spread of 8000 z-scores about it has a
    standard deviation of 0.8 %. False alarm 1e-6.
    """
    survey = numeric_survey("duchi", DIMS, DIMS, epsilon=1.5)
    base = skewed(ANSWERS)
    rng = np.random.default_rng(4)
    block = simulate(survey, ANSWERS, lambda j, users: base[(users + 7 * j) % ANSWERS], rng)
    answer = Tally(survey).add_block(block).estimate()
    z = (answer.scaled_value - base.mean()) / answer.scaled_error
    c2 = 1 / math.tanh(0.75) ** 2
    expected = math.sqrt((c2 - np.mean(base**2)) / (c2 - base.mean() ** 2))
    assert expected < 0.97
    assert z.std() == pytest.approx(expected, rel=5 * 0.008)


@pytest.mark.no_cover
def test_simultaneous_intervals_cover_jointly(simulate, mixed: Survey, all_sent: Survey) -> None:
    """All nine rows of the table at once, 1000 times: at least 95 %, less 5 standard deviations (0.0069 each).

    Šidák's bound is reached by independent estimates; those of one categorical dimension are not, so it covers a
    little more. False alarm 3e-7.
    """
    n, times = 600, 1000
    rng = np.random.default_rng(6)
    for survey in (mixed, all_sent):
        values = (skewed(n), rng.uniform(-1, 1, n), np.arange(n) % 4, (np.arange(n) % 5) // 2)
        truths = [60 + 60 * values[0].mean(), -500 + 500 * values[1].mean()]
        truths += list(np.bincount(values[2]) / n) + list(np.bincount(values[3]) / n)
        covered = 0
        for _ in range(times):
            block = simulate(survey, n, lambda j, users, values=values: values[j][users], rng)
            rows = Tally(survey).add_block(block).estimate().table(0.95, simultaneous=True)
            covered += all(row["lower"] <= t <= row["upper"] for row, t in zip(rows, truths, strict=True))
        assert 0.95 - 5 * 0.0069 < covered / times < 0.995


def test_the_draw_of_half_of_four_users_adds_its_exact_variance() -> None:
    """Two of four users answer, and half of them have the category: the share among two is enumerated."""
    marginal = Survey(Schema([Categorical("x", ["a", "b"])]), epsilon=2.0).channels[0].response.marginal()
    frequency, variance = indicator_moments(np.array([[1, 1]]), 4, marginal)
    drawn = np.var([np.mean(two) for two in combinations([0, 0, 1, 1], 2)])
    assert frequency[0] == pytest.approx(0.5)
    assert variance[0] == pytest.approx(functional(marginal).row_variances[0] / 2 + drawn)


def test_the_variance_of_the_users_values_is_at_most_that_of_values_at_both_ends() -> None:
    """Two reports at both ends claim a larger one than four values in [−1, 1] can have."""
    table = numeric_survey("piecewise", 1, 1, 2.0).channels[0]
    found = functional(table.response.marginal())
    counts = np.zeros((1, len(found.decode)), np.int64)
    counts[0, [found.decode.argmin(), found.decode.argmax()]] = 1
    variance = value_moments(counts, 4, found)[1][0]
    assert found.decoders is not None
    noise = np.clip(counts[0] @ found.decoders[1] / 2, found.row_variances.min(), found.row_variances.max())
    largest = np.var([-1, -1, 1, 1], ddof=1)
    assert variance == pytest.approx((noise + largest) / 2 - (largest - found.rounding) / 4)
