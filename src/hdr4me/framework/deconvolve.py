"""The distribution of the values behind a table's cell counts: a prior for the next collection.

Expectation maximisation on the table's levels: with A the rows, f the cells' shares and p the levels' shares,
p ← p·A(f/(pA)), started evenly. Stopped early it stays smooth, which is what a prior should be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import Prior

__all__ = ["prior_from_counts"]


def prior_from_counts(probabilities: ArrayLike, counts: ArrayLike, rounds: int = 200) -> Prior:
    """The prior on [−1, 1] that a table's reports suggest.

    Parameters
    ----------
    probabilities
        The table's rows, one per level: P(cell | level).
    counts
        How many reports each cell has.
    rounds
        Steps of expectation maximisation.

    Returns
    -------
    Prior
        Shares of the table's levels.

    Raises
    ------
    InvalidInput
        If there are no reports, or not one count for each cell.

    Examples
    --------
    >>> prior_from_counts([[0.75, 0.25], [0.25, 0.75]], [75, 25]).shares.round(3).tolist()
    [0.996, 0.004]
    """
    rows, n = np.asarray(probabilities, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if rows.ndim != 2 or n.shape != (rows.shape[1],) or (n < 0).any() or n.sum() == 0:
        raise InvalidInput.of("counts", counts, "one number >= 0 for each cell, and at least one report")
    share = np.full(len(rows), 1.0 / len(rows))
    cells = n / n.sum()
    for _ in range(rounds):
        share = share * (rows @ (cells / np.maximum(share @ rows, 1e-300)))
    return Prior(np.linspace(-1.0, 1.0, len(rows)), share / share.sum())
