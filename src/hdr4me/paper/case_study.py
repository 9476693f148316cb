"""The paper's case study (section IV-C, Table II) and its Berry–Esseen example, recomputed.

A printed number is `right` if it equals the recomputed value rounded to the printed digits. It is `rounded` if it
differs by less than one unit of the last printed digit, or if it is the value rounded to at least three digits with
zeros appended. Otherwise it is `wrong`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
from scipy.optimize import brentq

from hdr4me.framework import Deviation, deviation
from hdr4me.framework.normal import berry_esseen_bound, log_probability_within
from hdr4me.mechanisms import mechanism

USERS, DIMS, SAMPLED, EPSILON = 10_000, 100, 100, 0.1
VALUES = tuple(k / 10 for k in range(1, 11))
TOLERANCES = (0.001, 0.01, 0.05, 0.1)


@dataclass(frozen=True)
class Line:
    """One number of the paper: the quantity, the printed digits and the recomputed value."""

    quantity: str
    printed: str
    value: float
    note: str = ""

    @property
    def verdict(self) -> str:
        """`right`, `rounded` or `wrong`."""
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
    """The deviation of the case study under a mechanism.

    Table II has Square wave on [0, 1] and Piecewise on [−1, 1]. `domain` puts either mechanism on [0, 1] or [−1, 1].
    """
    wave = name == "square_wave"
    domain = domain or ((0.0, 1.0) if wave else (-1.0, 1.0))
    options = {"domain": domain} if wave else {}
    # Piecewise works on [−1, 1]: on [0, 1] values are doubled and shifted, and the deviation is halved.
    halved = not wave and domain == (0.0, 1.0)
    found = deviation(
        mechanism(name, epsilon=EPSILON / SAMPLED, **options),
        users=USERS,
        dims=DIMS,
        sampled=SAMPLED,
        values=[2 * value - 1 for value in VALUES] if halved else VALUES,
        variance_formula="paper",
    )
    return replace(found, biases=found.biases / 2, variances=found.variances / 4) if halved else found


def square_wave_ahead_from() -> float:
    """The tolerance from which Square wave has the larger probability, if both mechanisms are on [−1, 1]."""
    piecewise, wave = (deviation_on(name, (-1.0, 1.0)) for name in ("piecewise", "square_wave"))

    def ahead(xi: float) -> float:
        return float(wave.probability_within(xi) - piecewise.probability_within(xi))

    return float(brentq(ahead, 0.1, 0.7))


def printed_variance() -> float:
    """σ_j² by the formula as printed: t instead of t², and e^{ε/2m + 3} instead of e^{ε/2m} + 3."""
    half = EPSILON / SAMPLED / 2
    mean = float(np.mean(VALUES))
    return (mean / math.expm1(half) + math.exp(half + 3) / (3 * math.expm1(half) ** 2)) / USERS


def case_study() -> list[Line]:
    """Every number of the case study in the order of the paper, and the example after Theorem 2."""
    piecewise, wave = deviation_on("piecewise"), deviation_on("square_wave")
    σ2, δ, w2 = float(piecewise.variance), float(wave.bias), float(wave.variance)
    note = f"the printed formula gives {printed_variance():.0f}, not 533.210"
    lines = [
        Line("Piecewise: variance", "533.210", σ2, note),
        Line("Piecewise: 2 × variance in the density", "1066.420", 2 * σ2),
        Line(
            "Piecewise: divisor of the density",
            "57.900",
            math.sqrt(math.tau * σ2),
            "57.9 with zeros appended",
        ),
        Line("Square wave: bias", "-0.049", δ, "truncated, not rounded"),
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
    # The example after Theorem 2: Lap(2), r = 1000, with the correct ρ = 6λ³ and with the printed ρ = 3λ³.
    right, paper = (float(berry_esseen_bound(third, 8.0, 1000)) for third in (48.0, 24.0))
    moment = "ρ = 6λ³, not 3λ³"
    arithmetic = "correct arithmetic with an incorrect ρ"
    # The Square row of Table II does not follow from the printed bias and variance either.
    own = math.exp(float(log_probability_within(-0.049, math.sqrt(3.365e-5), 0.05)))
    note = f"the correct bias and variance give {float(wave.probability_within(0.05)):.6f}"
    return [
        *lines,
        Line("Laplace: Berry–Esseen bound, 1000 reports", "1.57e-2", right, moment),
        Line("Laplace: the same with the printed 3λ³", "1.57e-2", paper, arithmetic),
        Line("Square wave: probability within 0.05 from the printed bias and variance", "0.644", own, note),
    ]


TABLE_COLUMNS = ("quantity", "printed", "recomputed", "verdict on the printed digits", "note")


def table2() -> list[list[object]]:
    """Table II and the other numbers of section IV-C, printed and recomputed; the columns are `TABLE_COLUMNS`."""
    return [
        [line.quantity, line.printed, f"{line.value:.8g}", line.verdict, line.note or None]
        for line in case_study()
    ]
