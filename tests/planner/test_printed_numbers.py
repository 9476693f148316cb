"""The numbers that the documentation and the decisions print for every kind of question, reached to their digits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hdr4me as hd
from hdr4me.channels import KSubset
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.agreement.design import agreement_channel
from hdr4me.channels.codebook.design import codebook_channel, total_error
from hdr4me.channels.oracles import oracle
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.privset.channel import selection_channel
from hdr4me.channels.privset.channel import total_error as selection_error
from hdr4me.channels.proof import ONE, exp_lower
from hdr4me.channels.subset import Subset
from hdr4me.mechanisms.categorical import subset_selection
from hdr4me.mechanisms.joint import optimal_mean, prior_variance
from hdr4me.mechanisms.priors import as_prior

N = 10**9
ENDS = np.array([-1.0, 1.0])
ALONE = ["duchi", "piecewise", "hybrid", "optimal"]


def exact_error(channel: KSubset) -> Fraction:
    """n·L2 of subset selection by fractions: p = W/2³², q = (p(w − 1) + (1 − p)w)/(v − 1)."""
    family = channel.family
    assert isinstance(family, Subset)
    v, w, p = family.size, family.chosen, Fraction(channel.weight, ONE)
    q = (p * (w - 1) + (1 - p) * w) / (v - 1)
    return ((v - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2


def textbook(epsilon: float, v: int, w: int) -> float:
    """n·L2 of sets of w out of v with p = e^ε·w/(e^ε·w + v − w)."""
    e = math.exp(epsilon)
    p = e * w / (e * w + v - w)
    q = (p * (w - 1) + (1 - p) * w) / (v - 1)
    return ((v - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2


@pytest.mark.parametrize(
    ("epsilon", "v", "printed"),
    [
        (1.0, 10, "29.104"),
        (2.0, 24, "15.013"),
        (1.0, 100, "359.95"),
        (0.5, 10, ""),
        (4.0, 300, ""),
        (3.0, 64, ""),
    ],
)
def test_subset_selection_by_fractions(epsilon: float, v: int, printed: str) -> None:
    """To the digits printed; at settings of our own the least of the textbook formula over all sizes of a set."""
    channel = subset_selection(epsilon, v)
    family = channel.family if isinstance(channel, KSubset) else None
    assert isinstance(family, Subset)
    assert isinstance(channel, KSubset)
    found = float(exact_error(channel))
    if printed:
        digits = len(printed.partition(".")[2])
        assert f"{found:.{digits}f}" == printed
    assert found == pytest.approx(min(textbook(epsilon, v, w) for w in range(1, v)), rel=1e-8)
    r = exp_lower(epsilon)
    k, n = family.n_heavy, family.n_outputs
    assert channel.weight == int(ONE * r * k / (r * k + n - k))  # ⌊2³²·rk/(rk + N − k)⌋


def test_subset_selection_against_the_other_oracles() -> None:
    """Randomized response at (1, 10); the better of it and unary encoding over all settings; 257 categories at 8."""
    assert round(oracle("grr", 1.0, 10).total, 2) == 40.96
    settings = [(e, v) for e in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0) for v in range(3, 257)]
    ratios = [
        min(oracle("grr", *at).total, oracle("oue", *at).total) / oracle("subset", *at).total
        for at in settings
    ]
    assert round(max(ratios), 2) == 1.44
    assert round(oracle("oue", 8.0, 257).total / oracle("grr", 8.0, 257).total, 1) == 7.5


def test_sets_of_five_against_one_item_drawn_of_them() -> None:
    """s² times an oracle's error, and s² − s for the draw of the item: 9,252; PrivSet has 1,906.02."""
    drawn = 25 * min(oracle(name, 1.0, 100).total for name in ("oue", "grr")) + 25 - 5
    assert round(drawn) == 9252
    channel = selection_channel(1.0, 95, 5)
    family = channel.family
    assert isinstance(family, PrivSet)
    assert round(selection_error(1.0, family), 2) == 1906.02


