"""Errors of optional vectors on real data, beside those predicted by the delta method.

Used by `benchmarks/vectors.py`. Collections have 10,000 users, drawn anew from the rows; a share of them has a vector.
Intervals are those of the population's mean and share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

from hdr4me.framework.prediction import one_report
from hdr4me.survey import Schema, Survey, Vector
from vectors_accuracy import Measured, N, collected, drawn

__all__ = ["error_of_ratio", "on_optional_vectors"]

Floats = NDArray[np.float64]


def error_of_ratio(channel: Any, data: Floats, share: float) -> Floats:
    """n·MSE of each coordinate's mean among the users who have a vector, if users are drawn anew."""
    marginal, n = channel.response.marginal(), len(data)
    shares = np.append(np.full(n, share / n), 1 - share)
    each = [one_report(marginal.optional_moments(np.append(x, np.nan)), shares) for x in data.T]
    return np.array([noise + spread for noise, spread in each])


def on_optional_vectors(share: float, epsilon: float, times: int) -> str:
    """A line: rows of the diabetes data, the longest of norm 1; so many users have theirs."""
    data = np.asarray(load_diabetes().data, np.float64)
    data /= np.linalg.norm(data, axis=1).max()
    d = data.shape[1]
    survey = Survey(Schema([Vector("x", d, optional=True)]), epsilon=epsilon)
    truth = np.append(data.mean(axis=0), share)
    rng = np.random.default_rng(8)
    squares: list[float] = []
    held = np.zeros(d + 1, np.int64)
    for people in drawn(data, times, 9):
        people[rng.random(N) >= share] = np.nan
        answer = collected(survey, people).estimate()
        low, high = answer.interval(0.95)
        squares.append(float(np.square(answer.value - truth)[:-1].mean()))
        held += (low <= truth) & (truth <= high)
    means = Measured(squares, int(held[:-1].sum()), times * d)
    shares = Measured([], int(held[-1]), times)
    predicted = float(error_of_ratio(survey.channels[0], data, share).mean())
    return (
        f"| diabetes | {d} | {share:g} | {epsilon:g} | {times} | {predicted:.3f} | {means.ratio(predicted)} "
        f"| {means.coverage} | {shares.coverage} |"
    )
