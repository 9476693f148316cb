"""`recalibrate`: every method by name, on plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.errors import InvalidInput
from hdr4me.recalibration.auto import Analysis, Measured, Reading, Rule, check_structure
from hdr4me.recalibration.hdr4me import guarantee, lambda_star, shrink, soft_threshold
from hdr4me.recalibration.inputs import Floats, Inputs, alongside, check_inputs, check_method
from hdr4me.recalibration.result import Recalibration, advise
from hdr4me.recalibration.shrinkage import clip, james_stein, sure_threshold, zeros

OPTIONS: dict[str, tuple[str, ...]] = {
    "auto": ("order", "groups"),
    "bayes": ("order", "groups"),
    "james_stein": ("towards",),
    "sure": (),
    "l1": ("z", "confidence", "simultaneous"),
    "l2": ("z", "confidence", "simultaneous", "reference"),
    "zeros": (),
    "clip": (),
    "none": (),
}
METHODS = tuple(OPTIONS)
"""Every method that `recalibrate` supports."""


def recalibrate(
    means: ArrayLike,
    standard_errors: ArrayLike,
    method: str = "auto",
    *,
    bias: ArrayLike | None = None,
    slope: ArrayLike = 1.0,
    domain: tuple[float, float] = (-1.0, 1.0),
    steady_errors: ArrayLike | None = None,
    **options: Any,
) -> Recalibration:
    """Enhance collected means, given their standard errors: section V of the paper, and safer rules.

    θ̂_j ~ N(slope_j·θ̄_j + bias_j, σ_j²). L1 and L2 work on θ̂ as it is and add |bias| to their weights, as the paper
    does; every other method undoes bias and slope first. A dimension with standard error 0 is returned as it is,
    calibrated, by every method.

    Parameters
    ----------
    means, standard_errors
        One number for each dimension; one standard error for all is allowed.
    method
        One of `METHODS`. `auto` measures the error of several rules on these data and returns the clipped means where
        none is significantly better.
    bias, slope
        Those of the mechanism; 0 and 1 for an unbiased one.
    domain
        Where the true means lie.
    steady_errors
        Give these if `standard_errors` were estimated from the same answers as the means: standard errors that are not
        correlated with the means, such as pooled ones. Rules and `average` intervals use them; the error after is
        measured with `standard_errors`. An `Estimate` provides them.
    **options
        `order` and `groups` (auto, bayes): for each dimension its position on a curve, or the label of its group;
        both together give each group a curve of its own; None where a dimension has neither. `z`, or `confidence`
        (0.95) with `simultaneous` (l1, l2); `reference` = "domain", "bias", "plug-in" or an array (l2); `towards` =
        "zero" or "mean" (james_stein).

    Examples
    --------
    >>> better = recalibrate([0.02, -0.05, 0.91, 0.04], [0.05] * 4, "l1", z=2.0)
    >>> better.enhanced_mean.round(2) + 0.0
    array([0.  , 0.  , 0.81, 0.  ])
    >>> better.guarantee.probability_all < 1e-300
    True
    """
    check_method(method, options, OPTIONS)
    given = check_inputs(means, standard_errors, bias, slope, domain, steady_errors)
    n, enhanced = given.means.size, given.calibrated
    structure = check_structure(options.get("order"), options.get("groups"), n)
    noisy = np.flatnonzero(given.noisy)
    # Sorted, so that the order in which dimensions are given changes no bit.
    keys = (given.calibrated_errors[noisy], given.calibrated[noisy])
    ties = () if structure is None else (structure.group[noisy], structure.position[noisy])
    noisy = noisy[np.lexsort((*ties, *keys))]
    part = given.only(noisy)
    if not isinstance(options.get("reference", ""), str):
        options = options | {"reference": alongside("reference", options["reference"], n)[noisy]}
    used, share, before, after, best = method, 1.0, 0.0, Measured(0.0, 0.0), None
    λ, signal = np.zeros(n), (np.abs(enhanced) > 0).astype(np.float64)
    found = None
    if noisy.size:
        chosen = None if structure is None else structure.only(noisy)
        # SURE's threshold moves with all dimensions at once, like a curve.
        found = Analysis(part, chosen, dependent=method == "sure")
        before = _error_before(part)
        if method == "none":
            reading, after = Reading(part.means, part.calibrated_errors**2), Measured(before, 0.0)
        elif method == "auto":
            used, share, reading, optimism = found.choice
            after = found.error(used, reading, optimism, safe=True)
        else:
            reading = found.measure(found.bayes if method == "bayes" else rule(method, part, options))
            after = found.error(method, reading, safe=method == "clip")
            other = found.choice
            best = found.error(other.used, other.reading, other.optimism, safe=True).value / n
        enhanced[noisy], signal[noisy], λ[noisy] = (
            reading.value,
            found.signal,
            _weights(method, part, options),
        )
    used, share = ("clip", 1.0) if used in ("auto", "base") else (used, share)
    after = after.times(1 / n)
    signal_share = float(signal.mean())
    return Recalibration(
        method=method,
        used=used,
        share=share,
        estimated_mean=given.means,
        estimated_error=given.standard_errors,
        enhanced_mean=enhanced,
        weights=λ if used in ("l1", "l2", "sure") else None,
        guarantee=guarantee(used, given),
        expected_error_before=before / n,
        expected_error_after=after.value,
        expected_error_uncertainty=after.standard_error,
        expected_error_is_bound=after.bound,
        signal_share=signal_share,
        advice=advise(
            used,
            before=before / n,
            after=after,
            best=best,
            share=share,
            signal_share=signal_share,
            probabilities=None if found is None else found.posterior.probabilities,
        ),
        _calibrated=(given.calibrated, given.calibrated_errors),
        _noisy=noisy,
        _intervals=None if found is None else found.intervals,
    )


def rule(method: str, part: Inputs, options: dict[str, Any]) -> Rule:
    """A method other than `auto` and `bayes` as a function of the calibrated means.

    The paper's own methods work on θ̂ as it was collected.
    """
    s, low, high = part.calibrated_steady, part.low, part.high

    def paper(x: Floats) -> Floats:
        collected = part._replace(means=part.slope * x + part.bias)
        enhance = soft_threshold if method == "l1" else shrink
        return enhance(collected.means, lambda_star(method, collected, options))

    if method in ("l1", "l2"):
        return paper
    if method == "sure":
        return lambda x: soft_threshold(x, sure_threshold(x, s) * s)
    if method == "james_stein":
        towards = options.get("towards", "zero")
        if towards not in ("zero", "mean"):
            raise InvalidInput(f"towards = {towards!r} is not allowed: use 'zero' or 'mean'")
        return lambda x: clip(james_stein(x, s, towards_mean=towards == "mean"), low, high)
    return zeros if method == "zeros" else lambda x: clip(x, low, high)


def _weights(method: str, part: Inputs, options: dict[str, Any]) -> Floats:
    """λ* of the methods that have one, otherwise zeros."""
    if method in ("l1", "l2"):
        return lambda_star(method, part, options)
    if method == "sure":
        return np.asarray(sure_threshold(part.calibrated, part.calibrated_errors) * part.calibrated_errors)
    return np.zeros(part.means.size)


def _error_before(part: Inputs) -> float:
    """Σ E(θ̂_j − θ̄_j)² of the means as they were given: σ² + bias², and with a slope an unbiased estimate."""
    off = (part.slope - 1) * part.calibrated + part.bias
    shift = off**2 - ((part.slope - 1) * part.calibrated_errors) ** 2
    return float(np.sum(part.standard_errors**2) + max(float(shift.sum()), 0.0))
