"""Blocks of signs from records to means: kernels, engine, client, files, tally, audit."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hdr4me as hd
from hdr4me.auditing import audit
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.agreement.design import agreement_channel
from hdr4me.channels.agreement.response import AgreementResponse, _side_by_side
from hdr4me.channels.response import Records, Response
from hdr4me.client import MemoizedClient
from hdr4me.engines import Local
from hdr4me.engines.general import conversions
from hdr4me.errors import InvalidInput
from hdr4me.io.columns import from_matrix
from hdr4me.kernels.exact.blocks import BOTTOM, DEFAULT, LOW, SCALE, TOP
from hdr4me.kernels.exact.channels import count_signs, differ, row_signs, signs, ways
from hdr4me.kernels.exact.secure import SecureDraws, number_outputs
from hdr4me.survey.layout import Layout


def survey_of(b: int, epsilon: float, **more) -> hd.Survey:
    names = [f"x{i}" for i in range(b)]
    return hd.Survey(
        hd.Schema([hd.Numeric(x, -1, 1) for x in names]), epsilon=epsilon, block_questions=[names], **more
    )


@pytest.mark.parametrize("b", [2, 5, 63, 64])
def test_the_kernel_is_the_family(b: int) -> None:
    family = Agreement(b, b // 2 + 1)
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, family.n_outputs - 1, 600, dtype=np.uint64, endpoint=True)
    numbers[:2] = 0, family.n_outputs - 1
    blocks = rng.integers(0, family.n_outputs - 1, 600, dtype=np.uint64, endpoint=True)
    expected = [int(x) ^ family.differing(int(number)) for x, number in zip(blocks, numbers, strict=True)]
    differ(numbers, np.array(family.ends[:-1], np.uint64), b, ways(), blocks)
    assert blocks.tolist() == expected


@pytest.mark.parametrize("b", [3, 64, 100])
def test_the_counting_kernel_is_the_channel(b: int) -> None:
    channel = agreement_channel(6.0, b)
    outputs = channel.response.sample(np.zeros((500, len(channel.fields)), np.int64), SecureDraws())
    good, at = channel.response.valid(outputs), channel.response.counters(outputs)
    assert good.all()
    expected = [list(channel.counters(row)) for row in outputs.view(np.uint64).tolist()]
    assert at.tolist() == expected
    counts = np.zeros(channel.n_counters, np.int64)
    some = np.arange(500) % 3 > 0
    first = 0
    family = channel.family
    assert isinstance(family, Agreement)
    for column, width in enumerate(family.widths):
        blocks = np.ascontiguousarray(outputs[:, column]).view(np.uint64)
        count_signs(blocks, some, width, counts[2 * first : 2 * (first + width)])
        first += width
    assert counts.tolist() == np.bincount(at[some].ravel(), minlength=2 * b).tolist()


@pytest.mark.parametrize("way", [AgreementResponse, Response])
def test_samplers_have_the_law(way) -> None:
    """A chi-squared test over all 16 outputs; false alarm 1e-9."""
    channel = agreement_channel(3.0, 4)
    n, x = 20_000, 0b0110
    response = way(channel)
    found = Counter(response.sample(response.inputs_of(x, n), SecureDraws())[:, 0].tolist())
    law = [float(channel.probability(x, (y,))) for y in range(16)]
    statistic = sum((found[y] - n * p) ** 2 / (n * p) for y, p in enumerate(law))
    assert statistic < stats.chi2.isf(1e-9, 15)


@pytest.mark.parametrize("b", [64, 65, 100, 300])
def test_distances_of_long_blocks(b: int) -> None:
    """How many places differ is the law's, and every place does equally often; false alarm below 1e-8."""
    channel = agreement_channel(8.0, b)
    family, n = channel.family, 20_000
    assert isinstance(family, Agreement)
    x = (1 << b) // 3
    inputs = np.tile(np.array(family.split(x), np.uint64).view(np.int64), (n, 1))
    outputs = channel.response.sample(inputs, SecureDraws())
    bits = channel.response.counters(outputs) & 1
    own = np.array([int(bit) for bit in f"{x:0{b}b}"])
    differs = bits != own
    heavy = int((differs.sum(axis=1) <= b - family.agreeing).sum())
    p = channel.weight / 2**32
    assert abs(heavy - n * p) < 6 * np.sqrt(n * p * (1 - p))
    q = 1 - float(family.shares(Fraction(channel.weight, 2**32))[0])
    sums = differs.sum(axis=0)
    assert np.abs(sums - n * q).max() < 7 * np.sqrt(n * q * (1 - q))


