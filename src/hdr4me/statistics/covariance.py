"""Covariance and correlation of two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.statistics.calibrate import functional, sample_covariance, value_moments
from hdr4me.statistics.grouped import Joint, joint_of, two
from hdr4me.statistics.shapes import has_law, marginal_of
from hdr4me.statistics.statistic import Counted, Part, Statistic
from hdr4me.statistics.variance import VARIANCE
from hdr4me.survey import Dimension, Product, Survey

Floats = NDArray[np.float64]
_SURELY, _CLEARLY = 3.0, 6.0
"""Variances must be this many standard errors above 0 before a correlation is told, and before it has no note."""
DOUBTFUL = "a variance is hardly above its noise, and told where chance made it larger: the interval may miss"


class Covariance(Statistic):
    """The covariance of two numbers that one report answers.

    With y and z the decoded answers, Ĉ = Σ(y − ȳ)(z − z̄)/(r − 1): the noises of two questions are independent, so
    each factor may be decoded by itself. Numbers that are asked as a pair need no `pairs`: a decoder of the product
    is applied to the tally's own counts. Nor do numbers whose product is a question of its own (`hdr4me.Product`).
    """

    name = "covariance"

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return dimension.is_number and has_law(channel)

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        return (
            f"the {self.name} of {dimension.name!r} cannot be told: "
            "both dimensions must be numbers that are not optional"
        )

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        j, k = two(self.name, dimensions)
        pairs = options.pop("pairs", None)
        if options:
            raise InvalidInput(f"option {min(options)!r} is not one of the {self.name}")
        units = [_unit(counted, i) for i in (j, k)]
        value, error, r = _covariance(counted, pairs, j, k)
        scale = units[0] * units[1]
        label = counted.survey.schema.names[k]
        return [Part(j, (label,), np.array([value * scale]), np.array([error * scale]), r)]


class Correlation(Covariance):
    """The covariance over both standard deviations; unknown where a variance is lost in noise."""

    name = "correlation"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        j, k = two(self.name, dimensions)
        (covariance,) = super().parts(counted, dimensions, **options)
        for i in (j, k):
            question = counted.survey.questions[counted.survey.question_of(i)]
            dimension = counted.survey.schema.dimensions[i]
            if not VARIANCE.serves(dimension, question.channel):
                raise InvalidInput(VARIANCE.refusal(dimension, question.channel))
        variances = VARIANCE.parts(counted, [j, k])
        v, e = (
            np.array([float(getattr(part, name)[0]) for part in variances]) for name in ("value", "error")
        )
        if not (v > _SURELY * e).all():
            nothing = np.array([np.nan])
            return [Part(j, covariance.categories, nothing, nothing, covariance.n_answers, unsure=True)]
        root = float(np.sqrt(v.prod()))
        value = covariance.value / root
        # Errors of the variances add to the covariance's to first order; they share few reports.
        error = np.sqrt((covariance.error / root) ** 2 + value**2 / 4 * float(((e / v) ** 2).sum()))
        doubtful = bool((v < _CLEARLY * e).any())
        notes = (DOUBTFUL if doubtful else "",)
        return [Part(j, covariance.categories, value, error, covariance.n_answers, notes=notes)]


COVARIANCE, CORRELATION = Covariance(), Correlation()


def _unit(counted: Counted, j: int) -> float:
    low, high = counted.survey.schema.dimensions[j].bounds
    return (high - low) / 2


def _covariance(counted: Counted, pairs: Any, j: int, k: int) -> tuple[float, float, int]:
    survey = counted.survey
    q = survey.question_of(j)
    if survey.question_of(k) == q:
        return _within(counted, q, j, k)
    product = product_question(survey, j, k)
    if product is not None:
        return covariance_by_product(counted, j, k, product)
    joint = joint_of(counted, pairs, j, k)
    r = joint.n
    if r < 2:
        return np.nan, np.nan, int(r)
    row, column = joint.counts.sum(axis=1) / r, joint.counts.sum(axis=0) / r
    a, b = joint.first - row @ joint.first, joint.second - column @ joint.second
    products = np.outer(a, b)
    found = joint.mean(products) * r / (r - 1)
    spread = _spread_of_users(counted, joint, j, k, found)
    error = np.sqrt(max(joint.error(products) ** 2 - spread / max(counted.n_reports, r), 0.0))
    return found, float(error), int(r)


def _spread_of_users(counted: Counted, joint: Joint, j: int, k: int, found: float) -> float:
    """The variance over users of their own product, which the truth over the users who reported does not vary by.

    With decoders of the squares its estimate is the mean of their product less Ĉ²; one standard error is taken off, so
    that the error of the covariance is not made too small. 0 where there are no such decoders.
    """
    squares = []
    for i, values in ((j, joint.first), (k, joint.second)):
        square = marginal_of(counted, i).square
        if square is None:
            return 0.0
        weights = joint.counts.sum(axis=1 if i == j else 0) / joint.n
        mean = float(weights @ values)
        squares.append(square - 2 * mean * values + mean**2)
    product = np.outer(squares[0], squares[1])
    return max(joint.mean(product) - joint.error(product) - found**2, 0.0)


def _within(counted: Counted, q: int, j: int, k: int) -> tuple[float, float, int]:
    """Two numbers of one question: the mean of a decoder of their product, less the product of their means."""
    both = [marginal_of(counted, i) for i in (j, k)]
    levels = np.outer(both[0].targets["value"], both[1].targets["value"]).ravel()
    product = both[0].decoder(levels) if len(levels) == len(both[0].rows) else None
    if product is None:
        mechanism = counted.survey.questions[q].channel.mechanism
        raise InvalidInput(
            f"the table {mechanism!r} of this pair does not determine the product of its numbers"
        )
    counts = counted.layout.of_question(counted.counts, q).astype(np.float64)
    r = float(counts.sum())
    if r < 2:
        return np.nan, np.nan, int(r)
    y, z = (marginal.decoders["value"] for marginal in both)
    ybar, zbar = float(counts @ y) / r, float(counts @ z) / r
    found = float(counts @ product) / r - ybar * zbar
    error = np.sqrt(sample_covariance(counts, product - ybar * z - zbar * y) / r)
    return found, float(error), int(r)


def product_question(survey: Survey, j: int, k: int) -> int | None:
    """The number of the dimension that asks for the product of dimensions j and k; None if there is none."""
    names = {survey.schema.names[i] for i in (j, k)}
    for number, dimension in enumerate(survey.schema):
        if isinstance(dimension, Product) and set(dimension.product) == names:
            alone = [len(survey.questions[survey.question_of(i)].dimensions) == 1 for i in (j, k, number)]
            return number if all(alone) else None
    return None


def _mean(counted: Counted, i: int) -> tuple[float, float, float]:
    """The mean of a number on [−1, 1], its variance, and the variance of the users' own values."""
    marginal = marginal_of(counted, i)
    counts = counted.layout.of_question(counted.counts, counted.survey.question_of(i))
    r = float(counts.sum())
    if r < 2:
        return np.nan, np.nan, np.nan
    mean, variance = value_moments(counts[None, :], counted.n_reports, functional(marginal))
    square = marginal.square
    spread = np.nan if square is None else float(counts @ square) / r - float(mean[0]) ** 2
    return float(mean[0]), float(variance[0]), float(np.clip(spread, 0.0, 1.0)) if spread == spread else 1.0


