"""Counts drawn with a seed, without going through the system's randomness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hdr4me.statistics.readings import Reading
from hdr4me.survey import Numeric, Schema, Survey
from hdr4me.tally import Tally


def one_number(
    low: float = -1.0, high: float = 1.0, *, mechanism: Any = "optimal", epsilon: float = 1.0, **options: Any
) -> Survey:
    return Survey(Schema([Numeric("x", low, high, **options)]), epsilon=epsilon, mechanism=mechanism)


def drawn_tally(values: NDArray[np.float64], survey: Survey, seed: int) -> Tally:
    """The tally of users with these values (NaN: none), all of whom answer the survey's only number."""
    tally = Tally(survey)
    low, high = survey.schema.dimensions[0].bounds
    reading = Reading(survey.questions[0].channel)
    place = np.clip((values - low) / (high - low), 0, 1) * (reading.n_levels - 1)
    known = place[~np.isnan(place)]
    level = np.minimum(known.astype(int), reading.n_levels - 2)
    share = np.bincount(level, level + 1 - known, reading.n_levels)
    share += np.bincount(level + 1, known - level, reading.n_levels)
    law = share @ reading.rows[: reading.n_levels, 0]
    if reading.optional:
        law = law + np.isnan(place).sum() * reading.rows[-1, 0]
    tally.counts[:] = np.random.default_rng(seed).multinomial(len(values), law / law.sum())
    tally.n_reports = len(values)
    return tally


@pytest.fixture(scope="session")
def survey_of() -> Callable[..., Survey]:
    return one_number


@pytest.fixture(scope="session")
def tally_of() -> Callable[..., Tally]:
    return drawn_tally
