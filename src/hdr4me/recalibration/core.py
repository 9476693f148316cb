"""`recalibrate`: every method by name, on plain arrays; its result and the advice about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput
from hdr4me.pages.text import pluralize
from hdr4me.recalibration.auto import Analysis, Evaluation, Intervals, Measured, Rule, check_structure
from hdr4me.recalibration.hdr4me import OPTIONS as PAPER_OPTIONS
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
    **PAPER_OPTIONS,
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
    "clip": "Clipping to the range",
    "james_stein": "James–Stein shrinkage",
    "sure": "SURE-tuned soft threshold",
    "james_stein_mean": "James–Stein shrinkage towards the mean",
    "bayes": "Hierarchical Bayes",
    "bayes_by_noise": "Hierarchical Bayes for each level of noise",
    "structure": "Average of two methods (declared curves or groups; hierarchical Bayes)",
    "none": "The means are unchanged",
}
_MODELS = {
    "null": "no mean differs significantly from zero",
    "centered": "some means differ from zero",
    "free": "the means are close to a common value",
    "smooth": "the means follow a smooth distribution",
    "sharp": "the means take a small number of values",
}
# Expected errors are estimates; smaller relative differences are not reported.
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
    """Re-calibrate collected means, given their standard errors: section V of the paper, and other shrinkage rules.

    The model is θ̂_j ~ N(slope_j·θ̄_j + bias_j, σ_j²). L1 and L2 use θ̂ without calibration and add |bias| to their
    weights, as in the paper. Every other method calibrates first. A dimension with standard error 0 is only calibrated.

    `enhance` computes the closed forms of L1 and L2 alone.

    Parameters
    ----------
    means, standard_errors
        One number for each dimension. One standard error for all dimensions is allowed.
    method
        One of `METHODS`. `auto` measures the error of several rules on these data. It returns the means clipped to the
        domain if no rule is significantly better.
    bias, slope
        Bias and slope of the mechanism; 0 and 1 for an unbiased mechanism.
    domain
        The interval that contains the true means.
    steady_errors
        Standard errors that are not correlated with the means, such as pooled ones. They are needed if
        `standard_errors` were estimated from the same answers as the means. Rules and `average` intervals use them;
        the error after re-calibration is measured with `standard_errors`. An `Estimate` provides them.
    **options
        `order` and `groups` (auto, bayes): the position of each dimension on a curve, and the label of its group, or
        None. With both, each group has its own curve. `z`, or `confidence` (0.95) with `simultaneous` (l1, l2).
        `reference`: "domain", "bias", "plug-in" or an array (l2). `towards`: "zero" or "mean" (james_stein).

    Examples
    --------
    >>> better = recalibrate([0.02, -0.05, 0.91, 0.04], [0.05] * 4, "l1", z=2.0)
    >>> better.enhanced_mean.round(2) + 0.0
    array([0.  , 0.  , 0.81, 0.  ])
    >>> better.guarantee.probability_all < 1e-300
    True
    """
    check_method(method, options, OPTIONS)
    inputs = check_inputs(means, standard_errors, bias, slope, domain, steady_errors)
    n, enhanced = inputs.means.size, inputs.calibrated
    structure = check_structure(options.get("order"), options.get("groups"), n)
    noisy = np.flatnonzero(inputs.noisy)
    # Sorted, so that the result does not depend on the order of the dimensions.
    keys = (inputs.calibrated_errors[noisy], inputs.calibrated[noisy])
    ties = () if structure is None else (structure.group[noisy], structure.position[noisy])
    noisy = noisy[np.lexsort((*ties, *keys))]
    part = inputs.only(noisy)
    if not isinstance(options.get("reference", ""), str):
        options = options | {"reference": alongside("reference", options["reference"], n)[noisy]}
    used, share, before, after, best = method, 1.0, 0.0, Measured(0.0, 0.0), None
    λ, signal = np.zeros(n), (np.abs(enhanced) > 0).astype(np.float64)
    found = None
    if noisy.size:
        chosen = None if structure is None else structure.only(noisy)
        # The threshold of SURE depends on all dimensions, as a curve does.
        found = Analysis(part, chosen, dependent=method == "sure")
        before = _error_before(part)
        if method == "none":
            evaluation, after = Evaluation(part.means, part.calibrated_errors**2), Measured(before, 0.0)
        elif method == "auto":
            used, share, evaluation, optimism = found.choice
            after = found.error(used, evaluation, optimism, safe=True)
        else:
            evaluation = found.measure(found.bayes if method == "bayes" else rule(method, part, options))
            after = found.error(method, evaluation, safe=method == "clip")
            other = found.choice
            best = found.error(other.used, other.evaluation, other.optimism, safe=True).value / n
        enhanced[noisy], signal[noisy] = evaluation.value, found.signal
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
        estimated_mean=inputs.means,
        estimated_error=inputs.standard_errors,
        enhanced_mean=enhanced,
        weights=λ if used in ("l1", "l2", "sure") else None,
        guarantee=guarantee(used, inputs),
        expected_error_before=before / n,
        expected_error_after=after.value,
        expected_error_uncertainty=after.standard_error,
        expected_error_is_bound=after.bound,
        signal_share=float(signal.mean()),
        _calibrated=(inputs.calibrated, inputs.calibrated_errors),
        _noisy=noisy,
        _intervals=None if found is None else Intervals(part, found.posterior, found.beliefs),
    )
    return replace(made, advice=_advise(made, best, {} if found is None else found.posterior.probabilities))


def rule(method: str, part: Inputs, options: dict[str, Any]) -> Rule:
    """A method other than `auto` and `bayes` as a function of the calibrated means; L1 and L2 use θ̂ itself."""
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
    """Σ E(θ̂_j − θ̄_j)² of the given means: σ² + bias²; with a slope, an unbiased estimate."""
    off = (part.slope - 1) * part.calibrated + part.bias
    shift = off**2 - ((part.slope - 1) * part.calibrated_errors) ** 2
    return float(np.sum(part.standard_errors**2) + max(float(shift.sum()), 0.0))


def check_kind(kind: str) -> str:
    """`kind`, if it is one of `KINDS`."""
    if kind not in KINDS:
        raise InvalidInput.of("kind", kind, f"use one of {', '.join(KINDS)}")
    return kind


def harms(before: float, after: float) -> str | None:
    """By how much the error is larger after, in words; None if it is not larger."""
    if after <= _TOLERANCE * before:
        return None
    return f"{after / before:.1f} times as large" if before > 0 else "larger"


def _advise(result: Recalibration, best: float | None, probabilities: dict[str, float]) -> str:
    """The advice; `best` is the error of `auto`, or None if `auto` itself was used."""
    line, before, after = _NAMES[result.used], result.expected_error_before, result.expected_error_after
    if best is None and result.used == "clip" and np.array_equal(result.enhanced_mean, result.estimated_mean):
        return (
            "Unchanged, because all are in the range and shrinkage would not significantly reduce the expected error "
            f"(MSE {before:.2g} on the scale [-1, 1])."
        )
    if result.used == "bayes" and probabilities:
        model = max(probabilities, key=lambda name: probabilities[name])
        line += f" ({_MODELS[model]}, weight {probabilities[model]:.2f})"
    if result.share < 1 and result.used != "clip":
        line += f", {100 * result.share:.0f} % of it"
    uncertainty = 0.0 if result.used == "clip" else result.expected_error_uncertainty
    errors = f"{before:.3g} before, {after:.3g}{f' ± {uncertainty:.1g}' if uncertainty else ''} after"
    worse = harms(before, after)
    if result.expected_error_is_bound:  # An upper bound above the error before is no measured increase.
        line += f": expected error {before:.3g} before, at most {after:.3g} after"
    else:
        line += (
            f" increases the error: expected error {errors} ({worse})"
            if worse
            else f": expected error {errors}"
        )
    if best is not None and after > _TOLERANCE * best:
        line += f"; with auto it is {'at most ' if result.expected_error_is_bound else ''}{best:.3g}"
    return f"{line}."


@dataclass(frozen=True, repr=False)
class Recalibration:
    """Enhanced means and their errors. Arrays have one element for each dimension, in the units of the domain.

    Parameters
    ----------
    method, used, share
        The requested method, the applied method, and its share in the result. For `auto` the applied method is its
        choice, and the rest of the result is clipping. The share is 1 for every other method.
    estimated_mean, estimated_error
        The given means and standard errors.
    enhanced_mean, weights
        The means after re-calibration, and λ* of the methods that have λ*.
    guarantee
        The probabilities of Theorem 3 or 4, for L1 and L2.
    expected_error_before, expected_error_after, expected_error_uncertainty
        The expected squared error, averaged over dimensions: before re-calibration, from the standard errors; after,
        measured on these data; and the standard error of this measurement.
    expected_error_is_bound
        Whether the error after is an upper bound. This is the case where the noise far exceeds the domain.
    signal_share
        The expected share of dimensions with |θ̄_j| > σ_j.
    advice
        A summary in one sentence.

    Examples
    --------
    >>> result = recalibrate([0.5, -0.5, 0.01], 0.1, method="clip")
    >>> result.used, result.enhanced_mean.tolist()
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
            f"<Recalibration of {pluralize(len(self.enhanced_mean), 'dimension')} by {self.used}: mean squared error "
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
        """The expected error after re-calibration over the error before; above 1 it increases the error."""
        if self.expected_error_before == 0:
            return 1.0 if self.expected_error_after == 0 else float("inf")
        return self.expected_error_after / self.expected_error_before

    @property
    def standard_error(self) -> Floats | None:
        """The standard errors of the unchanged means, NaN for changed means; None if every mean is changed.

        A changed mean has an unknown bias and therefore an interval but no standard error.
        """
        x, s = self._calibrated
        if self.used == "none":
            return self.estimated_error
        own = np.where(self.enhanced_mean == x, s, np.nan)
        return None if np.isnan(own).all() or self.used != "clip" else own

    def interval(self, confidence: float = 0.95, kind: str = "conservative") -> tuple[Floats, Floats]:
        """Lower and upper ends of intervals for the true means; each interval contains the estimate.

        `conservative` intervals cover with probability `confidence` in each dimension, for any true means: they are the
        intervals before re-calibration, cut to the domain. `average` intervals cover on average over the dimensions,
        for any true means, and are shorter (robust empirical Bayes). `credible` intervals are those of the posterior
        distribution, including a declared structure, and are valid only if the fitted prior is.

        >>> low, high = recalibrate([0.95, -0.2], 0.05).interval(0.95)
        >>> low.round(3), high.round(3)
        (array([ 0.852, -0.298]), array([ 1.   , -0.102]))
        """
        check_probability("confidence", confidence)
        check_kind(kind)
        lower, upper = self._calibrated[0].copy(), self._calibrated[0].copy()
        at = self._noisy
        if self._intervals is not None:
            lower[at], upper[at] = self._intervals.around(self.enhanced_mean[at], confidence, kind)
        return lower, upper
