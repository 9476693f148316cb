"""The covariance from a question about the product of two numbers: one answer under the whole budget of a question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.statistics.calibrate import functional, value_moments
from hdr4me.statistics.shapes import marginal_of
from hdr4me.statistics.statistic import Counted
from hdr4me.survey import Product, Survey

__all__ = ["covariance_by_product", "product_question"]

Floats = NDArray[np.float64]


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

    Parameters
    ----------
    counted
        A tally.
    j, k
        The numbers.
    product
        The dimension of their product.
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
