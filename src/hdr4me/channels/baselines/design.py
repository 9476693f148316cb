"""From budgets to the channels of the baselines, one function each; standard library only.

`BASELINES` have the budget ε of a report. `MEMOIZED_BASELINES` also have the budget ε∞ of any number of reports of an
unchanged value. Every constructor proves the privacy of its integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hdr4me.channels.baselines.channel import MAX_SIZE, BitFlip, Hadamard, LocalHashing, TwoStages
from hdr4me.channels.channel import Channel
from hdr4me.channels.k_subset import Family, KSubset, heaviest
from hdr4me.channels.projective.field import is_order
from hdr4me.channels.proof import ONE, check_epsilon, exp_lower
from hdr4me.channels.subset import Subset
from hdr4me.channels.table.channel import STAGE_ONE, UnaryEncoding
from hdr4me.channels.table.design import staged_category, staged_symmetric
from hdr4me.errors import InvalidInput


def _unary(name: str, epsilon: float, size: int, own: int, other: int) -> UnaryEncoding:
    """An entry is sent as 1 with the weight `own` for the user's category and `other` for any other one."""
    decode = -other / (own - other), (ONE - other) / (own - other)
    return UnaryEncoding(name, float(epsilon), size, decode, ((ONE - other, other), (ONE - own, own)))


def sue(epsilon: float, category_count: int) -> UnaryEncoding:
    """Symmetric unary encoding, the basic one-time RAPPOR (Erlingsson, Pihur and Korolova 2014; Wang et al. 2017)."""
    flipped = math.ceil(ONE / (exp_lower(epsilon / 2) + 1))
    return _unary("sue", epsilon, category_count, ONE - flipped, flipped)


def the(epsilon: float, category_count: int) -> UnaryEncoding:
    """Thresholding with histogram encoding: Laplace noise on each entry, sent as 1 above θ (Wang et al. 2017).

    p = 1 − e^{(θ − 1)ε/2}/2 and q = e^{−θε/2}/2, with the θ in [1/2, 1] of least variance q(1 − q)/(p − q)².
    """

    def shares(threshold: float) -> tuple[float, float]:
        return 1 - math.exp((threshold - 1) * epsilon / 2) / 2, math.exp(-threshold * epsilon / 2) / 2

    def variance(threshold: float) -> float:
        p, q = shares(threshold)
        return q * (1 - q) / (p - q) ** 2

    p, q = shares(min((0.5 + i / 20_000 for i in range(10_001)), key=variance))
    return _unary("the", epsilon, category_count, math.floor(p * ONE), math.ceil(q * ONE))


def _hashing(order: float, category_count: int) -> LocalHashing:
    """Local hashing to the possible number of values that is nearest to `order`."""
    nearest = max(2, round(order))
    found = next(q for step in range(nearest) for q in (nearest + step, nearest - step) if is_order(q))
    length = next(t for t in range(1, 25) if found**t >= category_count)
    return LocalHashing(category_count, found, length)


def olh(epsilon: float, category_count: int) -> KSubset:
    """Optimized local hashing (Wang et al. 2017) to about e^ε + 1 values: the nearest prime or power of a prime."""
    check_epsilon(epsilon)
    if epsilon > 8:
        raise InvalidInput.of("epsilon", epsilon, "at most 8 for olh, whose hash functions would be too many")
    family = _hashing(round(math.exp(epsilon)) + 1, category_count)
    return KSubset("olh", float(epsilon), family, heaviest(epsilon, family))


def hadamard(epsilon: float, category_count: int) -> KSubset:
    """Hadamard response (Acharya, Sun and Zhang 2019): 2^(⌈log₂ min(e^ε, 2v)⌉ − 1) blocks, or one block if ε ≤ 1."""
    check_epsilon(epsilon)
    doublings = math.ceil(min(epsilon / math.log(2), math.log2(2 * category_count)))
    family = Hadamard(category_count, 1 if epsilon <= 1 else min(1 << doublings - 1, category_count))
    return KSubset("hadamard", float(epsilon), family, heaviest(epsilon, family))


