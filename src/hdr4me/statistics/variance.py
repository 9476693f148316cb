"""The variance and the standard deviation of a number's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtr

from hdr4me.channels import Channel
from hdr4me.channels.response import Marginal
from hdr4me.errors import InvalidInput
from hdr4me.statistics.calibrate import sample_covariance
from hdr4me.statistics.distribution import Spread, check_kind
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.shapes import marginal_of, shows_shape
from hdr4me.statistics.statistic import Counted, Intervals, Part
from hdr4me.survey import Dimension

Floats = NDArray[np.float64]
_SURELY = 2.0
"""A variance must be this many standard errors above 0 before its root is told."""


class Variance(Spread):
    """The variance of the values, or of the values of those who have one.

    With g decoding the square of the level, V̂ = ḡ − θ̂² − ρ, where ρ is the variance of the random rounding to a
    level: between 0 (all values are levels) and Δ²/4 (all are half-way), Δ²/6 for values spread evenly between levels,
    which is what the estimate takes. The honest interval allows for all of these, the short one does not.
    """

    name = "variance"

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return shows_shape(dimension, channel) and channel.response.marginal().square is not None

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        if options:
            raise InvalidInput(f"option {min(options)!r} is not one of the {self.name}")
        return [_variance(counted, j, root=False) for j in dimensions]


class Deviation(Variance):
    """The standard deviation: the root of the variance."""

    name = "sd"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        if options:
            raise InvalidInput(f"option {min(options)!r} is not one of the {self.name}")
        return [_variance(counted, j, root=True) for j in dimensions]


VARIANCE, SD = Variance(), Deviation()


def _variance(counted: Counted, j: int, *, root: bool) -> Part:
    marginal = marginal_of(counted, j)
    counts = counted.layout.of_question(counted.counts, counted.survey.question_of(j)).astype(np.float64)
    low, high = counted.survey.schema.dimensions[j].bounds
    unit = (high - low) / 2
    r = float(counts.sum())
    nothing = np.array([np.nan])
    if r < 2:
        return Part(j, (None,), nothing, nothing, int(r))
    value, square = marginal.decoders["value"], marginal.square
    assert square is not None
    present = marginal.decoders.get("present", np.ones(value.size))
    share = float(counts @ present) / r
    mean, second = (float(counts @ decode) / r / share for decode in (value, square))
    # To first order V̂ moves as the mean of `influence` over the reports, all divided by the share with a value.
    influence = (square - 2 * mean * value - (second - 2 * mean**2) * present) / share
    error = float(np.sqrt(finite_variance(counts, influence, marginal, counted.n_reports)))
    noise_of_mean = sample_covariance(counts, (value - mean * present) / share) / r
    found = (second - mean**2 + noise_of_mean) - marginal.step**2 / 6
    ends = _ends(found, error, marginal.step, int(r))
    if root:
        sure = found > _SURELY * error
        told = np.sqrt(max(found, 0.0)) * unit
        spread = error / 2 / np.sqrt(found) * unit if sure else np.nan
        return Part(
            j, (None,), np.array([told]), np.array([spread]), int(r), unsure=not sure,
            intervals=_through(ends, lambda v: np.sqrt(np.maximum(v, 0.0)) * unit),
        )  # fmt: skip
    return Part(
        j, (None,), np.array([found * unit**2]), np.array([error * unit**2]), int(r),
        intervals=_through(ends, lambda v: v * unit**2),
    )  # fmt: skip


def _ends(found: float, error: float, step: float, r: int) -> Intervals:
    """The variance's interval on [−1, 1], widened by what rounding may hide if it is to be honest.

    The variance lies somewhere in [V̂ − Δ²/12, V̂ + Δ²/6] but for chance. It cannot be at both ends at once, so the
    reach beyond them is less than that of an interval about one point (`reach_beyond`).
    """

    def ends(level: float, kind: str) -> tuple[Floats, Floats]:
        check_kind(kind)
        below, above = (step**2 / 12, step**2 / 6) if kind == "honest" else (0.0, 0.0)
        reach = reach_beyond(level, r, (below + above) / error if error > 0 else 0.0) * error
        return np.array([found - below - reach]), np.array([found + above + reach])

    return ends


def reach_beyond(level: float, r: float, width: float) -> float:
    """How far an interval reaches beyond a stretch of possible centres, in standard errors.

    A truth at one end of the stretch is missed beyond that end with probability F(−c), and beyond the other one, which
    is `width` standard errors further away, with F(−c − width). c makes both together 1 − level (Imbens and Manski
    2004), F being the law that `quantile` takes at r reports: for width 0, c is that quantile, for a wide stretch the
    one-sided quantile.

    Examples
    --------
    >>> [round(reach_beyond(0.95, 1e9, width), 3) for width in (0.0, 0.5, 9.0)]
    [1.96, 1.77, 1.645]
    """
    full, freedom = float(quantile(level, r)), max(r - 1.0, 1.0)

    def missed(c: float) -> float:
        return float(stdtr(freedom, -c) + stdtr(freedom, -c - width)) - (1.0 - level)

    return float(brentq(missed, 0.0, full)) if width > 0.0 and missed(0.0) > 0.0 > missed(full) else full


def _through(ends: Intervals, change: Any) -> Intervals:
    def changed(level: float, kind: str) -> tuple[Floats, Floats]:
        low, high = ends(level, kind)
        return change(low), change(high)

    return changed


def finite_variance(counts: Floats, values: Floats, marginal: Marginal, n: int) -> float:
    """The variance of the mean of `values` over r reports about the n users who reported.

    The reports' variance s² is the noise of the channel h̄ and the spread of the users' own means; the latter counts
    with 1/r − 1/n only: s²/r − (s² − h̄)₊/n. h̄ is decoded where a decoder has the rows' variances for means, and the
    largest row variance (nothing is subtracted) otherwise.
    """
    r = float(counts.sum())
    total = sample_covariance(counts, values)
    law = marginal.rows
    variances = law @ values**2 - (law @ values) ** 2
    decoder = marginal.decoder(variances)
    if decoder is None:
        return max(total, float(variances.min())) / r
    noise = float(np.clip(counts @ decoder / r, variances.min(), variances.max()))
    total = max(total, noise)
    return total / r - (total - noise) / max(n, r)
