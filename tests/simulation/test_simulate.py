"""Fused simulation of every continuous mechanism: its law, its moments, its bits on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdr4me.errors import InvalidInput
from hdr4me.kernels.simulate import fused
from hdr4me.mechanisms import mechanism
from hdr4me.simulation import aggregate
from hdr4me.simulation.aggregate import simulate_sums
from hdr4me.simulation.simulate import known_to_kernels, law_of, simulate, simulate_values

NAMES = ["laplace", "scdf", "staircase", "duchi", "piecewise", "hybrid", "square_wave"]
EPSILONS = [1e-6, 0.3, 1.0, 5.0, 40.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", NAMES)
def test_values_follow_the_mechanisms_own_law(name: str, epsilon: float) -> None:
    """Kolmogorov-Smirnov against `cdf` at three inputs; seeded, so no false alarm; threshold at 2e-5 each.

    The distance is taken half-way between neighbouring samples, so that atoms do no harm, and not where they are
    closer than doubles can tell (a Square wave's band at ε = 40).
    """
    mech = mechanism(name, epsilon=epsilon)
    n = 20_000
    t = np.array([0.0, 0.37, 1.0])
    x = np.sort(simulate_values(mech, np.tile(t, (n, 1)), seed=11), axis=0)
    for j, value in enumerate(t):
        low, high = x[:-1, j], x[1:, j]
        apart = high - low > 1e-12 * np.maximum(np.abs(low), np.abs(high))
        law = mech.cdf((low + high)[apart] / 2, value)
        distance = np.abs(np.arange(1, n)[apart] / n - law).max(initial=0.0)
        assert distance < 2.4 / np.sqrt(n)  # P(KS > 2.4 / √n) < 2e-5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", NAMES)
def test_sums_and_squares_have_the_right_moments(name: str, epsilon: float) -> None:
    """The variance is what unsafe compiler licences broke. 6 σ: false alarm below 1e-8, and seeded anyway."""
    n, d = 20_000, 10
    mech = mechanism(name, epsilon=epsilon)
    values = np.random.default_rng(1).uniform(0, 1, (n, d))
    found = simulate(mech, values, seed=5, n_sampled=d)
    mean, variance = mech.mean(values).sum(0), mech.variance(values).sum(0)
    assert (np.abs(found.total - mean) < 6 * np.sqrt(variance)).all()
    spread = found.squares.sum() / (mech.variance(values) + mech.mean(values) ** 2).sum()
    # A Laplace square has kurtosis 24/4: relative sd of the mean of 200,000 squares is √(5/2e5) = 0.5 %.
    assert abs(spread - 1) < 0.03


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_sampled", [3, 40])
def test_bits_do_not_depend_on_threads(name: str, n_sampled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Chunks of 12 or 166 users, some ending in the middle of a group, in waves of 32 and 96.
    monkeypatch.setattr(fused, "_CHUNK", 500)
    mech = mechanism(name, epsilon=1.0)
    values = np.random.default_rng(2).uniform(0, 1, (16_001 if n_sampled == 3 else 3_001, 40))
    one, three = (simulate(mech, values, seed=9, n_sampled=n_sampled, threads=k) for k in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert a.tobytes() == b.tobytes()
    assert one.total.tobytes() != simulate(mech, values, seed=10, n_sampled=n_sampled).total.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_those_of_the_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_CHUNK", 5_000)
    mech = mechanism(name, epsilon=1.0)
    values = np.random.default_rng(3).uniform(0, 1, (1_503, 21))
    x = simulate_values(mech, values, seed=4, threads=2)
    found = simulate(mech, values, seed=4, n_sampled=21)
    # Sums of 1,503 doubles in another order: a few units of 1e-16 times √n.
    assert np.allclose(found.total, x.sum(0), rtol=1e-12, atol=1e-9)
    assert np.allclose(found.squares, (x**2).sum(0), rtol=1e-12)
    assert found.n_reports.tolist() == [1503.0] * 21


def test_sampled_users_spread_evenly() -> None:
    """m of d without replacement: n·m reports in all, each dimension a binomial share (chi-square at 1e-6)."""
    n, d, m = 30_000, 50, 4
    values = np.tile(np.linspace(0, 1, d), (n, 1))
    found = simulate(mechanism("piecewise", epsilon=4.0), values, seed=6, n_sampled=m)
    assert found.n_reports.sum() == n * m
    # Without replacement the counts vary by the factor (1 - m/d) less than multinomial ones.
    statistic = ((found.n_reports - n * m / d) ** 2 / (n * m / d)).sum() / (1 - m / d) * (d - 1) / d
    assert stats.chi2(d - 1).sf(statistic) > 1e-6
    spread = mechanism("piecewise", epsilon=4.0).variance(values[0])
    z = (found.mean - values[0]) / np.sqrt(spread / found.n_reports)
    assert np.abs(z).max() < 6


def test_the_most_dimensions_and_few_users() -> None:
    found = simulate(mechanism("duchi", epsilon=1.0), np.zeros((3, 65536), np.float32), seed=1, n_sampled=5)
    assert found.n_reports.sum() == 15
    assert np.isnan(found.mean).sum() >= 65521


def test_sampling_goes_on_where_words_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of users needs more words than are drawn at once: each is still sampled once, m of d."""
    values = np.tile(np.arange(4.0), (2_000, 1))
    found = simulate(mechanism("piecewise", epsilon=4.0), values / 3, seed=3, n_sampled=2)
    assert found.n_reports.sum() == 4_000
    # Chi-square at 1e-6, counts of a sample without replacement varying by 1 - m/d less.
    statistic = ((found.n_reports - 1_000) ** 2 / 1_000).sum() / 0.5 * 3 / 4
    assert stats.chi2(3).sf(statistic) > 1e-6


def test_single_precision_and_other_layouts_are_taken() -> None:
    mech = mechanism("piecewise", epsilon=1.0)
    values = np.random.default_rng(8).uniform(-1, 1, (300, 7)).astype(np.float32)
    single = simulate(mech, values, seed=1, n_sampled=7).total
    double = simulate(mech, np.asfortranarray(values.astype(np.float64)), seed=1, n_sampled=7).total
    assert np.allclose(single, double, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros(3), {}, "shape"),
        (np.full((2, 2), 1.5), {}, "domain"),
        (np.full((2, 2), np.nan), {}, "domain"),
        (np.zeros((2, 2)), {"n_sampled": 3}, "n_sampled = 3"),
        (np.zeros((2, 2)), {"seed": -1}, "seed"),
        (np.zeros((2, 2)), {"seed": 1.5}, "seed"),
    ],
)
def test_bad_input_is_named(values: np.ndarray, options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        simulate(mechanism("laplace", epsilon=1.0), values, **{"seed": 1, **options})


def test_parts_with_weights_that_depend_on_t_come_last() -> None:
    for name in NAMES[3:]:
        law = law_of(mechanism(name, epsilon=1.0))[1]
        moving = law[:, 4] != 0
        assert not (np.diff(moving.astype(int)) < 0).any() or name in ("duchi", "hybrid")


@pytest.mark.parametrize("name", ["laplace", "piecewise", "square_wave", "duchi"])
def test_shortcuts_have_the_law_of_the_sums(name: str) -> None:
    """Kolmogorov-Smirnov, 4,000 sums of 25 reports by either way; seeded, threshold at 1e-4."""
    mech = mechanism(name, epsilon=0.3)
    column = np.random.default_rng(4).uniform(0, 1, 25)
    values = np.tile(column, (4_000, 1)).T
    quick = simulate_sums(mech, values, np.random.default_rng(5))
    plain = simulate(mech, values, seed=6, n_sampled=4_000).total
    assert stats.ks_2samp(quick, plain).pvalue > 1e-4


def test_shortcuts_are_taken_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(aggregate, "simulate")
    values, rng = np.zeros((10, 2)), np.random.default_rng(1)
    for name in ("laplace", "piecewise", "square_wave"):
        assert simulate_sums(mechanism(name, epsilon=0.1), values, rng).shape == (2,)
    with pytest.raises(NameError):
        simulate_sums(mechanism("piecewise", epsilon=4.0), values, rng)


@pytest.mark.parametrize("n_sampled", [1, 3])
def test_a_law_that_depends_on_the_size_of_t(n_sampled: int) -> None:
    """Three-outputs is not affine in t: read at t = 0 and 1 only, its variance would come out at half. 6 σ, seeded."""
    mech = mechanism("three_outputs", epsilon=1.2)
    assert not known_to_kernels(mech)
    n, d = 40_000, 3
    values = np.random.default_rng(1).uniform(-1, 1, (n, d))
    found = simulate(mech, values, seed=5, n_sampled=n_sampled)
    assert found.n_reports.sum() == n * n_sampled
    sd = np.sqrt((mech.variance(values).mean(0) + values.var(0)) / found.n_reports)
    assert (np.abs(found.mean - values.mean(0)) < 6 * sd).all()
    second = (mech.variance(values) + values**2).mean()
    assert found.squares.sum() / found.n_reports.sum() == pytest.approx(second, rel=0.02)
    again = simulate(mech, values, seed=5, n_sampled=n_sampled, threads=2)
    assert again.total.tobytes() == found.total.tobytes()


def test_one_dimension_is_sent_unless_more_are_asked_for() -> None:
    assert simulate(mechanism("duchi", epsilon=1.0), np.zeros((50, 4)), seed=1).n_reports.sum() == 50


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 30.0])
def test_the_papers_laws_are_known_to_the_kernels(name: str, epsilon: float) -> None:
    assert known_to_kernels(mechanism(name, epsilon=epsilon))
