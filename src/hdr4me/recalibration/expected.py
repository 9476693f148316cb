"""Errors before and after, as they are announced: measured where the data can tell, bounded by the domain where not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hdr4me.recalibration.inputs import Inputs
from hdr4me.recalibration.risk import Measured, Reading, risk

__all__ = ["Announced", "believed", "error_after", "error_before"]


_LEAST_OF_MODEL = 0.75


class Announced(NamedTuple):
    """An expected squared error, its standard error as a measurement, and whether it is an upper bound instead."""

    value: float
    standard_error: float
    bound: bool = False

    def times(self, factor: float) -> Announced:
        """The same for a sum or a mean over dimensions.

        >>> Announced(0.5, 0.1).times(2)
        Announced(value=1.0, standard_error=0.2, bound=False)
        """
        return Announced(factor * self.value, factor * self.standard_error, self.bound)


def error_before(part: Inputs) -> float:
    """Σ E(θ̂_j − θ̄_j)² of the means as they were given: σ² + bias², and with a slope an unbiased estimate."""
    off = (part.slope - 1) * part.calibrated + part.bias
    shift = off**2 - ((part.slope - 1) * part.calibrated_errors) ** 2
    return float(np.sum(part.standard_errors**2) + max(float(shift.sum()), 0.0))


def error_after(reading: Reading, part: Inputs, model: float | None, luck: float) -> Announced:
    """The mean squared error of an answer, measured on the data.

    `luck` is what the measured gain of a chosen rule is too large by. Where noise far exceeds the domain no measurement
    tells anything, and what is announced is the error of the farthest truth in the domain: an upper bound.
    """
    found = risk(reading, part.calibrated, part.calibrated_errors)
    # No truth in the domain is farther from this answer.
    farthest = np.maximum(np.abs(reading.value - part.low), np.abs(reading.value - part.high))
    most = float(np.mean(farthest**2))
    half = 0.5 * (part.high - part.low)
    if found.standard_error > 0.5 * half**2:
        return Announced(most, most, bound=True)
    value = believed(Measured(found.value + luck, found.standard_error), model)
    return Announced(min(value, most), min(found.standard_error, most))


def believed(measured: Measured, model: float | None) -> float:
    """A measured error S and the error that a model expects, put together: model + D·D²/(D² + se²), D = S − model.

    The model is precise, and true if its prior is. Stein's estimate S is true whatever the means are, and has a
    standard error. So the model counts where the measurement confirms it, the measurement where it contradicts it. No
    error is negative, so neither is S here. Means of few skewed answers make S too small, so that three quarters of the
    model's error are the least that is told. Without a model it is S.

    >>> [round(believed(Measured(s, 1.0), 2.0), 2) for s in (-1.0, 2.2, 3.0, 5.0)]
    [1.5, 2.01, 2.5, 4.7]
    """
    value, error = max(measured.value, 0.0), measured.standard_error
    if model is None:
        return value
    gap = value - model
    total = gap**2 + error**2
    return max(model + (gap**3 / total if total > 0 else 0.0), _LEAST_OF_MODEL * model)
