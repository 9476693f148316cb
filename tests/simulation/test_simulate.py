"""Fused simulation of every continuous mechanism: its law, its moments, its bits on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdr4me.errors import InvalidInput
from hdr4me.kernels.simulate import fused
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Parts, UniformMixture
from hdr4me.simulation import sums
from hdr4me.simulation.laws import fused_law
from hdr4me.simulation.sums import DIRECT, GAMMA, SKIPPING, simulate, simulate_sums, way_of


def simulate_values(mech, values, seed: int) -> np.ndarray:
    """The reports themselves: each value is a dimension that one user reports, so its total is the report."""
    return simulate(
        mech, np.asarray(values).reshape(1, -1), seed=seed, sampled=np.size(values)
    ).total.reshape(np.shape(values))


NAMES = ["laplace", "scdf", "staircase", "duchi", "piecewise", "hybrid", "square_wave"]
EPSILONS = [1e-6, 0.3, 1.0, 5.0, 40.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", NAMES)
def test_values_follow_the_mechanisms_own_law(name: str, epsilon: float) -> None:
    """Kolmogorov-Smirnov against `cdf` at three inputs; seeded, so no false alarm; threshold at 2e-5 each.

    The distance is taken half-way between neighboring samples, so that atoms do no harm, and not where they are
    closer than the resolution of doubles (a Square wave's band at ε = 40).
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
    """The variance is what unsafe compiler licenses broke. 6 σ: false alarm below 1e-8, and seeded anyway."""
    n, d = 20_000, 10
    mech = mechanism(name, epsilon=epsilon)
    values = np.random.default_rng(1).uniform(0, 1, (n, d))
    found = simulate(mech, values, sampled=values.shape[1], seed=5)
    mean, variance = mech.mean(values).sum(0), mech.variance(values).sum(0)
    assert (np.abs(found.total - mean) < 6 * np.sqrt(variance)).all()
    spread = found.squares.sum() / (mech.variance(values) + mech.mean(values) ** 2).sum()
    # A Laplace square has kurtosis 24/4: relative sd of the mean of 200,000 squares is √(5/2e5) = 0.5 %.
    assert abs(spread - 1) < 0.03


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sampled", [3, 40])
def test_bits_do_not_depend_on_threads(name: str, sampled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Chunks of 12 or 166 users, some ending in the middle of a group, in waves of 32 and 96.
    monkeypatch.setattr(fused, "_CHUNK", 500)
    mech = mechanism(name, epsilon=1.0)
    values = np.random.default_rng(2).uniform(0, 1, (16_001 if sampled == 3 else 3_001, 40))
    one, three = (simulate(mech, values, seed=9, sampled=sampled, threads=k) for k in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert a.tobytes() == b.tobytes()
    assert one.total.tobytes() != simulate(mech, values, seed=10, sampled=sampled).total.tobytes()


def test_sampled_users_spread_evenly() -> None:
    """m of d without replacement: n·m reports in all, each dimension a binomial share (chi-square at 1e-6)."""
    n, d, m = 30_000, 50, 4
    values = np.tile(np.linspace(0, 1, d), (n, 1))
    found = simulate(mechanism("piecewise", epsilon=4.0), values, seed=6, sampled=m)
    assert found.n_reports.sum() == n * m
    # Without replacement the counts vary by the factor (1 - m/d) less than multinomial ones.
    statistic = ((found.n_reports - n * m / d) ** 2 / (n * m / d)).sum() / (1 - m / d) * (d - 1) / d
    assert stats.chi2(d - 1).sf(statistic) > 1e-6
    spread = mechanism("piecewise", epsilon=4.0).variance(values[0])
    z = (found.mean - values[0]) / np.sqrt(spread / found.n_reports)
    assert np.abs(z).max() < 6


def test_the_most_dimensions_and_a_small_number_of_users() -> None:
    found = simulate(mechanism("duchi", epsilon=1.0), np.zeros((3, 65536), np.float32), seed=1, sampled=5)
    assert found.n_reports.sum() == 15
    assert np.isnan(found.mean).sum() >= 65521


def test_sampling_goes_on_where_words_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of users needs more words than are drawn at once: each is still sampled once, m of d."""
    values = np.tile(np.arange(4.0), (2_000, 1))
    found = simulate(mechanism("piecewise", epsilon=4.0), values / 3, seed=3, sampled=2)
    assert found.n_reports.sum() == 4_000
    # Chi-square at 1e-6, counts of a sample without replacement varying by 1 - m/d less.
    statistic = ((found.n_reports - 1_000) ** 2 / 1_000).sum() / 0.5 * 3 / 4
    assert stats.chi2(3).sf(statistic) > 1e-6


def test_single_precision_and_other_layouts_are_taken() -> None:
    mech = mechanism("piecewise", epsilon=1.0)
    values = np.random.default_rng(8).uniform(-1, 1, (300, 7)).astype(np.float32)
    single = simulate(mech, values, seed=1, sampled=values.shape[1]).total
    double = simulate(
        mech, np.asfortranarray(values.astype(np.float64)), seed=1, sampled=values.shape[1]
    ).total
    assert np.allclose(single, double, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros(3), {}, "shape"),
        (np.full((2, 2), 1.5), {}, "domain"),
        (np.full((2, 2), np.nan), {}, "domain"),
        (np.zeros((2, 2)), {"sampled": 3}, "sampled = 3"),
        (np.zeros((2, 2)), {"seed": -1}, "seed"),
        (np.zeros((2, 2)), {"seed": 1.5}, "seed"),
    ],
)
def test_bad_input_is_named(values: np.ndarray, options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        simulate(mechanism("laplace", epsilon=1.0), values, **{"seed": 1, **options})


def test_parts_with_weights_that_depend_on_t_come_last() -> None:
    for name in NAMES[3:]:
        found = fused_law(mechanism(name, epsilon=1.0))
        assert found is not None
        law = found[1]
        moving = law[:, 4] != 0
        assert not (np.diff(moving.astype(int)) < 0).any() or name in ("duchi", "hybrid")


@pytest.mark.parametrize("name", ["laplace", "piecewise", "square_wave", "duchi"])
def test_shortcuts_have_the_law_of_the_sums(name: str) -> None:
    """Kolmogorov-Smirnov, 4,000 sums of 25 reports by either way; seeded, threshold at 1e-4."""
    mech = mechanism(name, epsilon=0.3)
    column = np.random.default_rng(4).uniform(0, 1, 25)
    values = np.tile(column, (4_000, 1)).T
    quick = simulate_sums(mech, values, np.random.default_rng(5))
    plain = simulate(mech, values, sampled=values.shape[1], seed=6).total
    assert stats.ks_2samp(quick, plain).pvalue > 1e-4


def test_one_rule_decides_whether_a_shortcut_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between .08 and .25 of band reports the sums and the reproduction used to disagree; both ask `way_of`."""
    values, rng = np.zeros((10, 2)), np.random.default_rng(1)
    monkeypatch.delattr(sums, "simulate")
    for name, epsilon, way in [
        ("laplace", 4.0, GAMMA),
        ("piecewise", 0.1, SKIPPING),
        ("square_wave", 0.1, SKIPPING),
        ("piecewise", 0.3, DIRECT),  # 14 % of the reports depend on the value
        ("piecewise", 4.0, DIRECT),
        ("hybrid", 0.1, DIRECT),
        ("duchi", 0.1, DIRECT),
    ]:
        mech = mechanism(name, epsilon=epsilon)
        assert way_of(mech) == way
        if way == DIRECT:
            with pytest.raises(NameError):
                simulate_sums(mech, values, rng)
        else:
            assert simulate_sums(mech, values, rng).shape == (2,)


class ThreeOutputs(UniformMixture):
    """Zhao et al. 2020: −C, 0 or C; the probability of 0 depends on |t|, which two values of t cannot show."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon, self.name = epsilon, "three outputs"

    @property
    def support(self) -> tuple[float, float]:
        return (-self.bound, self.bound)

    @property
    def bound(self) -> float:
        e, a = np.exp(self.epsilon), self.zero
        return float((e + 1) / ((e - 1) * (1 - a / e)))

    @property
    def zero(self) -> float:
        return 0.4

    def parts(self, t: np.ndarray) -> Parts:
        e, a = np.exp(self.epsilon), self.zero
        size = np.abs(t)
        middle = a + (a / e - a) * size
        far = (1 - a) / 2 + ((e - a) / (e * (e + 1)) - (1 - a) / 2) * size  # P(−C) for t > 0
        near = 1 - middle - far
        c = (1 - a / e) * (e - 1) / (e + 1)
        reach = 1 / c
        up, down = np.where(t >= 0, near, far), np.where(t >= 0, far, near)
        mean = self.mean(t)
        return Parts(
            np.stack([down, middle, up]),
            np.stack([-reach - mean, -mean, reach - mean]),
            np.zeros((3, *t.shape)),
        )


def test_a_law_that_depends_on_the_size_of_t_is_drawn_by_its_own_sample() -> None:
    """Read at t = 0 and 1 alone, the variance came out at half of the law's; 5 standard errors, seeded."""
    mech = ThreeOutputs(1.0)
    assert fused_law(mech) is None
    values = np.full((200_000, 2), -0.8)
    found = simulate(mech, values, sampled=values.shape[1], seed=3)
    variance = found.squares / found.n_reports - found.mean**2
    law = float(mech.variance(-0.8))
    # t* is bounded by `bound`, so the squares' standard deviation is at most bound²/2.
    assert np.abs(variance - law).max() < 5 * mech.bound**2 / 2 / np.sqrt(len(values)) + 0.02
    assert np.abs(found.mean + 0.8).max() < 5 * np.sqrt(law / len(values))
    again = simulate(mech, values, sampled=values.shape[1], seed=3, threads=2)
    assert again.total.tobytes() == found.total.tobytes()


def test_the_slow_path_samples_m_of_d() -> None:
    """Each user is in m of d dimensions, and each dimension's count is binomial (chi-square at 1e-6)."""
    n, d, m = 20_000, 8, 3
    values = np.tile(np.linspace(-1, 1, d), (n, 1))
    found = simulate(ThreeOutputs(2.0), values, seed=6, sampled=m)
    assert found.n_reports.sum() == n * m
    statistic = ((found.n_reports - n * m / d) ** 2 / (n * m / d)).sum() / (1 - m / d) * (d - 1) / d
    assert stats.chi2(d - 1).sf(statistic) > 1e-6
    spread = ThreeOutputs(2.0).variance(values[0])
    assert np.abs((found.mean - values[0]) / np.sqrt(spread / found.n_reports)).max() < 6


class Doubled(Laplace):
    """A subclass that draws other noise than its parent."""

    def noise_sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return 2 * rng.laplace(0.0, self.scale, shape)


def test_a_subclass_with_its_own_noise_is_not_treated_as_its_parent() -> None:
    """The variance is four times Laplace's: 6 standard errors of a mean of squares of kurtosis 6, seeded."""
    mech = Doubled(epsilon=1.0)
    assert fused_law(mech) is None
    assert way_of(mech) == DIRECT
    found = simulate(mech, np.zeros((50_000, 1)), seed=1)
    assert abs(found.squares[0] / 50_000 / 32 - 1) < 6 * np.sqrt(5 / 50_000)


def test_a_mixture_whose_domain_lacks_zero_and_one_is_drawn_too() -> None:
    class Shifted(Duchi):
        domain = (-1.0, 0.5)

    assert fused_law(Shifted(epsilon=1.0)) is None
    found = simulate(Shifted(epsilon=1.0), np.full((20_000, 1), -0.5), seed=1)
    # Var = C² − t² = 4.43: 6 standard errors of the mean are 0.09.
    assert abs(found.mean[0] + 0.5) < 0.09


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.01, 1.0, 40.0, 700.0, 5000.0])
@pytest.mark.parametrize("name", NAMES)
def test_every_law_of_the_paper_is_fused(name: str, epsilon: float) -> None:
    """The comparison on a grid must not refuse a right law for its rounding."""
    assert fused_law(mechanism(name, epsilon=epsilon)) is not None


def test_a_table_is_simulated_by_its_own_sample() -> None:
    """The deployed table of Piecewise: unbiased, 6 standard errors, seeded."""
    table = mechanism("piecewise", epsilon=1.0).exact()
    assert fused_law(table) is None
    found = simulate(table, np.full((20_000, 2), 0.3), seed=1)
    assert np.abs(found.mean - 0.3).max() < 6 * np.sqrt(float(table.variance(0.3)) / 20_000)


def test_what_is_no_mechanism_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="a mechanism, such as"):
        simulate("piecewise", np.zeros((2, 2)), seed=1)  # type: ignore[arg-type]
