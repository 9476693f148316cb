"""The error of an optional number: of the mean among those who have one, and of their share.

One report tells a value y, whose mean is 0 without a number, and a presence z, whose mean is 1 with a number and 0
without. The mean R among the share π of users who have one is Σy/Σz. To first order its error is that of (y − R·z)/π
(delta method), so that both errors follow from the second moments E[y²], E[yz] and E[z²] of a report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels.proof import BITS

__all__ = ["SURELY", "OptionalErrors", "OptionalReport", "widening"]

SURELY = 3.0
"""The share of users with a value must be this many standard errors above 0 before a mean among them is told."""

Floats = NDArray[np.float64]


def widening(share_error: ArrayLike, present: float, n_means: int) -> Floats:
    """How many times wider than by the first order a tolerance for means among those who have a value must be.

    The estimated share π̂ divides all means of a dimension. With δ its standard error over π, an error is that of the
    first order over 1 + δZ with Z a normal number. To second order in δ this moves a quantile of x standard errors to
    x·(1 + δ²x²/2). Taken is x² = 2·ln(2k/0.05), above the 95 % quantile of the largest of k errors. Infinite where the
    share is not `SURELY` above 0: then no mean is told.

    Parameters
    ----------
    share_error
        The standard error of the share.
    present
        π.
    n_means
        k, how many estimates the promise is for.

    Examples
    --------
    >>> widening([0.0, 0.05, 0.2], 0.5, 10).round(2).tolist()
    [1.0, 1.06, inf]
    """
    δ = np.asarray(share_error, np.float64) / present
    return np.where(SURELY * δ < 1, 1.0 + δ**2 * np.log(2 * n_means / 0.05), np.inf)


class OptionalErrors(NamedTuple):
    """What one report adds to the variance: of the mean among those who have a number, and of their share."""

    mean: float
    share: float


@dataclass(frozen=True, eq=False)
class OptionalReport:
    """Second moments of a report: E[y²], E[yz] and E[z²] for a number at each of the `levels`, and without a number.

    A number between two levels is rounded to one of them at random, so that its moments lie on the line between theirs.

    Parameters
    ----------
    levels
        Increasing levels of a number, from −1 to 1.
    squares
        Three rows, E[y²], E[yz] and E[z²], with a column for each level and the last one without a number.

    Examples
    --------
    >>> from hdr4me.mechanisms.joint import optional_number
    >>> design = optional_number(1.0)
    >>> report = OptionalReport.of(design.levels, design.weights, *design.decoders.values())
    >>> even = np.linspace(-1, 1, 1001)
    >>> errors = report.errors(even, np.full(1001, 1 / 1001), present=0.9, drawn=1.0)
    >>> round(errors.mean, 1), round(errors.share, 1)  # n·Var
    (5.4, 2.6)
    """

    levels: Floats
    squares: Floats

    @classmethod
    def of(
        cls, levels: ArrayLike, weights: ArrayLike, value: ArrayLike, present: ArrayLike
    ) -> OptionalReport:
        """The moments of a table: rows of whole weights, the last one without a number, and its two decoders."""
        rows = np.ldexp(np.asarray(weights, np.float64), -BITS)
        y, z = np.asarray(value, np.float64), np.asarray(present, np.float64)
        return cls(np.asarray(levels, np.float64), np.stack([rows @ (y * y), rows @ (y * z), rows @ (z * z)]))

    def residual(self, t: Floats, mean: float) -> Floats:
        """E[(y − R·z)²] for numbers t, R = `mean`."""
        return np.interp(t, self.levels, self._less(mean)[:-1])

    def without(self, mean: float) -> float:
        """E[(y − R·z)²] without a number."""
        return float(self._less(mean)[-1])

    def _less(self, mean: float) -> Floats:
        return np.asarray(np.array([1.0, -2.0 * mean, mean**2]) @ self.squares)

    def presence(self, t: Floats) -> Floats:
        """E[z²] for numbers t."""
        return np.interp(t, self.levels, self.squares[2, :-1])

    def errors(self, values: Floats, shares: Floats, present: float, drawn: float = 0.0) -> OptionalErrors:
        """The variance that one report adds, over the number of reports.

        Parameters
        ----------
        values, shares
            The numbers of those who have one, on [−1, 1], and their shares, which sum to one.
        present
            π, the share of users who have a number.
        drawn
            κ, how much of the values' own spread the draw of users adds: 0 if everybody answers.

        Returns
        -------
        OptionalErrors
            The mean is NaN where nobody has a number.
        """
        mean = float(shares @ values) if present else np.nan
        spread = float(shares @ (values - mean) ** 2)
        share = present * (float(shares @ self.presence(values)) - 1.0) + (1 - present) * float(
            self.squares[2, -1]
        )
        share += drawn * present * (1 - present)
        if not present:
            return OptionalErrors(np.nan, share)
        noise = present * float(shares @ self.residual(values, mean)) + (1 - present) * self.without(mean)
        return OptionalErrors((noise - (1 - drawn) * present * spread) / present**2, share)