def test_numbers_below_bounds_of_64_bits() -> None:
    """Each number equally often: chi-squared, false alarm 1e-9; and no number reaches its bound."""
    draws = SecureDraws()
    found = draws.below_either(np.arange(100_000) < 70_000, 7, 3)
    counts = np.bincount(found.astype(np.int64))
    assert len(counts) == 10
    assert counts[:7].sum() == 70_000
    assert ((counts - 10_000) ** 2 / 10_000).sum() < stats.chi2.isf(1e-9, 8)
    heavy = np.arange(1000) % 2 == 0
    inside, rest = 2**63 + 1, 2**63 - 1
    found = draws.below_either(heavy, inside, rest)
    assert ((found < np.uint64(inside)) == heavy).all()
    assert not draws.below_either(np.full(100, True), 1, 5).any()
    high = int((found[::2] >= 2**62).sum())
    assert 130 < high < 370  # Bin(500, 1/2): outside with probability below 1e-25


@pytest.mark.parametrize(("inside", "rest"), [(3, 5), (4, 4), (1, 7)])
def test_every_word_that_is_kept_numbers_an_output_by_enumeration(inside: int, rest: int) -> None:
    """All words of eight: each number as often, and the rows of the others are drawn anew."""
    words = np.arange(8, dtype=np.uint64)
    for own, bound, shift in ((True, inside, 0), (False, rest, inside)):
        keep = [np.uint64((1 << x.bit_length()) - 1) for x in (inside, rest)]
        numbers, rows = np.empty(8, np.uint64), np.arange(8)
        bounds = np.uint64(inside), np.uint64(rest)
        again = number_outputs(words, rows, np.full(8, own), *bounds, *keep, numbers)
        kept = sorted(set(range(8)) - set(rows[:again].tolist()))
        found = Counter(numbers[kept].tolist())
        assert set(found) == set(range(shift, shift + bound))
        assert len(set(found.values())) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("b", [2, 7, 64, 100])
def test_rows_of_a_matrix_have_the_signs_of_columns(b: int, dtype: type) -> None:
    """The same halves by both kernels, bit for bit; missing, out of range and at the ends too."""
    names = [f"x{i}" for i in range(b)]
    schema = hd.Schema([hd.Numeric("left", 0, 1), *(hd.Numeric(x, -i - 1, 2) for i, x in enumerate(names))])
    survey = hd.Survey(schema, epsilon=8.0, block_questions=[names])
    rng = np.random.default_rng(b)
    n = 700
    values = rng.uniform(-3, 3, (n, b + 1)).astype(dtype)
    values[::9, 1] = np.nan
    values[::7, 2] = 2
    source = from_matrix(values, survey)
    users = rng.permutation(n)[:600]
    dims = np.arange(1, 1 + min(b, 64))
    ranges = conversions(survey, np.zeros(b + 1, np.int64))
    halves = rng.integers(0, 2**16, (users.size, dims.size), dtype=np.uint16)
    by_column, by_row = np.empty((2, users.size), np.uint64)
    signs(source.columns, ranges, dims, users, np.ascontiguousarray(halves.T), by_column)
    lines = np.ascontiguousarray(ranges[dims][:, [LOW, SCALE, BOTTOM, TOP, DEFAULT]].T)
    found = _side_by_side(source.columns, dims, users)
    assert found is not None
    row_signs(*found, lines, users, halves, by_row)
    assert (by_column == by_row).all()


def test_values_that_do_not_stand_side_by_side_are_read_by_columns() -> None:
    survey = survey_of(4, 6.0)
    users, dims = np.arange(50), np.arange(4)
    matrix = np.random.default_rng(1).uniform(-1, 1, (50, 4))
    assert _side_by_side(from_matrix(matrix, survey).columns, dims, users) is not None
    assert _side_by_side(from_matrix(np.asfortranarray(matrix), survey).columns, dims, users) is None
    assert _side_by_side(from_matrix(matrix.round().astype(np.int64), survey).columns, dims, users) is None
    assert _side_by_side(from_matrix(matrix, survey).columns, dims[::-1].copy(), users) is None
    backwards = from_matrix(matrix[::-1], survey)
    assert _side_by_side(backwards.columns, dims, users) is None
    assert [len(block) for block in Local(threads=1).reports(matrix[::-1], survey)] == [50]


