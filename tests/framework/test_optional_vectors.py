"""The error of an optional vector: against the moments of every user, and no population is worse than the worst."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hdr4me.channels.codebook.design import codebook_channel
from hdr4me.channels.codebook.response import Scores
from hdr4me.framework.moments import SIGNIFICANT, widening
from hdr4me.framework.prediction import one_report

GAP = np.nan


def _by_users(scores: Scores, x: list[float | None], drawn: float) -> tuple[float, float]:
    """n·Var of the mean and of the share, from each user's means and covariances of (y, s); κ = drawn."""
    there = [value for value in x if value is not None]
    mean, π = np.mean(there), len(there) / len(x)
    first, second = scores
    noise, center = [], []
    for value in x:
        point = np.array([0.0, -1.0] if value is None else [value, 0.0])
        # the covariance of a report about a vector of the ball, two coordinates of it
        squares = (np.eye(2) + (second - 1) * np.outer(point, point)) / first**2
        covariance = squares - np.outer(point, point)
        ways = np.array([[1.0, -mean], [0.0, 1.0]])
        noise.append(np.diag(ways @ covariance @ ways.T))
        center.append(ways @ (point + np.array([0.0, 1.0])))
    total = np.mean(noise, axis=0) + drawn * np.var(center, axis=0)
    return float(total[0] / π**2), float(total[1])


@pytest.mark.parametrize("drawn", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_errors_are_those_of_every_user(epsilon: float, drawn: float) -> None:
    channel = codebook_channel(epsilon, 4)
    x = [0.3, -0.2, 0.9, None, 0.5, None, None, 0.0]
    values = np.array(x, np.float64)
    found = _errors(channel, values, np.full(8, 1 / 8), drawn)
    assert found == pytest.approx(_by_users(channel.response.scores, x, drawn))  # type: ignore[attr-defined]


def _errors(channel: Any, values: Any, shares: Any, drawn: float) -> tuple[float, float]:
    moments = channel.response.marginal().optional_moments(values)
    parts = [one_report(moments, np.asarray(shares), share=share) for share in (False, True)]
    mean, share = (noise + drawn * spread for noise, spread in parts)
    return mean, share


def test_nobody_and_everybody() -> None:
    channel = codebook_channel(4.0, 4)
    scores = channel.response.scores  # type: ignore[attr-defined]
    mean, share = _errors(channel, [0.0, GAP], [0.0, 1.0], 0.0)
    assert np.isnan(mean)
    assert share == pytest.approx(scores.square(1.0) - 1.0)
    # of a mean of 0: as of a vector that everybody has
    half = np.sqrt(0.2)
    everybody = _errors(channel, [half, -half, GAP], [0.5, 0.5, 0.0], 0.0)
    assert everybody[0] == pytest.approx(scores.square(0.2) - 0.2)


@pytest.mark.parametrize("present", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("drawn", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 10.0])
def test_no_population_is_worse_than_the_worst(epsilon: float, drawn: float, present: float) -> None:
    channel, rng = codebook_channel(epsilon, 3), np.random.default_rng(1)
    report: Any = channel.response.marginal()
    worst = report.worst_mean(present, drawn)
    for x in (0.0, 1.0, *rng.random(20)):
        for up in (0.5, 1.0, rng.random()):
            shares = [present * up, present * (1 - up), 1 - present]
            assert _errors(channel, [x, -x, GAP], shares, drawn)[0] <= worst * (1 + 1e-12)
    found = [_errors(channel, [0.0, GAP], [π, 1 - π], drawn)[1] for π in np.linspace(0, 1, 1001)]
    assert max(found) == pytest.approx(report.worst_share(drawn), rel=1e-5)
    assert max(found) <= report.worst_share(drawn) * (1 + 1e-12)


@pytest.mark.parametrize("relative", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("n_means", [1, 10])
def test_a_widened_tolerance_is_kept_by_ratios(relative: float, n_means: int) -> None:
    """Of 200,000 draws of errors over one share each, 95 % of the largest are within; 0.25 % are 5 standard errors."""
    rng = np.random.default_rng(2)
    errors = rng.standard_normal((200_000, n_means)) / (1 + relative * rng.standard_normal((200_000, 1)))
    largest = np.abs(errors).max(axis=1)
    by_first_order = np.quantile(np.abs(rng.standard_normal((200_000, n_means))).max(axis=1), 0.95)
    wider = widening(relative * 0.4, 0.4, n_means)
    assert (largest <= by_first_order * wider).mean() > 0.9475
    assert wider < 1.35


def test_no_accuracy_is_promised_without_an_estimate() -> None:
    assert widening(0.0, 0.5, 3) == 1.0
    assert np.isinf(widening(0.5 / SIGNIFICANT, 0.5, 3))
