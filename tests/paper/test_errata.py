"""The numbers of the errata, and the page generated from them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from hdr4me.pages.document import to_markdown
from hdr4me.paper.errata import errata, harm_ratio
from hdr4me.paper.report import ERRATA_LEAD, ERRATA_TITLE, errata_blocks

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"


@pytest.fixture(scope="module")
def numbers():
    return {what: value for item in errata() for what, value in item.numbers}


def test_the_page_is_generated_from_the_code():
    assert PAGE.read_text(encoding="utf-8") == to_markdown(ERRATA_TITLE, ERRATA_LEAD, errata_blocks())


@pytest.mark.parametrize(
    ("what", "value", "tolerance"),
    [
        ("σ_j² of the case study, printed formula", 2678, 0.5),
        ("σ_j² of the case study, corrected formula", 533.210352970, 1e-8),
        ("bound at r_j = 1000 with 6λ³", 0.02691215, 5e-9),
        ("bound at r_j = 1000 with 3λ³", 0.01565780, 5e-9),
        ("exact/paper variance, piecewise, ε = 1, d = 100, m = 1", 1.08, 0.005),
        ("exact/paper variance, piecewise, ε = 4, d = 100, m = 1", 3.4, 0.05),
        ("exact/paper variance, piecewise, ε = 8, d = 100, m = 1", 26.6, 0.05),
        ("printed probability (some j)", 0.930, 0.0005),
        ("share of 2,000 simulated collections that L1 improves", 0.0, 0.0),
        ("calibrated Square wave over Piecewise, variance on uniform data, ε = 1", 1.04, 0.005),
        ("bias δ_j, Square wave on [-1, 1]", -0.550, 0.0005),
        ("probability within 0.1, Square wave on [-1, 1]", 0.0, 0.0),
        ("probability within 0.1, Piecewise on [-1, 1]", 0.00345533, 5e-9),
        ("largest variance over smallest, hybrid, ε = 1", 1.0, 1e-12),
        ("argmin of ½(θ − 1)² + λ*θ² at λ* = 3, by search", 1 / 7, 1e-5),
        ("argmin of ½(θ − 1)² + (λ*θ)² at λ* = 3, by search", 1 / 19, 1e-5),
        ("L2: probability of an improvement, at most", 0.0, 1e-6),
        # −(1/3)/(2(V̄ + 1/3) − 1/3) with V̄ = 0.012908 at ε = 8
        (
            "correlation of two errors, equal uniform dimensions, Piecewise, d = 2, m = 1, ε = 8",
            -0.928,
            0.0005,
        ),
    ],
)
def test_numbers_agree_with_an_independent_derivation(numbers, what, value, tolerance):
    """Each tolerance is half a unit of the last digit of the independent derivation."""
    assert abs(numbers[what] - value) <= tolerance


def test_quadrature_agrees_with_the_formula(numbers):
    formula = numbers["Var(t*) at t = 0.3, ε/m = 0.001, corrected formula"]
    assert numbers["the same by quadrature of the density"] == pytest.approx(formula, rel=1e-8)


@pytest.mark.parametrize(("z", "ratio"), [(1.0, 1.28), (2.0, 1.05), (3.0, 1.006)])
def test_where_l1_increases_the_error(z, ratio):
    assert harm_ratio(z) == pytest.approx(ratio, abs=0.005 if z < 3 else 0.0005)


def test_remarks_follow_the_errata():
    found = errata()
    assert [item.name for item in found if item.remark] == [
        "lemma-5-threshold",
        "when-harmful",
        "square-wave-shrinkage",
    ]
    assert not any(a.remark and not b.remark for a, b in pairwise(found))
    page = PAGE.read_text(encoding="utf-8")
    assert page.index("## Remarks") > page.index("The penalty of L2")
    assert "**Correct:** Σ_j λ*_jθ_j²" in page
