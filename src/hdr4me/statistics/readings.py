"""What a table says about one of its dimensions: the law of a report given the dimension's value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels import Channel, Table
from hdr4me.channels.proof import BITS
from hdr4me.channels.response import decoder_of, inverse_of
from hdr4me.statistics.statistic import Counted
from hdr4me.survey import Dimension

__all__ = ["LEAST_RANK", "Kept", "Reading", "kept_reading", "reading_of", "shows_shape", "why_no_shape"]

Floats = NDArray[np.float64]
LEAST_RANK = 3
"""Rows that span two directions carry a mean and nothing else."""


@dataclass(frozen=True)
class Reading:
    """The rows of a table as seen from its dimension number `place`.

    An input of the table is one number for each dimension. The own level comes first, the inputs of the other
    dimensions ("others", one if there are none) come second; an optional number has one more own input, "no value".

    Parameters
    ----------
    table
        The channel.
    place
        Which of the channel's dimensions is meant, from 0.

    Examples
    --------
    >>> half = 1 << 31
    >>> rows = ((3 * half // 2, half // 2), (half // 2, 3 * half // 2))
    >>> coin = Reading(Table("coin", 1.1, {"value": (-2.0, 2.0)}, rows), 0)
    >>> coin.n_levels, coin.at([0.0]).tolist()
    (2, [[[0.5, 0.5]]])
    """

    table: Table
    place: int = 0

    @property
    def optional(self) -> bool:
        """Whether "no value" is an input."""
        return self.table.takes[self.place].reads == "optional"

    @property
    def n_levels(self) -> int:
        """How many levels the own number has."""
        return self.table.takes[self.place].size - self.optional

    @property
    def step(self) -> float:
        """The distance of two levels on [−1, 1]."""
        return 2.0 / (self.n_levels - 1)

    @cached_property
    def rows(self) -> Floats:
        """P(cell | own input, others' input), shape (own inputs, others, cells)."""
        sizes = [take.size for take in self.table.takes]
        law = np.ldexp(np.array(self.table.weights, np.float64), -BITS).reshape(*sizes, -1)
        return np.moveaxis(law, self.place, 0).reshape(sizes[self.place], -1, law.shape[-1])

    @cached_property
    def rank(self) -> int:
        """How many directions the rows of the levels span, the others' input held even."""
        return int(np.linalg.matrix_rank(self.rows[: self.n_levels].mean(axis=1), tol=1e-6))

    @cached_property
    def inverse(self) -> Floats:
        """Applied to numbers given for every input, a number for each cell with these means, of least variance."""
        return inverse_of(self.rows.reshape(-1, self.rows.shape[-1]))

    def decoder(self, target: Floats) -> Floats | None:
        """A number for each cell whose mean is `target` at every input, of least variance; None if there is none."""
        return decoder_of(self.rows.reshape(-1, self.rows.shape[-1]), target, self.inverse)

    def at(self, values: ArrayLike) -> Floats:
        """P(cell | value on [−1, 1], others' input): between two levels the two rows are mixed."""
        position = (np.asarray(values, np.float64) + 1.0) / self.step
        level = np.clip(position.astype(np.int64), 0, self.n_levels - 2)
        share = (position - level)[..., None, None]
        return np.asarray(self.rows[level] * (1.0 - share) + self.rows[level + 1] * share)

    def in_bins(self, edges: Floats) -> Floats:
        """P(cell | bin, others' input) for values spread evenly inside each bin, shape (bins, others, cells).

        The law is linear between levels, so the mean over each piece between an edge or a level and the next one is
        the law at the middle of the piece.
        """
        levels = np.linspace(-1.0, 1.0, self.n_levels)
        cuts = np.unique(np.concatenate([edges, levels[(levels > edges[0]) & (levels < edges[-1])]]))
        middles, widths = (cuts[:-1] + cuts[1:]) / 2, np.diff(cuts)
        law = self.at(middles) * widths[:, None, None]
        starts = np.searchsorted(cuts, edges[:-1])
        return np.asarray(np.add.reduceat(law, starts, axis=0) / np.diff(edges)[:, None, None])


T = TypeVar("T")
_MOST = 64


class Kept(Generic[T]):
    """What is made of a table's dimension, kept for the tables that were asked last: dimensions share tables.

    Parameters
    ----------
    make
        Called with a table and the number of its dimension.
    """

    def __init__(self, make: Callable[[Table, int], T]) -> None:
        self._make = make
        self._found: dict[tuple[int, int], tuple[Table, T]] = {}

    def __call__(self, table: Table, place: int = 0) -> T:
        key = (id(table), place)
        found = self._found.get(key)
        if found is None or found[0] is not table:
            if len(self._found) >= _MOST:
                self._found.clear()
            found = self._found[key] = (table, self._make(table, place))
        return found[1]


kept_reading = Kept(Reading)


def reading_of(counted: Counted, j: int) -> Reading:
    """The reading of dimension j of a survey."""
    question = counted.survey.questions[counted.survey.question_of(j)]
    assert isinstance(question.channel, Table)
    return kept_reading(question.channel, question.dimensions.index(j))


def shows_shape(dimension: Dimension, channel: Channel) -> bool:
    """Whether reports tell more of a number than its mean."""
    if dimension.reads not in ("number", "optional") or not isinstance(channel, Table):
        return False
    return kept_reading(channel).rank >= LEAST_RANK


def why_no_shape(what: str, dimension: Dimension, channel: Channel) -> str:
    """Why `what` cannot be told, and what to do instead."""
    if dimension.reads == "category":
        return f"the {what} of {dimension.name!r} cannot be told: it is a category; ask for its frequency"
    return (
        f"the {what} of {dimension.name!r} cannot be told from reports by {channel.mechanism!r}: its "
        f"{getattr(channel, 'n_cells', 'few')} cells carry the mean and nothing else. Make the survey with "
        "mechanism = 'square_wave' (best for distributions), 'piecewise' or 'optimal' at epsilon above 0.05"
    )
