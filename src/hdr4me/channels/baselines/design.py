"""From budgets to the baselines, one function each; standard library only.

The error of a frequency depends only on the distribution of one report for one category: the probability p that a
report supports the user's own category, and the probability q that it supports another one. A baseline is therefore
the unary encoding with the p and q of the publication, and its privacy is proven like that of any channel. The reports
of local hashing are shorter, but which categories they support has the same distribution if the hash functions are
ideal. Only generalized randomized response and Hadamard response need channels of their own.

`BASELINES` have the budget ε of a report. `MEMOIZED_BASELINES` also have the budget ε∞ of any number of reports of an
unchanged value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from hdr4me.channels.baselines.channel import MAX_SIZE, Hadamard
from hdr4me.channels.channel import Channel
from hdr4me.channels.k_subset import KSubset, heaviest
from hdr4me.channels.proof import ONE, check_epsilon, exp_lower
from hdr4me.channels.subset import Subset
from hdr4me.channels.table.channel import UnaryEncoding
from hdr4me.channels.table.design import staged_category, staged_symmetric
from hdr4me.errors import InvalidInput

MAX_EPSILON = 20.0  # the largest budget of a baseline; above it, weights of 32 bits would be 0
Probability = Fraction | float


def pure(
    name: str, epsilon: float, size: int, p: Probability, q: Probability, sent: Probability = 1
) -> UnaryEncoding:
    """An entry is sent with probability `sent`, and then as 1 with probability p (own category) or q (any other).

    Rounding lowers p and raises q, which makes the channel more private.
    """
    every = round(sent * ONE)
    own, other = math.floor(p * every), math.ceil(q * every)
    decode = [weight / (own - other) * ONE / every for weight in (-other, every - other)]
    rows = (every - other, other), (every - own, own)
    if every == ONE:
        return UnaryEncoding(name, float(epsilon), size, tuple(decode), rows)
    return UnaryEncoding(
        name, float(epsilon), size, (*decode, 0.0), tuple((*row, ONE - every) for row in rows)
    )


def sue(epsilon: float, size: int) -> UnaryEncoding:
    """Symmetric unary encoding, the basic one-time RAPPOR (Erlingsson, Pihur and Korolova 2014; Wang et al. 2017)."""
    return _symmetric("sue", epsilon, size, size)


def dbitflip(epsilon: float, size: int, bits: int = 1) -> UnaryEncoding:
    """dBitFlip (Ding, Kulkarni and Yekhanin 2017): `bits` of the entries, on average, each under ε/2 as published."""
    return _symmetric("dbitflip", epsilon, size, bits)


def _symmetric(name: str, epsilon: float, size: int, bits: int) -> UnaryEncoding:
    root = exp_lower(epsilon / 2)
    return pure(name, epsilon, size, root / (root + 1), 1 / (root + 1), Fraction(bits, size))


def the(epsilon: float, size: int) -> UnaryEncoding:
    """Thresholding with histogram encoding: Laplace noise on each entry, sent as 1 above θ (Wang et al. 2017).

    p = 1 − e^{(θ − 1)ε/2}/2 and q = e^{−θε/2}/2, with the θ in [1/2, 1] of least variance q(1 − q)/(p − q)².
    """

    def shares(threshold: float) -> tuple[float, float]:
        return 1 - math.exp((threshold - 1) * epsilon / 2) / 2, math.exp(-threshold * epsilon / 2) / 2

    def variance(threshold: float) -> float:
        p, q = shares(threshold)
        return q * (1 - q) / (p - q) ** 2

    best = min((0.5 + i / 20_000 for i in range(10_001)), key=variance)
    return pure("the", epsilon, size, *shares(best))


def olh(epsilon: float, size: int) -> UnaryEncoding:
    """Optimized local hashing to g = ⌊e^ε + 1.5⌋ values (Wang et al. 2017): p = e^ε/(e^ε + g − 1) and q = 1/g."""
    return _hashing("olh", epsilon, size, round(math.exp(epsilon)) + 1)


def blh(epsilon: float, size: int) -> UnaryEncoding:
    """Binary local hashing: hashing to two values (Bassily and Smith 2015; Wang et al. 2017)."""
    return _hashing("blh", epsilon, size, 2)


def _hashing(name: str, epsilon: float, size: int, values: int) -> UnaryEncoding:
    ratio = exp_lower(epsilon)
    return pure(name, epsilon, size, ratio / (ratio + values - 1), Fraction(1, values))


def hadamard(epsilon: float, size: int) -> KSubset:
    """Hadamard response (Acharya, Sun and Zhang 2019): 2^(⌈log₂ min(e^ε, 2v)⌉ − 1) blocks, or one block if ε ≤ 1."""
    doublings = math.ceil(min(epsilon / math.log(2), math.log2(2 * size)))
    family = Hadamard(size, 1 if epsilon <= 1 else min(1 << doublings - 1, size))
    return KSubset("hadamard", float(epsilon), family, heaviest(epsilon, family))


def l_sue(epsilon: float, memoized: float, size: int) -> UnaryEncoding:
    """L-SUE, the basic RAPPOR: symmetric unary encoding in both stages (Erlingsson et al.; Arcolezi et al. 2021)."""
    return replace(staged_symmetric(epsilon, memoized, size), mechanism="l_sue")


def l_osue(epsilon: float, memoized: float, size: int) -> UnaryEncoding:
    """L-OSUE: optimized and then symmetric unary encoding (Arcolezi et al. 2021), which surveys use by default."""
    return replace(staged_category(epsilon, memoized, size), mechanism="l_osue")


def l_grr(epsilon: float, memoized: float, size: int) -> KSubset:
    """L-GRR: generalized randomized response in both stages (Arcolezi, Couchot, Al Bouna and Xiao 2021); one report."""
    weight = math.floor(_kept_by_both_stages(epsilon, memoized, size) * ONE)
    return KSubset("l_grr", float(epsilon), Subset(size, 1), weight)


def loloha(epsilon: float, memoized: float, size: int) -> UnaryEncoding:
    """LOLOHA: local hashing, then generalized randomized response in two stages (Arcolezi et al. 2023); one report.

    The number g of hashed values is the published optimum.
    """
    a, b = math.exp(memoized), math.exp(epsilon)
    inside = a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1
    values = 1 + max(1, round((1 - a**2 + math.sqrt(inside)) / (6 * (a - b))))
    return pure("loloha", epsilon, size, _kept_by_both_stages(epsilon, memoized, values), Fraction(1, values))


def _kept_by_both_stages(epsilon: float, memoized: float, values: int) -> float:
    """P(two stages of randomized response among these values report the input).

    The second stage is the published one, e^ε₂ = (e^{ε∞ + ε} − 1)/(e^ε∞ − e^ε). It is exact for two values. For more
    values one report has less than ε, because the formula omits the paths through the other values.
    """
    second = (math.exp(epsilon) - math.exp(-memoized)) / -math.expm1(epsilon - memoized)
    other = [1 / (ratio + values - 1) for ratio in (math.exp(memoized), second)]
    return (1 - (values - 1) * other[0]) * (1 - (values - 1) * other[1]) + (values - 1) * other[0] * other[1]


BASELINES: dict[str, Callable[[float, int], Channel]] = {
    "sue": sue,
    "the": the,
    "olh": olh,
    "blh": blh,
    "hadamard": hadamard,
    "dbitflip": dbitflip,
}
MEMOIZED_BASELINES: dict[str, Callable[[float, float, int], Channel]] = {
    "l_grr": l_grr,
    "l_sue": l_sue,
    "l_osue": l_osue,
    "loloha": loloha,
}


def baseline(name: str, epsilon: float, size: int, memoized: float | None = None) -> Channel:
    """The baseline called `name` for `size` categories.

    Parameters
    ----------
    name
        One of `BASELINES` or `MEMOIZED_BASELINES`.
    epsilon
        The budget ε of a report.
    size
        The number of categories, at most 4096.
    memoized
        The budget ε∞ of any number of reports of an unchanged value, for the protocols with memoization only.

    Examples
    --------
    >>> channel = baseline("olh", 1.0, 100)
    >>> channel.mechanism, float(channel.likelihood_ratio) <= 2.718281828459045
    ('olh', True)
    """
    known = BASELINES if memoized is None else MEMOIZED_BASELINES
    if name not in known:
        words = "without memoized" if memoized is None else "with memoized"
        raise InvalidInput.of("name", name, f"{words}, one of {', '.join(known)}")
    for parameter, value in (("epsilon", epsilon), ("memoized", 1.0 if memoized is None else memoized)):
        check_epsilon(value)
        if value > MAX_EPSILON:
            raise InvalidInput.of(parameter, value, f"at most {MAX_EPSILON:g} for a baseline")
    if type(size) is not int or not 2 <= size <= MAX_SIZE:
        raise InvalidInput.of("size", size, f"an integer from 2 to {MAX_SIZE} for a baseline")
    if memoized is None:
        return BASELINES[name](epsilon, size)
    if memoized <= epsilon:
        raise InvalidInput.of("memoized", memoized, f"a number above epsilon = {epsilon:g}")
    return MEMOIZED_BASELINES[name](epsilon, memoized, size)
