"""The table of peers' protocols in docs/comparing.md has the measured ratios."""

from __future__ import annotations

import math
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_measured_ratios() -> None:
    """Each measured protocol is named on the page, and ours is never worse by more than 3 standard errors and 5 %."""
    page = (ROOT / "docs" / "comparing.md").read_text("utf-8")
    results = (ROOT / "benchmarks" / "results" / "peers_protocols.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:[\w-]+ \| )?(\w+) \| (.* ± .*) \|$", results, re.MULTILINE)
    assert len(rows) == 7 + 13 + 7
    for protocol, cells in rows:
        named = protocol.replace("L_BLH", "longitudinal BLH").replace("_", "-")
        assert named in page
        for ratio, error in re.findall(r"([\d.]+) ± ([\d.]+)", cells):
            assert float(ratio) + 3 * float(error) > 0.95


def test_random_sampling_with_fake_data_protects_one_attribute() -> None:
    """RS+FD[GRR] with two attributes of two categories, ε = 1, by enumeration: the loss of a complete record is ε'."""
    amplified = math.log(1 + 2 * math.expm1(1.0))
    p, q = math.exp(amplified) / (math.exp(amplified) + 1), 1 / (math.exp(amplified) + 1)

    def law(y: tuple[int, int], x: tuple[int, int]) -> float:
        return sum(0.5 * (p if y[j] == x[j] else q) * 0.5 for j in (0, 1))

    both = law((0, 0), (0, 0)) / law((0, 0), (1, 1))
    one = max(law(y, (0, 0)) / law(y, (1, 0)) for y in ((0, 0), (0, 1), (1, 0), (1, 1)))
    assert math.isclose(math.log(both), amplified)
    assert math.isclose(math.log(one), 1.0)
