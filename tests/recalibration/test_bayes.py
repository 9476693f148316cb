"""The pieces of hierarchical Bayes, each against plain quadrature or arithmetic."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.auto.posterior import Cells, Posterior, Prior, Sample, compress
from hdr4me.recalibration.auto.priors import fit_posterior, free_shape, smoother, spike_and_slab

CELLS = Cells(-1.0, 1.0, 0.0, 50)


@pytest.mark.parametrize(("x", "s"), [(0.3, 0.2), (-1.4, 0.1), (5.0, 3.0), (0.013, 0.004)])
def test_the_likelihood_is_the_average_over_each_cell(x: float, s: float) -> None:
    found = CELLS.likelihood(np.array([x]), np.array([s]))[0]
    assert found[0] == pytest.approx(np.exp(-0.5 * (x / s) ** 2), rel=1e-12, abs=1e-300)
    for k in (0, 24, 25, 33, 49):
        a, b = CELLS.edges[k : k + 2]
        area = quad(lambda t: np.exp(-0.5 * ((x - t) / s) ** 2), a, b, epsabs=0, epsrel=1e-10)[0]
        assert found[k + 1] == pytest.approx(area / (b - a), rel=1e-6, abs=1e-30)


def test_far_outliers_do_not_underflow() -> None:
    found = CELLS.likelihood(np.array([40.0, -40.0]), np.array([0.01, 0.01]))
    assert found[0].argmax() == 50
    assert found[1].argmax() == 1
    assert (found.max(axis=1) > 0).all()


def test_window_moments_integrate_the_posterior_exactly() -> None:
    rng = np.random.default_rng(0)
    shape = rng.random(51)
    shape /= shape.sum()
    x, s = np.array([0.31, -0.97, 0.0, 1.05]), np.array([0.03, 0.01, 0.02, 0.05])
    mean, square = CELLS.window_moments(x, s, shape)
    for i in range(4):
        grid = np.linspace(-1, 1, 400_001)
        density = np.repeat(shape[1:], 8000) / CELLS.width
        density = np.append(density, density[-1]) * norm.pdf(grid, x[i], s[i])
        atom = shape[0] * norm.pdf(0, x[i], s[i])
        total = np.trapezoid(density, grid) + atom
        # The trapezoidal rule's steps at cell edges leave about 1e-6.
        assert mean[i] == pytest.approx(np.trapezoid(density * grid, grid) / total, abs=3e-6)
        assert square[i] == pytest.approx(np.trapezoid(density * grid**2, grid) / total, abs=3e-6)


def test_where_the_prior_has_nothing_near_the_observation_speaks() -> None:
    shape = np.zeros(51)
    shape[1] = 1.0
    mean, square = CELLS.window_moments(np.array([0.5]), np.array([0.01]), shape)
    assert mean[0] == 0.5
    assert square[0] == pytest.approx(0.25 + 0.0001)


def test_fine_noise_returns_the_observation() -> None:
    theta = np.linspace(-0.9, 0.9, 101)
    found = recalibrate(theta, np.full(101, 1e-5), "bayes").enhanced_mean
    np.testing.assert_allclose(found, theta, atol=3e-5)  # three standard errors: no snapping to cells


def test_posterior_averages_over_its_priors() -> None:
    """Two priors by hand: the average of their posteriors, not the posterior of their average."""
    shapes = np.zeros((2, 51))
    shapes[0, 0] = 1.0
    shapes[1, 1:] = 1 / 50
    prior = Prior(shapes, np.log([0.3, 0.7]))
    x, s = np.array([0.4]), np.array([0.5])
    post = Posterior(CELLS, Sample(x, s, np.ones(1)), np.zeros(1, int), prior, prior, {})
    z = norm.cdf([-1, 1], x[0], s[0])
    truncated = x[0] - s[0] ** 2 * (norm.pdf(1, 0.4, 0.5) - norm.pdf(-1, 0.4, 0.5)) / (z[1] - z[0])
    # 1e-4: a cell's middle stands for its mean.
    assert post.mean[0] == pytest.approx(0.7 * truncated, abs=1e-4)


def test_compress_keeps_totals_and_means() -> None:
    rng = np.random.default_rng(1)
    x, s = rng.normal(size=5000), rng.uniform(0.1, 0.3, 5000)
    small_sample = compress(Sample(x, s, np.ones(5000)))
    assert small_sample.x.size <= 400
    assert small_sample.weight.sum() == 5000
    assert small_sample.weight @ small_sample.x == pytest.approx(x.sum(), rel=1e-9)
    small = Sample(x[:10], s[:10], np.ones(10))
    assert compress(small) is small


def test_em_never_lowers_the_penalised_likelihood() -> None:
    rng = np.random.default_rng(2)
    x = np.where(rng.random(200) < 0.5, -0.4, 0.5) + 0.2 * rng.normal(size=200)
    sample = Sample(x, np.full(200, 0.2), np.ones(200))
    likelihood = CELLS.likelihood(sample.x, sample.s)
    base = np.full(51, 1 / 51)

    def objective(shape: np.ndarray) -> float:
        return float(np.log(likelihood @ shape).sum() + base @ np.log(shape))

    values = [objective(free_shape(sample, likelihood, base, iterations=i)) for i in range(0, 60, 5)]
    assert np.all(np.diff(values) > -1e-9)
    assert free_shape(sample, likelihood, base, iterations=9).sum() == pytest.approx(1)


def test_the_smoother_keeps_mass() -> None:
    kernel = smoother(CELLS, 0.1)
    np.testing.assert_allclose(kernel.sum(axis=1), 1)
    smooth = free_shape(
        Sample(np.zeros(1), np.ones(1), np.ones(1)),
        CELLS.likelihood(np.zeros(1), np.ones(1)),
        np.full(51, 1 / 51),
        iterations=3,
        smoothing=kernel,
    )
    assert smooth.sum() == pytest.approx(1)


def test_the_slab_finds_its_centre() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(0.4, np.hypot(0.05, 0.1), 2000)
    sample = compress(Sample(x, np.full(2000, 0.1), np.ones(2000)))
    cells = Cells.for_noise(-1, 1, 0, np.full(2000, 0.1))
    family = spike_and_slab(cells, sample, cells.likelihood(sample.x, sample.s), centered=False)
    shape = np.exp(family.prior.log_weights) @ family.prior.shapes
    # Center known to 0.0025, width to about 0.005: 5 standard errors each.
    assert shape[1:] @ cells.middles == pytest.approx(0.4, abs=0.0125)
    assert np.sqrt(shape[1:] @ (cells.middles - 0.4) ** 2) == pytest.approx(0.05, abs=0.025)
    centered = spike_and_slab(cells, sample, cells.likelihood(sample.x, sample.s), centered=True)
    assert centered.log_evidence < family.log_evidence - 100


@pytest.mark.no_cover
@pytest.mark.parametrize("sigma", [0.003, 0.05, 0.3])
def test_intervals_cover_and_spreads_are_correct(sigma: float) -> None:
    """5 seeded repeats of 500 dimensions under a prior that the fit can learn: the posterior's intervals cover."""
    rng = np.random.default_rng(4)
    cover, predicted, error = [], [], []
    for _ in range(5):
        theta = np.clip(rng.normal(0.1, 0.25, 500), -1, 1)
        found = recalibrate(theta + sigma * rng.normal(size=500), np.full(500, sigma), "bayes")
        low, high = found.interval(0.9, "credible")
        cover.append(np.mean((low <= theta) & (theta <= high)))
        predicted.append(found.expected_error_after)
        error.append(np.mean((found.enhanced_mean - theta) ** 2))
    assert np.mean(cover) == pytest.approx(0.9, abs=0.025)
    assert np.mean(predicted) == pytest.approx(np.mean(error), rel=0.1)


def test_an_outlier_among_many_equal_means_is_kept() -> None:
    x = np.zeros(500)
    x[7] = -0.9
    post = fit_posterior(x + 0.01 * np.random.default_rng(5).normal(size=500), np.full(500, 0.01), -1, 1, 0)
    mean = post.mean
    assert mean[7] == pytest.approx(-0.9, abs=0.05)  # five standard errors
    assert np.abs(np.delete(mean, 7)).max() < 0.02
    assert sum(post.probabilities.values()) == pytest.approx(1)
