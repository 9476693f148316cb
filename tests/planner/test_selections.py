"""Plans with selections: the predicted error of shares and of the mean number of choices is the measured one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.channels.privset.channel import selection_channel
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.planner.candidates import classes
from hdr4me.planner.workload import Group, Workload
from hdr4me.statistics.calibrate import indicator_moments
from hdr4me.statistics.rounds import _weights
from hdr4me.tally import Tally

SPOKEN = hd.Selection("spoken", ["de", "en", "fr", "it", "nl", "pl"], at_most=2)
AGE = hd.Numeric("age", 0, 120)


def test_coordinates_of_a_selection() -> None:
    """A share for each category, and the number chosen."""
    workload = Workload.of(hd.Schema([SPOKEN, AGE]))
    assert (workload.dims, workload.numeric, workload.selections) == (2, 1, 1)
    assert workload.n_coordinates == 6 + 1 + 1
    assert workload.what == "1 mean, 6 shares and 1 number of choices"
    assert not workload.categorical


def test_a_plan_with_selections_only() -> None:
    plan = hd.plan(schema=hd.Schema([SPOKEN]), users=10_000, epsilon=2.0)
    best = plan.best
    assert best.mechanism == "privset"
    assert set(best.errors) == {"share choosing each of spoken", "number chosen of spoken"}
    assert any(note.startswith("Standard errors: share choosing each of spoken ±") for note in plan.notes)
    assert best.survey().channels[0].mechanism == "privset"
    assert plan.best.to_dict()["mechanism"] == "privset"


def test_the_error_of_a_share_is_the_channel_s() -> None:
    """n·Var of a share = (1 − f)·V₀ + f·V₁, at the budget ε/m."""
    n, f = 50_000, 0.2
    group = Group(1, 6, choices=2, chosen=6 * f)
    made = classes(Workload((group,)), "optimal", "", n, 3.0, (1,))
    channel = selection_channel(3.0, 6, 2)
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    assert made.variances[0, 0] == pytest.approx(((1 - f) * absent + f * present) / n, rel=1e-3)
    assert made.variances[0, 1] == pytest.approx(channel.response.number_variance(6 * f) / n / 4, rel=1e-3)  # type: ignore[attr-defined]
    assert made.counts.tolist() == [6.0, 1.0]
    worst = classes(Workload((group,)), "optimal", "", n, 3.0, (1,), worst=True)
    assert (worst.variances >= made.variances).all()


@pytest.mark.parametrize(("epsilon", "chosen"), [(1.0, (0, 1)), (3.0, (0, 2)), (3.0, (1,))])
def test_measured_errors_equal_the_predicted_ones(epsilon: float, chosen: tuple[int, ...]) -> None:
    """250 seeded collections of 400 users with the same choices: mean squares within 25 % (shares) and 35 % (number).

    A mean of 250 squares of a normal error has a relative deviation of 9 %.
    """
    v, s, n, times = 6, 2, 400, 250
    channel = selection_channel(epsilon, v, s)
    dimension = hd.Selection("x", range(v), s)
    x = dimension.encode([str(c) for c in chosen], 0) >> 16
    outputs = channel.response.sample(np.full(n * times, x), _seeded(epsilon))
    truth = np.isin(np.arange(v), chosen).astype(float)
    shares, numbers = np.zeros(v), 0.0
    p, q = channel.shares
    for k in range(times):
        counts = np.bincount(outputs[k::times].ravel(), minlength=channel.n_counters)
        found, _ = indicator_moments(channel.response.cells(counts), n, channel.response.marginal())
        shares += (found - truth) ** 2
        numbers += ((counts[:v].sum() / n - v * q) / (p - q) - len(chosen)) ** 2
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    predicted = np.where(truth == 1, present, absent) / n
    assert shares / times == pytest.approx(predicted, rel=0.45)
    assert (shares / times).sum() == pytest.approx(predicted.sum(), rel=0.25)
    assert numbers / times == pytest.approx(channel.response.number_variance(len(chosen)) / n, rel=0.35)  # type: ignore[attr-defined]


def _seeded(seed: float) -> Any:
    rng = np.random.default_rng(int(10 * seed))

    class Stream:
        def words32(self, n: int) -> Any:
            return rng.integers(0, 1 << 32, n, dtype=np.uint32)

        def words16(self, n: int) -> Any:
            return rng.integers(0, 1 << 16, n, dtype=np.uint16)

    class Seeded(SecureDraws):
        def __init__(self) -> None:
            self._stream = Stream()  # type: ignore[assignment]

    return Seeded()


def test_what_is_known_of_the_choices() -> None:
    """Shares by name, or selections that were seen."""
    schema = hd.Schema([SPOKEN, AGE])
    by_shares = hd.plan(
        schema=schema,
        users=10_000,
        epsilon=2.0,
        prior={"spoken": {"de": 0.9, "en": 0.6}},
        mechanisms=["duchi"],
    )
    seen = [["de", "en"], "de|fr", None, ["pl", "nope"]]
    by_values = hd.plan(
        schema=schema, users=10_000, epsilon=2.0, prior={"spoken": seen}, mechanisms=["duchi"]
    )
    groups = by_shares.best.workload.groups
    assert groups[-1].chosen == pytest.approx(1.5)
    assert groups[-1].squares == pytest.approx(0.81 + 0.36)
    assert by_values.best.workload.groups[-1].chosen == pytest.approx(5 / 4)
    with pytest.raises(InvalidInput, match="shares of users from 0 to 1"):
        hd.plan(schema=schema, users=100, epsilon=1.0, prior={"spoken": {"de": 1.0, "en": 1.0, "fr": 0.5}})


def test_users_are_solved_for_and_other_dimensions_are_there() -> None:
    schema = hd.Schema([SPOKEN, hd.Categorical("pet", ["cat", "dog", "none"])])
    plan = hd.plan(schema=schema, epsilon=2.0, tolerance=0.05)
    assert plan.solved == "users"
    assert plan.best.tolerance_joint <= 0.0502
    assert len(plan.best.draw().shares) == 2
    assert "selections: privset" in plan.summary


def test_rounds_with_selections_go_together() -> None:
    """Two rounds of the same survey: shares and number chosen within 7 sigma, and smaller errors than of one round."""
    survey = hd.Survey(hd.Schema([AGE, SPOKEN]), epsilon=4.0, mechanism="duchi")
    table = pa.table({"age": [40.0] * 2000, "spoken": ["de|en"] * 2000})
    rounds = []
    for _ in range(2):
        rounds.append(Tally(survey))
        for block in Local().reports(table, survey):
            rounds[-1].add_block(block)
    answer, single = hd.combine(rounds), rounds[0].estimate()
    rows = list(zip(answer.statistics, answer.categories, strict=True))
    for row, truth in ((("chosen", "de"), 1.0), (("chosen", "fr"), 0.0), (("number chosen", None), 2.0)):
        at = rows.index(row)
        assert abs(answer.value[at] - truth) < 7 * answer.standard_error[at]
        assert answer.standard_error[at] < 0.9 * single.standard_error[at]


def test_weights_of_a_second_round() -> None:
    """A selection's need is the noise of its shares; one of more categories is drawn more often."""
    more = hd.Selection("more", range(40), at_most=3)
    survey = hd.Survey(hd.Schema([AGE, SPOKEN, more]), epsilon=2.0)
    weights = _weights(survey, {})
    assert weights["more"] > weights["spoken"] > 0


def test_long_domains_are_planned_with_what_a_survey_chooses() -> None:
    plan = hd.plan(dims=1, category_count=4043, users=100_000, epsilon=1.0)
    assert plan.best.categorical == "projective"
    assert {option.categorical for option in plan} == {"grr", "projective", "histogram"}
    only = hd.plan(dims=1, category_count=4043, users=100_000, epsilon=1.0, categorical=["subset"])
    assert only.best.categorical == "subset"
