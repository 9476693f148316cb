"""Rounds of a series: memoized noise does not average out, fresh noise does, and pairing cancels shared noise."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.accounting.rounds import average, contrast, difference, paired_difference, slope
from hdr4me.errors import InvalidInput

N, T, C = 4_000, 5, 0.4  # users, rounds, and the contraction of a two-cell answer ±1/C


def reports(rng: np.random.Generator, truth: np.ndarray, memoized: bool) -> np.ndarray:
    """Decoded answers of shape (T, N): one uniform number for each user and row, or for each user and round."""
    words = rng.random((2, N)) if memoized else rng.random((T, N))
    if memoized:  # a word for each of the two rows
        plus = np.where(truth > 0, words[1] < (1 + C) / 2, words[0] < (1 - C) / 2)
    else:
        plus = words < (1 + C * truth) / 2
    return np.where(plus, 1 / C, -1 / C)


@pytest.mark.parametrize("memoized", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_stated_error_is_that_of_repetitions(memoized: bool, share: float) -> None:
    """400 seeded collections in which a share of the users changes side after round 2.

    The mean, the last difference and the slope are compared with their errors over the repetitions: equal within 12 %
    (400 repetitions: 3.4 standard errors) if fresh, never above if memoized.
    """
    rng = np.random.default_rng(7)
    side = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    truth = np.repeat(side[None], T, axis=0)
    truth[2:, : int(share * N)] *= -1
    found: dict[str, list[float]] = {"mean": [], "difference": [], "slope": []}
    stated: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(400):
        decoded = reports(rng, truth, memoized)
        x = decoded.mean(axis=1, keepdims=True)
        s = np.full((T, 1), np.sqrt((1 / C**2 - 1) / N))  # of the mean of these users: finite population
        for name, combined in (
            ("mean", average(x, s, memoized=memoized)),
            ("difference", difference(x, s, 0, T - 1, memoized=memoized)),
            ("slope", slope(x, s, memoized=memoized)),
        ):
            found[name].append(float(combined.estimate[0]))
            stated[name].append(float(combined.standard_error[0]))
    line = np.arange(T) - (T - 1) / 2
    true = {
        "mean": truth.mean(),
        "difference": truth[-1].mean() - truth[0].mean(),
        "slope": float(line @ truth.mean(axis=1) / (line @ line)),
    }
    for name, values in found.items():
        real = float(np.sqrt(np.mean((np.array(values) - true[name]) ** 2)))
        ratio = real / float(np.mean(stated[name]))
        assert ratio <= 1.12
        if not memoized:
            assert ratio >= 0.88
    if memoized and share == 0.0:  # the mean is as bad as one round, and differences are exact
        assert float(np.std(found["mean"])) > 0.88 * stated["mean"][0]
        assert max(map(abs, found["difference"])) < 1e-12


def test_pairing_cancels_shared_noise() -> None:
    rng = np.random.default_rng(8)
    side = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    truth = np.repeat(side[None], T, axis=0)
    truth[1:, :400] *= -1
    decoded = reports(rng, truth, True)
    paired = paired_difference(decoded[0][:, None], decoded[1][:, None])
    errors = np.full((2, 1), np.sqrt((1 / C**2 - 1) / N))
    unpaired = difference(decoded[:2].mean(axis=1, keepdims=True), errors, 0, 1, memoized=True)
    assert paired.estimate == pytest.approx(unpaired.estimate)
    assert paired.standard_error[0] < 0.3 * unpaired.standard_error[0]
    expected = truth[1].mean() - truth[0].mean()
    assert abs(paired.estimate[0] - expected) < 5 * paired.standard_error[0]
    still = paired_difference(decoded[1][:, None], decoded[2][:, None])
    assert (still.estimate[0], still.standard_error[0]) == (0.0, 0.0)


def test_missing_estimates_stay_missing() -> None:
    x, s = [[1.0, np.nan], [2.0, 3.0]], [[0.1, np.nan], [0.1, 0.2]]
    found = average(x, s, memoized=True)
    assert np.isnan(found.estimate).tolist() == np.isnan(found.standard_error).tolist() == [False, True]


def test_bad_input() -> None:
    with pytest.raises(InvalidInput, match="for T rounds"):
        contrast([1.0], [[1.0], [2.0]], [[1.0], [2.0]], memoized=True)
    with pytest.raises(InvalidInput, match="for T rounds"):
        average([], [], memoized=True)
    with pytest.raises(InvalidInput, match="at least 2"):
        slope([[1.0]], [[1.0]], memoized=True)
