"""User-defined laws: checked on a grid and at random points; unsupported laws are errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import hdr4me as hd
from hdr4me import deviation
from hdr4me.errors import InvalidInput
from hdr4me.framework.laws import calibrate
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.law import Calibration, Parts, UniformMixture


@dataclass(frozen=True)
class TruncatedLaplace:
    """Laplace noise of scale 2 about t, cut to [-2, 2]: an odd mean, right at 0 and at both ends' chord, not affine."""

    name = "truncated"

    def _moment(self, t, power: int):
        def one(x: float) -> float:
            mass = quad(lambda z: np.exp(-abs(z - x) / 2), -2, 2, points=[x])[0]
            mean = quad(lambda z: z * np.exp(-abs(z - x) / 2), -2, 2, points=[x])[0] / mass
            if power == 1:
                return mean
            return (
                quad(lambda z: abs(z - mean) ** power * np.exp(-abs(z - x) / 2), -2, 2, points=[x])[0] / mass
            )

        return np.vectorize(one)(np.asarray(t, dtype=float))

    def mean(self, t):
        return self._moment(t, 1)

    def variance(self, t):
        return self._moment(t, 2)

    def abs_third_moment(self, t):
        return self._moment(t, 3)


def test_truncated_laplace_is_not_calibrated() -> None:
    """Its mean is affine at −1, 0 and 1 and nowhere else: three points are not enough."""
    law = TruncatedLaplace()
    low, middle, high = law.mean([-1.0, 0.0, 1.0])
    assert middle == pytest.approx((low + high) / 2, abs=1e-9)
    with pytest.raises(InvalidInput, match="not affine"):
        deviation(law, users=100, values=[0.5], calibrated=True)
    assert float(deviation(law, users=100, values=[0.5]).bias) < -0.1  # the bias is reported


class Halved(Duchi):
    """A subclass that writes its own mean and nothing else."""

    def mean(self, t):
        return np.asarray(t, dtype=float) / 2 + 0.1


class Cubed(Duchi):
    def mean(self, t):
        return np.asarray(t, dtype=float) ** 3


class Mistaken(Halved):
    @property
    def calibration(self) -> Calibration:
        return Calibration(1.0, 0.0)


def test_a_subclass_with_its_own_mean_inherits_no_calibration() -> None:
    law = Halved(1.0)
    assert law.calibration.slope == pytest.approx(0.5)
    assert law.calibration.intercept == pytest.approx(0.1)
    assert float(law.bias(1.0)) == pytest.approx(-0.4)
    dev = deviation(law, users=100, values=[1.0], calibrated=True)
    assert float(dev.bias) == 0.0
    assert float(dev.variance) == pytest.approx(4 * float(law.variance(1.0)) / 100)
    with pytest.raises(InvalidInput, match="not affine"):
        _ = Cubed(1.0).calibration


def test_a_calibration_that_contradicts_the_mean_is_refused() -> None:
    with pytest.raises(InvalidInput, match="differs from the one of its mean"):
        calibrate(Mistaken(1.0))


@pytest.mark.parametrize(
    "name", ["laplace", "scdf", "staircase", "duchi", "piecewise", "hybrid", "pm_sub", "three_outputs"]
)
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 40.0])
def test_unbiased_laws_are_their_own_calibration(name: str, epsilon: float) -> None:
    law = mechanism(name, epsilon=epsilon)
    assert calibrate(law) is law


@dataclass(frozen=True)
class Moments:
    """A law of one's own, right or wrong."""

    v: float = 1.0
    rho: float = 2.0
    name = "own"

    def mean(self, t):
        return np.asarray(t, dtype=float)

    def variance(self, t):
        return np.full_like(np.asarray(t, dtype=float), self.v)

    def abs_third_moment(self, t):
        return np.full_like(np.asarray(t, dtype=float), self.rho)


class OneNumber(Moments):
    def variance(self, t):
        return 1.0


@pytest.mark.parametrize(
    ("law", "match"),
    [(Moments(v=-1.0), "negative"), (Moments(v=np.inf), "finite"), (Moments(rho=0.5), "abs_third"),
     (OneNumber(), "one finite number")],
)  # fmt: skip
def test_moments_of_no_report_are_refused(law: Moments, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        deviation(law, users=100, prior="uniform")
    assert float(deviation(Moments(), users=100, prior="uniform").variance) > 0


def test_three_outputs_depends_on_the_size_of_the_value() -> None:
    """Its largest variance is inside the domain, and the framework finds it between the ends."""
    law = mechanism("three_outputs", epsilon=1.2)
    inside = float(law.variance(np.linspace(-1, 1, 4001)).max())
    assert inside > 1.05 * float(law.variance(0.0))
    worst = deviation(law, users=1000, variance_formula="paper")
    assert float(worst.variance) * 1000 == pytest.approx(inside, rel=2e-3)


@dataclass(frozen=True)
class Cubic(UniformMixture):
    """Reports ±1 with mean a·t³, which is biased and not affine."""

    epsilon: float
    name = "cubic"

    @property
    def bound(self) -> float:
        return 1.0

    def mean(self, t: Any) -> Any:
        return np.tanh(self.epsilon / 2) * np.asarray(t, float) ** 3

    def parts(self, t: Any) -> Parts:
        m = self.mean(t)
        return Parts(np.stack([1 - m, 1 + m]) / 2, np.stack([-1 - m, 1 - m]), np.zeros((2, *t.shape)))


def test_a_biased_law_whose_mean_is_not_affine_has_a_deviation() -> None:
    """Lemma 3 needs no affine mean: bias and variance are those of 400 simulated collections, to 5 standard errors."""
    law, values = Cubic(epsilon=1.0), np.array([0.2, 0.9, -0.4, 0.9])
    found = deviation(law, users=400, values=values)
    rng = np.random.default_rng(1)
    means = law.sample(np.tile(values, (400, 100)), rng).mean(axis=1) - values.mean()
    assert float(found.bias) == pytest.approx(means.mean(), abs=5 * means.std() / 20)
    assert float(found.sd) == pytest.approx(means.std(), rel=0.18)
    with pytest.raises(InvalidInput, match="its mean is not affine"):
        deviation(law, users=400, values=values, calibrated=True)
    assert hd.exact(law).n_levels == 2
