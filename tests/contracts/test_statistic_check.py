"""The contract of statistics passes for the library's own ones in small samples, and finds low coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.api as sm

import hdr4me as hd
from hdr4me.checks import check_statistic
from hdr4me.statistics import STATISTICS, Part, TallyLike
from hdr4me.statistics.coordinates import Coordinates

# Visits to a doctor in a year of 60 people: counts with many zeros and a long tail.
VISITS = np.sort(sm.datasets.randhie.load().data["mdvis"].to_numpy(np.float64))[:: 20190 // 60][:60].clip(
    0, 40
)
EDGES = [0.0, 1.5, 12.0, 40.0]


def survey(epsilon: float, mechanism: str = "piecewise", **options: Any) -> hd.Survey:
    return hd.Survey(
        hd.Schema([hd.Numeric("visits", 0, 40, **options)]), epsilon=epsilon, mechanism=mechanism
    )


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize(
    ("name", "truth", "options"),
    [
        ("mean", [VISITS.mean()], {}),
        ("variance", [VISITS.var()], {}),
        ("sd", [VISITS.std()], {}),
        ("quantile", np.quantile(VISITS, [0.5, 0.9], method="inverted_cdf"), {"p": [0.5, 0.9]}),
        ("histogram", np.histogram(VISITS, EDGES)[0] / 60, {"edges": EDGES}),
        ("cdf", [(VISITS <= 3).mean()], {"x": [3.0]}),
    ],
)
def test_own_statistics_pass(name: str, truth: Any, options: dict[str, Any], epsilon: float) -> None:
    """60 users, 60 seeded runs, and truths about exactly these users."""
    records = pa.table({"visits": VISITS})
    check_statistic(STATISTICS[name], survey(epsilon), records=records, truth=truth, runs=60, **options)


def test_own_statistics_of_optional_numbers_pass() -> None:
    records = pa.table({"visits": [None, *VISITS, None]})
    asked = survey(4.0, optional=True)
    for name, truth in (("mean", VISITS.mean()), ("share", 60 / 62), ("variance", VISITS.var())):
        check_statistic(STATISTICS[name], asked, records=records, truth=[truth], runs=40)


class Overconfident(Coordinates):
    """A mean whose intervals have half of their width."""

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        parts = super().parts(tally, dimensions, **options)
        return [replace(part, error=part.error / 2, small_sample=None) for part in parts]


def test_low_coverage_is_found() -> None:
    """Half of the width covers 67 %; the limit of the check is 83 of 100 seeded runs."""
    with pytest.raises(AssertionError, match=r"covers the truth in \d+ of 100 runs"):
        check_statistic(
            Overconfident("mean"),
            survey(1.0),
            records=pa.table({"visits": VISITS}),
            truth=[VISITS.mean()],
            runs=100,
        )
