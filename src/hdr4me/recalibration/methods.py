"""Every method by name, as a function of the calibrated means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.framework.normal import (
    L1_THRESHOLD,
    L2_THRESHOLD,
    log_probability_all_exceed,
    probability_all_exceed,
    probability_some_exceed,
)
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.confidence import deviation_bound
from hdr4me.recalibration.inputs import Inputs, vector
from hdr4me.recalibration.james_stein import james_stein
from hdr4me.recalibration.l1 import soft_threshold
from hdr4me.recalibration.l2 import l2_weights, shrink
from hdr4me.recalibration.result import Guarantee
from hdr4me.recalibration.risk import Rule
from hdr4me.recalibration.rules import Fits, candidates
from hdr4me.recalibration.smooth import Block
from hdr4me.recalibration.sure import sure_threshold
from hdr4me.recalibration.trivial import clip, zeros

__all__ = ["METHODS", "OPTIONS", "guarantee", "localised", "rule", "weights"]

_STRUCTURE = ("order", "groups")
OPTIONS: dict[str, tuple[str, ...]] = {
    "auto": _STRUCTURE,
    "bayes": _STRUCTURE,
    "james_stein": ("towards",),
    "sure": (),
    "l1": ("z", "confidence", "simultaneous"),
    "l2": ("z", "confidence", "simultaneous", "reference"),
    "zeros": (),
    "clip": (),
    "none": (),
}
METHODS = tuple(OPTIONS)
"""Every method that `recalibrate` takes."""


def localised(options: dict[str, Any], noisy: NDArray[np.int64], n: int) -> dict[str, Any]:
    """Options with an array of references in the order of the dimensions that are worked on."""
    reference = options.get("reference")
    if reference is None or isinstance(reference, str):
        return options
    array = vector("reference", reference)
    if array.size != n:
        raise InvalidInput(f"reference has {array.size} elements but means has {n}: they must match")
    return options | {"reference": array[noisy]}


def rule(method: str, part: Inputs, fits: Fits, parts: Sequence[Block], options: dict[str, Any]) -> Rule:
    """The method as a function of the calibrated means; the paper's own work on θ̂ as it was collected."""
    s, low, high, _ = fits.problem

    def collected(x: Floats) -> Inputs:
        return part._replace(means=part.slope * x + part.bias)

    if method == "bayes":
        return candidates(fits, parts)["structure" if parts else "bayes"]
    if method == "sure":
        return lambda x: soft_threshold(x, sure_threshold(x, s) * s)
    if method == "james_stein":
        towards = options.get("towards", "zero")
        if towards not in ("zero", "mean"):
            raise InvalidInput(f"towards = {towards!r} is not allowed: use 'zero' or 'mean'")
        return lambda x: clip(james_stein(x, s, towards_mean=towards == "mean"), low, high)
    if method == "l1":
        return lambda x: soft_threshold(collected(x).means, weights("l1", collected(x), options))
    if method == "l2":
        return lambda x: shrink(collected(x).means, weights("l2", collected(x), options))
    if method == "zeros":
        return zeros
    return lambda x: clip(x, low, high) if method == "clip" else collected(x).means


def weights(method: str, part: Inputs, options: dict[str, Any]) -> Floats:
    """λ of the methods that have one, else zeros."""
    if method == "l1":
        return deviation_bound(part, **options)
    if method == "l2":
        rest = {name: value for name, value in options.items() if name != "reference"}
        return l2_weights(part, deviation_bound(part, **rest), options.get("reference", "domain"))
    if method == "sure":
        return np.asarray(sure_threshold(part.calibrated, part.calibrated_errors) * part.calibrated_errors)
    return np.zeros(part.means.size)


def guarantee(used: str, given: Inputs) -> Guarantee | None:
    """Theorem 3's or 4's probabilities, from the framework's normal deviation."""
    if used not in ("l1", "l2"):
        return None
    threshold = L1_THRESHOLD if used == "l1" else L2_THRESHOLD
    law = (given.bias, given.standard_errors, threshold)
    return Guarantee(
        threshold,
        probability_some_exceed(*law),
        probability_all_exceed(*law),
        log_probability_all_exceed(*law),
    )
