"""The baselines have the probabilities and the errors of pure-ldp and multi-freq-ldpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hdr4me.channels import Channel
from hdr4me.channels.baselines import baseline
from hdr4me.channels.baselines.design import dbitflip
from peers import Peers

K, USERS, TIMES = 10, 200, 300
VALUES = [i % K for i in range(USERS)]
PERMANENT, FIRST = 4.0, 1.0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(("name", "within"), [("sue", 1e-9), ("olh", 1e-9), ("blh", 1e-9), ("the", 1e-4)])
def test_probabilities_of_pure_ldp(worker: Peers, name: str, within: float, epsilon: float) -> None:
    """p and q as far as weights of 32 bits go; pure-ldp rounds the threshold of THE to four digits."""
    theirs = worker.ask("variance", library="pure-ldp", protocol=name.upper(), epsilon=epsilon, k=K)
    channel: Any = baseline(name, epsilon, K)
    (_, q), (_, p) = channel.rows
    assert (p / 2**32, q / 2**32) == pytest.approx((theirs["p"], theirs["q"]), abs=within)


def agree(worker: Peers, channel: Channel, task: str, **arguments: Any) -> None:
    """Estimates of 300 seeded collections: mean and error within five standard errors of the channel's.

    A false alarm has a probability below 1e-4 for one protocol. A wrong factor of the error of 1.25 is detected.
    """
    found = []
    for seed in range(TIMES):
        answer = worker.ask(task, k=K, values=VALUES, seed=seed, **arguments)
        assert "error" not in answer, answer
        found.append(np.array(answer["estimate"]) - 1 / K)
    errors = np.array(found)
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    sums = (errors**2).sum(axis=1) * USERS
    predicted = present + (K - 1) * absent
    assert abs(sums.mean() - predicted) < 5 * sums.std(ddof=1) / TIMES**0.5
    assert sums.std(ddof=1) / TIMES**0.5 < 0.05 * predicted
    assert (np.abs(errors.mean(axis=0)) < 5 * errors.std(axis=0, ddof=1) / TIMES**0.5).all()


@pytest.mark.parametrize(
    ("library", "protocol"),
    [
        ("multi-freq-ldpy", "SUE"),
        ("multi-freq-ldpy", "BLH"),
        ("multi-freq-ldpy", "OLH"),
        ("multi-freq-ldpy", "THE"),
        ("pure-ldp", "SUE"),
        ("pure-ldp", "BLH"),
        ("pure-ldp", "OLH"),
        ("pure-ldp", "THE"),
        ("pure-ldp", "HR"),
    ],
)
def test_errors_of_one_report(worker: Peers, library: str, protocol: str) -> None:
    name = {"HR": "hadamard"}.get(protocol, protocol.lower())
    channel = baseline(name, 1.0, K)
    agree(worker, channel, "frequencies", library=library, protocol=protocol, epsilon=1.0)


@pytest.mark.parametrize("protocol", ["L_GRR", "L_SUE", "L_OSUE", "LOLOHA"])
def test_errors_with_memoization(worker: Peers, protocol: str) -> None:
    channel = baseline(protocol.lower(), FIRST, K, PERMANENT)
    agree(worker, channel, "longitudinal", protocol=protocol, permanent=PERMANENT, first=FIRST)


@pytest.mark.parametrize("bits", [1, 4])
def test_errors_of_dbitflip(worker: Peers, bits: int) -> None:
    channel = dbitflip(1.0, K, bits)
    agree(worker, channel, "longitudinal", protocol="dBitFlipPM", permanent=1.0, first=0.5, bits=bits)
