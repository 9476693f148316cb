"""Standard errors that were estimated from the same answers as the means."""

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.recalibration import recalibrate
from hdr4me.statistics.recalibrated import _steady_errors
from hdr4me.survey import Numeric, Schema

from .test_structure import _answer


def _collected(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Truth, means, own and pooled standard errors: 40 skewed answers for each of 400 dimensions, most means low."""
    rate = np.where(np.arange(400) < 280, 0.01, rng.uniform(0.05, 0.6, 400))
    answers = np.where(rng.random((40, 400)) < rate, 1.0, -1.0) + rng.exponential(1.0, (40, 400)) - 1.0
    own = answers.std(axis=0, ddof=1) / np.sqrt(40)
    return 2 * rate - 1, answers.mean(axis=0), own, np.full(400, np.sqrt(np.mean(own**2)))


@pytest.mark.no_cover
def test_a_random_pattern_of_means_and_their_errors_does_not_increase_the_error() -> None:
    """With the own standard errors alone the error is 1.2 times as large, as for MNIST; seeded."""
    rng = np.random.default_rng(1)
    clipped, alone, steady, held = np.zeros(2), np.zeros(2), np.zeros(2), []
    for i in range(2):
        theta, x, own, pooled = _collected(rng)
        found = recalibrate(x, own, steady_errors=pooled)
        for out, value in (
            (clipped, np.clip(x, -1, 1)),
            (alone, recalibrate(x, own).enhanced_mean),
            (steady, found.enhanced_mean),
        ):
            out[i] = np.mean((value - theta) ** 2)
        low, high = found.interval(0.95, "average")
        held.append(np.mean((low <= theta) & (theta <= high)))
        before = recalibrate(x, own, "none").interval(0.95)
        assert np.mean(high - low) <= np.mean(before[1] - before[0])
    assert steady.mean() <= clipped.mean()
    assert steady.mean() < alone.mean()
    assert np.mean(held) >= 0.92


def test_an_answer_pools_the_variance_of_one_report() -> None:
    """Two dimensions asked in the same way, one with four times the answers: half the standard error."""
    schema = Schema([Numeric("a", 0, 100), Numeric("b", 0, 100)])
    answer = _answer(schema, np.array([0.1, 0.2]))
    answer.n_answers[:] = [400, 1600]
    answer.scaled_error[:] = [0.3, 0.1]
    pooled = _steady_errors(answer, np.array([0, 1]))
    assert pooled[0] == pytest.approx(2 * pooled[1])
    one_report = (400 * 36.0 + 1600 * 16.0) / 2000
    assert pooled[0] == pytest.approx(np.sqrt(one_report / 400))


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"steady_errors\[1\] = 0"):
        recalibrate([0.1, 0.2], 0.1, steady_errors=[0.1, 0.0])
    with pytest.raises(InvalidInput, match="steady_errors has 3 elements"):
        recalibrate([0.1, 0.2], 0.1, steady_errors=[0.1, 0.1, 0.1])
