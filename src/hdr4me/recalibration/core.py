"""`recalibrate`: the one door to every method, on plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.recalibration.advice import advise
from hdr4me.recalibration.auto import Choice, choose, confirmed_margin
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.expected import Announced, error_after, error_before
from hdr4me.recalibration.inputs import Inputs, check_inputs, check_method
from hdr4me.recalibration.methods import OPTIONS, guarantee, localised, rule, weights
from hdr4me.recalibration.posterior import Belief, Posterior
from hdr4me.recalibration.result import Recalibration
from hdr4me.recalibration.risk import Reading, Rule, probes, read
from hdr4me.recalibration.rules import Fits, Problem, candidates
from hdr4me.recalibration.structure import Structure, blocks, check_structure, structured
from hdr4me.recalibration.trivial import clip

__all__ = ["recalibrate"]

# Fewer dimensions cannot tell a gain from luck: clipping, or a declared structure that the data confirm.
_FEWEST = 8
# The mean probability from which on the data confirm a declared structure.
_CONFIRMED = 0.95
# The probability of "all are zero", and the number of dimensions, from which on the data speak for it; the margin.
_NOTHING_THERE, _ENOUGH, _NOTHING_MARGIN = 0.8, 20, 1.25


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
    """Enhance collected means, given their standard errors: section V of the paper, and better.

    θ̂_j ~ N(slope_j·θ̄_j + bias_j, σ_j²). L1 and L2 work on θ̂ as it is and add |bias| to their weights, as the paper
    does; every other method undoes bias and slope first. A dimension with standard error 0 is returned as it is,
    calibrated, by every method.

    Parameters
    ----------
    means, standard_errors
        One number for each dimension; one standard error for all is allowed.
    method
        One of `METHODS`. `auto` measures the error of several rules on these data and stays with clipping where none
        is surely better.
    bias, slope
        Those of the mechanism; 0 and 1 for an unbiased one.
    domain
        Where the true means lie.
    steady_errors
        Give these if `standard_errors` were estimated from the same answers as the means: standard errors that do
        not go up and down with the means by chance, such as pooled ones. Rules and `average` intervals rely on
        them; the error after is measured with `standard_errors`. An `Estimate` gives them by itself.
    **options
        `order` and `groups` (auto, bayes): for each dimension its position on a curve, or the label of its group;
        both together give each group a curve of its own; None where a dimension has neither. `z`, or `confidence`
        (0.95) with `simultaneous` (l1, l2); `reference` = "domain", "bias", "plug-in" or an array (l2); `towards` =
        "zero" or "mean" (james_stein).

    Returns
    -------
    Recalibration
        Enhanced means, intervals, the measured error, and a line of advice.

    Raises
    ------
    InvalidInput
        For anything that is not a finite array of the right length, and for options that the method does not take.

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
    structure = check_structure(options.get("order"), options.get("groups"), given.means.size)
    noisy = np.flatnonzero(given.noisy)
    # Sorted, so that the order in which dimensions are given changes nothing, to the last bit.
    keys = (given.calibrated_errors[noisy], given.calibrated[noisy])
    ties = () if structure is None else (structure.group[noisy], structure.position[noisy])
    noisy = noisy[np.lexsort((*ties, *keys))]
    structure = None if structure is None else structure.only(noisy)
    found = _work(method, given.only(noisy), structure, localised(options, noisy, given.means.size))
    n, enhanced, λ = given.means.size, given.calibrated, np.zeros(given.means.size)
    signal = (np.abs(enhanced) > 0).astype(np.float64)
    enhanced[noisy], λ[noisy], signal[noisy] = found.enhanced, found.weights, found.signal
    share = float(signal.mean())
    after = found.after.times(1 / n)
    return Recalibration(
        method=method,
        used=found.used,
        share=found.share,
        estimated_mean=given.means,
        estimated_error=given.standard_errors,
        enhanced_mean=enhanced,
        weights=λ if found.used in ("l1", "l2", "sure") else None,
        guarantee=guarantee(found.used, given),
        expected_error_before=found.before / n,
        expected_error_after=after.value,
        expected_error_uncertainty=after.standard_error,
        expected_error_is_bound=after.bound,
        signal_share=share,
        advice=advise(
            found.used,
            before=found.before / n,
            after=after,
            best=None if found.best is None else found.best / n,
            share=found.share,
            signal_share=share,
            probabilities=None if found.posterior is None else found.posterior.probabilities,
        ),
        _calibrated=(given.calibrated, given.calibrated_errors, given.calibrated_steady),
        _posterior=found.posterior,
        _beliefs=found.beliefs,
        _noisy=noisy,
        _domain=(given.low, given.high),
    )


