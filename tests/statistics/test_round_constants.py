"""The tuned constants of second rounds, each fixed by its measured consequence.

They were set with benchmarks/second_rounds.py on ten populations and checked on eleven others
(docs/decisions/second-rounds.md). Whoever moves one runs that benchmark again and then writes down the new numbers.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, norm

from hdr4me.statistics import combine, predict, refine, rounds
from hdr4me.survey import Numeric, Schema, Survey
from hdr4me.tally import Tally


def tally_of(survey: Survey, row: int, n: int) -> Tally:
    """The expected counts of n users who all have the value of one row."""
    tally = Tally(survey)
    weights = np.array(survey.questions[0].channel.weights)  # type: ignore[attr-defined]
    tally.counts[:] = weights[row % len(weights)] * n >> 32
    tally.n_reports = int(tally.counts.sum())
    return tally


def measured(case: str) -> tuple[float, ...]:
    """Gain and range of a second round for an expected population; or the interval after one, and its design."""
    if case == "spike":
        edges = np.linspace(-1, 1, 65)
        found = predict.narrowed(edges, np.where(edges >= 0, 1.0, 0.0), 1e12, 1.0)
        return found.low, found.high
    if case == "rounds":
        pilot = tally_of(Survey(Schema([Numeric("delay", -60, 600)]), mechanism="piecewise"), 15, 100_000)
        later = refine(pilot)
        low, high = combine([pilot, tally_of(later, -1, 400_000)]).interval()
        decoders = np.abs(later.questions[0].channel.decoders["value"])  # type: ignore[attr-defined]
        return float(high[0] - low[0]), float(np.sort(decoders).mean())
    priors = {
        "narrow": norm(0, 0.1),
        "heaped": beta(0.05, 2, -1, 2),
        "wide": norm(0.1, 0.42),
    }
    two = predict.predict_rounds(priors[case], 40_000, 1.0)
    return two.gain, two.low, two.high


MEASURED: dict[str, tuple[float, ...]] = {
    "rounds": (2.94848141, 2.10443335),
    "narrow": (4.89752003, -0.401041667, 0.419270833),
    "heaped": (1, -1, 1),
    "wide": (1.34776453, -0.783854167, 0.885416667),
    "spike": (-0.25, 0.03125),
}
MOVED: list[tuple[Any, str, Any, str]] = [
    (rounds, "SAFETY", 1.4, "rounds"),
    (rounds, "_DOUBT", 0.11, "rounds"),
    (predict, "UNSEEN", 0.44, "narrow"),
    (predict, "HEAPED", 1.1, "heaped"),
    (predict, "_HEAP", 0.9, "heaped"),
    (predict, "WORTH", 0.7, "wide"),
    (predict, "WORTH", 0.95, "heaped"),
    (predict, "LEAST", 0.12, "spike"),
    (predict, "MARGIN", 2, "narrow"),
]


@pytest.mark.parametrize("case", MEASURED)
def test_the_consequences_are_those_written_down(case: str) -> None:
    assert measured(case) == pytest.approx(MEASURED[case], rel=1e-5)


@pytest.mark.parametrize(("module", "name", "moved", "case"), MOVED, ids=[f"{m[1]} {m[3]}" for m in MOVED])
def test_a_constant_that_moves_is_noticed(
    module: Any, name: str, moved: Any, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, moved)
    assert measured(case) != pytest.approx(MEASURED[case], rel=1e-5)


def test_a_heap_is_within_a_thirty_second_of_an_end() -> None:
    edges = np.linspace(-1, 1, 65)
    for place, heaped in ((0.99 / 32, True), (1.5 / 32, False)):
        cumulative = np.where(edges >= -1 + 2 * place, 1.0, 0.0)
        assert predict.unseen_share(edges, cumulative, 1.0) == (predict.HEAPED if heaped else predict.UNSEEN)
