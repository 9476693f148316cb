import math

import pytest

from hdr4me.paper.case_study import case_study, printed_variance, verdict

# quantity → (our value, digits that must agree, verdict on the paper's printing)
EXPECTED = {
    "Piecewise: variance": (533.210352970, "right"),
    "Piecewise: 2 × variance in the density": (1066.420706, "rounded"),
    "Piecewise: divisor of the density": (57.881426, "rounded"),
    "Square wave: bias": (-0.049975008, "rounded"),
    "Square wave: variance": (3.33028784e-5, "wrong"),
    "Square wave: 2 × variance in the density": (6.66057568e-5, "wrong"),
    "Square wave: divisor of the density": (0.01446541, "rounded"),
    "Piecewise: probability within 0.001": (3.45534e-5, "right"),
    "Piecewise: probability within 0.01": (3.45534e-4, "right"),
    "Piecewise: probability within 0.05": (0.00172767, "right"),
    "Piecewise: probability within 0.1": (0.00345533, "rounded"),
    "Square wave: probability within 0.001": (1.01299e-17, "wrong"),
    "Square wave: probability within 0.01": (2.14869e-12, "wrong"),
    "Square wave: probability within 0.05": (0.501728, "wrong"),
    "Square wave: probability within 0.1": (1.0, "right"),
    "Laplace: Berry–Esseen bound, 1000 reports": (0.02691215, "wrong"),
    "Laplace: the same with the printed 3λ³": (0.01565780, "right"),
}


@pytest.mark.parametrize("quantity", EXPECTED)
def test_each_number_to_six_digits(quantity: str) -> None:
    line = next(line for line in case_study() if line.quantity == quantity)
    value, expected = EXPECTED[quantity]
    assert line.value == pytest.approx(value, rel=2e-6)  # the reference itself has six digits
    assert line.verdict == expected


def test_the_papers_square_row_contradicts_its_own_moments() -> None:
    line = case_study()[-1]
    below, above = ((x + 0.049) / math.sqrt(3.365e-5 * 2) for x in (-0.05, 0.05))
    assert line.value == pytest.approx((math.erf(above) - math.erf(below)) / 2, rel=1e-9)
    assert line.verdict == "wrong"


def test_the_printed_formula_gives_something_else() -> None:
    assert round(printed_variance()) == 2678


@pytest.mark.parametrize(
    ("printed", "value", "says"),
    [
        ("0.002", 0.00172767, "right"),
        ("0.002", 0.0029, "rounded"),
        ("0.002", 0.0031, "wrong"),
        ("1.000", 0.9996, "right"),
        ("1.000", 0.994, "wrong"),
        ("100", 104.9, "wrong"),
        ("3.46e-5", 3.455e-5, "rounded"),
    ],
)
def test_verdicts_come_from_digits(printed: str, value: float, says: str) -> None:
    assert verdict(printed, value) == says
