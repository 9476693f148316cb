"""Priors: four forms, one meaning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import as_prior


def test_the_four_forms_agree_on_the_even_spread() -> None:
    """Mean squares to 1e-4: midpoints of 64 parts of each bin, 4,096 quantiles, or 10,001 values."""
    forms = [
        "uniform",
        stats.uniform(-1, 2),
        (np.linspace(-1, 1, 9), np.ones(8)),
        np.linspace(-1, 1, 10_001),
    ]
    for form in forms:
        prior = as_prior(form)
        assert prior.shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert prior.mean == pytest.approx(0.0, abs=1e-9)
        assert prior.mean_square == pytest.approx(1 / 3, abs=1e-4)
        np.testing.assert_allclose(prior.on_levels(17), as_prior("uniform").on_levels(17), atol=1e-4)


def test_levels_keep_the_mean() -> None:
    prior = as_prior(stats.beta(2, 8, -1, 2))
    for n in (2, 9, 65):
        assert prior.on_levels(n) @ np.linspace(-1, 1, n) == pytest.approx(prior.mean, abs=1e-12)


def test_values_outside_are_clamped_as_a_client_does() -> None:
    assert as_prior([-3.0, 3.0]).values.tolist() == [-1.0, 1.0]


def test_keys_tell_laws_apart() -> None:
    assert as_prior("uniform").key == "uniform"
    assert as_prior([0.0, 0.5]).key == as_prior([0.0, 0.5]).key
    assert as_prior([0.0, 0.5]).key != as_prior([0.0, 0.6]).key


@pytest.mark.parametrize(
    "bad", ["normal", [], [[1.0]], "0.1,0.2", object(), [0.1, float("nan")], ([0, 1], [1, 2]), ([1, 0], [1]),
            ([0, 1], [-1.0]), None],
)  # fmt: skip
def test_what_is_no_prior(bad: object) -> None:
    with pytest.raises(InvalidInput, match="prior"):
        as_prior(bad)
