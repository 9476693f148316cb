"""Optional vectors from records to a mean: client, engine, files, tally, audit, and what is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hdr4me as hd
from hdr4me.auditing import audit
from hdr4me.auditing.auditor import bound
from hdr4me.channels import KSubset, SystemDraws
from hdr4me.channels.codebook import Codebook
from hdr4me.channels.codebook.design import codebook_channel
from hdr4me.channels.k_subset import heaviest
from hdr4me.client import MemoizedClient
from hdr4me.client.client import answer as answer_of
from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey.canonical import fingerprint

NAN = float("nan")


def survey_of(channel: KSubset, length: int, norm: float = 1.0) -> hd.Survey:
    schema = hd.Schema([hd.Vector("v", length, norm, optional=True)])
    question = hd.Question((0,), channel)
    return hd.Survey.from_questions(schema, epsilon=channel.epsilon, sampled=1, questions=[question])


def small(length: int = 3, epsilon: float = 4.0, codewords: int = 32, norm: float = 1.0) -> hd.Survey:
    return survey_of(codebook_channel(epsilon, length + 1, codewords), length, norm)


class Recorded:
    """The system's draws, and what was asked of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.system = SystemDraws()

    def bits(self, n: int) -> int:
        self.asked.append(("bits", n))
        return self.system.bits(n)

    def below(self, n: int) -> int:
        self.asked.append(("below", n))
        return self.system.below(n)


def test_the_same_draws_whether_there_is_a_vector_or_not() -> None:
    survey = small()
    shapes, sizes = set(), set()
    for value in ([0.1, 0.2, 0.3], None, [1.0], "no", [NAN] * 3, [9.0, 9.0, 9.0], object()):
        draws = Recorded()
        fields = answer_of(survey, 0, {"v": value}, draws)
        shapes.add(tuple(draws.asked))
        report = hd.Client(survey).report({"v": value})
        sizes.add((len(fields), len(report.to_bytes(survey))))
    assert len(shapes) == len(sizes) == 1


@pytest.mark.parametrize("value", [[0.6, -0.64], None])
def test_client_and_engine_have_the_law(value) -> None:
    """With two seeds all outputs are counted: chi-squared over all of them, false alarm 1e-9 for each."""
    family = Codebook(3, 8, 2, seed_bits=1)
    survey = survey_of(KSubset("codebook", 3.0, family, heaviest(3.0, family)), 2)
    channel = survey.channels[0]
    x = survey.schema["v"].encode(value, family.inputs[0].size) >> 16
    law = np.array([float(channel.probability(x, y)) for y in channel.outputs()])
    n = 4000
    draws = SystemDraws()
    device = np.array([answer_of(survey, 0, {"v": value}, draws) for _ in range(n)])
    table = pa.table({"v": pa.array([value] * 20_000, pa.list_(pa.float64()))})
    batch = np.concatenate([channel.response.from_bytes(b[:, 2:]) for b in Local().reports(table, survey)])
    for outputs in (device, batch):
        counts = np.bincount(outputs @ np.array([8, 1]), minlength=16)
        expected = len(outputs) * law
        assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-9, 15)


def test_means_through_every_way(tmp_path: Path) -> None:
    """Client, engine and files: intervals at 1 − 1e-10 hold the mean and the share, in the vector's own units."""
    survey = small(3, norm=2.0)
    vector = [1.2, -0.5, 0.1]
    rows = [vector if i % 4 else None for i in range(4000)]
    table = pa.table({"v": pa.array(rows, pa.list_(pa.float64()))})
    tally = hd.Tally(survey)
    for block in Local().reports(table, survey):
        tally.add_block(block)
    client = hd.Client(survey)
    tally.add([client.report({"v": row} if row else {}) for row in rows[:200]])
    matrix = np.array([row or [NAN] * 3 for row in rows[:500]])
    for block in Local().reports(matrix, survey):
        tally.add_block(block)
    lines = "".join(json.dumps({"v": row}) + "\n" for row in rows[:500])
    (tmp_path / "in.jsonl").write_text(lines)
    (tmp_path / "in.csv").write_text("v,w\n" + ",1\n1.2|-0.5|0.1,1\n1.2|-0.5|0.1,1\n1.2|-0.5|0.1,1\n" * 125)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a missing vector is an answer
        for source in (table.slice(0, 500), tmp_path / "in.jsonl", tmp_path / "in.csv"):
            for suffix in ("jsonl", "arrow", "parquet", "feather"):
                path = tmp_path / f"reports.{suffix}"
                Local().perturb(source, survey, path)
                read = Local().tally(path, survey, strict=True)
                assert read.n_reports == 500
                tally = tally + read
    tally.save(tmp_path / "a.tally")
    answer = hd.Tally.load(tmp_path / "a.tally", survey).estimate()
    truth = np.array([*vector, 0.75])
    low, high = answer.interval(1 - 1e-10)
    assert ((low < truth) & (truth < high)).all()
    assert answer.standard_error.max() < 0.1


