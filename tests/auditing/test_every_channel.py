"""The attack on every channel kind, and proofs of tampered channels: the short version of `benchmarks/attacks.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

import attacks
from hdr4me.auditing.auditor import ALARM, attack
from hdr4me.channels import Channel, HeavySet, channel_from_dict
from hdr4me.errors import HDR4MEError

CHANNELS = attacks.channels()


@pytest.mark.parametrize("name", CHANNELS)
def test_the_bound_is_below_the_declared_epsilon(name: str) -> None:
    """20,000 draws; each bound is above the proven ε with a probability of at most 1e-6, and that is below ε.

    The false-alarm rate is that of the bound exceeding the declared ε, which Clopper and Pearson keep below ALARM.
    """
    channel = CHANNELS[name]
    assert ALARM <= 1e-6
    assert attack(channel, 20_000) <= channel.epsilon


def _tampered(channel: Channel) -> list[dict[str, Any]]:
    """Documents with a little more weight where the channel's loss comes from, or another ε."""
    document = json.loads(json.dumps(channel.to_dict()))
    changed = [{**document, "epsilon": document["epsilon"] * 0.99}]
    if isinstance(channel, HeavySet):
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
    assert channel_from_dict(channel.to_dict()).loss == channel.loss
    for document in _tampered(channel):
        with pytest.raises(HDR4MEError):
            channel_from_dict(document)


def test_draws_are_made_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound does not depend on how many outputs are in memory; seeded by the same outputs."""
    from hdr4me.auditing import auditor

    monkeypatch.setattr(auditor, "_AT_ONCE", 700)
    assert 0 < attack(CHANNELS["number, Duchi"], 5000) <= 1.0
