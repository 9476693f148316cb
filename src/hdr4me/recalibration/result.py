"""What a re-calibration returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdr4me.pages.counted import counted
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.inputs import check_probability
from hdr4me.recalibration.intervals import (
    average_interval,
    check_kind,
    credible_interval,
    holding,
    honest_interval,
)
from hdr4me.recalibration.posterior import Belief, Posterior

__all__ = ["Guarantee", "Recalibration"]


@dataclass(frozen=True)
class Guarantee:
    """Theorem 3 (L1, threshold 1) or 4 (L2, threshold 2): two probabilities, named for what they are."""

    threshold: float
    probability_some: float
    """P(at least one dimension deviates by more): what the theorem prints."""
    probability_all: float
    """P(every dimension does): the premise that the theorem's proof uses."""
    log_probability_all: float

    def __str__(self) -> str:
        return (
            f"P(some deviation > {self.threshold:g}) = {self.probability_some:.3g} (what the theorem prints), "
            f"P(all > {self.threshold:g}) = {self.probability_all:.3g} (what its proof needs)"
        )


@dataclass(frozen=True, repr=False)
class Recalibration:
    """Enhanced means, and what is known about them. Arrays have one element per dimension, on the domain.

    Parameters
    ----------
    method, used, share
        What was asked for, what was done, and the share of that rule in the answer.
    estimated_mean, estimated_error
        The means and standard errors that were given.
    enhanced_mean, weights
        The means after re-calibration, and λ* of the methods that have one.
    guarantee
        The two probabilities of Theorem 3 or 4, for L1 and L2.
    expected_error_before, expected_error_after, expected_error_uncertainty
        The mean squared error from the standard errors, its measurement afterwards, and how sure that is.
    expected_error_is_bound
        Whether the error afterwards is an upper bound, because the noise far exceeds the domain.
    signal_share
        The expected share of the dimensions whose mean is larger than its standard error.
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
    """What was asked for."""
    used: str
    """What was done: `auto` names its choice here."""
    share: float
    """The share of that rule in the answer; the rest is clipping. 1 for every method but `auto`."""
    estimated_mean: Floats
    estimated_error: Floats
    """Means and standard errors as they were given."""
    enhanced_mean: Floats
    weights: Floats | None
    """λ*, for methods that have one."""
    guarantee: Guarantee | None
    expected_error_before: float
    expected_error_after: float
    """Mean over dimensions of the squared error: before from the standard errors, after measured on these data."""
    expected_error_uncertainty: float
    """The standard error of `expected_error_after` as a measurement."""
    expected_error_is_bound: bool
    """Whether `expected_error_after` is an upper bound: noise far beyond the domain leaves nothing to measure."""
    signal_share: float
    """Expected share of the dimensions with |θ̄_j| > σ_j."""
    advice: str
    _calibrated: tuple[Floats, Floats, Floats] = field(repr=False)
    _posterior: Posterior | None = field(repr=False)
    _beliefs: Sequence[Belief] = field(repr=False)
    _noisy: NDArray[np.int64] = field(repr=False)
    _domain: tuple[float, float] = field(repr=False)

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

        A re-calibrated mean is biased, by an amount that nobody knows: it has an interval and no standard error (NaN).
        """
        x, s, _ = self._calibrated
        if self.used == "none":
            return self.estimated_error
        own = np.where(self.enhanced_mean == x, s, np.nan)
        return None if np.isnan(own).all() or self.used not in ("none", "clip") else own

    def interval(self, level: float = 0.95, kind: str = "honest") -> tuple[Floats, Floats]:
        """Intervals for the true means; the estimate always lies inside.

        Parameters
        ----------
        level
            The probability of covering.
        kind
            `honest` covers in each dimension, whatever the truth is: the interval before re-calibration, cut to the
            domain. This is the one to print. `average` covers on average over the dimensions, whatever the truths
            are, and is shorter (robust empirical Bayes). `credible` is the posterior's, a declared structure
            included, and honest only as far as the fitted prior is.

        Returns
        -------
        tuple of arrays
            Lower and upper ends, one of each for a dimension.

        Raises
        ------
        InvalidInput
            For a level outside (0, 1) or a kind that is not known.

        Examples
        --------
        >>> from hdr4me.recalibration import recalibrate
        >>> low, high = recalibrate([0.95, -0.2], 0.05).interval(0.95)
        >>> low.round(3), high.round(3)
        (array([ 0.852, -0.298]), array([ 1.   , -0.102]))
        """
        check_probability("level", level)
        check_kind(kind)
        x, s, steady = self._calibrated
        lower, upper = x.copy(), x.copy()
        noisy = self._noisy
        if noisy.size:
            given = (x[noisy], s[noisy], *self._domain, level)
            estimate = self.enhanced_mean[noisy]
            if kind == "average":
                found = average_interval(*given, estimate, steady[noisy])
            elif kind == "credible" and self._posterior is not None:
                found = credible_interval(self._posterior, level, self._beliefs)
            else:
                found = honest_interval(*given)
            lower[noisy], upper[noisy] = holding(estimate, *found)
        return lower, upper
