"""How often each dimension should be asked, where one value is sent and the dimensions differ.

With question j drawn with probability p_j its error is about s_j/(n·p_j), where s_j is the sum over its coordinates of
a report's variance. The sum over j of w_j·s_j/p_j is least for p_j ∝ √(w_j·s_j); against an even draw it falls by the
factor d·Σ w_j·s_j/(Σ √(w_j·s_j))².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput

__all__ = ["Draw", "best_draw"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Draw:
    """The probability of each question, and the error of an even draw over this one's."""

    shares: Floats
    gain: float


def best_draw(errors: ArrayLike, importance: ArrayLike | None = None) -> Draw:
    """The draw of least total error.

    Parameters
    ----------
    errors
        s_j: for each question the sum over its coordinates of a report's variance.
    importance
        w_j: what each question's error counts for (1 each if left out).

    Returns
    -------
    Draw
        Shares that sum to one, and the gain.

    Examples
    --------
    >>> draw = best_draw([1.0, 1.0, 4.0])
    >>> draw.shares.tolist(), draw.gain
    ([0.25, 0.25, 0.5], 1.125)
    """
    s = np.asarray(errors, dtype=np.float64)
    w = np.ones_like(s) if importance is None else np.asarray(importance, dtype=np.float64)
    if s.ndim != 1 or w.shape != s.shape or not ((s > 0) & (w > 0) & np.isfinite(s * w)).all():
        raise InvalidInput.of(
            "importance", importance, f"one finite number > 0 for each of {s.size} questions"
        )
    root = np.sqrt(w * s)
    return Draw(root / root.sum(), float(s.size * np.sum(w * s) / root.sum() ** 2))
