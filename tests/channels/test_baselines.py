"""The baselines have the published probabilities and variances, satisfy their budgets, and are never recommended."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from mpmath import mp, mpf
from scipy import stats

import hdr4me as hd
from hdr4me.channels import Channel
from hdr4me.channels.baselines import BASELINES, MEMOIZED_BASELINES, baseline
from hdr4me.channels.channel import channel_from_dict
from hdr4me.channels.proof import exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.simulation.collection import SeededDraws
from hdr4me.survey.design import CATEGORICAL

BUDGETS = (0.5, 1.0, 2.0, 4.0)
MEMOIZED = 5.0
WITHIN = 1e-6  # the weights of 32 bits change a variance by less than this share of it (16 bits: 2e-3)


def variances(channel: Channel) -> Any:
    """The variance of a decoded report of users without and with the category."""
    return channel.response.marginal().moments([0.0, 1.0]).variance([1.0])


def e(x: float) -> Any:
    """e^x with 40 digits."""
    with mp.workdps(40):
        return mpmath.exp(mpf(x))


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_absent_variances_are_the_published_ones(epsilon: float) -> None:
    """Wang et al. 2017, table 1: Var* of SUE, OUE (which OLH approaches), BLH; dBitFlip: k/d of one bit's."""
    k, half, whole = 50, e(epsilon / 2), e(epsilon)
    sue = half / (half - 1) ** 2
    blh = (whole + 1) ** 2 / (whole - 1) ** 2
    g = mpmath.floor(whole + mpf("1.5"))
    olh = (whole - 1 + g) ** 2 / ((whole - 1) ** 2 * (g - 1))
    bit = k * sue
    for name, published in (("sue", sue), ("blh", blh), ("olh", olh), ("dbitflip", bit)):
        assert variances(baseline(name, epsilon, k))[0] == pytest.approx(float(published), rel=WITHIN), name


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_thresholding_has_the_best_threshold(epsilon: float) -> None:
    """Wang et al. 2017: (2e^{θε/2} − 1)/(1 + e^{(θ−1/2)ε} − 2e^{θε/2})², minimized by golden section with 40 digits."""
    with mp.workdps(40):

        def variance(θ: Any) -> Any:
            up = mpmath.exp(θ * epsilon / 2)
            return (2 * up - 1) / (1 + mpmath.exp((θ - mpf("0.5")) * epsilon) - 2 * up) ** 2

        low, high, golden = mpf("0.5"), mpf(1), (mpmath.sqrt(5) - 1) / 2
        for _ in range(90):
            a, b = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, b) if variance(a) < variance(b) else (a, high)
        published = float(variance(low))
    assert variances(baseline("the", epsilon, 50))[0] == pytest.approx(published, rel=WITHIN)


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_two_stages_have_the_published_probabilities(epsilon: float) -> None:
    """Arcolezi et al.: p and q of two chained stages, by matrices of 40 digits; L-SUE is SUE, L-OSUE is OUE."""
    k = 12
    with mp.workdps(40):
        ratios = e(MEMOIZED), (e(MEMOIZED + epsilon) - 1) / (e(MEMOIZED) - e(epsilon))

        def chained(size: int) -> Any:
            tables = [
                mpmath.matrix(
                    [[(r if i == j else 1) / (r + size - 1) for j in range(size)] for i in range(size)]
                )
                for r in ratios
            ]
            return tables[0] * tables[1]

        both = chained(k)
        grr: Any = baseline("l_grr", epsilon, k, MEMOIZED)
        assert grr.shares == pytest.approx((float(both[0, 0]), float(both[0, 1])), rel=1e-6)
        a, b = e(MEMOIZED), e(epsilon)
        best = (1 - a**2 + mpmath.sqrt(a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1)) / (
            6 * (a - b)
        )
        g = 1 + max(1, int(mpmath.nint(best)))
        hashed: Any = baseline("loloha", epsilon, k, MEMOIZED)
        rows = hashed.rows
        assert rows[1][1] / 2**32 == pytest.approx(float(chained(g)[0, 0]), rel=1e-6)
        assert rows[0][1] / 2**32 == pytest.approx(1 / g, rel=1e-6)
    sue, oue = variances(baseline("sue", epsilon, k)), float(4 * e(epsilon) / (e(epsilon) - 1) ** 2)
    assert variances(baseline("l_sue", epsilon, k, MEMOIZED)) == pytest.approx(sue, rel=2e-3)
    assert variances(baseline("l_osue", epsilon, k, MEMOIZED))[0] == pytest.approx(oue, rel=2e-3)


