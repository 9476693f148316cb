"""Vectors from records to a mean: kernels, engine, client, files, tally, audit, simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hdr4me as hd
from hdr4me.auditing import audit
from hdr4me.channels import KSubset
from hdr4me.channels.agreement.design import agreement_channel
from hdr4me.channels.codebook.channel import Codebook, values, word_levels
from hdr4me.channels.codebook.design import codebook_channel, total_error
from hdr4me.channels.codebook.response import CodebookResponse, word_values
from hdr4me.channels.k_subset import heaviest
from hdr4me.client import MemoizedClient
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.kernels.exact.channels import axis_ranks, choose
from hdr4me.kernels.exact.secure import SecureDraws


def small(length: int = 3, epsilon: float = 4.0, codewords: int = 32, **more) -> hd.Survey:
    schema = hd.Schema([hd.Vector("v", length, **more)])
    channel = codebook_channel(epsilon, length, codewords)
    return hd.Survey.from_questions(
        schema, epsilon=epsilon, sampled=1, questions=[hd.Question((0,), channel)]
    )


@pytest.mark.parametrize("length", [1, 3, 4, 8, 13])
def test_the_kernel_is_the_family(length: int) -> None:
    """Rank by rank the kernel chooses the codeword of the family's order, and no codeword twice."""
    family = Codebook(length, 16, 4)
    rng = np.random.default_rng(length)
    vector = rng.standard_normal(length)
    vector /= 1.3 * np.linalg.norm(vector)
    x = family.number(vector.tolist())
    exact = np.array(family.vector(x))
    target = np.zeros((16, 4 * (length // 4 + 1)), np.float32)
    target[:, :length] = exact
    target[:, length] = np.sqrt(1 - exact @ exact)
    found = np.empty(16, np.int64)
    for seed in (0, 1, 2**32 - 1):
        choose(target, np.full(16, seed, np.uint32), np.arange(16), 16, word_values(), found)
        assert found.tolist() == family.order(x, seed)
    choose(0 * target, np.zeros(16, np.uint32), np.arange(16), 16, word_values(), found)
    assert found.tolist() == list(range(16))  # equal scores: still every codeword once


def test_ranks_on_the_axis_are_the_family() -> None:
    family = Codebook(2, 300, 9)
    first, second = family.worst_pair()
    ranks = np.empty((300, 2), np.int64)
    axis_ranks(np.full(300, 11), np.arange(300), 300, word_values(), ranks)
    for x, column in ((first, 0), (second, 1)):
        order = family.order(x, 11)
        assert ranks[order, column].tolist() == list(range(300))


def test_the_counting_kernel_is_the_channel() -> None:
    channel = codebook_channel(4.0, 7, 64)
    outputs = channel.response.sample(np.zeros((200, 7)), SecureDraws())
    good, at = channel.response.valid(outputs), channel.response.counters(outputs)
    assert good.all()
    assert at.tolist() == [list(channel.counters(row)) for row in outputs.tolist()]
    survey = small(7, codewords=64)
    blocks = list(Local().reports(np.zeros((300, 7)), survey))
    tally = hd.Tally(survey).add_block(blocks[0])
    expected = np.zeros_like(tally.counts)
    for row in blocks[0]:
        seed, index = int.from_bytes(row[2:6].tobytes(), "little"), int(row[6])
        for counter in survey.channels[0].counters((seed, index)):
            expected[counter] += 1
    assert np.array_equal(tally.counts, expected)


def test_the_sampler_has_the_law() -> None:
    """With two seeds all outputs are counted: chi-squared over all of them, false alarm 1e-9."""
    family = Codebook(2, 8, 2, seed_bits=1)
    channel = KSubset("codebook", 3.0, family, heaviest(3.0, family))
    vector = [0.6, -0.64]
    x = family.number(vector)
    n = 20_000
    outputs = channel.response.sample(np.tile(family.vector(x), (n, 1)), SecureDraws())
    counts = np.bincount(outputs @ np.array([8, 1]), minlength=16)
    law = np.array([float(channel.probability(x, y)) for y in channel.outputs()])
    assert ((counts - n * law) ** 2 / (n * law)).sum() < stats.chi2.isf(1e-9, 15)


def test_means_through_every_way(tmp_path: Path) -> None:
    """Client, engine and files: intervals at 1 − 1e-10 hold the mean, in the vector's own units."""
    survey = small(3, norm=2.0)
    assert hd.Survey.from_json(survey.to_json()) == survey
    vector = [1.2, -0.5, 0.1]
    table = pa.table({"v": pa.array([vector] * 4000, pa.list_(pa.float64()))})
    tally = hd.Tally(survey)
    for block in Local().reports(table, survey):
        tally.add_block(block)
    client = hd.Client(survey)
    reports = [client.report({"v": vector}) for _ in range(200)]
    assert {len(report.to_bytes(survey)) for report in reports} == {7}
    tally.add(reports)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"v": vector}) + "\n" for _ in range(500)))
    (tmp_path / "in.csv").write_text("v\n" + "1.2|-0.5|0.1\n" * 500)
    for source in (table.slice(0, 500), tmp_path / "in.jsonl", tmp_path / "in.csv"):
        for suffix in ("jsonl", "arrow", "parquet"):
            path = tmp_path / f"reports.{suffix}"
            Local().perturb(source, survey, path)
            read = Local().tally(path, survey, strict=True)
            assert read.n_reports == 500
            tally = tally + read
    tally.save(tmp_path / "a.tally")
    answer = hd.Tally.load(tmp_path / "a.tally", survey).estimate()
    assert answer.statistics == ("mean",) * 3
    assert answer.categories == ("0", "1", "2")
    low, high = answer.interval(1 - 1e-10)
    assert ((low < vector) & (vector < high)).all()
    better = answer.recalibrate("bayes")
    assert np.isfinite(better.value).all()
    c = survey.channels[0].response.scores.contrast  # type: ignore[attr-defined]
    expected = tally.counts.reshape(3, 256) @ np.array(values()) / tally.n_reports / c * 2.0
    assert answer.value == pytest.approx(expected)


