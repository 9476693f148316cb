"""HDR4ME with L2: proportional shrinkage (Lemma 5, Theorem 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.errors import InvalidInput
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.inputs import Inputs, vector

__all__ = ["REFERENCES", "l2_weights", "shrink"]

REFERENCES = ("domain", "bias", "plug-in")


def l2_weights(inputs: Inputs, bound: Floats, reference: str | ArrayLike) -> Floats:
    """λ_j = sup|θ̂_j − θ̄_j| / (2·reference_j), with a reference in the place of the unknown |θ̄_j|.

    - `"bias"`, the paper's words: the mean of the deviation's normal. For an unbiased mechanism it is 0, λ is infinite
      and θ* = 0: harmful iff |θ̄| > σ.
    - `"domain"`: the largest |θ| of the domain. Harmful, on [−1, 1], iff θ̄² > 2σ/z + σ².
    - `"plug-in"`: |θ̂_j|, no more than the domain's largest. Then θ* = θ̂·|θ̂|/(|θ̂| + sup): a soft threshold that
      never quite reaches zero, harmful like L1.
    - an array of the caller's own guesses of |θ̄_j|.
    """
    largest = max(abs(inputs.low), abs(inputs.high))
    if isinstance(reference, str):
        if reference not in REFERENCES:
            raise InvalidInput(
                f"reference = {reference!r} is not allowed: use {', '.join(map(repr, REFERENCES))} or an array"
            )
        guess = {
            "domain": np.full_like(bound, largest),
            "bias": np.abs(inputs.bias),
            "plug-in": np.minimum(np.abs(inputs.means), largest),
        }[reference]
    else:
        guess = np.abs(vector("reference", reference))
        if guess.size != bound.size:
            raise InvalidInput(
                f"reference has {guess.size} elements but means has {bound.size}: they must match"
            )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bound > 0, bound / (2 * guess), 0.0)


def shrink(means: Floats, weights: Floats) -> Floats:
    """θ*_j = θ̂_j / (2λ_j + 1): argmin of ½(θ − θ̂)² + λθ², in one step.

    >>> shrink(np.array([3.0, 1.0]), np.array([1.0, np.inf]))
    array([1., 0.])
    """
    return np.asarray(means / (2 * weights + 1))
