"""The numbers of the errata, and the page generated from them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from hdr4me.pages.document import to_markdown
from hdr4me.paper.errata import errata
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
        ("σ_j² of the case study, printed formula", 2678.1815, 5e-5),
        ("σ_j² of the case study, corrected formula", 533.210352970, 1e-8),
        ("Square wave: variance (printed 3.365e-5)", 3.33028784e-5, 5e-14),
        ("Square wave: probability within 0.001 (printed 2.12e-16)", 1.0129941e-17, 5e-25),
        ("Square wave: probability within 0.01 (printed 2.62e-11)", 2.14869e-12, 5e-18),
        ("Square wave: probability within 0.05 (printed 0.644)", 0.50172768, 5e-9),
        ("ξ_j from which Square wave is better, both on [-1, 1]", 0.52556388, 5e-9),
        ("ρ/λ³ by quadrature", 6.0, 1e-9),
        ("bound at r_j = 1000 with 6λ³", 0.026912151, 5e-10),
        ("bound at r_j = 1000 with 3λ³", 0.015657797, 5e-10),
        ("largest variance over smallest, piecewise, ε = 1", 1.41864, 5e-6),
        ("largest variance over smallest, duchi, ε = 1", 1.27154, 5e-6),
        ("largest variance over smallest, hybrid, ε = 0.5", 1.06381, 5e-6),
        ("largest variance over smallest, hybrid, ε = 1", 1.0, 1e-12),
        ("exact/paper variance, laplace, ε = 8, d = 100, m = 1", 3.64036, 5e-6),
        ("exact/paper variance, piecewise, ε = 1, d = 100, m = 1", 1.07875, 5e-6),
        ("exact/paper variance, piecewise, ε = 4, d = 100, m = 1", 3.40894, 5e-6),
        ("exact/paper variance, piecewise, ε = 8, d = 100, m = 1", 26.5794, 5e-5),
        # −(1/3)/(2(V̄ + 1/3) − 1/3) with V̄ = 0.012908 at ε = 8, to first order in 1/n
        (
            "correlation of two errors, equal uniform dimensions, Piecewise, d = 2, m = 1, ε = 8",
            -0.9279692,
            1e-6,
        ),
        ("P(both within one standard deviation) by the product", 0.466064943, 5e-10),
        ("the same with that correlation", 0.6094158, 1e-6),
        ("printed probability (some j)", 0.93018781, 5e-9),
        ("probability that the proof needs (all j)", 8.77369e-159, 5e-164),
        ("share of 2,000 simulated collections that L1 improves", 0.0, 0.0),
        ("L2: printed probability (some j)", 0.99676276, 5e-9),
        # v/(v + dμ²) with μ = 0.16 − (1/2.2 − 1)² − 0.16/2.2² and the normal moments of the gain
        ("L2: probability of an improvement, at most", 2.460e-7, 5e-11),
        ("argmin of ½(θ − 1)² + λ*θ² at λ* = 3, by search", 1 / 7, 1e-5),
        ("argmin of ½(θ − 1)² + (λ*θ)² at λ* = 3, by search", 1 / 19, 1e-5),
        ("h(1)", 1.2832638, 5e-8),
        ("h(2)", 1.0527866, 5e-8),
        ("h(3)", 1.0057127, 5e-8),
        # A grid of 2,001 values with both ends stands for uniform data.
        ("calibrated Square wave over Piecewise, variance on uniform data, ε = 1", 1.0416217, 2e-5),
    ],
)
def test_numbers_agree_with_an_independent_derivation(numbers, what, value, tolerance):
    """Derived with mpmath, 40 digits; a tolerance is half a unit of the last digit unless a comment says why not."""
    assert abs(numbers[what] - value) <= tolerance


def test_quadrature_agrees_with_the_formula(numbers):
    formula = numbers["Var(t*) at t = 0.3, ε/m = 0.001, corrected formula"]
    assert numbers["the same by quadrature of the density"] == pytest.approx(formula, rel=1e-8)


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
