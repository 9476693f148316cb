"""The data sets of section VI. Statistical tolerances are six standard errors: a false alarm in 5e8."""

from __future__ import annotations

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.paper import datasets
from hdr4me.paper.datasets import Moments, moments, normalize


@pytest.mark.parametrize("name", datasets.SYNTHETIC)
@pytest.mark.parametrize("way", ["auto", "fixed", "min-max"])
def test_every_value_is_in_the_domain(name, way):
    data = datasets.synthetic(name, 500, 12, 3, way)
    columns = np.array([data.column(j) for j in range(12)])
    assert columns.shape == (12, 500)
    assert columns.dtype == np.float32
    assert np.all(np.abs(columns) <= 1)
    assert data.normalization in ("fixed", "min-max")
    if data.normalization == "min-max":
        assert np.all(columns.min(axis=1) == -1)
        assert np.all(columns.max(axis=1) == 1)


@pytest.mark.parametrize("name", datasets.SYNTHETIC)
def test_a_column_depends_on_seed_and_place_only(name):
    data = datasets.synthetic(name, 200, 5, 7)
    again = data.column(3)
    data.column(0)
    assert np.array_equal(again, datasets.synthetic(name, 200, 5, 7).column(3))
    assert not np.array_equal(again, data.column(4))
    assert not np.array_equal(again, datasets.synthetic(name, 200, 5, 8).column(3))


def test_gaussian_has_a_tenth_of_its_dimensions_at_nine_tenths():
    n, d = 20_000, 30
    data = datasets.synthetic("gaussian", n, d, 1)
    means = np.array([data.column(j).mean() for j in range(d)])
    spread = np.array([data.column(j).std() for j in range(d)])
    assert np.all(np.abs(means[3:]) < 6 / 16 / np.sqrt(n))
    assert np.all(np.abs(means[:3] - 0.9) < 0.01)  # clipping at 1 takes 0.0012 off
    assert np.all(np.abs(spread[3:] - 1 / 16) < 6 / 16 / np.sqrt(2 * n))


def test_poisson_expectations_run_from_1_to_99():
    n, d, high = 2_000, 400, 149
    data = datasets.synthetic("poisson", n, d, 1, "fixed")
    counts = np.array([(data.column(j).astype(float) + 1) * high / 2 for j in range(d)])
    assert np.allclose(counts, counts.round(), atol=1e-4)
    expectations = counts.mean(axis=1)
    assert expectations.min() < 4
    assert expectations.max() > 96
    assert np.allclose(counts.var(axis=1), expectations, rtol=6 * np.sqrt(3 / n))  # Poisson: variance = mean


def test_stand_in_is_strongly_correlated_and_labelled():
    data = datasets.synthetic("cov19", 4_000, 40, 1)
    correlation = np.corrcoef([data.column(j) for j in range(40)])
    assert np.abs(correlation[np.triu_indices(40, 1)]).mean() > 0.5
    assert data.stand_in
    assert "stand-in" in data.title


def test_normalisation_is_refused_by_name():
    with pytest.raises(InvalidInput, match=r"normalize = 'z-score'.*auto, fixed, min-max"):
        datasets.check_normalization("z-score")


def test_a_constant_dimension_is_the_middle():
    assert normalize(np.full(3, 7.0), "min-max", 0, 1).tolist() == [0, 0, 0]


def test_fewer_dimensions_are_part_of_more_and_beyond_they_are_drawn_again():
    small, all_of_them, more = (datasets.chosen_dimensions(75, k, 1) for k in (50, 75, 160))
    assert np.array_equal(small, all_of_them[:50])
    assert sorted(all_of_them) == list(range(75))
    assert np.array_equal(more[:75], all_of_them)
    assert more.size == 160
    assert more.max() < 75


def test_what_is_stored_is_read_back(tmp_path):
    data = datasets.synthetic("poisson", 300, 4, 1)
    path = tmp_path / "d.f32"
    assert not datasets.is_stored(path)
    datasets.store(data, path)
    assert datasets.is_stored(path)
    back = datasets.open_stored(path)
    assert (back.title, back.users, back.dims) == ("Poisson", 300, 4)
    for j in range(4):
        assert np.array_equal(back.column(j), data.column(j))
    assert np.allclose(back.moments.mean, [data.column(j).mean(dtype=float) for j in range(4)], rtol=1e-14)


@pytest.mark.parametrize("mechanism", ["laplace", "piecewise", "square_wave"])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 50.0])
def test_two_points_have_the_moments_of_all_users(mechanism, epsilon):
    """Affine mean and quadratic variance: the same bias and variance, to rounding."""
    rng = np.random.default_rng(1)
    columns = [rng.uniform(-1, 1, 50), rng.choice([-1.0, 1.0], 50), np.full(50, 0.25), rng.beta(9, 1, 50)]
    columns.append(-columns[3])
    whole = np.array(columns)
    options = {"domain": (-1.0, 1.0)} if mechanism == "square_wave" else {}
    law = hd.mechanism(mechanism, epsilon=epsilon, **options)
    sizes = {"users": 50, "dims": 5, "sampled": 5}
    full = hd.deviation(law, values=whole, **sizes)
    values, shares = Moments(whole.mean(axis=1), (whole**2).mean(axis=1)).two_points()
    assert np.all(np.abs(values) <= 1)
    short = hd.deviation(law, values=values, probabilities=shares, **sizes)
    assert np.allclose(full.bias, short.bias, rtol=0, atol=1e-12)
    assert np.allclose(full.variance, short.variance, rtol=1e-9, atol=1e-15)


def test_moments_add_in_double_precision():
    column = np.full(100_000, 0.1, dtype=np.float32)
    found = moments([column])
    assert found.mean[0] == pytest.approx(float(np.float32(0.1)), rel=1e-12)
    assert found.square[0] == pytest.approx(float(np.float32(0.1)) ** 2, rel=1e-12)


def test_a_column_is_scaled_to_the_known_range_or_to_its_own():
    values = np.array([0.0, 5.0, 20.0])
    assert normalize(values, "fixed", 0, 10).tolist() == [-1.0, 0.0, 1.0]
    assert normalize(values, "min-max", 0, 10).tolist() == [-1.0, -0.5, 1.0]
