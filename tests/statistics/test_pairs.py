"""Covariance, correlation and statistics by group, from reports with two answers or more; every draw is seeded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.framework.small_samples import weighted_interval
from hdr4me.io import write_reports
from hdr4me.statistics.answer import NOT_SIGNIFICANT
from hdr4me.statistics.distribution import VARIANCE
from hdr4me.statistics.pairs import DOUBTFUL, joint_of
from hdr4me.tally import PairCounts

N = 20_000


def two_numbers(mechanism="piecewise", epsilon=4.0, sampled=2):
    schema = hd.Schema([hd.Numeric("a", -1, 1), hd.Numeric("b", 0, 10)])
    return hd.Survey(schema, epsilon, mechanism, sampled)


def mixed(sampled=3, categorical="auto", epsilon=6.0):
    groups = hd.Categorical("g", ["x", "y", "z"])
    schema = hd.Schema([hd.Numeric("a", -1, 1), groups, hd.Categorical("h", ["no", "yes"])])
    return hd.Survey(schema, epsilon, "piecewise", sampled, categorical)


def codes(table, levels, rng):
    """One cell for each level."""
    law = np.cumsum(np.array(table.weights, float) / 2**32, axis=1)
    return np.minimum((rng.random(len(levels))[:, None] > law[levels]).sum(axis=1), table.n_cells - 1)


def rounded(values, n_levels, rng):
    place = (values + 1) / 2 * (n_levels - 1)
    low = np.minimum(place.astype(int), n_levels - 2)
    return low + (rng.random(len(values)) < place - low)


def block_of(survey, columns, rng):
    """Padded reports of users who answer every question; columns are on [−1, 1] or category numbers."""
    n = len(columns[0])
    slots = np.zeros((n, len(survey.questions), survey.slot_size), np.uint8)
    for q, (question, values) in enumerate(zip(survey.questions, columns, strict=True)):
        channel = question.channel
        slots[:, q, 0] = q
        if isinstance(channel, hd.Table):
            slots[:, q, 2] = codes(channel, rounded(values, channel.n_inputs, rng), rng)
        elif isinstance(channel, hd.UnaryEncoding):
            law = np.array(channel.weights, float)[:, 1] / 2**32
            for k in range(channel.size):
                slots[:, q, 2 + k] = rng.random(n) < law[(values == k).astype(int)]
        else:
            law = np.cumsum(np.array(channel.rows, float) / 2**32, axis=1)
            slots[:, q, 2] = np.minimum((rng.random(n)[:, None] > law[values]).sum(axis=1), law.shape[1] - 1)
    return slots.reshape(n, -1)


def correlated(rng, n=N):
    a = rng.uniform(-1, 1, n)
    return a, 0.6 * a + 0.4 * rng.uniform(-1, 1, n)


@pytest.mark.no_cover
def test_coverage_and_variance_of_the_covariance():
    """80 seeded draws. The variance is that of the formula for users who all answer both questions, within 40 %: a
    sample variance of 80 draws has a relative error of 16 %; benchmarks/statistics.py shows 5 %."""
    rng, survey, n = np.random.default_rng(1), two_numbers(), 2000
    a, b = correlated(rng, n)
    true = np.cov(a, b, ddof=0)[0, 1] * 5  # b has the range 0 to 10
    found, errors, inside = [], [], 0
    for _ in range(80):
        block = block_of(survey, (a, b), rng)
        pairs = PairCounts(survey, [("a", "b")]).add_block(block)
        answer = hd.ask(hd.Tally(survey).add_block(block), "covariance", ["a", "b"], pair_counts=pairs)
        low, high = answer.interval()
        inside += int(low[0] <= true <= high[0])
        found.append(answer.value[0])
        errors.append(answer.standard_error[0])
    noise = [_noise_of(survey.questions[q].channel, values) for q, values in enumerate((a, b))]
    t = [a - a.mean(), b - b.mean()]
    formula = np.mean(noise[0] * noise[1] + noise[0] * t[1] ** 2 + noise[1] * t[0] ** 2) * 25 / n
    assert np.var(found) == pytest.approx(formula, rel=0.4)
    assert np.mean(np.square(errors)) == pytest.approx(formula, rel=0.15)
    assert inside >= 0.88 * 80


def _noise_of(table, values):
    rows = table.response.marginal().at(values)[:, 0]
    decode = np.array(table.decoders["value"])
    return rows @ decode**2 - values**2


@pytest.mark.no_cover
def test_correlation_is_scale_free_and_covers():
    rng, survey = np.random.default_rng(2), two_numbers("square_wave", 8.0)
    a, b = correlated(rng)
    block = block_of(survey, (a, b), rng)
    answer = hd.ask(
        hd.Tally(survey).add_block(block),
        "correlation",
        ["a", "b"],
        pair_counts=PairCounts(survey, [("a", "b")]).add_block(block),
    )
    low, high = answer.interval(0.999)
    assert low[0] <= np.corrcoef(a, b)[0, 1] <= high[0]  # one seeded draw
    assert (answer.dimensions, answer.categories) == (("a",), ("b",))


def test_a_correlation_that_is_not_significant_is_unknown():
    rng, survey = np.random.default_rng(3), two_numbers(epsilon=1.0)
    block = block_of(survey, correlated(rng, 500), rng)
    pairs = PairCounts(survey, [("a", "b")]).add_block(block)
    answer = hd.ask(hd.Tally(survey).add_block(block), "correlation", ["a", "b"], pair_counts=pairs)
    assert answer.table()[0]["estimate"] is None
    assert answer.status == (NOT_SIGNIFICANT,)


def test_a_pair_question_needs_no_pair_counts():
    survey = hd.Survey(
        hd.Schema([hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1)]), 2.0, pair_questions=[("a", "b")]
    )
    table, tally = survey.questions[0].channel, hd.Tally(survey)
    assert isinstance(table, hd.Table)
    size = table.inputs[0].size
    law = np.array(table.weights, float) / 2**32  # type: ignore[attr-defined]
    mix = (law[0] + law[size * size - 1]) / 2  # both at −1, or both at 1: covariance 1
    tally.counts[:] = np.random.default_rng(4).multinomial(200_000, mix / mix.sum())
    tally.n_reports = 200_000
    low, high = hd.ask(tally, "covariance", ["a", "b"]).interval(0.999)
    assert low[0] <= 1.0 <= high[0]  # one seeded draw
    with pytest.raises(InvalidInput, match="asked in one question"):
        PairCounts(survey, [("a", "b")])


@pytest.mark.parametrize("categorical", ["grr", "oue", "subset"])
def test_means_and_shares_by_group(categorical):
    rng, survey = np.random.default_rng(5), mixed(categorical=categorical)
    g = rng.choice(3, N, p=[0.6, 0.4, 0.0])
    a = np.where(g == 0, -0.5, 0.5) + rng.uniform(-0.3, 0.3, N)
    h = (rng.random(N) < np.where(g == 0, 0.2, 0.7)).astype(int)
    channel = survey.questions[1].channel
    if categorical == "subset" and channel.per_report > 1:
        pytest.skip("subsets of more than one category have no single code to draw here")
    block = block_of(survey, (a, g, h), rng)
    pairs = PairCounts(survey, [("a", "g"), ("h", "g")]).add_block(block)
    tally = hd.Tally(survey).add_block(block)
    means = hd.ask(tally, "mean_by", ["a", "g"], pair_counts=pairs)
    assert means.categories == ("x", "y", "z")
    low, high = means.interval(0.9999)
    for group, true in ((0, a[g == 0].mean()), (1, a[g == 1].mean())):
        assert low[group] <= true <= high[group]  # one seeded draw
    assert means.status[2] == NOT_SIGNIFICANT  # nobody is in the third group
    assert means.table()[2]["estimate"] is None
    shares = hd.ask(tally, "share_by", ["h", "g"], pair_counts=pairs)
    assert shares.categories[:2] == ("no | x", "yes | x")
    low, high = shares.interval(0.9999)
    assert low[1] <= h[g == 0].mean() <= high[1]
    assert low[3] <= h[g == 1].mean() <= high[3]


def test_pair_counts_are_exact_and_mergeable(tmp_path):
    rng, survey = np.random.default_rng(6), mixed()
    blocks = [
        block_of(survey, (rng.uniform(-1, 1, n), rng.integers(0, 3, n), rng.integers(0, 2, n)), rng)
        for n in (500, 300)
    ]
    names = [("a", "g"), ("g", "h")]
    first, second = (PairCounts(survey, names).add_block(block) for block in blocks)
    whole = PairCounts(survey, names).add_block(np.concatenate(blocks))
    assert first + second == whole == second + first
    tally = hd.Tally(survey).add_block(np.concatenate(blocks))
    np.testing.assert_array_equal(whole.of("a", "g")[:-1, -1], tally.layout.of_question(tally.counts, 0))
    np.testing.assert_array_equal(whole.of("g", "a"), whole.of("a", "g").T)
    with write_reports(tmp_path / "reports.parquet", survey) as writer:
        writer.write(np.concatenate(blocks))
    assert PairCounts(survey, names).add_file(tmp_path / "reports.parquet") == whole
    whole.save(tmp_path / "all.pairs")
    assert PairCounts.load(tmp_path / "all.pairs") == whole


def test_bad_reports_are_left_out():
    survey = two_numbers()
    block = np.zeros((3, survey.report_size), np.uint8)
    block[:, survey.slot_size] = (1, 1, 7)  # the last report names a question that does not exist
    counts = PairCounts(survey, [("a", "b")]).add_block(block)
    assert counts.n_answers("a", "b") == 2


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "x.pairs"
    counts = PairCounts(two_numbers(), [("a", "b")])
    for content, words in (
        (b"no", "not JSON"),
        (b"{}\n", "version"),
        (counts.to_bytes()[:-1], "checksum"),
        (counts.to_bytes().replace(b'"pairs":[[0,1]]', b'"pairs":[[0,9]]'), "do not belong to its survey"),
    ):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=words):
            PairCounts.load(path)


def test_unsupported_requests_say_why():
    one = two_numbers(sampled=1)
    with pytest.raises(InvalidInput, match="each person answers one question"):
        PairCounts(one, [("a", "b")])
    survey = two_numbers()
    tally = hd.Tally(survey)
    with pytest.raises(InvalidInput, match="need reports that answer both questions"):
        hd.ask(tally, "covariance", ["a", "b"])
    with pytest.raises(InvalidInput, match="two different names"):
        hd.ask(tally, "covariance", ["a"])
    with pytest.raises(InvalidInput, match="the covariance has no option 'p'"):
        hd.ask(tally, "covariance", ["a", "b"], p=1)
    with pytest.raises(InvalidInput, match="different surveys"):
        hd.ask(
            tally, "covariance", ["a", "b"], pair_counts=PairCounts(two_numbers(epsilon=2.0), [("a", "b")])
        )
    with pytest.raises(InvalidInput, match="accepts a number and then the category"):
        hd.ask(tally, "mean_by", ["a", "b"])
    with pytest.raises(InvalidInput, match="accepts two categories"):
        hd.ask(tally, "share_by", ["a", "b"])
    with pytest.raises(InvalidInput, match="both dimensions must be numbers"):
        hd.ask(hd.Tally(mixed()), "covariance", ["a", "g"])
    duchi = two_numbers("duchi")
    with pytest.raises(InvalidInput, match="information on the mean only"):
        hd.ask(hd.Tally(duchi), "correlation", ["a", "b"], pair_counts=PairCounts(duchi, [("a", "b")]))
    with pytest.raises(InvalidInput, match="at least one pair"):
        PairCounts(survey, [])
    with pytest.raises(InvalidInput, match="pairs of names"):
        PairCounts(survey, ["ab"])
    counts = PairCounts(mixed(), [("a", "g")])
    with pytest.raises(InvalidInput, match="not counted together"):
        counts.of("a", "h")
    with pytest.raises(InvalidInput, match="count the same pairs"):
        counts + PairCounts(mixed(), [("a", "h")])
    with pytest.raises(FingerprintMismatch):
        counts + PairCounts(mixed(epsilon=3.0), [("a", "g")])
    with pytest.raises(InvalidInput, match="expected uint8"):
        counts.add_block(np.zeros((1, 1), np.uint8))


def test_without_reports_nothing_is_known():
    survey = mixed()
    pairs, tally = PairCounts(survey, [("a", "g")]), hd.Tally(survey)
    assert hd.ask(tally, "mean_by", ["a", "g"], pair_counts=pairs).status == ("no reports",) * 3
    numbers = two_numbers()
    empty = PairCounts(numbers, [("a", "b")])
    assert hd.ask(hd.Tally(numbers), "covariance", ["a", "b"], pair_counts=empty).status == ("no reports",)
    assert joint_of(hd.Tally(numbers), empty, 0, 1).n == 0


def test_few_reports_widen_the_covariance_by_twice_the_errors_of_both_means():
    """The estimated means have errors of their own, whose product is rarely beyond twice that of their sizes."""
    rng, survey = np.random.default_rng(12), two_numbers()
    block = block_of(survey, correlated(rng, 40), rng)
    pairs = PairCounts(survey, [("a", "b")]).add_block(block)
    answer = hd.ask(hd.Tally(survey).add_block(block), "covariance", ["a", "b"], pair_counts=pairs)
    joint = joint_of(hd.Tally(survey), pairs, 0, 1)
    counts, errors, centered = joint.counts.astype(int), [], []
    for axis, values in ((1, joint.first), (0, joint.second)):
        reports = np.repeat(values, counts.sum(axis=axis))
        errors.append(reports.std(ddof=1) / np.sqrt(40))
        centered.append(values - reports.mean())
    ends = weighted_interval(np.outer(*centered).ravel(), joint.counts.ravel(), 0.95)
    slack = 2 * errors[0] * errors[1]
    low, high = answer.interval(0.95)  # b has the range 0 to 10
    assert (low[0], high[0]) == pytest.approx((5 * (ends[0][0] - slack), 5 * (ends[1][0] + slack)))


@pytest.mark.parametrize(("ratio", "doubtful"), [(5.99, True), (6.01, False)])
def test_a_correlation_is_doubtful_if_a_variance_is_below_six_standard_errors(monkeypatch, ratio, doubtful):
    rng, survey = np.random.default_rng(13), two_numbers("square_wave", 4.0)
    block = block_of(survey, correlated(rng, 600), rng)
    pairs = PairCounts(survey, [("a", "b")]).add_block(block)
    found = VARIANCE.parts

    def parts(counted, dimensions):
        first, second = found(counted, dimensions)
        return [replace(first, error=first.value / 100), replace(second, error=second.value / ratio)]

    monkeypatch.setattr(VARIANCE, "parts", parts)
    answer = hd.ask(hd.Tally(survey).add_block(block), "correlation", ["a", "b"], pair_counts=pairs)
    assert (DOUBTFUL in answer.notes) is doubtful
