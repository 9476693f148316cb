"""Re-calibrating an Estimate: units, gaps, frequencies, the table."""

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.recalibration import (
    FREQUENCY_METHODS,
    METHODS,
    recalibrate,
    recalibrate_estimate,
    recalibrate_frequencies,
)
from hdr4me.statistics.estimate import Estimate, Frequencies
from hdr4me.survey import Categorical, Numeric, Schema, Survey


@pytest.fixture
def estimate() -> Estimate:
    schema = Schema(
        [
            Numeric("age", 0, 120),
            Categorical("pet", ["cat", "dog", "none"]),
            Numeric("height", 1, 2),
            Numeric("unasked", 0, 1),
            Categorical("empty", ["a", "b"]),
        ]
    )
    nan = np.nan
    return Estimate(
        survey=Survey(schema, epsilon=4.0, mechanism="duchi"),
        n_users=100,
        names=("age", "height", "unasked"),
        n_answers=np.array([40, 60, 0]),
        scaled_mean=np.array([-0.5, 1.3, nan]),
        scaled_standard_error=np.array([0.05, 0.2, nan]),
        _frequencies={
            "pet": Frequencies(
                "pet", ("cat", "dog", "none"), np.array([0.7, 0.5, -0.2]), np.full(3, 0.1), 90
            ),
            "empty": Frequencies("empty", ("a", "b"), np.full(2, nan), np.full(2, nan), 0),
        },
    )


def test_means_in_their_own_units(estimate: Estimate) -> None:
    found = recalibrate_estimate(estimate, "clip")
    np.testing.assert_allclose(found.mean[:2], [30, 2])
    assert np.isnan(found.mean[2])
    assert found.recalibration is not None
    plain = recalibrate([-0.5, 1.3], [0.05, 0.2], "clip")
    np.testing.assert_array_equal(found.recalibration.enhanced_mean, plain.enhanced_mean)
    low, high = found.interval(0.9)
    assert low[0] < 30 < high[0] <= 120
    assert np.isnan(low[2])


def test_frequencies_are_a_distribution(estimate: Estimate) -> None:
    found = recalibrate_estimate(estimate, "auto")
    expected = recalibrate_frequencies([0.7, 0.5, -0.2], 0.1).frequencies
    np.testing.assert_array_equal(found.frequencies("pet"), expected)
    assert np.isnan(found.frequencies("empty")).all()
    assert len(found.advice) == 2
    assert found.advice[1].startswith("pet: ")


@pytest.mark.parametrize("method", sorted({*METHODS, *FREQUENCY_METHODS}))
def test_the_table_has_every_row(estimate: Estimate, method: str) -> None:
    rows = recalibrate_estimate(estimate, method).table(level=0.9)
    assert [row["dimension"] for row in rows] == ["age", *["pet"] * 3, "height", "unasked", *["empty"] * 2]
    for row in rows:
        if row["status"] == "ok":
            assert isinstance(row["estimate"], float)
        if row["category"] is not None and row["status"] == "ok" and method != "none":
            assert 0 <= row["lower"] <= row["estimate"] <= row["upper"] <= 1
    assert rows[5]["estimate"] is None


def test_an_estimate_without_numbers(estimate: Estimate) -> None:
    none = np.array([])
    bare = Estimate(
        Survey(Schema([Categorical("pet", ["cat", "dog", "none"])]), epsilon=1.0),
        10,
        (),
        np.array([], dtype=np.int64),
        none,
        none,
        {"pet": estimate.frequencies("pet")},
    )
    found = recalibrate_estimate(bare, "clip")
    assert found.recalibration is None
    assert len(found.table()) == 3
    assert found.scaled_mean.size == 0


def test_what_did_not_move_keeps_its_own_error_and_interval(estimate: Estimate) -> None:
    before, found = estimate.table(0.9), recalibrate_estimate(estimate, "clip")
    after = found.table(0.9)
    assert after[0] == before[0]  # age, inside the domain
    assert after[4] != before[4]  # height, outside
    assert found.interval(0.9)[0][0] == estimate.interval(0.9)[0][0]
    assert found.interval(0.9)[1][1] == 2


def test_none_leaves_everything(estimate: Estimate) -> None:
    found = recalibrate_estimate(estimate, "none")
    assert found.table() == estimate.table()
    np.testing.assert_array_equal(found.mean, estimate.mean)
    np.testing.assert_array_equal(found.frequencies("pet"), [0.7, 0.5, -0.2])
    assert found.advice[0].startswith("Nothing was changed")


@pytest.mark.parametrize("method", ["norm_sub", "base_cut"])
def test_methods_of_frequencies_leave_the_means(estimate: Estimate, method: str) -> None:
    found = recalibrate_estimate(estimate, method)
    np.testing.assert_array_equal(found.mean, estimate.mean)
    expected = recalibrate_frequencies([0.7, 0.5, -0.2], 0.1, method).frequencies
    np.testing.assert_array_equal(found.frequencies("pet"), expected)
    assert found.table()[0] == estimate.table()[0]


def test_an_unknown_method_is_told_every_name(estimate: Estimate) -> None:
    with pytest.raises(InvalidInput, match="method = 'ridge'") as refusal:
        recalibrate_estimate(estimate, "ridge")
    told = str(refusal.value).partition("use one of ")[2].split(", ")
    assert sorted(told) == sorted({*METHODS, *FREQUENCY_METHODS})
    with pytest.raises(InvalidInput, match="option 'z' is not allowed for method 'norm_sub'"):
        recalibrate_estimate(estimate, "norm_sub", z=3)
