"""The tuned constants of second rounds, each fixed by its consequence; benchmarks/second_rounds.py measures them.

Whoever changes one runs that benchmark again and then writes down the new numbers.
"""

from typing import Any

import pytest
from scipy.stats import beta, norm

from hdr4me.statistics import predict

PRIORS = {
    "narrow": norm(0, 0.1),
    "over-wide": beta(2, 20, -1, 2),
    "tail": beta(1, 6, -1, 2),
    "point": norm(-0.5, 0.01),
}


def measured(case: str, epsilon: float = 4.0) -> tuple[float, ...]:
    """Gain, range and control group of a second round of 40,000 users."""
    two = predict.predict_rounds(PRIORS[case], 40_000, epsilon)
    return two.gain, two.low, two.high, two.control


MEASURED: dict[str, tuple[float, ...]] = {
    "narrow": (2.33363732, -0.375, 0.375, 0.35),
    "over-wide": (1.69930422, -1.0, -0.25, 0.5),
    "tail": (1.0, -1.0, 1.0, 0.0),
    "point": (3.48091036, -0.625, -0.375, 0.65),
}
MOVED: list[tuple[str, Any, str]] = [
    ("WORTH", 1.6, "narrow"),
    ("MOST_ERROR", 0.9, "over-wide"),
    ("LEAST", 0.3, "point"),
    ("CERTAIN", 0.1, "tail"),
    ("CONTROLS", (0.8,), "narrow"),
    ("_ENDS", 9, "narrow"),
]


@pytest.mark.parametrize("case", MEASURED)
def test_the_consequences_are_those_written_down(case: str) -> None:
    assert measured(case) == pytest.approx(MEASURED[case], rel=1e-5)


@pytest.mark.parametrize(("name", "moved", "case"), MOVED, ids=[f"{m[0]} {m[2]}" for m in MOVED])
def test_a_constant_that_moves_is_noticed(
    name: str, moved: Any, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, name, moved)
    assert measured(case) != pytest.approx(MEASURED[case], rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_values_that_fill_their_range_gain_nothing(epsilon: float) -> None:
    two = predict.predict_rounds("uniform", 40_000, epsilon)
    assert (two.gain, two.low, two.high, two.control) == (1.0, -1.0, 1.0, 0.0)
