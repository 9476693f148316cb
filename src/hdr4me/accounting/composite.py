"""Two stages of noise, a permanent and a fresh one, as a product of integer tables; standard library only.

The first table answers once and for all; its answer is remembered. Each report passes that answer through the second
table with new randomness. One report then has the law of the product of both tables, and whoever collects T reports can
at best find out the permanent answer, never more. All losses are fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as every
from math import prod

from hdr4me.channels.proof import column_loss
from hdr4me.channels.table.channel import Rows, product_rows
from hdr4me.errors import InvalidInput


@dataclass(frozen=True)
class Composite:
    """A permanent table `first` and a fresh table `second` that takes the first one's cells as its rows.

    >>> two = composite([[7, 1], [1, 7]], [[3, 1], [1, 3]])
    >>> two.rows, two.loss, two.permanent_loss
    (((22, 10), (10, 22)), Fraction(11, 5), Fraction(7, 1))
    """

    first: Rows
    second: Rows

    @cached_property
    def rows(self) -> Rows:
        """The product: what one report does, in integers that sum to the product of both sums."""
        return product_rows(self.first, self.second)

    @cached_property
    def loss(self) -> Fraction:
        """The privacy loss of one report: the largest ratio in a column of the product."""
        return column_loss(self.rows)

    @cached_property
    def permanent_loss(self) -> Fraction:
        """The privacy loss of any number of reports of an unchanged value: that of the permanent table."""
        return column_loss(self.first)

    def bound(self, n_reports: int) -> Fraction:
        """What `n_reports` of an unchanged value lose at most: the smaller of both limits."""
        return min(self.permanent_loss, self.loss**n_reports)

    def exact_loss(self, n_reports: int) -> Fraction:
        """The same exactly, by listing all sequences of reports (for small tables and few reports)."""
        columns = range(len(self.second[0]))
        laws = [
            [
                sum(w * prod(self.second[z][y] for y in told) for z, w in enumerate(row))
                for told in every(columns, repeat=n_reports)
            ]
            for row in self.first
        ]
        return column_loss(laws)


def composite(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> Composite:
    """Both tables, checked: whole weights, equal row sums, and a row of `second` for each cell of `first`."""
    for name, table in (("first", first), ("second", second)):
        sums = {sum(row) for row in table}
        widths = {len(row) for row in table}
        if len(sums) != 1 or len(widths) != 1 or min(sums) < 1 or any(w < 0 for row in table for w in row):
            raise InvalidInput(
                f"the {name} table's rows must be whole numbers from 0 with one sum and one length"
            )
    if len(first[0]) != len(second):
        raise InvalidInput(
            f"second has {len(second)} rows: it must have {len(first[0])}, one for each cell of first"
        )
    return Composite(tuple(map(tuple, first)), tuple(map(tuple, second)))


def second_moment(permanent: float, instant: float, n_reports: int) -> float:
    """(1 + (c_i⁻² − 1)/T)/c∞²: the second moment of the mean of T decoded reports ±1 of an unchanged value.

    `permanent` and `instant` are the contractions c∞ and c_i of the two stages: E[answer | t] = c∞·t and
    E[report | answer] = c_i·answer. With T = 1 it is 1/(c∞c_i)², that of one table of the same loss: a single report
    loses nothing by the second stage. With T → ∞ it is 1/c∞²: the permanent noise does not average out.

    >>> second_moment(0.5, 0.5, 1), second_moment(0.5, 0.5, 1_000_000_000)
    (16.0, 4.000000012)
    """
    return (1.0 + (instant**-2 - 1.0) / n_reports) / permanent**2
