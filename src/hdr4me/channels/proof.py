"""Privacy of an integer table, decided without rounding error; standard library only.

A table is private when, in every column, the largest weight is at most e^ε times the smallest. The ratio is a
fraction of integers; e^ε is not, so it is replaced by a rational number that is provably not larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hdr4me.errors import InvalidInput

BITS = 32  # every row of every table sums to 2**BITS
ONE = 1 << BITS

_PRECISION = 160
_TERMS = 40
_LARGEST = 1 << 16


def check_epsilon(epsilon: float) -> None:
    """Refuse a budget that is not a positive finite number."""
    if not (isinstance(epsilon, (int, float)) and math.isfinite(epsilon) and epsilon > 0):
        raise InvalidInput.of("epsilon", epsilon, "it must be a finite number > 0")


def exp_lower(epsilon: Fraction | float) -> Fraction:
    """A rational number in [e^ε·(1 − 2^-100), e^ε].

    The argument is halved s times until x ≤ 1/2; the Taylor sum of e^x has positive terms only, so stopping
    early and flooring each term on a fixed grid both round down; squaring s times, each time truncating the
    number to 160 leading bits, also rounds down. At ε ≤ 65536 there are at most 17 squarings, each of which doubles
    the relative error, so that it stays below 2^17·2^-150.
    """
    if isinstance(epsilon, float) and not math.isfinite(epsilon):
        raise InvalidInput(f"epsilon = {epsilon} is not allowed: it must be a finite number, at least 0")
    x = Fraction(epsilon)
    if not 0 <= x <= _LARGEST:
        raise InvalidInput(f"epsilon = {float(x)} is not allowed: it must lie in [0, {_LARGEST}]")
    halvings = 0
    while x > Fraction(1, 2):
        x /= 2
        halvings += 1
    term = total = 1 << _PRECISION
    for k in range(1, _TERMS):
        term = term * x.numerator // (x.denominator * k)
        total += term
    exponent = -_PRECISION
    for _ in range(halvings):
        total *= total
        exponent *= 2
        surplus = max(0, total.bit_length() - _PRECISION)
        total >>= surplus
        exponent += surplus
    return Fraction(total << exponent) if exponent >= 0 else Fraction(total, 1 << -exponent)


def column_ratio(rows: Sequence[Sequence[int]]) -> Fraction:
    """The largest ratio of two weights in one column. Its logarithm is the table's privacy loss.

    A report y multiplies the odds of two inputs by at most this number. That includes mixtures of rows, because a
    mixture of a column lies between its smallest and largest weight. A column of zeros is never reported. A column with
    zero and non-zero weights would exclude an input, which is an error.
    """
    ratio = Fraction(1)
    for y, column in enumerate(zip(*rows, strict=True)):
        low, high = min(column), max(column)
        if low < 0 or (low == 0 and high > 0):
            raise InvalidInput(f"column {y} has smallest weight {low}: it must be positive, or all zero")
        if high > low * ratio:
            ratio = Fraction(high, low)
    return ratio


def entries_ratio(rows: Sequence[Sequence[int]]) -> Fraction:
    """The largest likelihood ratio of a two-row table applied to every entry of a one-hot vector.

    Two vectors differ in two entries, one absent and present, the other present and absent, so the ratios multiply:
    max_y w₁(y)/w₀(y) · max_y w₀(y)/w₁(y).
    """
    if len(rows) != 2:
        raise InvalidInput(
            f"a table of unary encoding has {len(rows)} rows: it must have 2 (absent, present)"
        )
    column_ratio(rows)  # refuses weights of 0, by which a ratio below would divide
    pairs = [(int(a), int(b)) for a, b in zip(*rows, strict=True) if a]
    return max(Fraction(b, a) for a, b in pairs) * max(Fraction(a, b) for a, b in pairs)


def log_upper(ratio: Fraction) -> float:
    """A float x, within a few units in the last place, with e^x ≥ ratio proven."""
    if ratio < 1:
        raise InvalidInput(f"ratio = {float(ratio)} is not allowed: a largest likelihood ratio is at least 1")
    if ratio == 1:
        return 0.0
    near_one = ratio < 2  # here the difference of two logarithms would lose precision
    log = math.log
    x = math.log1p(float(ratio - 1)) if near_one else log(ratio.numerator) - log(ratio.denominator)
    step = math.ulp(x)
    x -= 2 * step
    while exp_lower(x) < ratio:
        x += step
        step *= 2
    return x


def check_ratio(name: str, ratio: Fraction, epsilon: float) -> None:
    """Prove `ratio` ≤ e^ε by fractions; InvalidInput with the channel, the factor and ε if it fails."""
    if not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise InvalidInput(f"{name}: epsilon = {epsilon} must be positive and finite")
    if ratio > exp_lower(epsilon):
        raise InvalidInput(
            f"{name} leaks a factor of {float(ratio):.15g}, more than e^epsilon at its epsilon = {epsilon}"
        )