def test_reports_out_of_bounds_are_not_counted() -> None:
    survey = small(2)
    block = next(Local().reports(np.zeros((10, 2)), survey)).copy()
    block[3, 6] = 32
    tally = hd.Tally(survey).add_block(block)
    assert tally.n_reports == 9
    assert tally.rejected == {"code out of support": 1}
    assert tally.counts.sum() == 18
    assert hd.Tally(survey).estimate().status == ("no reports",) * 2


def test_the_audit_proves_and_attacks() -> None:
    """A correct channel is rejected with probability 1e-6."""
    found = audit(small(2, codewords=16), 20_000)
    assert found.passed
    assert 3.3 < found.findings[0].epsilon_attacked < 4.0
    assert found.epsilon_proven <= 4.0


def test_a_sampler_that_leaks_is_caught(monkeypatch) -> None:
    honest = CodebookResponse.sample

    def leaky(self, inputs, draws):
        loud = KSubset("codebook", 8.0, self.channel.family, heaviest(8.0, self.channel.family))
        return honest(CodebookResponse(loud), inputs, draws)

    monkeypatch.setattr(CodebookResponse, "sample", leaky)
    assert not audit(small(2, codewords=16), 20_000).passed


def test_vectors_besideword_values() -> None:
    schema = hd.Schema([hd.Vector("v", 2), hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1)])
    survey = hd.Survey(schema, epsilon=2.0, mechanism="duchi", block_questions=[["a", "b"]])
    rows = {"v": pa.array([[0.6, 0.0]] * 3000, pa.list_(pa.float64())), "a": [1.0] * 3000, "b": [0.0] * 3000}
    tally = hd.Tally(survey)
    for block in Local().reports(pa.table(rows), survey):
        tally.add_block(block)
    answer = tally.estimate()
    assert not tally.rejected
    assert np.abs((answer.value - [0.6, 0.0, 1.0, 0.0]) / answer.standard_error).max() < 7


def test_memoized_responses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="memoized"):
        MemoizedClient(small(2), hd.Ledger(tmp_path / "ledger.json"))


# -- simulation: seeded, so that nothing is left to luck ---------------------------------------------------------------


