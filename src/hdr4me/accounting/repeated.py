"""The privacy loss when the same people are asked repeatedly, and of two stages of noise; standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from hdr4me.channels.channel import is_number
from hdr4me.channels.proof import column_ratio
from hdr4me.channels.table.channel import Rows, product_rows
from hdr4me.errors import InvalidInput

_COMMON = (
    "Not hidden: that a value moved to another row, and when, while budget is left; and that a device participates.",
    "A device whose storage is deleted draws a new secret. Its next answers cost ε again, and no ledger counts them. "
    "A cloned device repeats the answers of its original, and the ledger of each copy allows further new rows.",
)


def guessed(epsilon: float, n_reports: int) -> float:
    """The probability that the best attack guesses a yes/no attribute from `n_reports` fresh answers.

    With p = e^ε/(1 + e^ε): P(Bin(T, p) > T/2) + P(Bin(T, p) = T/2)/2. One answer, or any number of copies of one
    memoized response, gives p.

    >>> round(guessed(1.0, 30), 3), round(guessed(1.0, 1), 3)
    (0.996, 0.731)
    """
    half, odd = divmod(n_reports, 2)
    log_p = -math.log1p(math.exp(-epsilon))
    log_q = log_p - epsilon

    def mass(k: int) -> float:
        log_count = math.lgamma(n_reports + 1) - math.lgamma(k + 1) - math.lgamma(n_reports - k + 1)
        return math.exp(log_count + k * log_p + (n_reports - k) * log_q)

    more = math.fsum(mass(k) for k in range(half + 1, n_reports + 1))
    return min(1.0, more + (0.0 if odd else mass(half) / 2))


@dataclass(frozen=True)
class Repeated:
    """A survey asked `rounds` times: the privacy losses with fresh noise and with memoized responses."""

    epsilon: float
    sampled: int
    rounds: int

    def lines(self) -> list[str]:
        """The statement in sentences."""
        found = self.to_dict()
        share = found["memoized_epsilon_for_each_new_row"]
        fresh, once = 100 * found["guessed_right_fresh"], 100 * found["guessed_right_memoized"]
        return [
            f"{self.rounds:,} rounds with fresh noise: up to ε = {found['fresh_epsilon']:g} in total. A yes/no "
            f"attribute that is answered in each round at ε = {share:g} is guessed correctly in {fresh:.1f} % of "
            "cases.",
            f"With memoized responses: ε = {self.epsilon:g} for a record that does not change, and another ε = "
            f"{share:g} for each new row of a dimension. The yes/no attribute is guessed correctly in {once:.1f} % of "
            f"cases, after any number of rounds.",
            *_COMMON,
        ]

    def to_dict(self) -> dict[str, Any]:
        """The privacy losses and an attacker's success, as plain values for JSON.

        The losses of fresh answers add up to T·ε. Memoized responses cost ε/m for each row that a dimension visits.
        """
        share = float(Fraction(self.epsilon) / self.sampled)
        return {
            "rounds": self.rounds,
            "epsilon": self.epsilon,
            "fresh_epsilon": float(self.rounds * Fraction(self.epsilon)),
            "memoized_epsilon_unchanged": self.epsilon,
            "memoized_epsilon_for_each_new_row": share,
            "guessed_right_fresh": guessed(share, self.rounds),
            "guessed_right_memoized": guessed(share, 1),
        }


def repeated(epsilon: float, sampled: int, rounds: int) -> Repeated:
    """The privacy losses of a survey that is asked `rounds` times."""
    if not is_number(epsilon) or epsilon <= 0:
        raise InvalidInput.of("epsilon", epsilon, "a positive, finite number")
    for name, value in (("sampled", sampled), ("rounds", rounds)):
        if type(value) is not int or not 1 <= value <= 1_000_000:
            raise InvalidInput.of(name, value, "an integer from 1 to 1000000")
    return Repeated(float(epsilon), sampled, rounds)


@dataclass(frozen=True)
class Composite:
    """A memoized table `first`, and a fresh table `second` with one row for each cell of the first.

    The response of the first table is drawn once and memoized. Each report passes it through the second table with
    fresh randomness. All ratios are exact fractions.

    >>> two = composite([[7, 1], [1, 7]], [[3, 1], [1, 3]])
    >>> two.rows, two.likelihood_ratio, two.memoized_ratio
    (((22, 10), (10, 22)), Fraction(11, 5), Fraction(7, 1))
    """

    first: Rows
    second: Rows

    @cached_property
    def rows(self) -> Rows:
        """The law of one report, in integers that sum to the product of both sums."""
        return product_rows(self.first, self.second)

    @cached_property
    def likelihood_ratio(self) -> Fraction:
        """The largest likelihood ratio of one report."""
        return column_ratio(self.rows)

    @cached_property
    def memoized_ratio(self) -> Fraction:
        """The largest likelihood ratio of any number of reports of an unchanged value: that of the memoized table."""
        return column_ratio(self.first)

    def bound(self, n_reports: int) -> Fraction:
        """An upper bound of the likelihood ratio of `n_reports` of an unchanged value."""
        return min(self.memoized_ratio, self.likelihood_ratio**n_reports)

    def exact_ratio(self, n_reports: int) -> Fraction:
        """The largest likelihood ratio of `n_reports` of an unchanged value, by enumeration of their sequences."""
        sequences = list(product(range(len(self.second[0])), repeat=n_reports))
        return column_ratio(
            [
                [
                    sum(w * math.prod(self.second[z][y] for y in cells) for z, w in enumerate(row))
                    for cells in sequences
                ]
                for row in self.first
            ]
        )


def composite(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> Composite:
    """Both tables, checked: nonnegative integers, equal row sums, and one row of `second` for each cell of `first`."""
    for name, table in (("first", first), ("second", second)):
        sums, widths = {sum(row) for row in table}, {len(row) for row in table}
        if len(sums) != 1 or len(widths) != 1 or min(sums) < 1 or any(w < 0 for row in table for w in row):
            raise InvalidInput(
                f"the rows of the {name} table must hold nonnegative integers, with equal sums and equal lengths"
            )
    if len(first[0]) != len(second):
        raise InvalidInput(
            f"second has {len(second)} rows: it must have {len(first[0])}, one for each cell of first"
        )
    return Composite(tuple(map(tuple, first)), tuple(map(tuple, second)))


def second_moment(memoized: float, instant: float, n_reports: int) -> float:
    """(1 + (c_i⁻² − 1)/T)/c∞²: the second moment of the mean of T decoded reports ±1 of an unchanged value.

    `memoized` and `instant` are the contractions c∞ and c_i of the two stages: E[answer | t] = c∞·t and
    E[report | answer] = c_i·answer.
    """
    return (1.0 + (instant**-2 - 1.0) / n_reports) / memoized**2
