from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.table import Certificate, TableMechanism

ONE = 1 << 32
HALF = ONE // 2


def coin(**changes: Any) -> TableMechanism:
    """Three to one, decoded as ±2."""
    given: dict[str, Any] = {
        "name": "coin",
        "epsilon": 1.2,
        "levels": [-1.0, 1.0],
        "decode": [-2.0, 2.0],
        "weights": [[3 * ONE // 4, ONE // 4], [ONE // 4, 3 * ONE // 4]],
    }
    return TableMechanism(**(given | changes))


def seven() -> TableMechanism:
    """Nine levels, three cells: the outer two carry the value, all three its square."""
    rows = []
    for i in range(9):
        tilt, spread = (i - 4) * (ONE // 64), (i - 4) ** 2 * (ONE // 256)
        outer = ONE // 2 + spread
        rows.append([(outer - 2 * tilt) // 2, ONE - outer, (outer + 2 * tilt) // 2])
    return TableMechanism("seven", 2.0, np.linspace(-1, 1, 9), [-8.0, 0.0, 8.0], rows)


def test_privacy_loss_is_a_fraction():
    assert coin().likelihood_ratio == Fraction(3)


def test_arrays_are_frozen_copies():
    weights = np.array([[3 * ONE // 4, ONE // 4], [ONE // 4, 3 * ONE // 4]])
    table = coin(weights=weights)
    weights[0, 0] = 5
    assert table.weights[0, 0] == 3 * ONE // 4
    with pytest.raises(ValueError, match="read-only"):
        table.weights[0, 0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 1.0}, "leaks a factor of 3, more than e\\^epsilon"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"weights": [[1, 2], [2, 1]]}, "sum to 2"),
        ({"weights": [[ONE + 1, -1], [HALF, HALF]]}, "sum to 2"),
        ({"weights": [3, 1]}, "shape"),
        ({"weights": [[HALF, HALF]]}, "2 levels and 2 decoded values for 1 rows"),
        ({"decode": [-2.0, 0.0, 2.0]}, "decoded values"),
        ({"levels": [-1.0, 0.0, 1.0]}, "levels"),
        ({"decode": [-2.0, np.inf]}, "finite"),
        ({"levels": [-1.0, 0.5]}, "equally spaced"),
        ({"decode": [-2.0, 2.1]}, "is biased"),
        ({"weights": [[ONE, 0], [HALF, HALF]], "decode": [-1.0, 3.0]}, "column 1"),
    ],
)
def test_refuses_what_is_no_private_unbiased_table(changes, message):
    with pytest.raises(InvalidInput, match=message):
        coin(**changes)


def test_law_between_levels_is_the_mixture():
    table = coin()
    assert table.law_at(0.5) == pytest.approx([3 / 8, 5 / 8])
    assert float(table.variance(0.5)) == pytest.approx(4 - 0.25)
    assert float(table.abs_third_moment(0.5)) == pytest.approx(5 / 8 * 1.5**3 + 3 / 8 * 2.5**3)
    assert table.variance(np.array([[0.0, 1.0]])).shape == (1, 2)
    assert table.bounded
    assert table.support == (-2.0, 2.0)
    assert float(table.density(0.3, 0.1)) == 0.0


def test_moments_of_many_values_are_chunked_alike():
    table = seven()
    t = np.linspace(-1, 1, 40_000)
    direct = table.law_at(t) @ table.decode**2 - t * t
    assert table.variance(t) == pytest.approx(direct, abs=1e-12)


def test_refuses_values_outside_the_domain():
    for bad in (1.5, np.nan):
        with pytest.raises(InvalidInput, match="accepts values"):
            coin().variance(bad)


def test_max_and_mean_variance_against_a_fine_grid():
    # the grid's own error: the variance is a parabola between levels, 1e-8 at this spacing; the mean by midpoints
    for table in (coin(), seven()):
        t = np.linspace(-1, 1, 20_001)
        assert table.max_variance() == pytest.approx(float(table.variance(t).max()), rel=1e-7)
        middle = (t[1:] + t[:-1]) / 2
        assert table.mean_variance() == pytest.approx(float(table.variance(middle).mean()), rel=1e-7)


def test_samples_have_the_shape_of_the_values():
    table = coin()
    rng = np.random.default_rng(0)
    assert table.sample(np.zeros((3, 4)), rng).shape == (3, 4)
    assert table.sample_cells(0.0, rng).shape == ()
    assert table.sample_cells(np.zeros(3), rng).dtype == np.int64


def test_a_table_is_its_own_discretization():
    table = coin()
    assert table.exact() is table


def test_certificate_gap():
    assert Certificate("max", 2.0, 2.5).gap == pytest.approx(0.25)
    assert Certificate("max", 0.0, 2.5).gap == np.inf


def test_seeded_cells_are_no_reports() -> None:
    """What was drawn from a seed is refused where reports are counted."""
    import hdr4me as hd

    survey = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon=1.0, mechanism="duchi")
    cells = hd.mechanism("duchi", epsilon=1.0).exact().sample_cells(np.zeros(3), np.random.default_rng(1))
    report = hd.Report(survey.fingerprint, ((0, cells[0]),))
    assert hd.Tally(survey).add([report]).n_reports == 0
    with pytest.raises(InvalidInput, match="uint8"):
        hd.Tally(survey).add_block(np.stack([cells * 0, cells * 0, cells], axis=1))
