"""What a re-calibration returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.inputs import check_probability
from hdr4me.recalibration.posterior import Posterior

__all__ = ["Guarantee", "Recalibration"]


@dataclass(frozen=True)
class Guarantee:
    """Theorem 3 (L1, threshold 1) or 4 (L2, threshold 2): two probabilities, named for what they are."""

    threshold: float
    probability_some: float
    """P(at least one dimension deviates by more): what the theorem prints."""
    probability_all: float
    """P(every dimension does): the premise that the theorem's proof uses."""
    log_probability_all: float

    def __str__(self) -> str:
        return (
            f"P(some deviation > {self.threshold:g}) = {self.probability_some:.3g} (what the theorem prints), "
            f"P(all > {self.threshold:g}) = {self.probability_all:.3g} (what its proof needs)"
        )


@dataclass(frozen=True)
class Recalibration:
    """Enhanced means, and what is known about them. Arrays have one element per dimension, on the domain."""

    method: str
    """What was asked for."""
    used: str
    """What was done: `auto` names its choice here."""
    estimated_mean: Floats
    standard_error: Floats
    enhanced_mean: Floats
    posterior_sd: Floats
    """Root of the expected squared error of `enhanced_mean`, given all the data."""
    weights: Floats | None
    """λ*, for methods that have one."""
    guarantee: Guarantee | None
    expected_error_before: float
    expected_error_after: float
    """Mean over dimensions of the expected squared error."""
    signal_share: float
    """Expected share of the dimensions with |θ̄_j| > σ_j."""
    advice: str
    _calibrated: tuple[Floats, Floats] = field(repr=False)
    _posterior: Posterior | None = field(repr=False)
    _noisy: NDArray[np.bool_] = field(repr=False)
    _domain: tuple[float, float] = field(repr=False)

    @property
    def harm(self) -> float:
        """Expected error after over before; above 1 the re-calibration harms."""
        if self.expected_error_before == 0:
            return 1.0 if self.expected_error_after == 0 else float("inf")
        return self.expected_error_after / self.expected_error_before

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Intervals for the true means that hold `level` of them, averaged over dimensions.

        Credible ones where the method is Bayesian. The other methods have none of their own: theirs are the
        normal intervals of the calibrated estimate before re-calibration, cut to the domain.
        """
        check_probability("level", level)
        x, s = self._calibrated
        half = float(ndtri(0.5 * (1 + level))) * s
        low, high = (np.clip(end, *self._domain) for end in (x - half, x + half))
        noisy = self._noisy
        if self._posterior is not None and self.used == "bayes":
            low[noisy], high[noisy] = self._posterior.interval(level)
        low[~noisy], high[~noisy] = x[~noisy], x[~noisy]
        return low, high
