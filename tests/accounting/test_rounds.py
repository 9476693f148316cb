"""Rounds of a series: permanent noise does not average out, fresh noise does, pairing helps where ids allow it."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.accounting.rounds import average, contrast, difference, paired_difference, slope
from hdr4me.errors import InvalidInput

N, T, C = 4_000, 5, 0.4  # users, rounds, and the contraction of a two-cell answer ±1/C


def reports(rng: np.random.Generator, truth: np.ndarray, permanent: bool) -> np.ndarray:
    """Decoded answers of shape (T, N): one uniform number for each user and row, or for each user and round."""
    words = rng.random((2, N)) if permanent else rng.random((T, N))
    if permanent:  # a word for each of the two rows
        plus = np.where(truth > 0, words[1] < (1 + C) / 2, words[0] < (1 - C) / 2)
    else:
        plus = words < (1 + C * truth) / 2
    return np.where(plus, 1 / C, -1 / C)


@pytest.mark.parametrize("permanent", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_stated_error_is_that_of_repetitions(permanent: bool, share: float) -> None:
    """400 seeded collections in which a share of the users changes side after round 2.

    The mean, the last difference and the slope are compared with their errors over the repetitions: equal within 12 %
    (400 repetitions: 3.4 standard errors) if fresh, never above if permanent.
    """
    rng = np.random.default_rng(7)
    side = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    truth = np.repeat(side[None], T, axis=0)
    truth[2:, : int(share * N)] *= -1
    found: dict[str, list[float]] = {"mean": [], "difference": [], "slope": []}
    stated: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(400):
        told = reports(rng, truth, permanent)
        x = told.mean(axis=1, keepdims=True)
        s = np.full((T, 1), np.sqrt((1 / C**2 - 1) / N))  # of the mean of these users: finite population
        for name, combined in (
            ("mean", average(x, s, permanent=permanent)),
            ("difference", difference(x, s, 0, T - 1, permanent=permanent)),
            ("slope", slope(x, s, permanent=permanent)),
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
        if not permanent:
            assert ratio >= 0.88
    if permanent and share == 0.0:  # the mean is as bad as one round, and differences are exact
        assert float(np.std(found["mean"])) > 0.88 * stated["mean"][0]
        assert max(map(abs, found["difference"])) < 1e-12


def test_pairing_sees_that_nothing_changed() -> None:
    rng = np.random.default_rng(8)
    side = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    truth = np.repeat(side[None], T, axis=0)
    truth[1:, :400] *= -1
    told = reports(rng, truth, True)
    paired = paired_difference(told[0][:, None], told[1][:, None])
    errors = np.full((2, 1), np.sqrt((1 / C**2 - 1) / N))
    unpaired = difference(told[:2].mean(axis=1, keepdims=True), errors, 0, 1, permanent=True)
    assert paired.estimate == pytest.approx(unpaired.estimate)
    assert paired.standard_error[0] < 0.3 * unpaired.standard_error[0]
    expected = truth[1].mean() - truth[0].mean()
    assert abs(paired.estimate[0] - expected) < 5 * paired.standard_error[0]
    still = paired_difference(told[1][:, None], told[2][:, None])
    assert (still.estimate[0], still.standard_error[0]) == (0.0, 0.0)


def test_what_is_not_known_stays_unknown() -> None:
    x, s = [[1.0, np.nan], [2.0, 3.0]], [[0.1, np.nan], [0.1, 0.2]]
    found = average(x, s, permanent=True)
    assert np.isnan(found.estimate).tolist() == np.isnan(found.standard_error).tolist() == [False, True]


def test_bad_input() -> None:
    with pytest.raises(InvalidInput, match="do not fit"):
        contrast([1.0], [[1.0], [2.0]], [[1.0], [2.0]], permanent=True)
    with pytest.raises(InvalidInput, match="do not fit"):
        average([], [], permanent=True)
    with pytest.raises(InvalidInput, match="at least 2"):
        slope([[1.0]], [[1.0]], permanent=True)
