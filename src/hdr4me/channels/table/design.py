"""Channels with two stages: a memoized response, and fresh noise in each report; standard library only.

Both stages are tables whose rows sum to 2^16. Their product satisfies ε for one report, and the first stage alone
satisfies the memoized ε for any number of reports. Apart from the rounding to 16 bits, the distribution of one report
is that of the best table with the same number of cells under ε.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hdr4me.channels.proof import ONE, column_ratio, entries_ratio, exp_lower
from hdr4me.channels.table.channel import STAGE_ONE, Rows, Stages, Table, UnaryEncoding, product_rows
from hdr4me.errors import InvalidInput


def staged_number(epsilon: float, memoized: float) -> Table:
    """Two levels, −1 and 1: randomized response that is memoized, then fresh randomized response in each report."""
    first = _flip(_least_noise(_flip, column_ratio, memoized))
    second = _flip(_least_noise(lambda turned: product_rows(first, _flip(turned)), column_ratio, epsilon))
    rows = product_rows(first, second)
    value = ONE / (rows[1][1] - rows[0][1])
    return Table(
        "two_stages", epsilon, {"value": (-value, value)}, rows, stages=Stages(memoized, first, second)
    )


def staged_category(epsilon: float, memoized: float, size: int) -> UnaryEncoding:
    """Unary encoding of a category in two stages (L-OSUE, Arcolezi et al.).

    The memoized stage is optimized unary encoding: it keeps a present entry with probability 1/2. The fresh stage flips
    each entry with one probability, so that one report has the distribution of optimized unary encoding under ε.
    """
    return _staged(epsilon, memoized, size, _half)


def staged_symmetric(epsilon: float, memoized: float, size: int) -> UnaryEncoding:
    """The same with symmetric unary encoding as the memoized stage: it flips each entry with one probability."""
    return _staged(epsilon, memoized, size, _flip)


def _staged(epsilon: float, memoized: float, size: int, stage: Callable[[int], Rows]) -> UnaryEncoding:
    first = stage(_least_noise(stage, entries_ratio, memoized))
    second = _flip(_least_noise(lambda turned: product_rows(first, _flip(turned)), entries_ratio, epsilon))
    rows = product_rows(first, second)
    p, q = (Fraction(rows[present][1], ONE) for present in (1, 0))
    decode = (float(-q / (p - q)), float((1 - q) / (p - q)))
    return UnaryEncoding("two_stages", epsilon, size, decode, rows, stages=Stages(memoized, first, second))


def _flip(turned: int) -> Rows:
    return ((STAGE_ONE - turned, turned), (turned, STAGE_ONE - turned))


def _half(flipped: int) -> Rows:
    return ((STAGE_ONE - flipped, flipped), (STAGE_ONE // 2, STAGE_ONE // 2))


def _least_noise(make: Callable[[int], Rows], ratio: Callable[[Rows], Fraction], epsilon: float) -> int:
    """The smallest noise, in units of 2^-16, for which `make` gives a table with a ratio of at most e^ε."""
    most = exp_lower(epsilon)
    low, high = 0, STAGE_ONE // 2 - 1  # a weight of 0 would reveal the input
    if ratio(make(high)) > most:
        raise InvalidInput.of("epsilon", epsilon, "a budget that tables with rows of 2**16 can satisfy")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ratio(make(middle)) <= most else (middle, high)
    return high
