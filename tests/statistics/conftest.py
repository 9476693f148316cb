"""Counts drawn with a seed, without going through the system's randomness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hdr4me.survey import Numeric, Schema, Survey
from hdr4me.tally import Tally


def one_number(
    low: float = -1.0, high: float = 1.0, *, mechanism: Any = "optimal", epsilon: float = 1.0, **options: Any
) -> Survey:
    return Survey(Schema([Numeric("x", low, high, **options)]), epsilon=epsilon, mechanism=mechanism)


def drawn_tally(values: NDArray[np.float64], survey: Survey, seed: int) -> Tally:
    """The tally of exactly these users' values (NaN: none), all of whom answer the survey's only number."""
    tally = Tally(survey)
    low, high = survey.schema.dimensions[0].bounds
    reading = survey.questions[0].channel.response.marginal()
    rng = np.random.default_rng(seed)
    place = np.clip((values - low) / (high - low), 0, 1) * (reading.levels.size - 1)
    known = place[~np.isnan(place)]
    level = np.minimum(known.astype(int), reading.levels.size - 2)
    level = level + (rng.random(level.size) < known - level)
    users = np.bincount(level, minlength=reading.levels.size)
    if reading.optional:
        users = np.append(users, np.isnan(place).sum())
    law = reading.law[:, 0] / reading.law[:, 0].sum(axis=1, keepdims=True)
    tally.counts[:] = rng.multinomial(users, law).sum(axis=0)
    tally.n_reports = len(values)
    return tally


@pytest.fixture(scope="session")
def survey_of() -> Callable[..., Survey]:
    return one_number


@pytest.fixture(scope="session")
def tally_of() -> Callable[..., Tally]:
    return drawn_tally