@pytest.mark.parametrize(
    ("epsilon", "size", "tau", "printed"),
    [
        (2.0, 2, 2, "0.614979459"),
        (4.0, 4, 4, "0.770108832"),
        (8.0, 8, 8, "0.920888960"),
        (8.0, 100, 64, "0.273179039"),
    ],
)
def test_contrasts_of_blocks(epsilon: float, size: int, tau: int, printed: str) -> None:
    """c = E[agree − disagree]/b of the best block, by a fraction."""
    channel = agreement_channel(epsilon, size)
    family = channel.family
    assert isinstance(family, Agreement)
    assert family.agreeing == tau
    p = Fraction(channel.weight, ONE)
    c = 2 * family.shares(p)[0] - 1
    assert f"{float(c):.9f}" == printed
    assert channel.response.contrast_c == pytest.approx(float(c), rel=1e-12)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("epsilon", "prior", "alone", "blocks"),
    [
        (4.0, ENDS, 85.2, 41.2),
        (8.0, ENDS, 42.1, 12.4),
        (4.0, "uniform", 45.6, 41.8),
        (8.0, "uniform", 22.6, 13.1),
        (4.0, stats.norm(0, 0.1), 9.6, 42.1),
    ],
)
def test_blocks_and_numbers_by_themselves(epsilon: float, prior: Any, alone: float, blocks: float) -> None:
    """n·MSE of 100 numbers: the best of four mechanisms that need no prior, and agreement blocks."""
    plan = hd.plan(
        users=N, dims=100, epsilon=epsilon, prior=prior, mechanisms=[*ALONE, "agreement"]
    ).mechanisms
    found = {option.mechanism: option.mse * N for option in plan}
    assert round(min(found[name] for name in ALONE), 1) == alone
    assert round(found["agreement"], 1) == blocks


@pytest.mark.parametrize("prior", [ENDS, "uniform"])
def test_blocks_never_win_with_little_budget(prior: Any) -> None:
    for epsilon in (0.5, 1.0, 1.4):
        names = ["optimal_mean", "agreement", "duchi"]
        plan = hd.plan(users=N, dims=100, epsilon=epsilon, prior=prior, mechanisms=names)
        assert plan.best.mechanism != "agreement"


@pytest.mark.parametrize(
    ("epsilon", "prior", "most"),
    [(2.0, stats.norm(0, 0.1), 0.540), (4.0, stats.norm(0, 0.1), 0.048), (4.0, "uniform", 0.1058)],
)
def test_tables_for_a_prior(epsilon: float, prior: Any, most: float) -> None:
    """The mean variance of a report over the prior that its table is made for."""
    law = as_prior(prior)
    assert prior_variance(optimal_mean(epsilon, law), law) <= most


@pytest.mark.parametrize(
    ("epsilon", "paired", "single"), [(2.0, 101.8, 110.7), (3.0, 46.6, 59.1), (4.0, 29.6, 43.5)]
)
def test_pairs_of_a_hundred_numbers(epsilon: float, paired: float, single: float) -> None:
    """n·MSE at 100 numbers spread evenly; at most 102.5, 46.7 and 29.7 are required."""
    plan = hd.plan(users=N, dims=100, epsilon=epsilon, mechanisms=["optimal_mean", "pair"])
    found = {option.mechanism: round(option.mse * N, 1) for option in plan.mechanisms}
    assert found == {"pair": paired, "optimal_mean": single}


@pytest.mark.parametrize(("epsilon", "codebook", "coordinates"), [(4.0, 0.437, 2.5), (8.0, 0.134, 1.09)])
def test_vectors_against_coordinates(epsilon: float, codebook: float, coordinates: float) -> None:
    """n·MSE of a coordinate of vectors on the sphere in 100 dimensions: codebook, and single coordinates asked."""
    assert round(total_error(codebook_channel(epsilon, 100)) / 100, 3) == codebook
    prior = stats.norm(0, 0.25)  # standard deviation 0.1 in a range of ±0.4
    names = ["piecewise", "hybrid", "optimal"]
    best = hd.plan(users=N, dims=100, epsilon=epsilon, prior=prior, mechanisms=names).best
    assert best.mse * N * 0.4**2 == pytest.approx(coordinates, rel=0.02)