def test_signs_are_rounded_at_random() -> None:
    """P(+1) = (1 + t)/2 for every dimension, in its own units, NaN as the default; false alarm below 1e-8."""
    schema = hd.Schema([hd.Numeric("a", 0, 10, 5), hd.Numeric("b", -1, 1, default=1), hd.Numeric("c", 5, 6)])
    survey = hd.Survey(schema, epsilon=4.0, block_questions=[["a", "b", "c"]])
    n = 20_000
    records = np.tile([2.5, np.nan, 99.0], (n, 1))
    source = from_matrix(records, survey)
    records = Records(source.columns, {}, conversions(survey, np.zeros(len(survey.schema), np.int64)))
    question = survey.questions[0]
    response = question.channel.response
    found = response.encode(records, question.dimensions, np.arange(n), SecureDraws())[:, 0]
    assert not (found >> 3).any()
    assert (found & 1).all()
    assert (found >> 1 & 1).all()
    assert abs(int((found >> 2).sum()) - n / 4) < 6 * np.sqrt(n * 3 / 16)
    table = pa.table({"a": [None, 0.0], "b": pa.array([-1, 1], pa.int8()), "c": ["5", "6"]})
    for _ in range(30):
        block = next(Local().reports(table, survey, on_quality=lambda quality: None))
        assert block.shape == (2, 3)


def test_means_through_every_way(tmp_path: Path) -> None:
    """Client, engine and files give means within 6.5 standard errors of the truth; false alarm below 1e-8."""
    survey = survey_of(64, 8.0)
    rng = np.random.default_rng(5)
    truth = rng.uniform(-1, 1, 64)
    n = 4000
    records = np.where(rng.random((n, 64)) < (1 + truth) / 2, 1.0, -1.0)
    tally = hd.Tally(survey)
    for block in Local().reports(records, survey):
        tally.add_block(block)
    client = hd.Client(survey)
    some = [dict(zip(survey.schema.names, row, strict=True)) for row in records[:200].tolist()]
    reports = [client.report(record) for record in some]
    assert {len(report.to_bytes(survey)) for report in reports} == {10}
    tally.add(reports)
    for suffix in ("jsonl", "arrow", "parquet"):
        path = tmp_path / f"reports.{suffix}"
        Local().perturb(records[:1000], survey, path)
        read = Local().tally(path, survey, strict=True)
        assert read.n_reports == 1000
        read.save(tmp_path / "a.tally")
        assert hd.Tally.load(tmp_path / "a.tally", survey) == read
        tally = tally + read
    answer = tally.estimate()
    assert answer.statistics == ("mean",) * 64
    low, high = answer.interval(1 - 1e-10)
    inside = records.mean(axis=0)
    assert ((low < inside) & (inside < high)).all()


def test_reports_out_of_bounds_are_not_counted() -> None:
    survey = survey_of(5, 4.0)
    block = next(Local().reports(np.zeros((10, 5)), survey)).copy()
    block[3, 2] |= 1 << 5
    tally = hd.Tally(survey).add_block(block)
    assert tally.n_reports == 9
    assert tally.rejected == {"code out of support": 1}
    assert tally.counts.sum() == 45
    line = json.loads(hd.Client(survey).report(dict.fromkeys(survey.schema.names, 0)).to_json())
    line["answers"] = [[0, 32]]
    from hdr4me.io.report import Reason, inspect

    assert inspect(json.dumps(line), survey) is Reason.CODE


