"""`recalibrate`: the one door to every method, on plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.errors import InvalidInput
from hdr4me.framework.enhancement import (
    L1_THRESHOLD,
    L2_THRESHOLD,
    log_probability_all_exceed,
    probability_all_exceed,
    probability_some_exceed,
)
from hdr4me.recalibration.advice import advise
from hdr4me.recalibration.auto import choose
from hdr4me.recalibration.bayes import fit_posterior
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.confidence import deviation_bound
from hdr4me.recalibration.expected import error_after, error_before
from hdr4me.recalibration.inputs import Inputs, check_inputs, check_method
from hdr4me.recalibration.james_stein import james_stein
from hdr4me.recalibration.l1 import soft_threshold
from hdr4me.recalibration.l2 import l2_weights, shrink
from hdr4me.recalibration.result import Guarantee, Recalibration
from hdr4me.recalibration.sure import sure_threshold
from hdr4me.recalibration.trivial import clip, zeros

__all__ = ["METHODS", "OPTIONS", "recalibrate"]

OPTIONS: dict[str, tuple[str, ...]] = {
    "auto": (),
    "bayes": (),
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


def recalibrate(
    means: ArrayLike,
    standard_errors: ArrayLike,
    method: str = "auto",
    *,
    bias: ArrayLike | None = None,
    slope: ArrayLike = 1.0,
    domain: tuple[float, float] = (-1.0, 1.0),
    **options: Any,
) -> Recalibration:
    """Enhance collected means, given their standard errors: section V of the paper, and better.

    θ̂_j ~ N(slope_j·θ̄_j + bias_j, σ_j²). L1 and L2 work on θ̂ as it is and add |bias| to their weights, as the paper
    does; `james_stein`, `sure`, `bayes` and `auto` undo bias and slope first. A dimension with standard error 0 is
    returned as it is, calibrated, by every method.

    Options: `z` | `confidence` (0.95) with `simultaneous` (l1, l2); `reference` = "domain" | "bias" | "plug-in" |
    an array (l2); `towards` = "zero" | "mean" (james_stein).

    >>> better = recalibrate([0.02, -0.05, 0.91, 0.04], [0.05] * 4, "l1", z=2.0)
    >>> better.enhanced_mean.round(2) + 0.0
    array([0.  , 0.  , 0.81, 0.  ])
    >>> better.guarantee.probability_all < 1e-300
    True
    """
    check_method(method, options, OPTIONS)
    given = check_inputs(means, standard_errors, bias, slope, domain)
    noisy = given.noisy
    enhanced, weights = given.calibrated, np.zeros(given.means.size)
    spread_error = np.zeros(given.means.size)
    signal = (np.abs(enhanced) > 0).astype(np.float64)
    used, posterior, best, before = choose(int(noisy.sum())) if method == "auto" else method, None, 0.0, 0.0
    if noisy.any():
        part = given.only(noisy)
        x, s = part.calibrated, part.calibrated_errors
        null = float(np.clip(0.0, given.low, given.high))
        posterior = fit_posterior(x, s, given.low, given.high, null)
        summary = posterior.summary()
        if used == "bayes":
            answer: Floats = summary.mean
        else:
            answer, weights[noisy] = _apply(used, part, options)
        enhanced[noisy] = answer
        spread_error[noisy] = error_after(used, part, answer, summary, safe=method == "auto")
        signal[noisy] = summary.signal
        safe = choose(x.size)
        safe_answer = summary.mean if safe == "bayes" else _apply(safe, part, {})[0]
        best = _mean(error_after(safe, part, safe_answer, summary, safe=True), noisy.size)
        before = _mean(error_before(part, summary), noisy.size)
    # One way of summing for both, so that equal errors have equal means to the last bit.
    after = _mean(spread_error[noisy], noisy.size)
    share = float(signal.mean())
    return Recalibration(
        method=method,
        used=used,
        estimated_mean=given.means,
        standard_error=given.standard_errors,
        enhanced_mean=enhanced,
        posterior_sd=np.sqrt(spread_error),
        weights=weights if used in ("l1", "l2", "sure") else None,
        guarantee=_guarantee(used, given),
        expected_error_before=before,
        expected_error_after=after,
        signal_share=share,
        advice=advise(
            used,
            before=before,
            after=after,
            best=None if method == "auto" else best,
            signal_share=share,
            probabilities=None if posterior is None else posterior.probabilities,
        ),
        _calibrated=(given.calibrated, given.calibrated_errors),
        _posterior=posterior,
        _noisy=noisy,
        _domain=(given.low, given.high),
    )


def _mean(errors: Floats, n_dims: int) -> float:
    """Over all dimensions, the exactly known ones included."""
    return float(errors.sum()) / n_dims


def _apply(used: str, part: Inputs, options: dict[str, Any]) -> tuple[Floats, Floats]:
    """Enhanced means and weights of a method that is not Bayesian."""
    x, s = part.calibrated, part.calibrated_errors
    nothing = np.zeros(x.size)
    if used == "l1":
        weights = deviation_bound(part, **options)
        return soft_threshold(part.means, weights), weights
    if used == "l2":
        rest = {name: value for name, value in options.items() if name != "reference"}
        weights = l2_weights(part, deviation_bound(part, **rest), options.get("reference", "domain"))
        return shrink(part.means, weights), weights
    if used == "sure":
        weights = sure_threshold(x, s) * s
        return soft_threshold(x, weights), weights
    if used == "james_stein":
        towards = options.get("towards", "zero")
        if towards not in ("zero", "mean"):
            raise InvalidInput(f"towards = {towards!r} is not allowed: use 'zero' or 'mean'")
        shrunk = james_stein(x, s, towards_mean=towards == "mean")
        return clip(shrunk, part.low, part.high), nothing
    if used == "clip":
        return clip(x, part.low, part.high), nothing
    return (zeros(x) if used == "zeros" else part.means.copy()), nothing


def _guarantee(used: str, given: Inputs) -> Guarantee | None:
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
