"""Prediction: the distribution of the errors of an answer before any data are collected.

A report about a row adds c·y to an estimate, where y is the decoded report (value, present). With r reports and κ the
share of the variance of the values that the sampling of users adds,

    Var(c·ȳ) = E[1/r]·(E Var(c·y | x) + κ·Var E(c·y | x)).

The mean among users with a value is the ratio R = E y/E z. Its error is to first order that of (y − R·z)/π.

The same formula holds for the covariance of two rows of one question. Two questions share only the sampling of users:
if each user answers m of d, their rows have the covariance −C(d − m)/(nm(d − 1)), C that of the users' values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag

from hdr4me.channels.response import Moments, coordinates
from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import Floats, sampled_variance, shared_draw
from hdr4me.framework.norm import SquaredNorm, decomposed
from hdr4me.framework.normal import joint_tolerance, log_probability_within
from hdr4me.framework.population import Population
from hdr4me.framework.small_samples import Counts, probability_within_small, tolerance_within

# Larger covariance matrices are not computed.
MAX_ROWS = 1024
_LABELS = {"share": "share with", "chosen": "share choosing each of", "number chosen": "number chosen of"}


class PredictedRow(NamedTuple):
    """A row of an answer, or several rows of one dimension with the same distribution.

    `name` is the statistic or the category, and `kind` the row's class in the prediction. `unit` converts the scale
    [−1, 1] to the row's own units.
    """

    dimension: str
    name: str
    kind: int
    unit: float

    @property
    def label(self) -> str:
        """The row in words, such as "mean of age"."""
        words = _LABELS.get(self.name, f"{self.name} of")
        return f"{words} {self.dimension}"


@dataclass(frozen=True, eq=False)
class Prediction:
    """The errors of the rows of an answer, each N(bias, variance); rows with the same distribution form one class.

    Results per row are one number if there is one class, and otherwise an array with one entry for each row. Joint
    probabilities are products over rows. For unbiased jointly normal errors the product is a lower bound of the joint
    probability, whatever the correlation (Šidák).

    Parameters
    ----------
    biases, variances, counts
        The bias, the variance and the number of rows of each class, on the scale [−1, 1].
    reports
        The number of reports of a row. If it is small, probabilities are summed over its distribution.
    largest
        The largest error of one report. With a small number of reports, probabilities are Bernstein bounds.
    rows
        The named rows. `standard_errors`, `tolerances` and `probabilities_within` are by row, in own units.
    dependence
        Computes the covariance matrix of the rows, or of the first rows if the others repeat them independently.
        `mse_law` and `norm_law` use it; without it rows count as independent.

    Examples
    --------
    >>> result = Prediction(np.zeros(2), np.array([0.01, 0.04]), np.array([1, 3]))
    >>> result.probability_within(0.2).round(3).tolist(), round(result.tolerance(0.95), 3)
    ([0.954, 0.683, 0.683, 0.683], 0.392)
    """

    biases: Floats
    variances: Floats
    counts: NDArray[np.int64]
    reports: Counts | None = field(default=None, kw_only=True)
    largest: float | None = field(default=None, kw_only=True)
    rows: tuple[PredictedRow, ...] = field(default=(), kw_only=True)
    dependence: Callable[[], Floats] | None = field(default=None, kw_only=True)

    @property
    def covariance(self) -> Floats:
        """Cov(θ̂_j, θ̂_k) of all rows, on the scale [−1, 1]; it is known if the users' values are."""
        if self.dependence is None:
            raise InvalidInput("the covariance of the rows is not known: it needs the users' values")
        found = self.dependence()
        return np.asarray(np.kron(np.eye(self.n_coordinates // len(found)), found), np.float64)

    @property
    def own_covariance(self) -> Floats:
        """The covariance of the named rows, in their own units."""
        first = np.cumsum(self.counts) - self.counts
        at, units = [int(first[row.kind]) for row in self.rows], np.array([row.unit for row in self.rows])
        return np.asarray(self.covariance[np.ix_(at, at)] * np.outer(units, units))

    @property
    def mse_law(self) -> SquaredNorm:
        """The distribution of the MSE: mean, sd, cdf, quantile."""
        return self._squared(1.0 / self.n_coordinates)

    @property
    def norm_law(self) -> SquaredNorm:
        """The distribution of ‖θ̂ − θ̄‖₂: mean, sd, cdf, quantile."""
        return self._squared(1.0, root=True)

    def _squared(self, scale: float, *, root: bool = False) -> SquaredNorm:
        if self.dependence is None:
            law = SquaredNorm(self.biases, np.sqrt(self.variances), self.counts.astype(np.float64))
        else:
            found = self.dependence()
            copies = self.n_coordinates // len(found)
            law = decomposed(np.repeat(self.biases, self.counts)[: len(found)], found, copies)
        return replace(law, scale=scale, root=root)

    def in_own_units(self, per_class: ArrayLike) -> dict[PredictedRow, float]:
        """A quantity on the scale [−1, 1] of each class, for each named row in its own units."""
        each = np.broadcast_to(np.asarray(per_class, np.float64), self.biases.shape)
        return {row: float(each[row.kind]) * row.unit for row in self.rows}

    @property
    def standard_errors(self) -> dict[PredictedRow, float]:
        """The standard deviation of each named row, in its own units."""
        return self.in_own_units(np.sqrt(self.variances))

    def tolerances(self, probability: float, *, jointly: bool = False) -> dict[PredictedRow, float]:
        """The tolerance of each named row in its own units, met by each row alone or by all rows at once.

        Jointly, every row has the same probability, so that a row's tolerance is proportional to its own standard
        deviation. With a small number of reports all rows have one common tolerance on the scale [−1, 1].
        """
        if jointly and self.small_sample:
            return self.in_own_units(self.tolerance(probability, jointly=True))
        level = (
            probability ** (1.0 / max(int(self.counts[self.variances > 0].sum()), 1))
            if jointly
            else probability
        )
        return self.in_own_units([self._tolerance_of(c, level) for c in range(self.biases.size)])

    def probabilities_within(self, tolerances: Mapping[PredictedRow, float]) -> dict[PredictedRow, float]:
        """The probability that the error of a named row is within a tolerance in its own units."""
        δ, σ = self.biases, np.sqrt(self.variances)
        probabilities = {}
        for row, tolerance in tolerances.items():
            c = slice(row.kind, row.kind + 1)
            probabilities[row] = float(
                np.exp(self._log_within(δ[c], σ[c], np.asarray(tolerance / row.unit)))[0]
            )
        return probabilities

    def _out(self, per_class: Floats) -> Floats:
        """One number if there is one class, otherwise one per row."""
        if per_class.size == 1:
            return per_class.reshape(())[()]
        return np.repeat(per_class, self.counts)

    @property
    def n_coordinates(self) -> int:
        """The number of rows: d if every dimension is a number."""
        return int(self.counts.sum())

    @property
    def small_sample(self) -> bool:
        """Whether the number of reports is too small for the normal approximation."""
        return self.reports is not None and self.reports.small_sample

    @property
    def bias(self) -> Floats:
        """δ_j = E θ̂_j − θ̄_j."""
        return self._out(self.biases)

    @property
    def variance(self) -> Floats:
        """σ_j² = Var θ̂_j."""
        return self._out(self.variances)

    @property
    def sd(self) -> Floats:
        """σ_j."""
        return self._out(np.sqrt(self.variances))

    @property
    def mse(self) -> float:
        """E (1/d) Σ_j (θ̂_j − θ̄_j)² = the mean of σ_j² + δ_j²."""
        return float(np.sum(self.counts * (self.variances + self.biases**2)) / self.n_coordinates)

    def marginal_pdf(self, x: ArrayLike, coordinate: int = 0) -> Floats:
        """The density of one row's error at each x."""
        c = self._class_of(coordinate)
        z = np.asarray(x, dtype=np.float64) - self.biases[c]
        return np.asarray(np.exp(-0.5 * z**2 / self.variances[c]) / np.sqrt(2 * np.pi * self.variances[c]))

    def _class_of(self, coordinate: int) -> int:
        return int(np.searchsorted(np.cumsum(self.counts), coordinate, side="right"))

    def probability_within(self, tolerance: ArrayLike) -> Floats:
        """P(|θ̂_j − θ̄_j| ≤ ξ_j) per row, for one ξ or one per row (Table II)."""
        δ, σ, ξ, _ = self._aligned(tolerance)
        found = np.exp(self._log_within(δ, σ, ξ))
        return self._out(found) if found.shape == self.biases.shape else found

    def log_joint_probability_within(self, tolerance: ArrayLike) -> float:
        """Logarithm of P(every |θ̂_j − θ̄_j| ≤ ξ_j) = ∫_S f (section IV-B), in log space throughout."""
        δ, σ, ξ, k = self._aligned(tolerance)
        return float(np.sum(k * self._log_within(δ, σ, ξ)))

    def joint_probability_within(self, tolerance: ArrayLike) -> float:
        """P(every |θ̂_j − θ̄_j| ≤ ξ_j)."""
        return float(np.exp(self.log_joint_probability_within(tolerance)))

    def tolerance(self, probability: float, *, jointly: bool = False) -> float:
        """The smallest common ξ kept with this probability: by each row alone, or by all at once."""
        if not 0 < probability < 1:
            raise InvalidInput.of("probability", probability, "it must lie between 0 and 1")
        σ, k = np.sqrt(self.variances), self.counts
        if not np.isfinite(σ).all():
            return math.inf
        if self.reports is not None and self.small_sample:
            v = self.variances / self.reports.mean_inverse
            v, k = (v, k) if jointly else (v.max(keepdims=True), np.ones(1, np.int64))
            return tolerance_within(v, k, self.reports, probability, self.largest)
        if jointly:
            return joint_tolerance(self.biases, σ, k, probability)
        return max(joint_tolerance(b, s, 1, probability) for b, s in zip(self.biases, σ, strict=True))

    def _tolerance_of(self, c: int, probability: float) -> float:
        """The tolerance that one row of class c keeps with this probability."""
        σ = math.sqrt(self.variances[c])
        if not 0 < σ < math.inf:
            return σ
        if self.reports is not None and self.small_sample:
            single = self.variances[c : c + 1] / self.reports.mean_inverse
            return tolerance_within(single, np.ones(1, np.int64), self.reports, probability, self.largest)
        return joint_tolerance(self.biases[c], σ, 1, probability)

    def _log_within(self, δ: Floats, σ: Floats, ξ: Floats) -> Floats:
        """Log-probabilities; −∞ for a row whose variance is infinite, whatever the tolerance."""
        if self.reports is None or not self.small_sample:
            found = log_probability_within(δ, σ, ξ)
        else:
            single = σ**2 / self.reports.mean_inverse
            with np.errstate(divide="ignore"):
                found = np.log(probability_within_small(single, self.reports, float(ξ), self.largest))
        return np.where(np.isfinite(σ), found, -np.inf)

    def _aligned(self, tolerance: ArrayLike) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Biases, sds, tolerances and counts of equal length: per class for one ξ, per row for many."""
        ξ = np.asarray(tolerance, dtype=np.float64)
        if np.any(np.isnan(ξ)) or np.any(ξ < 0):
            raise InvalidInput.of("tolerance", tolerance, "numbers >= 0")
        σ = np.sqrt(self.variances)
        if ξ.ndim == 0:
            return self.biases, σ, ξ, self.counts
        if ξ.shape != (self.n_coordinates,):
            raise InvalidInput(
                f"tolerance of shape {ξ.shape} is not allowed: one number, or one for each of {self.n_coordinates} rows"
            )
        ones = np.ones(self.n_coordinates, dtype=np.int64)
        return np.repeat(self.biases, self.counts), np.repeat(σ, self.counts), ξ, ones


def one_report(moments: Moments, shares: Floats, *, share: bool = False) -> tuple[float, float]:
    """E Var(c·y | x) and Var E(c·y | x) of one report's contribution to a row, for values with these shares."""
    mean = shares @ moments.mean
    if mean.size == 1:
        c = np.ones(1)
    elif share:
        c = np.array([0.0, 1.0])
    elif mean[1] <= 0:
        return math.nan, math.nan
    else:
        c = np.array([1.0, -mean[0] / mean[1]]) / mean[1]
    each = moments.mean @ c
    spread = float(shares @ each**2 - (shares @ each) ** 2)
    return float(shares @ moments.variance(c)), max(spread, 0.0)


def survey_prediction(
    survey: Any,
    populations: Sequence[Population],
    users: int,
    *,
    share: bool = False,
    data: Callable[[], Iterable[Sequence[Floats]]] | None = None,
) -> Prediction:
    """The errors of the rows of an answer, dimension by dimension, from the moments of the survey's channels.

    Parameters
    ----------
    survey, populations, users
        The survey, the distribution of each dimension's values, and the number of users.
    share
        Predict the share of users with a value, instead of their mean.
    data
        Gives the users' values in parts, for the covariance: [users, coordinates] for each dimension, NaN if missing.
    """
    row_variances: dict[int, list[float]] = {}
    for q, question in enumerate(survey.questions):
        inverse = 1.0 / (users * float(survey.inclusion(q)))
        for place, j in enumerate(question.dimensions):
            own, gaps = populations[j], survey.schema.dimensions[j].has_gaps
            response, others = question.channel.response, None
            if len(question.dimensions) == 2 and response.marginal(place).law.shape[1] > 1:
                beside = populations[question.dimensions[1 - place]].values[0]
                others = response.marginal(1 - place).hat_weights(beside)
            row_variances[j] = []
            for coordinate, values in enumerate(own.values[:1] if share else own.values):
                marginal = response.marginal(place, coordinate)
                moments = marginal.optional_moments(values) if gaps else marginal.moments(values, others)
                shares = own.shares if own.shares.ndim == 1 else own.shares[coordinate]
                noise, spread = one_report(moments, shares, share=share)
                row_variances[j].append(float(sampled_variance(noise, spread, users, inverse)))
    variances = np.concatenate([row_variances[j] for j in range(len(populations))])
    rows: list[PredictedRow] = []
    for j, dimension in enumerate(survey.schema.dimensions):
        names = dimension.categories or [""] * len(row_variances[j])
        unit = 1.0 if share else dimension.half_range
        statistic = "share" if share else "mean"
        rows += [
            PredictedRow(dimension.name, name or statistic, len(rows) + i, unit)
            for i, name in enumerate(names)
        ]
    counts = np.ones(variances.size, np.int64)
    dependence = None
    if data is not None:
        dependence = cache(lambda: _covariance(survey, populations, users, data, share=share))
    return Prediction(np.zeros_like(variances), variances, counts, rows=tuple(rows), dependence=dependence)


def _covariance(
    survey: Any,
    populations: Sequence[Population],
    users: int,
    data: Callable[[], Iterable[Sequence[Floats]]],
    *,
    share: bool,
) -> Floats:
    """The covariance of all rows: of one question by the formula of a variance, of two by the shared sampling."""
    dimensions = survey.schema.dimensions
    gaps = [dimension.has_gaps for dimension in dimensions]
    weights = [_weights(own, optional=gap, share=share) for own, gap in zip(populations, gaps, strict=True)]
    ends = np.cumsum([len(c) for c in weights])
    size = int(ends[-1])
    if size > MAX_ROWS:
        raise InvalidInput(f"the covariance of {size:,} rows is not computed: at most {MAX_ROWS:,}")
    rows = [np.arange(end - len(c), end) for end, c in zip(ends, weights, strict=True)]
    noise, square, mean = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    for part in data():
        n = len(part[0])
        each = np.concatenate(
            [coordinates(x, optional=gap) @ c.T for x, gap, c in zip(part, gaps, weights, strict=True)],
            axis=1,
        )
        square += each.T @ each / users
        mean += each.sum(axis=0) / users
        for question in survey.questions:
            dims, optional = question.dimensions, gaps[question.dimensions[0]]
            own = np.concatenate([part[j] for j in dims], axis=1)
            c = block_diag(*(weights[j] for j in dims))
            at = np.ix_(*2 * [np.concatenate([rows[j] for j in dims])])
            found = question.channel.response.covariance(own, np.full(n, 1.0 / n), optional=optional)
            noise[at] += n / users * (c @ found @ c.T)
    spread = square - np.outer(mean, mean)
    covariance = shared_draw(users, len(survey.questions), survey.sampled) * spread
    for q, question in enumerate(survey.questions):
        at = np.ix_(*2 * [np.concatenate([rows[j] for j in question.dimensions])])
        inverse = 1.0 / (users * float(survey.inclusion(q)))
        covariance[at] = sampled_variance(noise[at], spread[at], users, inverse)
    return covariance


def _weights(own: Population, *, optional: bool, share: bool) -> Floats:
    """The weights c of a dimension's rows, c·y being the contribution of a report with the coordinates y."""
    k = len(own.values)
    if not optional:
        return np.eye(k)
    if share:
        return np.eye(k + 1)[k:]
    present = float(own.expect(~np.isnan(own.values[0])))
    mean = own.expect(np.nan_to_num(own.values)) / present
    return np.column_stack([np.eye(k), -mean]) / present