def test_blocks_beside_other_questions() -> None:
    """A block, a single number and a category in one survey: each report has one of them."""
    schema = hd.Schema(
        [
            hd.Numeric("a", -1, 1),
            hd.Categorical("k", ["x", "y"]),
            hd.Numeric("b", 0, 2),
            hd.Numeric("c", -1, 1),
        ]
    )
    survey = hd.Survey(schema, epsilon=6.0, mechanism="duchi", block_questions=[["c", "a"]])
    assert [question.dimensions for question in survey.questions] == [(0, 3), (1,), (2,)]
    assert hd.Survey.from_json(survey.to_json()) == survey
    n = 3000
    table = pa.table({"a": [1.0] * n, "k": ["y"] * n, "b": [2.0] * n, "c": [-1.0] * n})
    tally = hd.Tally(survey)
    for block in Local().reports(table, survey):
        tally.add_block(block)
    assert not tally.rejected
    answer = tally.estimate()
    value = dict(zip(zip(answer.dimensions, answer.categories, strict=True), answer.value, strict=True))
    error = dict(
        zip(zip(answer.dimensions, answer.categories, strict=True), answer.standard_error, strict=True)
    )
    for key, truth in (("a", 1.0), ("b", 2.0), ("c", -1.0)):
        assert abs(value[key, None] - truth) < 7 * error[key, None]


def test_the_standard_error_is_the_decoders() -> None:
    """r decoded signs ±1/c: the noise 1/c² − 1 of one, and the spread of the values, kept between 0 and 1."""
    survey = survey_of(4, 4.0)
    c = survey.channels[0].response.contrast_c  # type: ignore[attr-defined]
    tally = hd.Tally(survey)
    tally.counts[:] = [30, 70, 50, 50, 0, 100, 10, 90]
    tally.n_reports = 100
    answer = tally.estimate()
    means = np.array([40, 0, 100, 80]) / 100 / c
    assert answer.value == pytest.approx(means)
    noise = c**-2 - 1
    spread = np.clip((1 - means**2 + noise / 100) * 100 / 99, 0, 1)
    expected = np.sqrt((noise + spread) / 100)
    assert answer.standard_error == pytest.approx(expected)
    empty = hd.Tally(survey).estimate()
    assert set(empty.status) == {"no reports"}
    assert Layout.of(survey).size == 8


def test_the_audit_proves_and_attacks() -> None:
    """A correct channel is rejected with probability 1e-6 each."""
    for b in (3, 64, 70):
        found = audit(survey_of(b, 4.0), 50_000)
        assert found.passed
        assert 3.5 < found.findings[0].epsilon_attacked < 4.0
        assert found.epsilon_proven <= 4.0


def test_a_sampler_that_leaks_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(AgreementResponse, "sample", lambda self, inputs, draws: inputs)
    assert not audit(survey_of(3, 2.0), 20_000).passed


def test_what_a_block_is_refused_for(tmp_path: Path) -> None:
    schema = hd.Schema(
        [
            hd.Numeric("a", 0, 1),
            hd.Numeric("b", 0, 1),
            hd.Numeric("o", 0, 1, optional=True),
            hd.Numeric("c", 0, 1),
        ]
    )
    for blocks in ([["a"]], ["ab"], [["a", "a"]], [["a", "b"], ["b", "c"]], [["a", "o"]]):
        with pytest.raises(InvalidInput, match="block_questions"):
            hd.Survey(schema, epsilon=4.0, block_questions=blocks)
    with pytest.raises(InvalidInput, match="in no other"):
        hd.Survey(schema, epsilon=4.0, pair_questions=[("a", "b")], block_questions=[["b", "c"]])
    with pytest.raises(InvalidInput, match="no dimension is called"):
        hd.Survey(schema, epsilon=4.0, block_questions=[["a", "z"]])
    with pytest.raises(InvalidInput, match="memoized"):
        MemoizedClient(survey_of(20, 4.0), hd.Ledger(tmp_path / "ledger.json"))
    with pytest.raises(InvalidInput, match="information on the mean only"):
        hd.ask(hd.Tally(survey_of(3, 4.0)), "quantile", "x0", q=0.5)


def test_the_fields_of_a_report_are_eight_bytes() -> None:
    survey = survey_of(64, 8.0)
    block = next(Local().reports(np.ones((50, 64)), survey))
    assert block.shape == (50, 10)
    fields = survey.channels[0].response.from_bytes(block[:, 2:])
    assert np.array_equal(fields.view(np.uint64)[:, 0], block[:, 2:].copy().view("<u8")[:, 0])