def test_simulated_vectors_have_the_predicted_error() -> None:
    channel = codebook_channel(4.0, 20)
    for norm in (0.0, 0.5, 1.0):
        vector = np.zeros(20)
        vector[:5] = norm / np.sqrt(5)
        n = 20_000
        found = hd.simulate(channel, np.tile(vector, (n, 1)), seed=3)
        assert np.array_equal(found.total, hd.simulate(channel, np.tile(vector, (n, 1)), seed=3).total)
        variance = found.squares.sum() / n - (found.mean**2).sum()
        assert variance == pytest.approx(total_error(channel, norm), rel=0.02)
        sd = np.sqrt((found.squares / n - found.mean**2) / n)
        assert np.abs((found.mean - vector) / sd).max() < 4.5


def test_simulated_blocks_have_the_predicted_error() -> None:
    for epsilon, b in ((4.0, 4), (8.0, 64), (8.0, 100)):
        channel = agreement_channel(epsilon, b)
        truth = np.linspace(-1, 1, b)
        n = 20_000
        found = hd.simulate(channel, np.tile(truth, (n, 1)), seed=4)
        sd = np.sqrt((channel.response.contrast_c**-2 - truth**2) / n)  # type: ignore[attr-defined]
        z = (found.mean - truth) / sd
        assert np.abs(z).max() < 4.5
        assert (z**2).mean() == pytest.approx(1.0, abs=4 * np.sqrt(2 / b))
        assert found.squares / n == pytest.approx(np.full(b, channel.response.contrast_c**-2))  # type: ignore[attr-defined]


def test_what_simulate_refuses() -> None:
    block = agreement_channel(4.0, 4)
    with pytest.raises(InvalidInput, match=r"expected \(n, 4\)"):
        hd.simulate(block, np.zeros((3, 5)), seed=1)
    with pytest.raises(InvalidInput, match="domain"):
        hd.simulate(block, np.full((3, 4), 1.5), seed=1)
    with pytest.raises(InvalidInput, match="sampled"):
        hd.simulate(block, np.zeros((3, 4)), seed=1, sampled=2)
    with pytest.raises(InvalidInput, match="ball"):
        hd.simulate(codebook_channel(4.0, 4), np.ones((3, 4)), seed=1)


def test_the_engine_has_the_simulated_law() -> None:
    """Scores of the engine's codewords along the input: their first two moments; false alarm below 1e-8."""
    survey = small(6, codewords=64)
    channel = survey.channels[0]
    vector = np.array([0.5, -0.5, 0.5, -0.5, 0.0, 0.0])
    n = 20_000
    outputs = channel.response.sample(np.tile(vector, (n, 1)), SecureDraws())
    at = channel.response.counters(outputs) % 256
    along = np.array(values())[at] @ vector
    scores = channel.response.scores  # type: ignore[attr-defined]
    assert abs(along.mean() - scores.first) < 6 * along.std() / np.sqrt(n)
    square = along**2
    assert abs(square.mean() - scores.second) < 6 * square.std() / np.sqrt(n)
    assert len(word_levels()) == 65536


def test_what_an_executor_does() -> None:
    """The functions that Spark calls, without a cluster: records to reports, reports to a partial tally."""
    from hdr4me.engines.spark_perturb import quality_batches, quality_from, report_batches
    from hdr4me.engines.spark_tally import count_batches, from_vector

    names = ["a", "b", "c"]
    schema = hd.Schema([hd.Vector("v", 2), *(hd.Numeric(x, 0, 1) for x in names)])
    survey = hd.Survey(schema, epsilon=2.0, block_questions=[names])
    rows = {"v": pa.array([[0.6, 0.0], [3.0, 4.0], None, [1.0]] * 50, pa.list_(pa.float64()))}
    batches = pa.table(rows | {x: [0.5] * 200 for x in names}).to_batches()
    made = list(report_batches(iter(batches), survey))
    assert sum(batch.num_rows for batch in made) == 200
    (partial,) = list(
        count_batches([batch.select(["report"]) for batch in made], survey, keep=False, where="")
    )
    vector = np.frombuffer(partial.column(0)[0].as_py(), np.int64)
    tally = from_vector(vector, survey)
    assert (tally.n_reports, tally.rejected) == (200, {})
    assert tally.n_answers(0) + tally.n_answers(1) == 200
    stated = [row for batch in quality_batches(iter(batches), survey) for row in batch.to_pylist()]
    assert quality_from(stated, survey).counts[0].tolist() == [200, 50, 50, 0, 50]
