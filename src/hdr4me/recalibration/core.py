"""`recalibrate`: every method by name, on plain arrays; its result, and the sentence that describes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput
from hdr4me.pages.counted import counted
from hdr4me.recalibration.auto import Analysis, Intervals, Measured, Reading, Rule, check_structure
from hdr4me.recalibration.hdr4me import Guarantee, guarantee, lambda_star, shrink, soft_threshold
from hdr4me.recalibration.inputs import (
    Floats,
    Inputs,
    alongside,
    check_inputs,
    check_method,
    check_probability,
)
from hdr4me.recalibration.shrinkage import james_stein, sure_threshold

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
KINDS = ("conservative", "average", "credible")
_NAMES = {
    "l1": "HDR4ME L1",
    "l2": "HDR4ME L2",
    "zeros": "All zeros",
    "clip": "Clipping to the domain",
    "james_stein": "James–Stein shrinkage",
    "sure": "SURE-tuned soft threshold",
    "james_stein_mean": "James–Stein shrinkage towards the mean",
    "bayes": "Hierarchical Bayes",
    "bayes_by_noise": "Hierarchical Bayes for each level of noise",
    "structure": "Declared structure averaged with hierarchical Bayes",
    "none": "Nothing was changed",
}
_MODELS = {
    "null": "no dimension differs from zero by more than the noise explains",
    "centered": "some means stand out from zero",
    "free": "the means gather around a common value",
    "smooth": "the means follow a smooth distribution",
    "sharp": "the means gather in a few values",
}
# Expected errors are estimates; a smaller difference than this is not reported.
_TOLERANCE = 1.05


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
        enhanced[noisy], signal[noisy] = reading.value, found.signal
        if method in ("l1", "l2"):
            λ[noisy] = lambda_star(method, part, options)
        elif method == "sure":
            λ[noisy] = sure_threshold(part.calibrated, part.calibrated_errors) * part.calibrated_errors
    used, share = ("clip", 1.0) if used in ("auto", "base") else (used, share)
    after = after.times(1 / n)
    made = Recalibration(
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
        signal_share=float(signal.mean()),
        _calibrated=(given.calibrated, given.calibrated_errors),
        _noisy=noisy,
        _intervals=None if found is None else Intervals(part, found.posterior, found.beliefs),
    )
    return replace(made, advice=_advise(made, best, {} if found is None else found.posterior.probabilities))


def rule(method: str, part: Inputs, options: dict[str, Any]) -> Rule:
    """A method other than `auto` and `bayes` as a function of the calibrated means; L1 and L2 work on θ̂ itself."""
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
        return lambda x: np.clip(james_stein(x, s, towards_mean=towards == "mean"), low, high)
    return np.zeros_like if method == "zeros" else lambda x: np.clip(x, low, high)


def _error_before(part: Inputs) -> float:
    """Σ E(θ̂_j − θ̄_j)² of the means as they were given: σ² + bias², and with a slope an unbiased estimate."""
    off = (part.slope - 1) * part.calibrated + part.bias
    shift = off**2 - ((part.slope - 1) * part.calibrated_errors) ** 2
    return float(np.sum(part.standard_errors**2) + max(float(shift.sum()), 0.0))


def check_kind(kind: str) -> str:
    """A known kind of interval."""
    if kind not in KINDS:
        raise InvalidInput.of("kind", kind, f"use one of {', '.join(KINDS)}")
    return kind


def harms(before: float, after: float) -> str | None:
    """How much larger the error is after, in words; None if it is not."""
    if after <= _TOLERANCE * before:
        return None
    return f"{after / before:.1f} times worse" if before > 0 else "worse"


def _advise(found: Recalibration, best: float | None, probabilities: dict[str, float]) -> str:
    """The advice; `best` is the error of `auto` (None: this is `auto`, or needs none)."""
    line, before, after = _NAMES[found.used], found.expected_error_before, found.expected_error_after
    if found.used == "bayes" and probabilities:
        model = max(probabilities, key=lambda name: probabilities[name])
        line += f" ({_MODELS[model]}, weight {probabilities[model]:.2f})"
    if found.share < 1 and found.used != "clip":
        line += f", {100 * found.share:.0f} % of it"
    uncertainty = 0.0 if found.used == "clip" else found.expected_error_uncertainty
    errors = f"{before:.3g} before, {after:.3g}{f' ± {uncertainty:.1g}' if uncertainty else ''} after"
    worse = harms(before, after)
    if found.expected_error_is_bound:  # a bound above the error before is no measured harm
        line += f": expected error {before:.3g} before, at most {after:.3g} after"
    else:
        line += f" HARMS here: expected error {errors} ({worse})" if worse else f": expected error {errors}"
    if best is not None and after > _TOLERANCE * best:
        line += f"; auto would give {'at most ' if found.expected_error_is_bound else ''}{best:.3g}"
    return f"{line}. The signal exceeds the noise in {100 * found.signal_share:.0f} % of the dimensions."


@dataclass(frozen=True, repr=False)
class Recalibration:
    """Enhanced means, and what is known about them. Arrays have one element per dimension, on the domain.

    Parameters
    ----------
    method, used, share
        The method that was requested, the one that was applied, and its share in the answer. `auto` names its choice,
        and the rest is clipping; the share is 1 for every other method.
    estimated_mean, estimated_error
        Means and standard errors as they were given.
    enhanced_mean, weights
        The means after re-calibration, and λ* of the methods that have one.
    guarantee
        The two probabilities of Theorem 3 or 4, for L1 and L2.
    expected_error_before, expected_error_after, expected_error_uncertainty
        Mean over dimensions of the squared error: before from the standard errors, after measured on these data, and
        the standard error of this measurement.
    expected_error_is_bound
        Whether the error after is an upper bound, because the noise far exceeds the domain.
    signal_share
        Expected share of the dimensions with |θ̄_j| > σ_j.
    advice
        The same in a sentence.

    Examples
    --------
    >>> found = recalibrate([0.5, -0.5, 0.01], 0.1, method="clip")
    >>> found.used, found.enhanced_mean.tolist()
    ('clip', [0.5, -0.5, 0.01])
    """

    method: str
    used: str
    share: float
    estimated_mean: Floats
    estimated_error: Floats
    enhanced_mean: Floats
    weights: Floats | None
    guarantee: Guarantee | None
    expected_error_before: float
    expected_error_after: float
    expected_error_uncertainty: float
    expected_error_is_bound: bool
    signal_share: float
    _calibrated: tuple[Floats, Floats] = field(repr=False)
    _noisy: NDArray[np.int64] = field(repr=False)
    _intervals: Intervals | None = field(repr=False)
    advice: str = ""

    def __repr__(self) -> str:
        return (
            f"<Recalibration of {counted(len(self.enhanced_mean), 'dimension')} by {self.used}: mean squared error "
            f"{self.expected_error_before:.3g} before, {self.expected_error_after:.3g} after>"
        )

    def _repr_html_(self) -> str:
        from hdr4me.pages import html

        low, high = self.interval()
        columns = ("dimension", "before", "s.e. before", "after", "lower", "upper")
        arrays = (self.estimated_mean, self.estimated_error, self.enhanced_mean, low, high)
        rows = [(str(j), *(float(x[j]) for x in arrays)) for j in range(min(30, len(self.enhanced_mean)))]
        return html.paragraph(repr(self)[1:-1] + ". " + self.advice) + html.table(columns, rows)

    @property
    def error_ratio(self) -> float:
        """Error after over before; above 1 the re-calibration harms."""
        if self.expected_error_before == 0:
            return 1.0 if self.expected_error_after == 0 else float("inf")
        return self.expected_error_after / self.expected_error_before

    @property
    def standard_error(self) -> Floats | None:
        """Standard errors of `enhanced_mean` where it is the calibrated mean itself; None if it is nowhere.

        A mean that was moved has an unknown bias: it has an interval and no standard error (NaN).
        """
        x, s = self._calibrated
        if self.used == "none":
            return self.estimated_error
        own = np.where(self.enhanced_mean == x, s, np.nan)
        return None if np.isnan(own).all() or self.used != "clip" else own

    def interval(self, level: float = 0.95, kind: str = "conservative") -> tuple[Floats, Floats]:
        """Lower and upper ends of intervals for the true means; the estimate always lies inside.

        `honest` covers in each dimension, for any truth: the interval before re-calibration, cut to the domain. This is
        the one to print. `average` covers on average over the dimensions, for any truths, and is shorter (robust
        empirical Bayes). `credible` is the posterior's, a declared structure included, and valid only if the fitted
        prior is.

        >>> low, high = recalibrate([0.95, -0.2], 0.05).interval(0.95)
        >>> low.round(3), high.round(3)
        (array([ 0.852, -0.298]), array([ 1.   , -0.102]))
        """
        check_probability("level", level)
        check_kind(kind)
        lower, upper = self._calibrated[0].copy(), self._calibrated[0].copy()
        at = self._noisy
        if self._intervals is not None:
            lower[at], upper[at] = self._intervals.around(self.enhanced_mean[at], level, kind)
        return lower, upper
