"""Constants of the planner are fixed by the quantities they bound."""

from __future__ import annotations

import numpy as np

from hdr4me.mechanisms.joint import optional_number, optional_reach


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
