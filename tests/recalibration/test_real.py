"""Small real data: the error does not increase, and conservative intervals cover at the edges; needs scikit-learn."""

import numpy as np
import pytest
from sklearn import datasets  # type: ignore[import-untyped]

import hdr4me as hd
from hdr4me.recalibration import recalibrate


def _scaled(name: str) -> np.ndarray:
    values = getattr(datasets, f"load_{name}")().data
    low, high = values.min(axis=0), values.max(axis=0)
    return np.asarray(2 * (values - low) / np.where(high > low, high - low, 1.0) - 1)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["digits", "breast_cancer", "diabetes", "wine"])
@pytest.mark.parametrize("users", [10_000, 1_000_000])
def test_the_error_does_not_increase_and_conservative_intervals_cover(name: str, users: int) -> None:
    """Seeded; six repeats of 13 dimensions can exceed 1.05 by chance, and one other seed did (120 repeats: 1.000).

    The framework's noise at ε = 4, one dimension from each user, by Duchi's variance (e+1)²/(e−1)² − t².

    Digits has pixels that are always empty: their mean is −1 exactly, and they were never covered.
    """
    theta = _scaled(name).mean(axis=0)
    d, e = theta.size, np.exp(4.0)
    s = np.sqrt((((e + 1) / (e - 1)) ** 2 - theta**2) * d / users)
    rng = np.random.default_rng([users, 3])
    held, edge, before, after = [], [], 0.0, 0.0
    for _ in range(6):
        x = theta + s * rng.normal(size=d)
        found = recalibrate(x, s)
        low, high = found.interval(0.95)
        inside = (low <= theta) & (theta <= high)
        held.append(inside.mean())
        edge.extend(inside[np.abs(theta) == 1])
        before += np.mean((np.clip(x, -1, 1) - theta) ** 2)
        after += np.mean((found.enhanced_mean - theta) ** 2)
    assert after <= 1.05 * before  # six repeats; the benchmark holds 1.02
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.0475 / (6 * d))
    if edge:
        assert np.mean(edge) >= 0.9


def test_the_whole_way_from_records_to_a_table() -> None:
    """Wine through survey, reports, tally, estimate and re-calibration; system randomness, so only what cannot fail."""
    values = datasets.load_wine().data
    names = [f"x{j}" for j in range(values.shape[1])]
    low, high = values.min(axis=0), values.max(axis=0)
    schema = hd.Schema([hd.Numeric(n, a, b) for n, a, b in zip(names, low, high, strict=True)])
    survey = hd.Survey(schema, epsilon=4.0, mechanism="duchi")
    tally = hd.Tally(survey)
    for block in hd.engines.Local().reports(np.tile(values, (20, 1)), survey):
        tally = tally.add_block(block)
    found = tally.estimate().recalibrate("auto")
    for row, a, b in zip(found.table(0.95), low, high, strict=True):
        assert a <= row["lower"] <= row["estimate"] <= row["upper"] <= b
    shorter = found.table(0.95, kind="average")
    lengths = [
        np.mean([(r["upper"] - r["lower"]) / (b - a) for r, a, b in zip(rows, low, high, strict=True)])
        for rows in (found.table(0.95), shorter)
    ]
    assert lengths[1] <= lengths[0] + 0.02  # Student's t against the normal's quantile
