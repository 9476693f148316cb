"""The error of an optional vector: against the moments of every user, and no population is worse than the worst."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.framework.moments import SURELY, widening
from hdr4me.framework.optional_vectors import OptionalVectorReport
from hdr4me.mechanisms.codebook import Scores, codebook_channel, scores_of


def _by_users(scores: Scores, x: list[float | None], drawn: float) -> tuple[float, float]:
    """n·Var of the mean and of the share, from each user's means and covariances of (y, s); κ = drawn."""
    there = [value for value in x if value is not None]
    mean, π = np.mean(there), len(there) / len(x)
    first, second = scores
    noise, centre = [], []
    for value in x:
        point = np.array([0.0, -1.0] if value is None else [value, 0.0])
        # the covariance of a report about a vector of the ball, two coordinates of it
        squares = (np.eye(2) + (second - 1) * np.outer(point, point)) / first**2
        covariance = squares - np.outer(point, point)
        ways = np.array([[1.0, -mean], [0.0, 1.0]])
        noise.append(np.diag(ways @ covariance @ ways.T))
        centre.append(ways @ (point + np.array([0.0, 1.0])))
    total = np.mean(noise, axis=0) + drawn * np.var(centre, axis=0)
    return float(total[0] / π**2), float(total[1])


@pytest.mark.parametrize("drawn", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_errors_are_those_of_every_user(epsilon: float, drawn: float) -> None:
    scores = scores_of(codebook_channel(epsilon, 4))
    x = [0.3, -0.2, 0.9, None, 0.5, None, None, 0.0]
    there = np.array([0.3, -0.2, 0.9, 0.5, 0.0])
    found = OptionalVectorReport(scores).errors(
        float(np.mean(there**2)), float(there.mean() ** 2), 5 / 8, drawn
    )
    assert found == pytest.approx(_by_users(scores, x, drawn))


def test_nobody_and_everybody() -> None:
    report = OptionalVectorReport(scores_of(codebook_channel(4.0, 4)))
    nobody = report.errors(0.0, 0.0, 0.0)
    assert np.isnan(nobody.mean)
    assert nobody.share == pytest.approx(report.scores.square(1.0) - 1.0)
    everybody = report.errors(0.2, 0.0, 1.0)  # of a mean of 0: as of a vector that everybody has
    assert everybody.mean == pytest.approx(report.scores.square(0.2) - 0.2)


@pytest.mark.parametrize("present", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("drawn", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 10.0])
def test_no_population_is_worse_than_the_worst(epsilon: float, drawn: float, present: float) -> None:
    report = OptionalVectorReport(scores_of(codebook_channel(epsilon, 3)))
    worst, rng = report.worst(present, drawn), np.random.default_rng(1)
    for energy in (0.0, 1.0, *rng.random(20)):
        for share in (0.0, 1.0, rng.random()):
            assert report.errors(energy, energy * share, present, drawn).mean <= worst.mean * (1 + 1e-12)
    shares = [report.errors(0.0, 0.0, π, drawn).share for π in np.linspace(0, 1, 1001)]
    assert max(shares) == pytest.approx(worst.share, rel=1e-5)
    assert max(shares) <= worst.share * (1 + 1e-12)


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


def test_what_is_not_told_is_not_promised() -> None:
    assert widening(0.0, 0.5, 3) == 1.0
    assert np.isinf(widening(0.5 / SURELY, 0.5, 3))
