"""Errors before and after, as they are announced: measured where the data can tell, bounded by the domain where not."""

from __future__ import annotations

import numpy as np

from hdr4me.recalibration.inputs import Inputs
from hdr4me.recalibration.risk import Measured, Reading, difference, risk

__all__ = ["error_after", "error_before"]


def error_before(part: Inputs) -> float:
    """Σ E(θ̂_j − θ̄_j)² of the means as they were given: σ² + bias², and with a slope an unbiased estimate."""
    off = (part.slope - 1) * part.calibrated + part.bias
    shift = off**2 - ((part.slope - 1) * part.calibrated_errors) ** 2
    return float(np.sum(part.standard_errors**2) + max(float(shift.sum()), 0.0))


def error_after(reading: Reading, part: Inputs, model: float | None, base: Reading | None) -> Measured:
    """The mean squared error of an answer, measured on the data.

    `model` is the error that the fitted prior expects. Where Stein's estimate confirms it to within one standard error
    it is the more precise of the two and is announced; elsewhere the measurement is. Where noise far exceeds the
    domain no measurement tells anything, and what is announced tends to the error of the farthest truth in the
    domain. No error is below the variance of the answer. `base` is given for a rule that was chosen because its
    measured gain over the base is large: the gain D is then announced as D·D²/(D² + se²), for the chosen are lucky.
    """
    x, s = part.calibrated, part.calibrated_errors
    value, error = risk(reading, x, s)
    if model is not None and abs(value - model) <= error:
        value = model
    elif base is not None:
        gap = difference(reading, base, x, s)
        if gap.value < 0:
            value -= gap.value * gap.standard_error**2 / (gap.value**2 + gap.standard_error**2)
    variance = float(np.mean((reading.response / s) ** 2))
    farthest = np.maximum(np.abs(reading.value - part.low), np.abs(reading.value - part.high))
    most = float(np.mean(farthest**2)) + variance
    value = float(np.clip(value, min(variance, float(np.mean(s**2))), most))
    half = 0.5 * (part.high - part.low)
    trust = 1 / (1 + (error / (0.5 * half**2)) ** 8)
    return Measured(trust * value + (1 - trust) * most, min(error, most))
