"""Three kinds of interval, each called what it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from hdr4me.errors import InvalidInput
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.posterior import Belief, Posterior
from hdr4me.recalibration.robust import robust_interval

__all__ = ["KINDS", "average_interval", "check_kind", "credible_interval", "holding", "honest_interval"]

KINDS = ("honest", "average", "credible")
"""`honest`: for each dimension, whatever the truth is. `average`: on average over the dimensions, whatever the truths
are. `credible`: under the fitted prior, and honest only as far as the prior is true."""


def check_kind(kind: str) -> str:
    """A known kind of interval."""
    if kind not in KINDS:
        raise InvalidInput.of("kind", kind, f"use one of {', '.join(KINDS)}")
    return kind


def honest_interval(x: Floats, s: Floats, low: float, high: float, level: float) -> tuple[Floats, Floats]:
    """x ± z·s cut to the domain: it covers in each dimension with at least `level`, at an edge with more."""
    reach = float(ndtri(0.5 * (1 + level))) * s
    return np.clip(x - reach, low, high), np.clip(x + reach, low, high)


def average_interval(
    x: Floats, s: Floats, low: float, high: float, level: float, estimate: Floats, steady: Floats
) -> tuple[Floats, Floats]:
    """The robust empirical-Bayes interval, extended to the estimate and cut to the domain.

    Its centres come from the `steady` standard errors, its lengths from s. Where extending makes it longer than the
    plain interval x ± z·s, the plain one takes its place: a mean so far from the others is not one of them. The honest
    intervals are taken if they are shorter on average.
    """
    reach = float(ndtri(0.5 * (1 + level))) * s
    lower, upper = holding(estimate, *robust_interval(x, s, low, high, level, steady))
    far = upper - lower > 2 * reach
    lower, upper = np.where(far, x - reach, lower), np.where(far, x + reach, upper)
    lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
    plain = honest_interval(x, s, low, high, level)
    return (lower, upper) if np.mean(upper - lower) <= np.mean(plain[1] - plain[0]) else plain


def credible_interval(
    posterior: Posterior, level: float, beliefs: Sequence[Belief] = ()
) -> tuple[Floats, Floats]:
    """Equal-tailed under the fitted prior, and under declared structures as far as they are believed."""
    return posterior.interval(level, beliefs)


def holding(estimate: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Extended where needed so that the estimate lies inside; covering can only become more likely."""
    return np.minimum(lower, estimate), np.maximum(upper, estimate)
