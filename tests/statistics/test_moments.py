"""The decoders of squares and of noise, and tables that do not determine them."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.channels import KSubset, Table, UnaryEncoding
from hdr4me.statistics.calibrate import functional, value_moments
from hdr4me.survey import Survey

ONE = 1 << 32


def test_squares_and_noise_at_every_value(mixed: Survey) -> None:
    """Between two levels ḡ exceeds t² by the variance of rounding, f(1 − f)Δ², which is at most `rounding`."""
    table = mixed.channels[0]
    assert isinstance(table, Table)
    moments = functional(table.response.marginal())
    assert moments.decoders is not None
    g, h = moments.decoders
    t = np.linspace(-1, 1, 1001)
    square = np.interp(t, table.targets["value"], moments.rows @ g)
    f = (t + 1) * 2 % 1
    assert square == pytest.approx(t**2 + f * (1 - f) * 0.25, abs=1e-12)
    assert (f * (1 - f) * 0.25).max() == pytest.approx(moments.rounding)
    assert moments.rows @ h == pytest.approx(moments.row_variances, rel=1e-12)


def test_constant_noise_is_not_estimated(mixed: Survey) -> None:
    """The coin's rows have the same variance: h is that number, whatever is reported."""
    coin = mixed.channels[1]
    assert isinstance(coin, Table)
    moments = functional(coin.response.marginal())
    assert moments.decoders is not None
    assert moments.decoders[1] == pytest.approx([3.0, 3.0])


def test_cells_that_determine_only_the_mean() -> None:
    """Three levels, two cells: the mean comes through, nothing else could; the error is s²/r."""
    rows = tuple((ONE // 2 - k * ONE // 8, ONE // 2 + k * ONE // 8) for k in (-1, 0, 1))
    moments = functional(Table("line", 1.0, {"value": (-4.0, 4.0)}, rows).response.marginal())
    assert moments.decoders is None
    mean, variance = value_moments(np.array([[45, 55], [20, 80]]), 100, moments)
    assert mean == pytest.approx([0.4, 2.4])
    assert variance == pytest.approx(
        [(16 - 0.4**2) / 99, 15 / 100]
    )  # the second at the floor: no row has less than 15


def test_a_cell_that_is_never_reported() -> None:
    """A column of zeros is allowed; it is given no weight."""
    rows = ((3 * ONE // 4, 0, ONE // 4), (ONE // 4, 0, 3 * ONE // 4))
    decoders = functional(Table("gap", 1.1, {"value": (-2.0, 0.0, 2.0)}, rows).response.marginal()).decoders
    assert decoders is not None
    assert decoders[0] == pytest.approx([1, 0, 1], abs=1e-12)


def test_variances_of_categories(mixed: Survey) -> None:
    choice, bits = mixed.channels[2:]
    assert isinstance(choice, KSubset)
    assert isinstance(bits, UnaryEncoding)
    assert choice.response.marginal().moments([0.0, 1.0]).variance([1.0]) == pytest.approx(
        (0.125 * 0.875 * 4, 0.625 * 0.375 * 4)
    )
    assert bits.response.marginal().moments([0.0, 1.0]).variance([1.0]) == pytest.approx(
        (0.1875 * 16, 0.25 * 16)
    )
