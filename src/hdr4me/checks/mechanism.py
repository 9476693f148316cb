"""The contract of a mechanism: cdf, density, atoms, moments and samples agree, and the mechanism is private."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms.law import Mechanism, probe_points

Floats = NDArray[np.float64]

# Cells of the midpoint rule; at a jump of the density its error is at most the jump times the width of a cell.
_CELLS = 1 << 16
# Absolute for probabilities, relative for moments; far above the error of the midpoint rule.
_TOLERANCE = 1e-3
_PRIVACY = 1e-6  # relative; probabilities, which are differences of a cdf, have an absolute 1e-12 as well
_FALSE_ALARM = 1e-9
_EDGE = 1e-9  # tolerance for rounding errors near an atom or an end of the support, relative to the width


def check_mechanism(mechanism: Mechanism, *, seed: int = 1, draws: int = 100_000) -> None:
    """Check that cdf, density, moments and samples agree, and that the mechanism and its exact table are private.

    Integrals of the density by the midpoint rule are compared with the cdf, the mean, the variance and the third
    absolute central moment. Samples are compared with the cdf by the Dvoretzky–Kiefer–Wolfowitz inequality with
    Massart's constant. Privacy is checked by ratios of densities and of probabilities of intervals, over a grid of
    inputs and reports.

    Parameters
    ----------
    mechanism
        An instance of the mechanism.
    seed
        The seed of the samples.
    draws
        The number of samples at each of nine values; a correct mechanism fails with a probability of at most 2e-8.

    Raises
    ------
    AssertionError
        With the violated requirement as its message.
    """
    low, high = mechanism.domain
    inputs = probe_points(low, high)[::16]
    grid = _Grid.of(mechanism, inputs)
    for t in inputs:
        _check_law(mechanism, float(t), grid)
    _check_privacy(mechanism, grid)
    # All inputs are sampled in one call: the sample of one value must not depend on its neighbors.
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.repeat(inputs, draws))
    drawn = np.asarray(mechanism.sample(values, rng), np.float64)
    for t in inputs:
        _check_draws(mechanism, float(t), drawn[values == t], grid)
    _check_independence(mechanism, values, drawn)
    channel = mechanism.exact().channel()
    assert channel.epsilon <= mechanism.epsilon, (
        "the epsilon of the exact table is larger than that of the mechanism"
    )


@dataclass(frozen=True)
class _Grid:
    """Cells of equal width that contain all but 1e-9 of the probability of every report."""

    edges: Floats

    @classmethod
    def of(cls, mechanism: Mechanism, inputs: Floats) -> _Grid:
        """A grid over the slightly widened support; an infinite end is replaced where the cdf leaves less than 1e-9."""
        low, high = mechanism.support
        center = float(np.mean(mechanism.domain))
        reach = 1.0
        while not math.isfinite(high - low):
            reach *= 2
            assert reach < 1e9, "the cdf does not go from 0 to 1"
            outside = mechanism.cdf(center - reach, inputs) + 1 - mechanism.cdf(center + reach, inputs)
            if np.all(outside < 1e-9):
                low, high = center - reach, center + reach
        margin = 0.0137 * (high - low)  # no edge lies at a round number
        return cls(np.linspace(low - margin, high + 1.1 * margin, _CELLS + 1))

    @property
    def middles(self) -> Floats:
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def width(self) -> float:
        return float(self.edges[1] - self.edges[0])


def _check_law(mechanism: Mechanism, t: float, grid: _Grid) -> None:
    """Compare the density and the atoms at one input with the cdf and the moments."""
    cdf = np.asarray(mechanism.cdf(grid.edges, t))
    assert np.all(np.diff(cdf) >= -1e-12), f"at t = {t:g} the cdf decreases"
    assert cdf[0] < _TOLERANCE > 1 - cdf[-1], f"at t = {t:g} the cdf does not go from 0 to 1"
    density = np.asarray(mechanism.density(grid.middles, t))
    assert np.all(density >= 0), f"at t = {t:g} the density is negative"
    places, masses = (np.asarray(part, np.float64).ravel() for part in mechanism.atoms(t))
    assert np.all(masses >= -1e-12), f"at t = {t:g} an atom has a negative mass"
    at = np.concatenate([grid.middles, places])
    weights = np.concatenate([density * grid.width, masses])
    within = np.histogram(at, grid.edges, weights=weights)[0].cumsum()
    gap = np.abs(within - (cdf[1:] - cdf[0])).max()
    assert gap < _TOLERANCE, f"at t = {t:g} the density and the atoms do not add up to the cdf"
    mean, variance, third = (
        float(moment(t)) for moment in (mechanism.mean, mechanism.variance, mechanism.abs_third_moment)
    )
    sd = math.sqrt(float(weights @ (at - mean) ** 2))
    assert abs(float(weights @ (at - mean))) < _TOLERANCE * sd, (
        f"at t = {t:g} the mean differs from that of the density"
    )
    assert math.isclose(variance, sd**2, rel_tol=_TOLERANCE), (
        f"at t = {t:g} the variance differs from that of the density"
    )
    cubes = float(weights @ np.abs(at - mean) ** 3)
    assert math.isclose(third, cubes, rel_tol=2 * _TOLERANCE), (
        f"at t = {t:g} the third absolute moment differs from that of the density"
    )


def _check_privacy(mechanism: Mechanism, grid: _Grid) -> None:
    """Check that ratios of densities and of interval probabilities between two inputs are at most e^ε."""
    inputs = probe_points(*mechanism.domain)[:, None]
    most = math.exp(mechanism.epsilon) * (1 + _PRIVACY)
    density = np.asarray(mechanism.density(grid.middles[::32], inputs))
    assert np.all(density.max(0) <= most * density.min(0)), (
        "the ratio of two densities is larger than e^epsilon"
    )
    cdf = np.asarray(mechanism.cdf(grid.edges[::32], inputs))
    cells = np.diff(cdf, axis=1, prepend=0.0, append=1.0)
    assert np.all(cells.max(0) <= most * cells.min(0) + 1e-12), (
        "an interval of reports is more than e^epsilon times as probable for one value as for another"
    )


def _check_draws(mechanism: Mechanism, t: float, drawn: Floats, grid: _Grid) -> None:
    """Compare samples with the cdf: P(sup |F_n − F| > d) ≤ 2·exp(−2nd²) for every F, with or without atoms."""
    assert np.all(np.isfinite(drawn)), f"at t = {t:g} a sample is not finite"
    slack = _EDGE * float(grid.edges[-1] - grid.edges[0])
    low, high = mechanism.support
    assert low - slack <= drawn.min(), f"at t = {t:g} a sample lies outside the support"
    assert drawn.max() <= high + slack, f"at t = {t:g} a sample lies outside the support"
    ordered, share = np.unique(drawn, return_counts=True)
    upper = share.cumsum() / len(drawn)
    lower = upper - share / len(drawn)
    d = math.sqrt(math.log(2 / _FALSE_ALARM) / (2 * len(drawn)))
    above = upper - np.asarray(mechanism.cdf(ordered + slack, t))
    below = np.asarray(mechanism.cdf(ordered - slack, t)) - lower
    assert max(above.max(), below.max()) <= d, f"at t = {t:g} the samples do not follow the cdf"


def _check_independence(mechanism: Mechanism, values: Floats, drawn: Floats) -> None:
    """Check that samples of different users have uncorrelated signs of error, at small distances in the array.

    The products of the signs, each less its mean, are martingale differences of at most 4, so the inequality of Azuma
    and Hoeffding bounds their sums.
    """
    above = np.sign(drawn - np.asarray(mechanism.mean(values), np.float64))
    means = {float(t): float(above[values == t].mean()) for t in np.unique(values)}
    centered = above - np.array([means[t] for t in values.tolist()])
    for lag in (1, 2, 3):
        together = float(np.mean(centered[lag:] * centered[:-lag]))
        assert abs(together) < 8 * math.sqrt(math.log(2 / _FALSE_ALARM) / len(drawn)), (
            "samples of different users are not independent"
        )
