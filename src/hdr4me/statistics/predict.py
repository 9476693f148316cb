"""The range of a second round, its control group, and the width of the intervals that follow.

Let [a, b] be the narrower range. Then E x = E clip(x) + E(x − b)₊ − E(a − x)₊. The users of the second round report
clip(x) with less noise. The pilot and a control group, who answer on the full range, estimate the two *excesses*
without bias, whatever the distribution is. An excess is nonnegative, so a negative estimate is replaced by 0, which
never increases the squared error. A range is narrowed only if the interval becomes narrower, and only if the squared
error with large excesses is at most `MOST_ERROR` times that of one round. The constants are fixed by
benchmarks/second_rounds.py, and tests/statistics/test_round_constants.py fails when one of them changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from hdr4me.channels.response import Marginal
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.priors import as_prior
from hdr4me.statistics.calibrate import Floats

# The shares of the second round's users that may be the control group.
CONTROLS = (0.35, 0.5, 0.65, 0.8, 0.85)
# A range is narrowed if intervals become narrower by the factor WORTH, the squared error is at most MOST_ERROR times
# that of one round, and at least the share LEAST of its width is kept.
WORTH, MOST_ERROR, LEAST = 1.15, 1.0, 0.05
# The pilot's estimate of an excess is noisy, and a negative one counts as 0: this number of standard errors is
# subtracted from it.
LESS = 0.5
ENDS = 17  # ends that are tried, at most
# An excess is certain from this many standard errors on; z is the quantile of a 95 % interval.
CERTAIN, _Z = 2.5, 1.96
LONG = 0.8  # the share of the error probability beyond the limit with the larger standard error
# The table of least mean variance decides on the next round's ranges; each number gets the better one of GENERAL.
NEXT = "optimal_mean"
GENERAL = ("optimal", NEXT)


class Range(NamedTuple):
    """A narrower range on [−1, 1] and the factor by which intervals become narrower.

    `worst` bounds the squared error for any values beyond the range, as a multiple of the squared error of one round.
    """

    low: float = -1.0
    high: float = 1.0
    gain: float = 1.0
    worst: float = 1.0


class Excesses:
    """Decoders of E(x − b)₊ and E(a − x)₊ for the reports of a table, of least variance for a law of its cells."""

    def __init__(self, marginal: Marginal, reference: Floats) -> None:
        self.levels, self.reference, self.value = marginal.levels, reference, marginal.decoders["value"]
        rows = marginal.law[:, 0]
        inverse = 1.0 / np.maximum(reference, 1e-9)
        # The least Σ reference·u² with rows @ u = target is u = (rows/reference)ᵀ·λ.
        self._solve = (rows * inverse).T @ np.linalg.pinv(
            (rows * inverse) @ rows.T, rcond=1e-12, hermitian=True
        )

    @staticmethod
    def possible(marginal: Marginal) -> bool:
        """Whether every function of the levels has a decoder: its rows are independent, and nothing else matters."""
        plain = not marginal.optional and marginal.law.ndim == 3 and marginal.law.shape[1] == 1
        return plain and marginal.rank == marginal.levels.size > 2

    def above(self, end: float) -> Floats:
        """The decoder of (x − end)₊; the end must be a level."""
        return np.asarray(self._solve @ np.maximum(self.levels - end, 0.0))

    def below(self, end: float) -> Floats:
        """The decoder of (end − x)₊."""
        return np.asarray(self._solve @ np.maximum(end - self.levels, 0.0))

    def moments(self, decoders: Sequence[Floats], shares: Floats | None = None) -> tuple[Floats, Floats]:
        """Means and covariances of decoders of one report, for these shares of the cells."""
        law, u = self.reference if shares is None else shares, np.stack(decoders)
        mean = u @ law
        return mean, (u * law) @ u.T - np.outer(mean, mean)


def narrowed(
    excesses: Excesses,
    values: Floats,
    shares: Floats,
    one: float,
    noise: float,
    n: tuple[float, float],
    pilot: float,
    cells: Floats | None = None,
) -> Range:
    """The range with the narrowest interval.

    Parameters
    ----------
    excesses
        The decoders for the table of the full range.
    values, shares
        The distribution of the values on [−1, 1].
    one
        The variance of a decoded report on the full range, over users and noise.
    noise
        The variance that the second round's table adds to a value on [−1, 1].
    n
        The reports on the full range (pilot and control group), and those on the narrower one.
    pilot, cells
        The pilot's reports, and their shares of the cells; by default those of the distribution.
    """
    levels = excesses.levels
    ends = np.unique(np.append(levels[:: -(-levels.size // ENDS)], levels[-1]))
    k = len(ends)
    i, j = np.triu_indices(k, 1)
    half = (ends[j] - ends[i]) / 2
    tried = (half >= LEAST) & (half < 1.0)
    i, j, half = i[tried], j[tried], half[tried]
    decoders = [excesses.value, *map(excesses.above, ends), *map(excesses.below, ends)]
    covariance = excesses.moments(decoders)[1] / n[0]
    mean = excesses.moments(decoders, cells)[0]
    clipped = np.clip(values, ends[i, None], ends[j, None])
    spread = (clipped - (clipped @ shares)[:, None]) ** 2 @ shares
    narrow = (half**2 * noise + spread) / n[1]
    own = np.stack([np.zeros_like(i), 1 + j, 1 + k + i], axis=1)
    part = covariance[own[:, :, None], own[:, None, :]]
    above, below, both = (best_weight(narrow, part, side)[1] for side in ((1, 0), (0, -1), (1, -1)))
    deviation = np.sqrt(np.maximum(covariance.diagonal()[own[:, 1:]], 0.0))
    noisy = mean[own[:, 1:]] - LESS * deviation * np.sqrt(n[0] / pilot)
    excess = np.clip(noisy, 0.0, CERTAIN * deviation)
    up, down = np.array([tails(_Z, last < k - 1, first > 0) for first, last in zip(i, j, strict=True)]).T
    reach = up * np.sqrt(above) + down * np.sqrt(below) + excess.sum(axis=1)
    one_round = one / sum(n)
    gain, worst = 2 * _Z * np.sqrt(one_round) / reach, both / one_round
    best = int(np.argmax(np.where(worst <= MOST_ERROR, gain, 0.0)))
    found = Range(float(ends[i[best]]), float(ends[j[best]]), float(gain[best]), float(worst[best]))
    return found if worst[best] <= MOST_ERROR and found.gain >= WORTH else Range()


def tails(t: float, above: bool, below: bool) -> tuple[float, float]:
    """The quantiles of the upper and the lower limit, instead of t for both, of a range that is narrowed on one side.

    The limit on that side has a larger standard error and gets the share LONG of the error probability: the interval is
    about 3 % shorter.
    """
    if above == below:
        return t, t
    long, short = (-float(ndtri(2 * ndtr(-t) * share)) for share in (LONG, 1 - LONG))
    return (long, short) if above else (short, long)


def best_weight(narrow: Any, covariance: Floats, side: tuple[float, float]) -> tuple[Any, Any]:
    """The weight λ of the narrower range in λN + (1 − λ)C + e, and the variance of the sum.

    N is the mean of the narrower range, with the variance `narrow`. C is the same mean from the full range, F less its
    excesses, and e the sum of the excesses with the factors `side`. `covariance` is that of F and both excesses. There
    may be several N, each with its covariance.
    """
    c, e = np.array([1.0, -1.0, 1.0]), np.array([0.0, *side])
    own, with_e = covariance @ c @ c, covariance @ e @ c
    weight = np.clip((own + with_e) / (narrow + own), 0.0, 1.0)
    rest = (1.0 - weight)[..., None] * c + e
    return weight, weight**2 * narrow + np.maximum(np.einsum("...i,...ij,...j", rest, covariance, rest), 0.0)


@dataclass(frozen=True)
class Predicted:
    """One round with all users against two rounds, on the scale [−1, 1].

    `one` and `two` are the half-widths of 95 % intervals over 1.96. `low` and `high` are the second round's range, and
    `control` is the share of its users who answer on the full range; 0 if nothing is gained.
    """

    one: float
    two: float
    low: float = -1.0
    high: float = 1.0
    control: float = 0.0

    @property
    def gain(self) -> float:
        """The squared width of the interval of one round over that of two."""
        return (self.one / self.two) ** 2


def predict_rounds(
    prior: Any, n: int, epsilon: float, *, mechanism: str = "optimal", pilot: float = 0.2
) -> Predicted:
    """The expected gain of a second round if values are distributed as `prior`: no gain where ranges are kept."""
    if not 0.0 < pilot < 1.0:
        raise InvalidInput.of("pilot", pilot, "a share strictly between 0 and 1")
    if type(n) is not int or n < 10:
        raise InvalidInput.of("n", n, "an integer of at least 10")
    law = as_prior(prior)
    exact, later = (named(name, epsilon=epsilon).exact() for name in (mechanism, NEXT))
    marginal = exact.channel().response.marginal()
    variance = float(np.asarray(exact.variance(law.values)) @ law.shares) + law.variance
    one, best, control = float(np.sqrt(variance / n)), Range(), 0.0
    if Excesses.possible(marginal):
        cells = law.shares @ marginal.at(law.values)[:, 0]
        excesses, noise = Excesses(marginal, cells), float(later.mean_variance())
        for share in CONTROLS:
            full = pilot + (1.0 - pilot) * share
            parts = full * n, (1.0 - full) * n
            found = narrowed(excesses, law.values, law.shares, variance, noise, parts, pilot * n)
            if found.gain > best.gain:
                best, control = found, share
    return Predicted(one, one / best.gain, best.low, best.high, control)