def test_beside_other_questions() -> None:
    """A plain vector of one coordinate more shares the channel, and is answered as what it is; 7 standard errors."""
    schema = hd.Schema(
        [hd.Vector("a", 2, optional=True), hd.Vector("b", 3), hd.Numeric("x", 0, 1, optional=True)]
    )
    survey = hd.Survey(schema, epsilon=4.0)
    assert survey.questions[0].channel is survey.questions[1].channel
    columns = {"a": [[0.6, 0.0], None] * 3000, "b": [[0.0, 0.1, -0.5]] * 6000, "x": [0.25, None, None] * 2000}
    tally = hd.Tally(survey)
    for block in Local().reports(pa.table(columns), survey):
        tally.add_block(block)
    answer = tally.estimate()
    stated = dict(
        zip(
            zip(answer.statistics, answer.dimensions, answer.categories, strict=True),
            answer.value,
            strict=True,
        )
    )
    truth = {("mean", "a", "0"): 0.6, ("mean", "a", "1"): 0.0, ("share", "a", None): 0.5}
    truth |= {("mean", "b", str(j)): value for j, value in enumerate([0.0, 0.1, -0.5])}
    truth |= {("mean", "x", None): 0.25, ("share", "x", None): 1 / 3}
    assert set(stated) == set(truth)
    expected = np.array([truth[key] for key in stated])
    assert (np.abs(answer.value - expected) < 7 * answer.standard_error).all()


def test_documents() -> None:
    survey = hd.Survey(hd.Schema([hd.Vector("v", 3, 2.0, optional=True)]), epsilon=4.0)
    plain = hd.Survey(hd.Schema([hd.Vector("v", 3, 2.0)]), epsilon=4.0)
    as_before = "e1451cb4824d1b08033ee687a9a46b61996dbe3239a1479b4e39f4b2e8781563"
    assert plain.fingerprint == as_before
    assert hd.Survey.from_json(survey.to_json()) == survey
    assert survey.fingerprint != plain.fingerprint
    document = json.loads(survey.to_json())
    assert document["dimensions"][0]["optional"] is True
    for change in ({"optional": False}, {"length": 4}, {"length": 2}, {"optional": 1}, {"optional": "yes"}):
        tampered = {**document, "dimensions": [{**document["dimensions"][0], **change}]}
        with pytest.raises(FormatError, match=r"belongs to survey|true or false"):
            hd.Survey.from_json(json.dumps(tampered))
        with pytest.raises((InvalidInput, FormatError), match=r"cannot use channel|true or false"):
            hd.Survey.from_json(json.dumps({**tampered, "fingerprint": fingerprint(tampered)}))
    loud = json.loads(survey.to_json())
    loud["channels"][0]["weight"] += 1
    loud["fingerprint"] = fingerprint(loud)
    with pytest.raises((InvalidInput, FormatError), match="leaks a factor"):
        hd.Survey.from_json(json.dumps(loud))


def test_reports_of_the_plain_survey_are_not_counted(tmp_path: Path) -> None:
    survey, plain = small(2), hd.Survey(hd.Schema([hd.Vector("v", 2)]), epsilon=4.0)
    report = hd.Client(plain).report({"v": [0.1, 0.2]})
    tally = hd.Tally(survey).add([report])
    assert (tally.n_reports, sum(tally.rejected.values())) == (0, 1)


def test_the_audit_proves_and_attacks() -> None:
    """A correct channel is rejected with probability 1e-6."""
    found = audit(small(2, codewords=16), 20_000)
    assert found.passed
    assert 3.3 < found.findings[0].epsilon_attacked < 4.0
    assert found.epsilon_proven <= 4.0


def test_whether_there_is_a_vector_is_kept_to_the_budget() -> None:
    """The informative outputs are those that are heavy for no vector and not for this one; false alarm 1e-6."""
    survey = small(1, epsilon=2.0, codewords=8)
    channel = survey.channels[0]
    assert isinstance(channel, KSubset)
    n, hits = 8000, []
    size = channel.inputs[0].size
    none, some = (survey.schema["v"].encode(value, size) >> 16 for value in (None, [1.0]))
    for value in (None, [1.0]):
        table = pa.table({"v": pa.array([value] * n, pa.list_(pa.float64()))})
        outputs = np.concatenate(
            [channel.response.from_bytes(b[:, 2:]) for b in Local().reports(table, survey)]
        )
        heavy = [
            (channel.family.is_heavy(none, y), channel.family.is_heavy(some, y)) for y in outputs.tolist()
        ]
        hits.append(sum(first and not second for first, second in heavy))
    assert 1.6 < bound(hits[0], hits[1], n) < 2.0


def test_a_missing_optional_vector_is_a_valid_answer() -> None:
    survey = small(2)
    rows = [[0.1, 0.2]] * 50 + [None] * 20 + [[NAN, NAN]] * 10 + [[1.0]] * 10 + [[3.0, NAN]] * 10
    table = pa.table({"v": pa.array(rows, pa.list_(pa.float64()))})
    quality = Local().data_quality(table, survey)
    assert quality.rows() == [
        {"column": "v", "read": 100, "missing": 30, "unknown": 20, "low": 0, "high": 10}
    ]
    assert [note.partition(")")[2] for note in quality.notes()] == [
        " are not lists of 2 numbers and count as no vector if the length is wrong; otherwise each coordinate "
        "that is not a number counts as 0",
        " are longer than 1 and are scaled to that norm",
    ]
    assert not Local().data_quality(table.slice(50, 30), survey).unusable()  # all missing
    assert Local().data_quality(table.slice(80, 10), survey).unusable()  # none of the right length


def test_what_is_refused(tmp_path: Path) -> None:
    survey = small(2)
    with pytest.raises(InvalidInput, match=r"memoized responses .* not vectors"):
        MemoizedClient(survey, hd.Ledger(tmp_path / "ledger.json"))
    with pytest.raises(InvalidInput, match="memoized_epsilon supports numbers and categories only"):
        hd.Survey(survey.schema, epsilon=1.0, memoized_epsilon=4.0)
    with pytest.raises(InvalidInput, match="numbers only; 'v' is a vector"):
        hd.Survey(
            hd.Schema([*survey.schema, hd.Numeric("x", 0, 1)]), epsilon=1.0, pair_questions=[("v", "x")]
        )
