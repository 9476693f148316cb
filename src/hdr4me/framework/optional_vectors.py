"""The error of an optional vector: of a coordinate's mean among those who have one, and of their share.

A vector x is asked as (x, 0), and no vector as (0, −1), by a codebook. Let y be the decoded number of one coordinate,
and s that of the last one. The mean R of the coordinate among the share π of users who have a vector is Σy/Σ(1 + s). To
first order its error is that of (y − R·(1 + s))/π (delta method). In every input the coordinate or the last one is 0.
So E[y·s] = 0 for every user, and E[(y − R·(1 + s))²] = E y² − 2R·E y + R²·E(1 + s)².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdr4me.channels.codebook.design import Scores
from hdr4me.framework.optional import OptionalErrors

__all__ = ["OptionalVectorReport"]


@dataclass(frozen=True)
class OptionalVectorReport:
    """The errors that follow from the scores of a codebook for one coordinate more than the vector has.

    Parameters
    ----------
    scores
        E[z] and E[z²] of the codeword that is sent.

    Examples
    --------
    >>> from hdr4me.channels.codebook.design import codebook_channel, scores_of
    >>> report = OptionalVectorReport(scores_of(codebook_channel(4.0, 11)))
    >>> errors = report.errors(energy=0.1, square=0.0, present=0.5, drawn=1.0)
    >>> round(errors.mean, 2), round(errors.share, 2)  # n·Var
    (1.95, 0.67)
    """

    scores: Scores

    def errors(self, energy: float, square: float, present: float, drawn: float = 0.0) -> OptionalErrors:
        """The variance that one report adds, over the number of reports.

        The error of the mean is linear in `energy` and `square`: their means over coordinates give its mean.

        Parameters
        ----------
        energy
            E[x²] of the coordinate among those who have a vector; the largest norm is 1.
        square
            R², of the coordinate's mean among them.
        present
            π, the share of users who have a vector.
        drawn
            κ, how much of the users' own spread their draw adds: 0 if everybody answers.

        Returns
        -------
        OptionalErrors
            The mean is NaN where nobody has a vector.
        """
        π, nothing, none = present, self.scores.square(0.0), self.scores.square(1.0) - 1.0
        # E(1 + s)² is 1 + E s² with a vector, where E s = 0, and E s² − 1 without one, where E s = −1
        share = π * nothing + (1 - π) * none + drawn * π * (1 - π)
        if not π:
            return OptionalErrors(np.nan, share)
        having = self.scores.square(energy) - 2 * square + square * (1.0 + nothing)
        without = nothing + square * none
        spread = energy - square
        noise = π * having + (1 - π) * without - (1 - drawn) * π * spread
        return OptionalErrors(noise / π**2, share)

    def worst(self, present: float, drawn: float = 0.0) -> OptionalErrors:
        """The largest of both errors: of the mean over all vectors, of the share over all shares too.

        The error of the mean is linear in E[x²] and R², and 0 ≤ R² ≤ E[x²] ≤ 1: it is largest at a corner. The error of
        the share is a quadratic function of π.

        Parameters
        ----------
        present, drawn
            As in `errors`.
        """
        corners = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0))
        mean = max(self.errors(energy, square, present, drawn).mean for energy, square in corners)
        none, everybody = (self.errors(0.0, 0.0, π, drawn).share for π in (0.0, 1.0))
        middle = 0.5 + (everybody - none) / (2 * drawn) if drawn else 0.0
        shares = (0.0, 1.0, min(max(middle, 0.0), 1.0))
        return OptionalErrors(mean, max(self.errors(0.0, 0.0, π, drawn).share for π in shares))
