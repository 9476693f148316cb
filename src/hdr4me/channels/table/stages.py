"""Two stages of noise, a permanent and a fresh one, as a product of integer tables; standard library only.

The first table answers once and for all; its answer is remembered. Each report passes that answer through the second
table with new randomness. One report then has the law of the product of both tables, and whoever collects T reports can
at best find out the permanent answer, never more. All losses are fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

from hdr4me.channels.channel import Draws, pick
from hdr4me.channels.proof import check_loss, column_loss
from hdr4me.channels.reading import check_fields, integer_rows, is_number
from hdr4me.errors import FormatError, InvalidInput

Rows = tuple[tuple[int, ...], ...]
Loss = Callable[[Sequence[Sequence[int]]], Fraction]

STAGE_BITS = 16
STAGE_ONE = 1 << STAGE_BITS
"""A row of either stage sums to 2^16, so a row of their product sums to 2^32, as every table's does."""


@dataclass(frozen=True)
class Stages:
    """How a table's answer comes about in two steps.

    Parameters
    ----------
    epsilon
        What any number of reports of an unchanged value lose at most.
    first
        The permanent table: a row for each row of the whole.
    second
        The fresh table: a row for each cell of `first`.

    Examples
    --------
    >>> flip = ((49152, 16384), (16384, 49152))
    >>> Stages(1.1, flip, flip).rows[0] == (2684354560, 1610612736)
    True
    """

    epsilon: float
    first: Rows
    second: Rows

    @cached_property
    def rows(self) -> Rows:
        """The product: what one report does."""
        return product_rows(self.first, self.second)

    def check(self, name: str, weights: Sequence[Sequence[int]], loss: Loss = column_loss) -> None:
        """Both stages multiply to `weights`, and the first one's loss is at most e^`epsilon`; or InvalidInput."""
        for stage, table in (("first", self.first), ("second", self.second)):
            widths = {len(row) for row in table}
            if len(widths) != 1 or any(min(row) < 0 or sum(row) != STAGE_ONE for row in table):
                raise InvalidInput(
                    f"{name}: every row of its {stage} stage must have weights that sum to {STAGE_ONE}"
                )
        if len(self.first[0]) != len(self.second):
            raise InvalidInput(f"{name}: its second stage must have a row for each cell of the first")
        if self.rows != tuple(map(tuple, weights)):
            raise InvalidInput(f"{name}: its stages do not multiply to its weights")
        check_loss(f"{name}, in all its reports of one value,", loss(self.first), self.epsilon)

    def sample(self, row: int, lasting: Draws, fresh: Draws) -> int:
        """The cell that is reported: 16 lasting bits pick the permanent cell, 16 fresh ones what is said of it."""
        kept = pick(self._bounds[0][row], lasting.bits(STAGE_BITS))
        return pick(self._bounds[1][kept], fresh.bits(STAGE_BITS))

    @cached_property
    def _bounds(self) -> tuple[Rows, Rows]:
        first, second = (
            tuple(tuple(accumulate(row))[:-1] for row in table) for table in (self.first, self.second)
        )
        return first, second

    def to_dict(self) -> dict[str, Any]:
        """The stages as a channel's document has them."""
        return {
            "epsilon": self.epsilon,
            "first": [list(row) for row in self.first],
            "second": [list(row) for row in self.second],
        }

    @classmethod
    def from_dict(cls, document: Any) -> Stages | None:
        """Read what `to_dict` wrote; None where a channel has no stages."""
        if document is None:
            return None
        if not isinstance(document, Mapping):
            raise FormatError("a channel's stages are an object")
        check_fields("pair of stages", document, {"epsilon", "first", "second"})
        if not is_number(document["epsilon"]):
            raise FormatError("the epsilon of a channel's stages is a number")
        first, second = (integer_rows(f"the {stage} stage", document[stage]) for stage in ("first", "second"))
        if not (first and second and all(first) and all(second)):
            raise FormatError("a channel's stages have at least one row and one cell")
        return cls(float(document["epsilon"]), first, second)


def product_rows(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> Rows:
    """The product of two integer tables.

    >>> product_rows([[7, 1], [1, 7]], [[3, 1], [1, 3]])
    ((22, 10), (10, 22))
    """
    columns = range(len(second[0]))
    return tuple(
        tuple(sum(w * second[kept][y] for kept, w in enumerate(row)) for y in columns) for row in first
    )