class _Found(NamedTuple):
    """What a method makes of the noisy dimensions; errors are sums over them."""

    used: str
    share: float
    enhanced: Floats
    weights: Floats
    signal: Floats
    before: float
    after: Announced
    best: float | None
    posterior: Posterior | None
    beliefs: Sequence[Belief] = ()


def _work(method: str, part: Inputs, structure: Structure | None, options: dict[str, Any]) -> _Found:
    """Apply a method, and `auto` beside it; measure both."""
    x, s, n = part.calibrated, part.calibrated_errors, part.means.size
    used = "clip" if method == "auto" else method
    if n == 0:
        return _Found(used, 1.0, x, x, x, 0.0, Announced(0.0, 0.0), None, None)
    steady = part.calibrated_steady
    problem = Problem(steady, part.low, part.high, float(np.clip(0.0, part.low, part.high)))
    parts = [] if structure is None else blocks(structure, steady, part.low, part.high)
    # SURE's threshold moves with all dimensions at once, like a curve.
    rank = None if structure is None else np.argsort(np.lexsort((structure.position, structure.group)))
    directions = probes(s, dependent=bool(parts) or method == "sure", rank=rank)
    fits = Fits(problem)
    posterior = fits(x)
    summary = posterior.summary()
    beliefs = structured(parts, posterior, x)
    believed = sum(belief.probability * belief.where.size for belief in beliefs) / n
    confirmed = sum(belief.confirmed * belief.where.size for belief in beliefs) / n

    def measure(rule_: Rule) -> Reading:
        return read(rule_, x, directions)

    clipped = measure(lambda y: clip(y, part.low, part.high))

    def measured(rule_used: str, reading: Reading, luck: float = 0.0, *, safe: bool) -> Announced:
        own = rule_used in ("structure", "bayes")
        model = None
        if safe or own:
            # For a posterior mean s²·∂E[θ|x]/∂x is the posterior variance; for clipping it is its error at an end.
            model = max(float(np.mean(reading.response)), 0.0)
        if own and not (parts and believed > 0.5):
            expected = float(np.mean(summary.expected_error(reading.value)))
            # A prior with one unknown, fitted to these n dimensions, costs 1/n of what it gains (James and Stein: 2/n).
            expected += max(float(np.mean(s**2)) - expected, 0.0) / n
            model = max(model or 0.0, expected)
        after = error_after(reading, part, model, luck)
        # Clipping is a projection on a set that holds the truth, and `auto` was measured to be no worse.
        most = float(np.mean(s**2)) if safe else np.inf
        return after._replace(value=min(after.value, most)).times(n)

    def chosen() -> Choice:
        # Data that leave "all are zero" likely exclude most of the means that shrinking to zero would harm.
        # Dimensions count as far as they have noise: a few noisy ones beside many exact zeros are a few.
        effective = float(np.sum(s**2)) ** 2 / float(np.sum(s**4))
        nothing = effective >= _ENOUGH and posterior.probabilities["null"] > _NOTHING_THERE
        margins = dict.fromkeys(("structure", "bayes"), _NOTHING_MARGIN) if nothing else {}
        if confirmed > _CONFIRMED:
            margins["structure"] = confirmed_margin(n)
        rules = candidates(fits, parts)
        if n < _FEWEST:
            rules = {name: rule for name, rule in rules.items() if name in margins}
        return choose(rules, clipped, x, s, measure, problem, margins)

    before, share, best = error_before(part), 1.0, None
    if method == "none":
        reading, after = Reading(part.means, s**2), Announced(before, 0.0)
    elif method == "auto":
        used, share, reading, luck = chosen()
        used, share = ("clip", 1.0) if used == "base" else (used, share)
        after = measured(used, reading, luck, safe=True)
    else:
        reading = measure(rule(method, part, fits, parts, options))
        after = measured(method, reading, safe=method == "clip")
        other = chosen()
        best = measured(other.used, other.reading, other.luck, safe=True).value
    λ = weights(method, part, options)
    return _Found(used, share, reading.value, λ, summary.signal, before, after, best, posterior, beliefs)
