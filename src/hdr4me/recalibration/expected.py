"""Errors before and after, as they are announced: measured where the data can tell, bounded by the domain where not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hdr4me.recalibration.inputs import Inputs
from hdr4me.recalibration.risk import Reading, difference, risk

__all__ = ["Announced", "error_after", "error_before"]


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


def error_after(reading: Reading, part: Inputs, model: float | None, base: Reading | None) -> Announced:
    """The mean squared error of an answer, measured on the data.

    `model` is the error that a prior expects: it is precise, and true if the prior is. Stein's estimate S is true
    whatever the means are, and has a standard error. What is announced is model + D·D²/(D² + se²) with D = S − model:
    the model where the measurement confirms it, the measurement where it contradicts it. No error is negative, so
    neither is S here. Without a model it is S. `base` is given for a rule that was chosen because its measured gain
    over the base is large: the gain G counts as G·G²/(G² + se²) in S, for the chosen are lucky. Where noise far
    exceeds the domain no measurement tells anything, and what is announced is the error of the farthest truth in the
    domain: an upper bound.
    """
    x, s = part.calibrated, part.calibrated_errors
    value, error = risk(reading, x, s)
    if base is not None:
        gap = difference(reading, base, x, s)
        if gap.value < 0:
            value += _confirmed(gap.value, gap.standard_error) - gap.value
    value = max(value, 0.0)
    if model is not None:
        value = model + _confirmed(value - model, error)
    # No truth in the domain is farther from this answer.
    farthest = np.maximum(np.abs(reading.value - part.low), np.abs(reading.value - part.high))
    most = float(np.mean(farthest**2))
    half = 0.5 * (part.high - part.low)
    if error > 0.5 * half**2:
        return Announced(most, most, bound=True)
    return Announced(min(value, most), min(error, most))


def _confirmed(difference: float, standard_error: float) -> float:
    """A measured difference as far as it exceeds its standard error: D·D²/(D² + se²).

    >>> [round(_confirmed(d, 1.0), 2) for d in (0.2, 1.0, 3.0)]
    [0.01, 0.5, 2.7]
    """
    total = difference**2 + standard_error**2
    return difference**3 / total if total > 0 else 0.0
