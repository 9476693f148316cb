"""The shipped check accepts every law of ours, and finds a part of a law that disagrees with the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.checks import check_mechanism
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.piecewise import Piecewise
from hdr4me.mechanisms.registry import built_in


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("name", built_in())
def test_every_law_passes(name: str, epsilon: float) -> None:
    check_mechanism(hd.mechanism(name, epsilon=epsilon), draws=20_000)


class SevenEverywhere(Piecewise):
    def density(self, x: Any, t: Any) -> Any:
        return np.full(np.broadcast(x, t).shape, 7.0)


class NarrowDensity(Laplace):
    def noise_density(self, z: Any) -> Any:
        return 2 * super().noise_density(2 * z)


class WrongCdf(Piecewise):
    def cdf(self, x: Any, t: Any) -> Any:
        return super().cdf(x, t) ** 1.05


class WrongCdfOfAtoms(Duchi):
    def cdf(self, x: Any, t: Any) -> Any:
        return super().cdf(x, 0.9 * np.asarray(t))


class WrongMean(Laplace):
    def mean(self, t: Any) -> Any:
        return 0.9 * np.asarray(t)


class WrongVariance(Laplace):
    def variance(self, t: Any) -> Any:
        return 1.01 * super().variance(t)


class WrongThirdMoment(Laplace):
    def abs_third_moment(self, t: Any) -> Any:
        return 0.001 * super().abs_third_moment(t)


class OtherDraws(Laplace):
    """The same mean and variance, but normal: what is near the value is less probable than the density says."""

    def sample(self, t: Any, rng: Any) -> Any:
        return np.asarray(t) + rng.normal(0.0, self.noise_variance**0.5, np.shape(t))


class OpenDraws(Piecewise):
    """One report in fifty is the value itself."""

    def sample(self, t: Any, rng: Any) -> Any:
        return np.where(rng.random(np.shape(t)) < 0.02, t, super().sample(t, rng))


class DrawsOfNeighbours(Laplace):
    """Every value alone is drawn well; beside others, their mean shows."""

    def sample(self, t: Any, rng: Any) -> Any:
        return super().sample(np.full(np.shape(t), np.mean(t)), rng)


class DrawsInPairs(Laplace):
    """Two neighboring users have the same noise."""

    def sample(self, t: Any, rng: Any) -> Any:
        noise = super().sample(np.zeros((np.size(t) + 1) // 2), rng)
        return np.asarray(t) + np.repeat(noise, 2)[: np.size(t)]


class Overspent(Laplace):
    """All parts agree, for twice the budget."""

    @property
    def scale(self) -> float:
        return 1.0 / self.epsilon


class OverspentAtoms(Duchi):
    """All parts agree, for twice the budget."""

    def parts(self, t: Any) -> Any:
        return Duchi(epsilon=2 * self.epsilon).parts(t)

    @property
    def support(self) -> tuple[float, float]:
        return Duchi(epsilon=2 * self.epsilon).support


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (SevenEverywhere, "do not add up to the cdf"),
        (NarrowDensity, "do not add up to the cdf"),
        (WrongCdf, "do not add up to the cdf"),
        (WrongCdfOfAtoms, "do not add up to the cdf"),
        (WrongMean, "mean"),
        (WrongVariance, "variance"),
        (WrongThirdMoment, "third absolute moment"),
        (OtherDraws, "the samples do not follow the cdf"),
        (OpenDraws, "the samples do not follow the cdf"),
        (DrawsOfNeighbours, "the samples do not follow the cdf"),
        (DrawsInPairs, "samples of different users are not independent"),
        (Overspent, "the ratio of two densities"),
        (OverspentAtoms, "times as probable"),
    ],
)
def test_a_part_that_disagrees_is_found(wrong: Any, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_mechanism(wrong(epsilon=1.0))