def covariance_by_product(counted: Counted, j: int, k: int, product: int) -> tuple[float, float, int]:
    """Ĉ = x̄ − s̄·t̄ on [−1, 1]², its standard error and the fewest answers of the three questions.

    To first order Ĉ moves as x̄ − t̄·s̄ᵢ − s̄·t̄ᵢ. The noises of the three questions are independent. The users who answer
    them are not: with n users, q questions and m answers each, two means vary together by −κ/n times the covariance of
    the users' own values, κ = (q − m)/(m(q − 1)) (1 if m = 1). For values without third moments about their means
    these three terms add 2κ/n·(s̄t̄·C + t̄²·S_s + s̄²·S_t), S being the variances of the users' values.
    """
    survey = counted.survey
    (s, var_s, spread_s), (t, var_t, spread_t), (x, var_x, _) = (_mean(counted, i) for i in (j, k, product))
    answers = min(
        int(counted.layout.of_question(counted.counts, survey.question_of(i)).sum()) for i in (j, k, product)
    )
    found = x - s * t
    q, m = len(survey.questions), survey.n_sampled
    share = 1.0 if m == 1 else (q - m) / (m * (q - 1))
    together = s * t * found + t**2 * spread_s + s**2 * spread_t
    variance = var_x + t**2 * var_s + s**2 * var_t + var_s * var_t
    variance += max(2.0 * share / max(counted.n_reports, 1) * together, 0.0)
    return found, float(np.sqrt(variance)), answers