@pytest.mark.parametrize(("epsilon", "k"), [(0.7, 5), (2.0, 6), (3.0, 7)])
def test_hadamard_response_by_enumeration(epsilon: float, k: int) -> None:
    """Acharya et al. 2019: p̂(x) = c·(P(C_x) − P(S_x \\ C_x)), c = (2B − 1 + e^ε)/(e^ε − 1); exact fractions."""
    channel: Any = baseline("hadamard", epsilon, k)
    family = channel.family
    outputs = list(channel.outputs())
    w = Fraction(channel.weight, 2**32)
    c = 1 / (w - (1 - w) / (2 * family.blocks - 1))
    published = (2 * family.blocks - 1 + e(epsilon)) / (e(epsilon) - 1)
    assert float(c) == pytest.approx(float(published), rel=1e-6)
    absent = Fraction(0)
    for x, own in product(range(k), range(k)):
        law = [channel.probability(own, y) for y in outputs]
        assert sum(law) == 1
        signs = [
            0 if y[0] // family.width != x % family.blocks else (1 if family.is_heavy(x, y) else -1)
            for y in outputs
        ]
        mean = sum(p * c * s for p, s in zip(law, signs, strict=True))
        second = sum(p * c * c * s * s for p, s in zip(law, signs, strict=True))
        assert mean == int(x == own)
        absent += (second - mean**2) * (x != own)
        decoded = channel.response.decoded(np.array(outputs))[:, x]
        assert decoded == pytest.approx([float(c * s) for s in signs], rel=1e-6)
    assert variances(channel)[0] == pytest.approx(float(absent / (k * (k - 1))), rel=1e-6)


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("name", [*BASELINES, *MEMOIZED_BASELINES])
def test_every_baseline_satisfies_its_budget_and_round_trips(name: str, epsilon: float) -> None:
    channel = baseline(name, epsilon, 20, MEMOIZED if name in MEMOIZED_BASELINES else None)
    assert channel.mechanism == name
    assert channel.likelihood_ratio <= exp_lower(epsilon)
    assert channel_from_dict(channel.to_dict()) == channel


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("name", [*BASELINES, *MEMOIZED_BASELINES])
def test_the_privacy_ratio_is_exact(name: str, epsilon: float) -> None:
    """Every output of four categories by fractions: probabilities sum to 1, and the largest ratio is at most e^ε.

    Protocols whose published analysis is tight lose less than 1e-6 of e^ε to the weights of 32 bits.
    """
    channel: Any = baseline(name, epsilon, 4, MEMOIZED if name in MEMOIZED_BASELINES else None)
    laws = [[channel.probability(x, y) for y in channel.outputs()] for x in range(4)]
    assert all(sum(law) == 1 for law in laws)
    ratio = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert type(ratio) is Fraction
    assert ratio <= channel.likelihood_ratio <= exp_lower(epsilon)
    if name in ("sue", "olh", "blh", "hadamard", "dbitflip"):
        assert ratio > exp_lower(epsilon) * (1 - Fraction(1, 10**6))


class Seeded(random.Random):
    """Seeded draws with the methods of a device's."""

    def bits(self, n: int) -> int:
        return self.getrandbits(n)

    def below(self, n: int) -> int:
        return self.randrange(n)


def test_reports_of_hadamard_response_have_their_probabilities() -> None:
    """20,000 reports from the device's sampler and from the batch sampler, χ² at 1e-6 each; both are seeded."""
    channel: Any = baseline("hadamard", 2.0, 6)
    law = np.array([float(channel.probability(3, y)) for y in channel.outputs()])
    draws = Seeded(7)
    device = [channel.sample(3, draws)[0] for _ in range(20_000)]
    batch = channel.response.sample(np.full(20_000, 3), SeededDraws(np.random.default_rng(8)))[:, 0]
    for found in (np.array(device), batch):
        seen = np.bincount(found, minlength=law.size)
        assert stats.chisquare(seen, 20_000 * law).pvalue > 1e-6


def test_compare_predicts_what_it_simulates() -> None:
    """Every baseline on 12 categories, 40 seeded collections: the mean of 480 squares is within 40 %, 5 deviations."""
    rng = np.random.default_rng(5)
    table = pa.table({"x": [f"c{i:02}" for i in np.minimum(rng.geometric(0.3, 3000), 12)]})
    for names, memoized in ((BASELINES, None), (MEMOIZED_BASELINES, MEMOIZED)):
        found = hd.compare(
            table,
            epsilon=2.0,
            mechanisms=list(names),
            memoized_epsilon=memoized,
            repeats=40,
            recalibrate=False,
            seed=3,
        )
        assert [row.mechanism for row in found.rows] == list(names)
        for row in found.rows:
            assert row.predicted is not None
            assert row.simulated == pytest.approx(row.predicted, rel=0.4), row.mechanism
            assert row.coverage > 0.85


def test_surveys_and_plans_do_not_use_baselines() -> None:
    names = {*BASELINES, *MEMOIZED_BASELINES}
    assert not names & set(CATEGORICAL)
    plan = hd.plan(users=10_000, schema=hd.Schema([hd.Categorical("x", ["a", "b", "c"])]), epsilon=1.0)
    assert not names & {channel.mechanism for channel in plan.best.survey().channels}
    with pytest.raises(InvalidInput, match="categorical"):
        hd.Survey(hd.Schema([hd.Categorical("x", ["a", "b"])]), categorical="olh")


@pytest.mark.parametrize(
    ("name", "epsilon", "size", "memoized", "word"),
    [
        ("grr", 1.0, 5, None, "name"),
        ("l_grr", 1.0, 5, None, "name"),
        ("sue", 0.0, 5, None, "epsilon"),
        ("sue", 30.0, 5, None, "epsilon"),
        ("sue", 1.0, 1, None, "size"),
        ("olh", 1.0, 5000, None, "size"),
        ("l_grr", 1.0, 5, 0.5, "memoized"),
    ],
)
def test_refusals_name_the_parameter(
    name: str, epsilon: float, size: int, memoized: float | None, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        baseline(name, epsilon, size, memoized)