def bit_flip(epsilon: float, category_count: int, bits: int = 1) -> BitFlip:
    """dBitFlip (Ding, Kulkarni and Yekhanin 2017) with one bit unless given; with all bits it is `sue`.

    Every bit has the budget ε/2, as published. One bit alone shows at most ε/2.
    """
    flipped = math.ceil(ONE / (exp_lower(epsilon / 2) + 1))
    return BitFlip("dbitflip", float(epsilon), category_count, bits, flipped)


def _two_stages(name: str, epsilon: float, memoized: float, family: Family) -> TwoStages:
    """Randomized response twice, with the published second stage: e^ε₂ = (e^{ε∞ + ε} − 1)/(e^ε∞ − e^ε).

    It is exact for two values. For more values one report has less than ε, because the formula omits the paths through
    the other values.
    """
    g = family.n_outputs // family.n_heavy
    both = (math.exp(epsilon) - math.exp(-memoized)) / -math.expm1(epsilon - memoized)
    first = math.ceil(STAGE_ONE / (exp_lower(memoized) + g - 1))
    second = math.ceil(STAGE_ONE / (both + g - 1))
    weight = (STAGE_ONE - (g - 1) * first) * (STAGE_ONE - (g - 1) * second) + (g - 1) * first * second
    return TwoStages(name, float(epsilon), family, weight, float(memoized), first, second)


def l_grr(epsilon: float, memoized: float, category_count: int) -> TwoStages:
    """L-GRR: generalized randomized response in both stages (Arcolezi, Couchot, Al Bouna and Xiao 2021)."""
    return _two_stages("l_grr", epsilon, memoized, Subset(category_count, 1))


def l_sue(epsilon: float, memoized: float, category_count: int) -> UnaryEncoding:
    """L-SUE, the basic RAPPOR: symmetric unary encoding in both stages (Erlingsson et al. 2014; Arcolezi et al. 2021)."""
    return replace(staged_symmetric(epsilon, memoized, category_count), mechanism="l_sue")


def l_osue(epsilon: float, memoized: float, category_count: int) -> UnaryEncoding:
    """L-OSUE: optimized and then symmetric unary encoding (Arcolezi et al. 2021), which surveys use by default."""
    return replace(staged_category(epsilon, memoized, category_count), mechanism="l_osue")


def loloha(epsilon: float, memoized: float, category_count: int) -> TwoStages:
    """LOLOHA: local hashing, then randomized response of the hashed value in two stages (Arcolezi et al. 2023).

    The number of hashed values is the published optimum, or the nearest prime or power of a prime. A client of this
    package keeps the hash function with the response to a value. With one function for all values, as published, a
    changed value costs ε∞ only if its hashed value changes.
    """
    a, b = math.exp(memoized), math.exp(epsilon)
    inside = a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1
    order = 1 + max(1, round((1 - a**2 + math.sqrt(inside)) / (6 * (a - b))))
    return _two_stages("loloha", epsilon, memoized, _hashing(order, category_count))


BASELINES: dict[str, Callable[[float, int], Channel]] = {
    "sue": sue,
    "the": the,
    "olh": olh,
    "hadamard": hadamard,
    "dbitflip": bit_flip,
}
MEMOIZED_BASELINES: dict[str, Callable[[float, float, int], Channel]] = {
    "l_grr": l_grr,
    "l_sue": l_sue,
    "l_osue": l_osue,
    "loloha": loloha,
}


def baseline(name: str, epsilon: float, category_count: int, memoized: float | None = None) -> Channel:
    """The baseline called `name`; one of `MEMOIZED_BASELINES` needs the memoized budget."""
    if category_count > MAX_SIZE:
        raise InvalidInput(
            f"categorical = {name!r} is a baseline for at most {MAX_SIZE} categories: there are {category_count:,}"
        )
    if name in BASELINES:
        return BASELINES[name](epsilon, category_count)
    if memoized is None:
        raise InvalidInput(f"categorical = {name!r} is a protocol with memoization: also give memoized_epsilon")
    return MEMOIZED_BASELINES[name](epsilon, memoized, category_count)
