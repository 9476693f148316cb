"""HDR4ME, the protocol of the paper (section V): the enhanced mean θ* from the estimated mean θ̂.

In each dimension θ*_j = argmin ½(θ − θ̂_j)² + R(λ*_j, θ), solved in one step:

    L1, R = λ*|θ|   λ*_j = sup|θ̂_j − θ̄_j|               θ*_j = sign(θ̂_j)·max(|θ̂_j| − λ*_j, 0)   Lemma 4, Theorem 3
    L2, R = λ*θ²    λ*_j = sup|θ̂_j − θ̄_j|/(2|θ̄_j|)      θ*_j = θ̂_j/(2λ*_j + 1)                  Lemma 5, Theorem 4

Two quantities have to be chosen. The supremum of a normal deviation is infinite, so `deviation_bound` uses a quantile.
The true mean |θ̄_j| in the weight of L2 is unknown, so a `reference` replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.errors import InvalidInput
from hdr4me.framework import normal
from hdr4me.recalibration.inputs import (
    Floats,
    Inputs,
    alongside,
    check_inputs,
    check_method,
    check_probability,
)

OPTIONS = {"l1": ("z", "confidence", "simultaneous"), "l2": ("z", "confidence", "simultaneous", "reference")}


def soft_threshold(means: Floats, weights: Floats) -> Floats:
    """L1: θ*_j = sign(θ̂_j)·max(|θ̂_j| − λ*_j, 0); increases the error if |θ̄|/σ > 1.28, 1.05, 1.006 (z = 1, 2, 3)."""
    return np.asarray(np.sign(means) * np.maximum(np.abs(means) - weights, 0.0))


def shrink(means: Floats, weights: Floats) -> Floats:
    """L2: θ*_j = θ̂_j / (2λ*_j + 1)."""
    return np.asarray(means / (2 * weights + 1))


def deviation_bound(
    inputs: Inputs, *, z: float | None = None, confidence: float = 0.95, simultaneous: bool = False
) -> Floats:
    """|bias_j| + z·σ_j for sup|θ̂_j − θ̄_j|; z is given or a two-sided quantile, per dimension or joint (Šidák)."""
    if z is None:
        p = check_probability("confidence", confidence)
        z = float(normal.tolerance_for(1.0, p, n=inputs.means.size if simultaneous else 1))
    elif not (isinstance(z, (int, float)) and math.isfinite(z) and z >= 0):
        raise InvalidInput(f"z = {z!r} is not allowed: it must be a finite non-negative number")
    return np.abs(inputs.bias) + z * inputs.standard_errors


def l2_weights(inputs: Inputs, bound: Floats, reference: str | ArrayLike) -> Floats:
    """The weights of L2: λ*_j = bound_j / (2·reference_j).

    - `"bias"`, as in the paper: the mean of the deviation. For an unbiased mechanism it is 0, λ* is infinite and
      θ* = 0. The error increases if |θ̄| > σ.
    - `"domain"`: the largest |θ| of the domain. On [−1, 1] the error increases if θ̄² > 2σ/z + σ².
    - `"plug-in"`: |θ̂_j|, at most the largest |θ| of the domain. Then θ* = θ̂·|θ̂|/(|θ̂| + bound), a soft threshold that
      does not reach zero; the error increases about where that of L1 does.
    - an array of guesses of |θ̄_j|.
    """
    largest = max(abs(inputs.low), abs(inputs.high))
    if not isinstance(reference, str):
        guess = np.abs(alongside("reference", reference, bound.size))
    elif reference == "domain":
        guess = np.full_like(bound, largest)
    elif reference == "bias":
        guess = np.abs(inputs.bias)
    elif reference == "plug-in":
        guess = np.minimum(np.abs(inputs.means), largest)
    else:
        raise InvalidInput.of("reference", reference, "use 'domain', 'bias', 'plug-in' or an array")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bound > 0, bound / (2 * guess), 0.0)


def lambda_star(method: str, inputs: Inputs, options: Mapping[str, Any]) -> Floats:
    """λ* of `method` "l1" or "l2" under the options of `recalibrate`."""
    rest = {name: value for name, value in options.items() if name != "reference"}
    bound = deviation_bound(inputs, **rest)
    return bound if method == "l1" else l2_weights(inputs, bound, options.get("reference", "domain"))


def enhance(
    means: ArrayLike,
    standard_errors: ArrayLike,
    method: str = "l1",
    *,
    bias: ArrayLike | None = None,
    domain: tuple[float, float] = (-1.0, 1.0),
    **options: Any,
) -> Floats:
    """The enhanced mean θ* of L1 or L2 alone, without the measured error and the advice of `recalibrate`.

    Parameters
    ----------
    means, standard_errors
        One number for each dimension; one standard error for all is allowed.
    method
        "l1" or "l2".
    bias, domain
        The bias of the mechanism, and the interval that contains the true means.
    **options
        `z`, or `confidence` (0.95) with `simultaneous`; `reference` for L2.

    Examples
    --------
    >>> enhance([0.02, -0.05, 0.91, 0.04], 0.05, "l1", z=2.0).round(2) + 0.0
    array([0.  , 0.  , 0.81, 0.  ])
    """
    check_method(method, options, OPTIONS)
    inputs = check_inputs(means, standard_errors, bias, 1.0, domain)
    weights = lambda_star(method, inputs, options)
    return (soft_threshold if method == "l1" else shrink)(inputs.means, weights)


@dataclass(frozen=True)
class Guarantee:
    """The two probabilities of Theorem 3 (L1, threshold 1) or Theorem 4 (L2, threshold 2)."""

    threshold: float
    probability_some: float
    """P(at least one dimension deviates by more): the probability in the theorem."""
    probability_all: float
    """P(every dimension deviates by more): the premise of the proof."""

    def __str__(self) -> str:
        return (
            f"P(some deviation > {self.threshold:g}) = {self.probability_some:.3g} (printed in the theorem), "
            f"P(all > {self.threshold:g}) = {self.probability_all:.3g} (needed by its proof)"
        )


def guarantee(method: str, inputs: Inputs) -> Guarantee | None:
    """The probabilities under the normal deviation; None for methods other than L1 and L2."""
    if method not in ("l1", "l2"):
        return None
    threshold = normal.L1_THRESHOLD if method == "l1" else normal.L2_THRESHOLD
    law = (inputs.bias, inputs.standard_errors, threshold)
    return Guarantee(threshold, normal.probability_some_exceed(*law), normal.probability_all_exceed(*law))
