"""The tuned constants of second rounds, each fixed by its consequence; benchmarks/second_rounds.py measures them.

To change one, run that benchmark again and then write down the new numbers.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, chi2, norm

import hdr4me as hd
from hdr4me.mechanisms import mechanism
from hdr4me.statistics import predict, rounds

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
    "narrow": (2.38273055, -0.375, 0.25, 0.35),
    "over-wide": (1.79442445, -1.0, -0.375, 0.5),
    "tail": (1.0, -1.0, 1.0, 0.0),
    "point": (3.48091036, -0.625, -0.375, 0.65),
}
MOVED: list[tuple[str, Any, str]] = [
    ("WORTH", 1.6, "narrow"),
    ("MOST_ERROR", 0.9, "over-wide"),
    ("LEAST", 0.3, "point"),
    ("LESS", 1.0, "over-wide"),
    ("LONG", 0.5, "over-wide"),
    ("CERTAIN", 0.1, "tail"),
    ("CONTROLS", (0.8,), "narrow"),
    ("ENDS", 9, "narrow"),
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


def designs(monkeypatch: pytest.MonkeyPatch, numbers: int, epsilon: float) -> list[Any]:
    """The priors for which a second round designs tables, after a pilot in which all values are at 10 of 64 levels."""
    priors: list[Any] = []

    def recorded(budget: float, prior: Any) -> Any:
        priors.append(prior)
        return mechanism("piecewise", epsilon=budget).exact()

    monkeypatch.setattr(rounds, "optimal_mean", recorded)
    schema = hd.Schema([hd.Numeric(f"x{j}", 0, 1000) for j in range(numbers)])
    pilot = hd.Tally(hd.Survey(schema, epsilon, "piecewise"))
    for q, question in enumerate(pilot.survey.questions):
        law = np.array(question.channel.weights)[10]  # type: ignore[attr-defined]
        pilot.layout.of_question(pilot.counts, q)[:] = law * 100_000 >> 32
    pilot.n_reports = int(pilot.counts.sum())
    rounds.refine(pilot, weigh=False)
    return priors


def test_a_tenth_of_the_prior_of_a_design_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bin without values has a tenth of the share that it would have if values were uniform."""
    (prior,) = designs(monkeypatch, 1, 2.0)
    shares = np.histogram(prior.values, np.linspace(-1, 1, 33), weights=prior.shares)[0]
    assert shares.min() == pytest.approx(0.1 / 32, rel=0.01)


@pytest.mark.parametrize(("numbers", "epsilon", "designed"), [(4, 3.0, 4), (5, 3.0, 0), (1, 3.1, 0)])
def test_designs_are_made_for_four_numbers_and_up_to_three(
    monkeypatch: pytest.MonkeyPatch, numbers: int, epsilon: float, designed: int
) -> None:
    assert len(designs(monkeypatch, numbers, epsilon)) == designed


@pytest.mark.parametrize(
    ("p", "verdict"),
    [(1.1e-4, False), (0.9e-4, True)],
)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_limits_of_the_comparison_of_rounds(p: float, verdict: bool, rows: int) -> None:
    """Two rounds of variance 1 with this adjusted p-value: Q is half the squared difference."""
    difference = np.sqrt(2 * chi2.isf(p / rows, 1))
    value = np.zeros((2, rows))
    value[1, 0] = difference
    found, notes = rounds._differ(value, np.ones((2, rows)), None)
    assert found.tolist() == [verdict] + [False] * (rows - 1)
    assert [bool(note) for note in notes] == found.tolist()
