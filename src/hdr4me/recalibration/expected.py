"""The expected squared error of an answer, by the same measure as that of the means as they were given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.inputs import Inputs
from hdr4me.recalibration.posterior import Summary

__all__ = ["error_after", "error_before", "unmoved"]


def unmoved(used: str, before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Dimensions that a method left alone; shrinkage acts on all together, so there all count or none.

    >>> unmoved("clip", np.array([0.5, 1.5]), np.array([0.5, 1.0]))
    array([ True, False])
    >>> unmoved("james_stein", np.array([0.0, 1.5]), np.array([0.0, 1.0]))
    array([False, False])
    """
    same = before == after
    return same if used in ("clip", "none") else np.full(same.shape, bool(same.all()) and used != "bayes")


def error_before(part: Inputs, summary: Summary) -> Floats:
    """σ_j² + bias_j² of the means as they were given; with a slope it depends on θ̄, which the posterior tells."""
    if np.all(part.slope == 1):
        return part.standard_errors**2 + part.bias**2
    return summary.expected_error(part.means)


def error_after(used: str, part: Inputs, answer: Floats, summary: Summary, *, safe: bool) -> Floats:
    """E(θ*_j − θ̄_j)²: the posterior's, unless the method itself tells more.

    What was not moved keeps the error it had. Clipping is a projection on a set that holds the truth, so no dimension
    gets worse than σ_j². James–Stein with equal σ has no larger total than Σσ_j² (Stein), and `safe` says the
    same of what `auto` chose: there the total is at most that, and the posterior says how it is shared.
    """
    if used == "none":
        return error_before(part, summary)
    own = part.calibrated_errors**2
    error = summary.expected_error(answer)
    if used == "clip":
        error = np.minimum(error, own)
    elif safe or (used == "james_stein" and np.all(own == own[0])):
        error = error * min(1.0, float(own.sum()) / max(float(error.sum()), 1e-300))
    return np.where(unmoved(used, part.calibrated, answer), own, error)
