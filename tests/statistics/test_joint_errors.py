"""Standard errors of pairs and of optional numbers are about the mean over the users who reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hdr4me.channels import Table
from hdr4me.statistics.calibrate import functional
from hdr4me.survey import Numeric, Schema, Survey
from hdr4me.tally import Tally

TIMES, N = 300, 2000


def collections(survey: Survey, shares: dict[int, float], seed: int) -> Any:
    """Answers of seeded collections: the same users each time, so many of them in each row of the table."""
    table = survey.channels[0]
    assert isinstance(table, Table)
    rng = np.random.default_rng(seed)
    law = np.ldexp(np.array(table.weights, np.float64), -32)
    for _ in range(TIMES):
        tally = Tally(survey)
        for row, share in shares.items():
            tally.counts[:] += rng.multinomial(round(N * share), law[row] / law[row].sum())
        tally.n_reports = N
        yield tally.estimate()


@pytest.mark.no_cover
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_pair_of_numbers(epsilon: float) -> None:
    """Values at both ends, so that their own spread is 1: squared errors are what is stated, within 30 %.

    Two means of 300 squares have a relative deviation of 6 %. With the users' own spread in it the stated square would
    be 2.7 times as large at epsilon = 4.
    """
    survey = Survey(
        Schema([Numeric("a", -1, 1), Numeric("b", -1, 1)]), epsilon=epsilon, pair_questions=[("a", "b")]
    )
    levels = survey.channels[0].inputs[0].size
    corners = {0: 0.25, levels - 1: 0.25, levels * (levels - 1): 0.25, levels**2 - 1: 0.25}
    squares = stated = 0.0
    for answer in collections(survey, corners, seed=1):
        squares += float((answer.value**2).sum())
        stated += float((answer.standard_error**2).sum())
    assert squares / stated == pytest.approx(1.0, abs=0.3)


@pytest.mark.no_cover
def test_an_optional_number() -> None:
    """Half of the users have −1 or 1, half have nothing: mean 0 and share 0.5, within 30 % of what is stated."""
    survey = Survey(Schema([Numeric("a", -1, 1, optional=True)]), epsilon=4.0)
    levels = survey.channels[0].inputs[0].size - 1
    squares, stated = np.zeros(2), np.zeros(2)
    for answer in collections(survey, {0: 0.25, levels - 1: 0.25, levels: 0.5}, seed=2):
        truth = np.where(np.array(answer.statistics) == "share", 0.5, 0.0)
        squares += (answer.value - truth) ** 2
        stated += answer.standard_error**2
    assert squares / stated == pytest.approx([1.0, 1.0], abs=0.35)


def test_moments_of_a_decoder() -> None:
    """Levels of the second number of a pair, and of a residual; rounding of each."""
    pair = Survey(
        Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), epsilon=1.0, pair_questions=[("a", "b")]
    ).channels[0]
    assert isinstance(pair, Table)
    size = pair.inputs[1].size
    assert pair.response.marginal(1).levels.tolist() == np.linspace(-1, 1, size).tolist()
    assert functional(pair.response.marginal(1)).rounding == pytest.approx(1 / (size - 1) ** 2)
    table = Survey(Schema([Numeric("a", 0, 1, optional=True)]), epsilon=1.0).channels[0]
    assert isinstance(table, Table)
    rest = functional(table.response.marginal(), "value", 0.5)
    assert rest.target[0] == -1.5
    assert rest.target[-1] == 0.0
    assert functional(table.response.marginal(), "present").rounding == 0.0
