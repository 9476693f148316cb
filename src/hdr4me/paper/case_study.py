"""The paper's case study (section IV-C, Table II) and its Berry–Esseen example, computed anew.

A printed number is `right` if it is our value rounded to its own digits; `rounded` if it is off by less than one unit
of its last digit, or our value rounded to three digits or more and filled up with zeros; and `wrong` otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np

from hdr4me.framework import Deviation, deviation
from hdr4me.framework.normal import berry_esseen_bound, log_probability_within
from hdr4me.mechanisms import mechanism

N_USERS, N_DIMS, N_SAMPLED, EPSILON = 10_000, 100, 100, 0.1
VALUES = tuple(k / 10 for k in range(1, 11))
TOLERANCES = (0.001, 0.01, 0.05, 0.1)


@dataclass(frozen=True)
class Line:
    """One number of the paper: what it is, what the paper prints, what it should be."""

    quantity: str
    printed: str
    value: float
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the printed digits are right."""
        return verdict(self.printed, self.value)


def verdict(printed: str, value: float) -> str:
    """Compare a printed number with a computed one, at the precision of the printing."""
    stated = Decimal(printed)
    unit = Decimal(1).scaleb(int(stated.as_tuple().exponent))
    exact = Decimal(value)
    if exact.quantize(unit, rounding=ROUND_HALF_EVEN) == stated:
        return "right"
    digits = len(stated.as_tuple().digits) - len(stated.normalize().as_tuple().digits)
    fewest = max(len(stated.as_tuple().digits) - 3, 0)
    coarse = unit.scaleb(min(digits, fewest))
    filled = exact.quantize(coarse, rounding=ROUND_HALF_EVEN) == stated
    return "rounded" if filled or abs(exact - stated) < unit else "wrong"


def deviation_on(name: str, domain: tuple[float, float] | None = None) -> Deviation:
    """The case study's deviation under a mechanism; Square wave on its own [0, 1] unless `domain` is given."""
    options = {} if domain is None or name != "square_wave" else {"domain": domain}
    return deviation(
        mechanism(name, epsilon=EPSILON / N_SAMPLED, **options),
        users=N_USERS,
        dims=N_DIMS,
        sampled=N_SAMPLED,
        values=VALUES,
        variance="paper",
    )


def printed_variance() -> float:
    """σ_j² by the formula as the paper prints it: t for t², e^{ε/2m + 3} for e^{ε/2m} + 3."""
    s = math.expm1(EPSILON / N_SAMPLED / 2)
    mean = float(np.mean(VALUES))
    return (mean / s + math.exp(EPSILON / N_SAMPLED / 2 + 3) / (3 * s**2)) / N_USERS


def case_study() -> list[Line]:
    """Every number of the case study, in the paper's order, and Theorem 2's example."""
    piecewise, wave = deviation_on("piecewise"), deviation_on("square_wave")
    σ2, δ, w2 = float(piecewise.variance), float(wave.bias), float(wave.variance)
    note = f"the formula as printed gives {printed_variance():.0f}, not the paper's own 533.210"
    lines = [
        Line("Piecewise: variance", "533.210", σ2, note),
        Line("Piecewise: 2 × variance in the density", "1066.420", 2 * σ2),
        Line(
            "Piecewise: divisor of the density", "57.900", math.sqrt(math.tau * σ2), "57.9 with zeros added"
        ),
        Line("Square wave: bias", "-0.049", δ, "cut off, not rounded"),
        Line("Square wave: variance", "3.365e-5", w2),
        Line("Square wave: 2 × variance in the density", "6.730e-5", 2 * w2, "follows from the variance"),
        Line("Square wave: divisor of the density", "0.015", math.sqrt(math.tau * w2)),
    ]
    table = (
        ("Piecewise", piecewise, ("3.46e-5", "3.46e-4", "0.002", "0.004")),
        ("Square wave", wave, ("2.12e-16", "2.62e-11", "0.644", "1.000")),
    )
    for name, dev, printed in table:
        for ξ, digits in zip(TOLERANCES, printed, strict=True):
            lines.append(Line(f"{name}: probability within {ξ:g}", digits, float(dev.probability_within(ξ))))
    # Theorem 2's example: Laplace with λ = 2, r = 1000; with the right third moment 6λ³ and with the paper's 3λ³.
    right, paper = (float(berry_esseen_bound(third, 8.0, 1000)) for third in (48.0, 24.0))
    moment = "the third absolute moment is 6λ³, not 3λ³"
    arithmetic = "the paper's arithmetic, from a wrong moment"
    # Table II's Square row against the paper's OWN bias and variance: it does not follow from them either.
    own = math.exp(float(log_probability_within(-0.049, math.sqrt(3.365e-5), 0.05)))
    note = f"the right one is {float(wave.probability_within(0.05)):.6f}"
    return [
        *lines,
        Line("Laplace: Berry–Esseen bound, 1000 reports", "1.57e-2", right, moment),
        Line("Laplace: the same with the paper's 3λ³", "1.57e-2", paper, arithmetic),
        Line(
            "Square wave: probability within 0.05 from the paper's own bias and variance", "0.644", own, note
        ),
    ]


TABLE_COLUMNS = ("quantity", "paper", "ours", "verdict on the paper's digits", "note")


def table2() -> list[list[object]]:
    """Table II and the other printed numbers of section IV-C, the paper's beside ours, with `TABLE_COLUMNS`."""
    return [
        [line.quantity, line.printed, f"{line.value:.8g}", line.verdict, line.note or None]
        for line in case_study()
    ]
