"""What the peers say of the same mechanisms: probabilities, variances, samples, ε and bounds agree with ours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hdr4me.auditing.auditor import ALARM
from hdr4me.channels.oracles import oracle
from hdr4me.channels.proof import log_upper
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.categorical import categorical_channel
from peers import Peers


def answer(worker: Peers, task: str, **arguments: Any) -> dict[str, Any]:
    """A peer's answer; a library that is absent is a reason to skip."""
    found = worker.ask(task, **arguments)
    if "error" in found:
        pytest.skip(f"{arguments.get('library', task)}: {found['error']}")
    return found


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("k", [10, 100, 4000])
@pytest.mark.parametrize(
    ("library", "protocol"),
    [
        ("multi-freq-ldpy", "GRR"),
        ("multi-freq-ldpy", "SS"),
        ("pure-ldp", "GRR"),
        ("ldp-toolbox", "GRR"),
        ("ldp-toolbox", "SS"),
    ],
)
def test_probabilities_and_variances(
    worker: Peers, library: str, protocol: str, k: int, epsilon: float
) -> None:
    """p and q as far as our weights of 32 bits go, which is k/2^32, and the variance of an absent category.

    The peers round the size of a set to the nearest integer, we use the better of two: ours is never larger in
    total, and equal where the sizes are.
    """
    theirs = answer(worker, "variance", library=library, protocol=protocol, epsilon=epsilon, k=k)
    name = "grr" if protocol == "GRR" else "subset"
    channel: Any = categorical_channel(name, epsilon, k)
    p, q = channel.shares
    absent = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])[0]
    if protocol == "SS" and channel.per_report != max(1, round(k / (math.exp(epsilon) + 1))):
        present = theirs["p"] * (1 - theirs["p"]) / (theirs["p"] - theirs["q"]) ** 2
        total = present + (k - 1) * theirs["variance"]
        assert oracle("subset", epsilon, k).total <= total * (1 + 1e-9)
        return
    assert p == pytest.approx(theirs["p"], abs=2 * k / 2**32)
    assert q == pytest.approx(theirs["q"], abs=2 * k / 2**32)
    assert absent == pytest.approx(theirs["variance"], rel=0.01)


@pytest.mark.parametrize("value", [-0.5, 0.0, 1.0])
def test_laplace_samples(worker: Peers, value: float) -> None:
    """A two-sample Kolmogorov–Smirnov test at 1e-6, both sides seeded."""
    theirs = answer(
        worker,
        "samples",
        library="diffprivlib",
        mechanism="laplace",
        epsilon=1.0,
        value=value,
        n=20_000,
        seed=7,
    )["samples"]
    law = mechanism("laplace", epsilon=1.0)
    ours = law.sample(np.full(20_000, value), np.random.default_rng(8))
    assert stats.ks_2samp(theirs, ours).pvalue > 1e-6


@pytest.mark.parametrize("value", [0, 1])
def test_randomised_response_samples(worker: Peers, value: int) -> None:
    """The share of truths against our own probability, a binomial test at 1e-6; their draws are seeded."""
    theirs = answer(
        worker,
        "samples",
        library="diffprivlib",
        mechanism="binary",
        epsilon=1.0,
        value=value,
        n=50_000,
        seed=9,
    )["samples"]
    channel: Any = categorical_channel("grr", 1.0, 2)
    kept = sum(sample == value for sample in theirs)
    assert stats.binomtest(kept, len(theirs), channel.shares[0]).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("library", "within"), [("opendp", 1e-9), ("dp_accounting", 2e-4)])
def test_epsilon_of_randomised_response(worker: Peers, library: str, within: float, epsilon: float) -> None:
    """Our proven ε beside theirs; dp_accounting rounds up to a grid of 1e-4."""
    channel: Any = categorical_channel("grr", epsilon, 2)
    theirs = answer(worker, "response_epsilon", library=library, probability=channel.shares[0])["epsilon"]
    proven = log_upper(channel.likelihood_ratio)
    assert proven == pytest.approx(theirs, abs=within)
    assert proven <= epsilon


def test_the_auditor_s_bound(worker: Peers) -> None:
    """Clopper–Pearson on two counts, as LDP-Auditor bounds ε, at our own confidence."""
    n, hits = 100_000, [73_000, 27_000]
    theirs = answer(worker, "bound", counts=hits, n=n, confidence=1 - ALARM)["epsilon"]
    low = float(stats.beta.ppf(ALARM / 2, hits[0], n - hits[0] + 1))
    high = float(stats.beta.isf(ALARM / 2, hits[1] + 1, n - hits[1]))
    assert math.log(low / high) == pytest.approx(theirs, rel=1e-6)
    assert theirs < math.log(0.73 / 0.27)


@pytest.mark.parametrize(("library", "protocol"), [("multi-freq-ldpy", "SS"), ("pure-ldp", "OLH")])
def test_their_error_is_what_our_oracles_predict(worker: Peers, library: str, protocol: str) -> None:
    """n·Σ(f̂ − f)² of 40 seeded collections: the mean within 40 %, five deviations of 40 sums of ten squares."""
    k, n, epsilon, times = 10, 1000, 1.0, 40
    values = [i % k for i in range(n)]
    total = 0.0
    for seed in range(times):
        found = answer(
            worker,
            "frequencies",
            library=library,
            protocol=protocol,
            epsilon=epsilon,
            k=k,
            values=values,
            seed=seed,
        )["estimate"]
        total += n * sum((x - 1 / k) ** 2 for x in found)
    predicted = oracle("subset" if protocol == "SS" else "oue", epsilon, k).total
    assert total / times == pytest.approx(predicted, rel=0.4)
