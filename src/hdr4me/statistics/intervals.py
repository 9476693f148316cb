"""Quantiles for intervals: one quantity at a time, or all of them at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from hdr4me.errors import InvalidInput

__all__ = ["quantile"]


def quantile(level: float, answers: ArrayLike, n_joint: int = 1) -> NDArray[np.float64]:
    """How many standard errors an interval reaches to either side: Student's t with answers − 1 degrees of freedom.

    For `n_joint` quantities at once each interval has level^(1/n_joint) (Šidák 1967): the joint coverage of
    normal estimates is then at least `level`, however they are correlated.

    >>> np.round(quantile(0.95, [3, 10**6]), 4).tolist()
    [4.3027, 1.96]
    >>> np.round(quantile(0.95, [10**6], n_joint=60), 4).tolist()
    [3.3345]
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput.of("level", level, "it must lie strictly between 0 and 1")
    outside = -np.expm1(np.log(level) / max(n_joint, 1))
    freedom = np.maximum(np.asarray(answers, np.float64) - 1.0, 1.0)
    return np.asarray(-stdtrit(freedom, outside / 2))
