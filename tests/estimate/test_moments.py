"""The square decoder: a lower bound of t² for every value, exact about what a table can tell."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.estimate.calibrate import value_moments
from hdr4me.estimate.moments import Moments
from hdr4me.survey import Randomizer, Survey

ONE = 1 << 32


def test_it_is_a_lower_bound_of_the_square(mixed: Survey) -> None:
    moments = Moments(mixed.randomizers[0])
    g = moments.square_decoder
    assert g is not None
    at_levels = moments.probabilities @ g
    t = np.linspace(-1, 1, 1001)
    rounded = np.interp(t, mixed.randomizers[0].levels, at_levels)
    assert (rounded <= t**2 + 1e-12).all()
    assert (rounded >= t**2 - 0.25**2 - 1e-12).all()


def test_cells_that_cannot_tell() -> None:
    """Three levels, two cells: the mean comes through, nothing else could; the error is the plain one."""
    rows = tuple((ONE // 2 - k * ONE // 8, ONE // 2 + k * ONE // 8) for k in (-1, 0, 1))
    moments = Moments(Randomizer("line", 1.0, "value", (-4.0, 4.0), rows))
    assert moments.square_decoder is None
    mean, variance = value_moments(np.array([[45, 55]]), 100, moments)
    assert mean == pytest.approx([0.4])
    assert variance == pytest.approx([0.99 * (16 - 0.4**2) / 99])


def test_a_cell_that_is_never_reported() -> None:
    """A column of zeros is allowed; it is given no weight."""
    rows = ((3 * ONE // 4, 0, ONE // 4), (ONE // 4, 0, 3 * ONE // 4))
    g = Moments(Randomizer("gap", 1.1, "value", (-2.0, 7.0, 2.0), rows)).square_decoder
    assert g is not None
    assert g == pytest.approx([0, 0, 0], abs=1e-12)


def test_row_variances(mixed: Survey) -> None:
    choice, bits = Moments(mixed.randomizers[2]), Moments(mixed.randomizers[3])
    assert choice.row_variances == pytest.approx([0.125 * 0.875 * 4, 0.625 * 0.375 * 4])
    assert bits.row_variances == pytest.approx([0.1875 * 16, 0.25 * 16])
