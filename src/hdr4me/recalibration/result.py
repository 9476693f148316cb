"""The result of a re-calibration, and the sentence that describes it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.pages.counted import counted
from hdr4me.recalibration.auto import Intervals, Measured
from hdr4me.recalibration.hdr4me import Guarantee
from hdr4me.recalibration.inputs import Floats, check_probability

KINDS = ("honest", "average", "credible")
"""`honest`: for each dimension, for any truth. `average`: on average over the dimensions, for any truths. `credible`:
under the fitted prior."""

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
    "centred": "some means stand out from zero",
    "free": "the means gather around a common value",
    "smooth": "the means follow a smooth distribution",
    "sharp": "the means gather in a few values",
}
# Expected errors are estimates; a smaller difference than this is not reported.
_TOLERANCE = 1.05


def check_kind(kind: str) -> str:
    """A known kind of interval."""
    if kind not in KINDS:
        raise InvalidInput.of("kind", kind, f"use one of {', '.join(KINDS)}")
    return kind


def harms(before: float, after: float) -> str | None:
    """How much larger the error is after, in words; None if it is not.

    >>> harms(0.01, 0.05), harms(0.01, 0.0106), harms(0.01, 0.0104)
    ('5.0 times worse', '1.1 times worse', None)
    """
    if after <= _TOLERANCE * before:
        return None
    return f"{after / before:.1f} times worse" if before > 0 else "worse"


def advise(
    used: str,
    *,
    before: float,
    after: Measured,
    best: float | None,
    share: float,
    signal_share: float,
    probabilities: dict[str, float] | None,
) -> str:
    """The advice from mean squared errors before, after, and under `auto` (None: this is `auto`, or needs none).

    >>> after = Measured(0.05, 0.002)
    >>> advise("l1", before=0.01, after=after, best=0.009, share=1.0, signal_share=1.0, probabilities=None)
    'HDR4ME L1 HARMS here: expected error 0.01 before, 0.05 ± 0.002 after (5.0 times worse); auto would give 0.009. The
    signal exceeds the noise in 100 % of the dimensions.'
    """
    line = _NAMES[used]
    if used == "bayes" and probabilities is not None:
        model = max(probabilities, key=lambda name: probabilities[name])
        line += f" ({_MODELS[model]}, weight {probabilities[model]:.2f})"
    if share < 1 and used != "clip":
        line += f", {100 * share:.0f} % of it"
    plus_minus = f" ± {after.standard_error:.1g}" if after.standard_error > 0 and used != "clip" else ""
    errors = f"expected error {before:.3g} before, {after.value:.3g}{plus_minus} after"
    worse = harms(before, after.value)
    if after.bound:
        # A bound above the error before is no measured harm.
        line += f": expected error {before:.3g} before, at most {after.value:.3g} after (the noise hides how much less)"
    elif worse:
        line += f" HARMS here: {errors} ({worse})"
    else:
        line += f": {errors}"
    if best is not None and after.value > _TOLERANCE * best:
        line += f"; auto would give {'at most ' if after.bound else ''}{best:.3g}"
    return f"{line}. The signal exceeds the noise in {100 * signal_share:.0f} % of the dimensions."


@dataclass(frozen=True, repr=False)
class Recalibration:
    """Enhanced means, and what is known about them. Arrays have one element per dimension, on the domain.

    Parameters
    ----------
    method, used
        The method that was requested, and the one that was applied: `auto` names its choice.
    share
        The share of that rule in the answer; the rest is clipping. 1 for every method but `auto`.
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
    >>> import numpy as np
    >>> from hdr4me.recalibration import recalibrate
    >>> found = recalibrate(np.array([0.5, -0.5, 0.01]), np.array([0.1, 0.1, 0.1]), method="clip")
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
    advice: str
    _calibrated: tuple[Floats, Floats] = field(repr=False)
    _noisy: NDArray[np.int64] = field(repr=False)
    _intervals: Intervals | None = field(repr=False)

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
    def harm(self) -> float:
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

    def interval(self, level: float = 0.95, kind: str = "honest") -> tuple[Floats, Floats]:
        """Lower and upper ends of intervals for the true means; the estimate always lies inside.

        `honest` covers in each dimension, for any truth: the interval before re-calibration, cut to the domain. This is
        the one to print. `average` covers on average over the dimensions, for any truths, and is shorter (robust
        empirical Bayes). `credible` is the posterior's, a declared structure included, and valid only if the fitted
        prior is.

        Examples
        --------
        >>> from hdr4me.recalibration import recalibrate
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
