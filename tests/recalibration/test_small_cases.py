"""Small cases that can be checked by hand."""

import numpy as np
import pytest

from hdr4me.recalibration.auto.intervals import shortest
from hdr4me.recalibration.auto.posterior import edged, noise_levels
from hdr4me.recalibration.auto.priors import fit_posterior
from hdr4me.recalibration.auto.risk import Measured, _optimism, _signs, clip_risk
from hdr4me.recalibration.core import harms
from hdr4me.recalibration.frequencies import _one_report
from hdr4me.recalibration.hdr4me import deviation_bound, shrink, soft_threshold
from hdr4me.recalibration.inputs import check_inputs
from hdr4me.recalibration.shrinkage import base_cut, james_stein, norm_sub, sure_threshold


def test_the_papers_rules() -> None:
    assert soft_threshold(np.array([3.0, -0.5, -2.0]), np.ones(3)).tolist() == [2.0, 0.0, -1.0]
    assert shrink(np.array([3.0, 1.0]), np.array([1.0, np.inf])).tolist() == [1.0, 0.0]
    one = check_inputs([0.1, 0.2], [1.0, 2.0], None, 1.0, (-1, 1))
    assert deviation_bound(one, z=2.0).tolist() == [2.0, 4.0]
    assert deviation_bound(one).round(3).tolist() == [1.96, 3.92]
    assert deviation_bound(one, simultaneous=True).round(3).tolist() == [2.236, 4.473]


def test_the_shrinkage_rules() -> None:
    x = np.array([1.0, -2.0, 3.0, 1.0])
    assert james_stein(x, np.ones(4), towards_mean=False) == pytest.approx(x * (1 - 2 / 15))
    assert sure_threshold(np.array([0.1, -0.3, 0.2, 9.0]), np.ones(4)) == 0.3
    assert norm_sub(np.array([0.7, 0.5, -0.2])) == pytest.approx([0.6, 0.4, 0.0])
    assert base_cut(np.array([0.6, 0.3, 0.03, -0.02]), np.full(4, 0.02)) == pytest.approx(
        [0.6, 0.3, 0.05, 0.05]
    )


def test_the_posterior() -> None:
    found = fit_posterior(np.array([0.01, -0.02, 0.9, 0.0]), np.full(4, 0.02), -1.0, 1.0, 0.0)
    assert found.mean == pytest.approx([0.0, 0.0, 0.9, 0.0], abs=0.005)
    at_an_end = edged(np.array([-1.1, 0.2]), np.array([0.01, 0.01]), -1.0, 1.0)
    assert at_an_end.mean.round(3).tolist() == [-0.993, 0.2]


@pytest.mark.parametrize(
    ("errors", "sizes"),
    [
        (np.geomspace(0.01, 1, 100), [50, 50]),
        (np.repeat([0.1, 0.3], [50, 70]), [50, 70]),
        (np.full(1000, 0.1), [1000]),
    ],
)
def test_levels_of_noise(errors: np.ndarray, sizes: list[int]) -> None:
    assert [level.size for level in noise_levels(errors)] == sizes


def test_the_measurement() -> None:
    z = _signs(2, np.arange(20))
    assert ((z.sum(axis=1) ** 2).mean(), (z[:, 0] * z[:, 1]).mean()) == (20.0, 0.0)
    optimism = [round(_optimism(Measured(-gain, 1.0), 2.0), 3) for gain in (1.0, 2.0, 3.0, 5.0)]
    assert optimism == [1.0, 0.798, 0.288, 0.004]
    assert clip_risk(np.array([0.0, 1.0]), np.array(1e-3), -1.0, 1.0) == pytest.approx([1e-6, 0.5e-6])
    half_widths = [round(shortest(0.95, ratio)[1] / 1.95996, 2) for ratio in (0.05, 0.25, 1.0, 4.0)]
    assert half_widths == [0.3, 0.53, 0.75, 0.9]


def test_the_words_and_the_step_of_one_report() -> None:
    found = harms(0.01, 0.05), harms(0.01, 0.0106), harms(0.01, 0.0104)
    assert found == ("5.0 times as large", "1.1 times as large", None)
    f = np.array([0.0, 0.02, 0.06, 0.02])
    assert (_one_report(f, np.full(4, 0.02)), _one_report(f, np.full(4, 0.1))) == (0.02, None)
