"""The attack on every channel kind, and proofs of tampered channels: the short version of `benchmarks/attacks.py`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import attacks
from hdr4me.auditing import auditor
from hdr4me.auditing.auditor import ALARM, attack
from hdr4me.channels import Channel, KSubset, channel_from_dict
from hdr4me.channels.codebook import Codebook
from hdr4me.errors import HDR4MEError
from hdr4me.survey import Categorical, Numeric, Schema, Survey, Vector
from hdr4me.survey.derived import Joint

CHANNELS = attacks.channels()


@pytest.mark.parametrize("name", CHANNELS)
def test_the_bound_is_below_the_declared_epsilon(name: str) -> None:
    """20,000 draws; each bound is above the proven ε with a probability of at most 1e-6, and that is below ε.

    The false-alarm rate is that of the bound exceeding the declared ε, which Clopper and Pearson keep below ALARM.
    """
    channel = CHANNELS[name]
    assert ALARM <= 1e-6
    assert attacks.measured(name, channel, 2_000 if "in full" in name else 20_000)[1]


def _tampered(channel: Channel) -> list[dict[str, Any]]:
    """Documents with a little more weight where the channel's loss comes from, or another ε."""
    document = json.loads(json.dumps(channel.to_dict()))
    changed = [{**document, "epsilon": document["epsilon"] * 0.99}]
    if isinstance(channel, KSubset):
        return [*changed, {**document, "weight": document["weight"] + (1 << 20)}]
    rows = [list(row) for row in document["weights"]]
    low = min(range(len(rows[0])), key=lambda y: rows[0][y] if rows[0][y] else 1 << 40)
    high = max(range(len(rows[0])), key=lambda y: rows[0][y])
    moved = rows[0][low] // 2
    rows[0][low] -= moved
    rows[0][high] += moved
    return [*changed, {**document, "weights": rows}]


@pytest.mark.parametrize("name", CHANNELS)
def test_a_tampered_channel_is_refused(name: str) -> None:
    channel = CHANNELS[name]
    assert channel_from_dict(channel.to_dict()).likelihood_ratio == channel.likelihood_ratio
    for document in _tampered(channel):
        with pytest.raises(HDR4MEError):
            channel_from_dict(document)


def test_draws_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound does not depend on how many outputs are in memory; seeded by the same outputs."""
    monkeypatch.setattr(auditor, "_AT_ONCE", 700)
    assert 0 < attack(CHANNELS["number, Duchi"], 5000) <= 1.0


def test_the_subsets_of_opposite_ends_of_an_axis_are_disjoint() -> None:
    """So the ranks of codewords give the attack as much information as the codewords; 50 seeds."""
    for name in ("vector of 10, places", "vector of 100, places"):
        channel = CHANNELS[name]
        assert isinstance(channel, KSubset)
        assert isinstance(channel.family, Codebook)
        n = channel.family.codewords
        for seed in range(50):
            outputs = np.stack([np.full(n, seed), np.arange(n)], axis=1)
            classes = channel.response.contrast(*channel.worst_pair()).classify(outputs)
            assert (classes == 0).sum() == channel.family.heavy
            assert (classes == 2).sum() == channel.family.heavy


def test_an_audit_reports_its_number_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer draws than requested are made for a long vector: the finding has the number, the audit the reason."""
    monkeypatch.setattr(auditor, "_LEAST_DRAWS", 1000)
    monkeypatch.setattr(auditor, "_MOST_PRODUCTS", 0)
    survey = Survey(Schema([Vector("x", 50)]), epsilon=2.0)
    found = auditor.audit(survey, draws=1_000_000)
    (finding,) = found.findings
    assert (finding.draws, finding.requested) == (1_000, 1_000_000)
    assert f"{finding.draws:,} draws of each value instead of 1,000,000" in found.notes[0]
    assert found.rows()[0][auditor.COLUMNS.index("draws")] == f"{finding.draws:,}"
    short = auditor.audit(Survey(Schema([Numeric("x", 0, 1)]), epsilon=1.0), draws=1000)
    assert not short.notes
    assert short.findings[0].draws == 1000


def test_an_audit_names_what_each_channel_asks() -> None:
    """The parts of a joint question, and the first dimensions of a channel that many questions share."""
    answers = [Categorical(name, ["no", "yes"]) for name in ("smoker", "cough")]
    schema = Schema([Joint("health", answers), *(Numeric(name, 0, 1) for name in "abcde")])
    found = auditor.audit(Survey(schema, epsilon=1.0), draws=1000)
    shown = auditor.COLUMNS.index("dimensions")
    assert [row[shown] for row in found.rows()] == [
        "health (smoker and cough together)",
        "a, b, c and 2 more",
    ]
    assert [finding.names for finding in found.findings] == [
        ("health (smoker and cough together)",),
        tuple("abcde"),
    ]
    assert all(finding.likelihood_ratio > 1 for finding in found.findings)
