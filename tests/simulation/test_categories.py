"""Seeded collections of every kind of question about categories, selections, pairs and optional numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hdr4me.simulation.collection import simulate_tally
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey

N = 3000
RECORDS = pa.table(
    {
        "x": ["c1"] * (N // 2) + ["c2"] * (N // 2),
        "spoken": ["de|en"] * N,
        "a": [0.25] * N,
        "b": [None, 0.75] * (N // 2),
    }
)
X = Categorical("x", [f"c{i}" for i in range(40)])
SURVEYS = {
    "subset": Survey(Schema([X]), epsilon=2.0, categorical="subset"),
    "projective": Survey(Schema([X]), epsilon=2.0, categorical="projective"),
    "selection": Survey(Schema([Selection("spoken", ["de", "en", "fr", "it"], 2)]), epsilon=2.0),
    "pair": Survey(
        Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), epsilon=1.0, pair_questions=[("a", "b")]
    ),
    "optional": Survey(Schema([Numeric("b", 0, 1, optional=True)]), epsilon=1.0),
}
TRUTH: dict[str, dict[tuple[str, str, str | None], float]] = {
    "subset": {("frequency", "x", "c1"): 0.5, ("frequency", "x", "c9"): 0.0},
    "projective": {("frequency", "x", "c2"): 0.5, ("frequency", "x", "c39"): 0.0},
    "selection": {("chosen", "spoken", "de"): 1.0, ("number chosen", "spoken", None): 2.0},
    "pair": {("mean", "a", None): 0.25, ("mean", "b", None): 0.625},
    "optional": {("mean", "b", None): 0.75, ("share", "b", None): 0.5},
}


@pytest.mark.parametrize("kind", SURVEYS)
def test_a_seed_gives_the_same_tally_and_the_truth(kind: str) -> None:
    """Within 5 standard errors; the draws are seeded, so that the test always does the same."""
    survey = SURVEYS[kind]
    tally = simulate_tally(RECORDS, survey, seed=3)
    assert np.array_equal(tally.counts, simulate_tally(RECORDS, survey, seed=3).counts)
    assert not np.array_equal(tally.counts, simulate_tally(RECORDS, survey, seed=4).counts)
    answer = tally.estimate()
    rows = list(zip(answer.statistics, answer.dimensions, answer.categories, strict=True))
    for row, value in TRUTH[kind].items():
        at = rows.index(row)
        assert abs(answer.value[at] - value) < 5 * answer.standard_error[at]
