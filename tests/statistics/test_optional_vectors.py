"""Optional vectors: the law and its moments by enumeration, estimates, standard errors and their coverage."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes

import hdr4me as hd
from hdr4me.channels import KSubset
from hdr4me.channels.codebook.channel import N_LEVELS, Codebook, values, word_levels
from hdr4me.channels.codebook.design import codebook_channel
from hdr4me.channels.k_subset import heaviest
from hdr4me.errors import InvalidInput
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics.answer import NOT_SIGNIFICANT
from hdr4me.statistics.recalibrated import _steady_errors

PLACES = [[0.5, -0.3], [0.0, 0.0], [-0.8, 0.6], None]
ALL_SEEDS = 3000


def asked(length: int, epsilon: float = 4.0, codewords: int = 64, norm: float = 1.0) -> hd.Survey:
    """A survey about one optional vector, by a small codebook."""
    schema = hd.Schema([hd.Vector("v", length, norm, optional=True)])
    question = hd.Question((0,), codebook_channel(epsilon, length + 1, codewords))
    return hd.Survey.from_questions(schema, epsilon=epsilon, sampled=1, questions=[question])


def lists(rows: np.ndarray) -> pa.Table:
    return pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])})


# -- the law -----------------------------------------------------------------------------------------------------------


def test_no_vector_is_as_private_as_any() -> None:
    """All pairs of some vectors and "no vector", every output of a small codebook: no ratio exceeds the proven loss."""
    family = Codebook(3, 6, 2, seed_bits=3)
    channel = KSubset("codebook", 2.0, family, heaviest(2.0, family))
    vector = hd.Vector("v", 2, optional=True)
    inputs = [vector.encode(value, family.inputs[0].size) >> 16 for value in PLACES]
    assert len(set(inputs)) == len(PLACES)
    laws = [[channel.probability(x, y) for y in channel.outputs()] for x in inputs]
    assert all(sum(law) == 1 for law in laws)
    for first, second in product(laws, repeat=2):
        assert max(p / q for p, q in zip(first, second, strict=True)) <= channel.likelihood_ratio
    assert channel.likelihood_ratio <= hd.Survey.from_json(asked(2).to_json()).channels[0].likelihood_ratio


@pytest.mark.parametrize("value", PLACES)
def test_the_moments_by_enumeration(value) -> None:
    """Every codeword of 3,000 seeds, weighed by its probability: nothing is drawn, and codewords are always the same.

    Decoded reports have the mean (x, 0), or (0, −1) if there is no vector; the product of a coordinate and the last one
    has the mean 0; squares have the mean (1 + (E[z²] − 1)·t²)/E[z]². Within 5 standard errors over the seeds.
    """
    channel = codebook_channel(4.0, 3, 8)
    family = channel.family
    assert isinstance(family, Codebook)
    vector = hd.Vector("v", 2, optional=True)
    x = vector.encode(value, family.inputs[0].size) >> 16
    p, k = channel.weight / 2**32, family.heavy
    by_rank = np.where(np.arange(8) < k, p / k, (1 - p) / (8 - k))
    numbers = np.array(values())[np.frombuffer(word_levels(), np.uint8)] / channel.response.scores.contrast  # type: ignore[attr-defined]
    words = np.array(
        [[family.codeword(seed, index)[:3] for index in family.order(x, seed)] for seed in range(ALL_SEEDS)]
    )
    y = numbers[words]  # [seed, rank, coordinate]
    first, second = channel.response.scores  # type: ignore[attr-defined]
    point = np.array([*value, 0.0]) if value is not None else np.array([0.0, 0.0, -1.0])
    assert vector.point(value) == pytest.approx(point)
    for made, expected in (
        (y, point),
        (y[:, :, :2] * y[:, :, 2:], np.zeros(2)),
        (y**2, (1 + (second - 1) * point**2) / first**2),
    ):
        found = (by_rank[:, None] * made).sum(axis=1)
        error = found.std(axis=0) / np.sqrt(ALL_SEEDS)
        assert (np.abs(found.mean(axis=0) - expected) < 5 * error).all()


def test_the_least_noise() -> None:
    """Of the covariance (I + (E[z²] − 1 − E[z]²)·x·xᵀ)/E[z]², the smaller of its two eigenvalues."""
    for epsilon in (0.5, 2.0, 8.0):
        channel = codebook_channel(epsilon, 4)
        first, second = channel.response.scores  # type: ignore[attr-defined]
        x = np.array([0.6, 0.0, -0.8, 0.0, 0.0])
        covariance = (np.eye(5) + (second - 1 - first**2) * np.outer(x, x)) / first**2
        assert channel.response.marginal().least_noise == pytest.approx(np.linalg.eigvalsh(covariance).min())


# -- estimates ---------------------------------------------------------------------------------------------------------


def test_the_ratio_and_its_error_from_counts() -> None:
    """The rows are those of an optional number; the error is the sample one of y − R·(1 + s), product term left out."""
    survey = asked(2, norm=5.0)
    rng = np.random.default_rng(4)
    rows = np.where(rng.random((20_000, 1)) < 0.6, [[3.0, -1.0]], np.nan)
    tally = simulate_tally(lists(rows), survey, seed=5)
    answer = tally.estimate()
    assert answer.statistics == ("mean", "mean", "share")
    assert answer.categories == ("0", "1", None)
    decode = np.array(values()) / survey.channels[0].response.scores.contrast  # type: ignore[attr-defined]
    counts = tally.counts.reshape(3, N_LEVELS)
    y, squares = counts @ decode / 20_000, counts @ decode**2 / 20_000
    share = 1 + y[2]
    ratio = y[:2] / share
    assert answer.value == pytest.approx([*(5 * ratio), share])
    variance = squares[:2] - 2 * ratio * y[:2] + ratio**2 * (counts[2] @ (1 + decode) ** 2 / 20_000)
    error = np.sqrt(variance / 19_999) / share
    assert answer.standard_error == pytest.approx([*(5 * error), np.sqrt((squares[2] - y[2] ** 2) / 19_999)])
    assert np.abs((answer.value - [3.0, -1.0, 0.6]) / answer.standard_error).max() < 4.5  # seeded


def test_small_numbers_of_reports_and_of_vectors() -> None:
    survey = asked(2)
    assert hd.Tally(survey).estimate().status == ("no reports",) * 3
    one = simulate_tally(lists(np.array([[0.6, 0.0]])), survey, seed=1).estimate()
    assert one.status == ("one report",) * 3
    assert np.isnan(one.value[:2]).all()
    assert np.isnan(one.standard_error).all()
    nobody = simulate_tally(lists(np.full((5000, 2), np.nan)), survey, seed=2).estimate()
    assert nobody.status == (NOT_SIGNIFICANT,) * 2 + ("ok",)
    assert abs(nobody.value[2]) < 4.5 * nobody.standard_error[2]  # seeded
    alike = hd.Tally(survey)  # every report the same codeword: the noise bounds the error from below
    for coordinate in range(3):
        alike.counts[N_LEVELS * coordinate + 128] = 100
    alike.n_reports = 100
    found = alike.estimate()
    least = survey.channels[0].response.marginal().least_noise
    assert found.standard_error[2] == pytest.approx(np.sqrt(least / 99))
    assert (found.standard_error[:2] > 0.9 * np.sqrt(least / 99)).all()
    empty = hd.Tally(survey)  # a share of exactly 0 divides nothing
    for coordinate in range(3):
        empty.counts[N_LEVELS * coordinate + 100] = 2
    empty.n_reports = 2
    with np.errstate(all="raise"):
        assert empty.estimate().status[2] == "ok"


def test_supported_statistics() -> None:
    survey = asked(2)
    tally = simulate_tally(lists(np.tile([0.6, 0.0], (2000, 1))), survey, seed=3)
    assert hd.ask(tally, "share", "v").value[0] == tally.estimate().value[2]
    assert len(hd.ask(tally, "mean", "v")) == 2
    with pytest.raises(InvalidInput, match="quantile"):
        hd.ask(tally, "quantile", "v", q=0.5)
    plain = hd.Survey(hd.Schema([hd.Vector("v", 2)]), epsilon=4.0)
    with pytest.raises(InvalidInput, match="the share of 'v' cannot be estimated"):
        hd.ask(hd.Tally(plain), "share", "v")


def test_recalibrated_as_optional_numbers_are() -> None:
    """Means move and shares do not; each coordinate keeps its error; means that are not significant do not move."""
    survey = asked(3)
    rng = np.random.default_rng(6)
    rows = np.where(rng.random((4000, 1)) < 0.5, [[0.8, 0.0, 0.0]], np.nan)
    answer = simulate_tally(lists(rows), survey, seed=7).estimate()
    better = answer.recalibrate("bayes")
    assert (better.value[:3] != answer.value[:3]).all()
    assert better.value[3] == answer.value[3]
    assert better.standard_error[3] == answer.standard_error[3]
    assert np.array_equal(_steady_errors(answer, np.arange(3)), answer.scaled_error[:3])
    nobody = simulate_tally(lists(np.full((500, 3), np.nan)), survey, seed=8).estimate()
    assert np.array_equal(nobody.recalibrate("bayes").value, nobody.value)


def test_the_next_round_asks_again() -> None:
    schema = hd.Schema([hd.Vector("v", 2, optional=True), hd.Numeric("x", 0, 1)])
    survey = hd.Survey(schema, epsilon=4.0, mechanism="piecewise")
    rows = {"v": [[0.1, 0.2], None] * 1000, "x": [0.5] * 2000}
    tally = simulate_tally(pa.table(rows), survey, seed=9)
    assert hd.refine(tally).survey.schema["v"] == schema["v"]


# -- coverage ----------------------------------------------------------------------------------------------------------


def coverage(rows: np.ndarray, survey: hd.Survey, share: float, repeats: int) -> np.ndarray:
    """How often each row's 95 % interval holds the population's number: users drawn anew each time, 10,000 of them."""
    truth = np.append(rows.mean(axis=0), share)
    held = np.zeros(len(truth))
    for seed in range(repeats):
        rng = np.random.default_rng([7, seed])
        people = rows[rng.integers(0, len(rows), 10_000)]
        people[rng.random(10_000) >= share] = np.nan
        low, high = simulate_tally(lists(people), survey, seed=seed).estimate().interval(0.95)
        held += (low <= truth) & (truth <= high)
    return held / repeats


@pytest.mark.no_cover
def test_intervals_hold_on_real_data() -> None:
    """The 442 patients of the diabetes data, 10, 50 and 90 % of whom have their vector: 94 to 96 %.

    8,250 intervals: a standard error of 0.24 % if they are independent, so 1 % is 4 of them; false alarm 4e-5. Each
    presence by itself has 2,750: within 2 %, 4.8 standard errors.
    """
    rows = load_diabetes().data
    rows = rows / np.linalg.norm(rows, axis=1).max()
    survey = asked(10, codewords=32)
    found = [coverage(rows, survey, share, 250) for share in (0.1, 0.5, 0.9)]
    assert 0.94 < np.mean(found) < 0.96
    assert all(0.93 < each.mean() < 0.97 for each in found)


@pytest.mark.no_cover
@pytest.mark.parametrize(("epsilon", "spread"), [(2.0, 0.3), (4.0, 0.0)])
def test_intervals_hold_far_from_zero(epsilon: float, spread: float) -> None:
    """Vectors of norm nearly 1, where the share's error counts most: 1,680 intervals, 3.8 standard errors are 2 %."""
    rows = np.array([0.8, -0.5, 0.0]) + spread * np.random.default_rng(1).uniform(-1, 1, (400, 3))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    survey = asked(3, epsilon, codewords=32)
    found = [coverage(rows, survey, share, 140) for share in (0.1, 0.5, 0.9)]
    assert 0.93 < np.mean(found) < 0.97
