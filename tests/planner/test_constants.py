"""Constants of the planner are fixed by the quantities they bound."""

from __future__ import annotations

import numpy as np

import hdr4me as hd
from hdr4me.mechanisms.joint import optional_number, optional_reach
from hdr4me.planner.candidates import PAIR, PAIRS_FROM


def test_the_bound_for_optional_numbers_is_just_beyond_the_outputs_of_the_designs() -> None:
    """The largest output of a table, over (e^ε + 2)/(e^ε − 1), is 1.46 at ε = 3 and less at other budgets.

    A promise for few reports is false if it assumes less, and wasteful if it assumes much more.
    """
    ratios = []
    for epsilon in (1.0, 2.0, 3.0, 4.0):
        made = optional_number(epsilon)
        largest = max(float(np.abs(made.decoders[name]).max()) for name in ("value", "present"))
        ratios.append(optional_reach(epsilon) / largest)
    assert min(ratios) >= 1.0
    assert min(ratios) < 1.15


def test_pairs_are_tried_from_the_budget_at_which_they_gain_two_per_cent() -> None:
    """100 numbers spread evenly: the gain is below 2 % at the limit and above it 0.1 later."""

    def gain(epsilon: float) -> float:
        plan = hd.plan(users=10**9, dims=100, epsilon=epsilon, mechanisms=["optimal_mean", PAIR])
        mse = {option.mechanism: option.mse for option in plan.mechanisms}
        return mse["optimal_mean"] / mse[PAIR]

    assert gain(PAIRS_FROM) < 1.02 < gain(PAIRS_FROM + 0.1)
    for epsilon, tried in ((PAIRS_FROM - 0.01, False), (PAIRS_FROM, True)):
        plan = hd.plan(users=100_000, dims=4, epsilon=epsilon)
        assert (PAIR in {option.mechanism for option in plan.options}) is tried
