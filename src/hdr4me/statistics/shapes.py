"""The fitted shape of a number's values, on a grid of bins: cumulative shares and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels import Channel
from hdr4me.channels.response import Marginal
from hdr4me.framework.em import LADDER, climb
from hdr4me.statistics.bounds import Bounds
from hdr4me.statistics.statistic import Counted, channel_of, counts_of, marginal_of
from hdr4me.survey import Dimension

Floats = NDArray[np.float64]
# Bins of the grid that shapes are fitted on. Neighbouring cells are joined until there are at most _CELLS: EM is faster
# and loses next to nothing.
BINS, _CELLS = 64, 96


def has_law(channel: Channel) -> bool:
    """Whether a report is one of several cells with a law that depends on the value alone."""
    return channel.per_report == 1 and bool(channel.response.marginal().law.size)


def shows_shape(dimension: Dimension, channel: Channel) -> bool:
    """Whether reports show more of a number than its mean."""
    # Rows that span two directions carry a mean and nothing else.
    return "mean" in dimension.statistics and has_law(channel) and channel.response.marginal().rank > 2


def why_no_shape(what: str, dimension: Dimension, channel: Channel) -> str:
    """Why `what` cannot be estimated, and what to do instead."""
    if dimension.is_category:
        return (
            f"the {what} of {dimension.name!r} cannot be estimated: it is a category; ask for its frequency"
        )
    return (
        f"the {what} of {dimension.name!r} cannot be estimated from reports by {channel.mechanism!r}: its "
        f"{getattr(channel, 'n_cells', 'few')} cells carry the mean and nothing else. Create the survey with "
        "mechanism = 'square_wave' (best for distributions), 'piecewise' or 'optimal' at epsilon above 0.05"
    )


@dataclass(frozen=True)
class Shape:
    """The distribution of one dimension's values on [−1, 1], fitted to its counts.

    `states` are the fitted probabilities: bins × others' inputs, then "no value". `strength` is the smoothing that the
    counts chose, 0 to 1. `bounds` assume nothing about the distribution.
    """

    counts: Floats
    bounds: Bounds
    grid: Grid
    states: Floats
    strength: float

    @cached_property
    def cumulative(self) -> Floats:
        """The share of values up to each edge of the grid."""
        return np.asarray(self.grid.cumulative(self.states[None, :])[0])

    def cdf(self, x: ArrayLike) -> Floats:
        """The share of values up to x on [−1, 1]."""
        return np.interp(np.asarray(x, np.float64), self.grid.edges, self.cumulative)

    def quantile(self, p: ArrayLike) -> Floats:
        """The value that a share p of the values lies below."""
        p, total, edges = np.asarray(p, np.float64), self.cumulative, self.grid.edges
        left = np.searchsorted(total, p, side="left").clip(1, len(edges) - 1)
        gap = total[left] - total[left - 1]
        # Of a flat stretch the middle.
        share = np.divide(p - total[left - 1], gap, out=np.full(np.shape(p), 0.5), where=gap > 0)
        return np.asarray(edges[left - 1] + share * (edges[left] - edges[left - 1]))

    @property
    def spiky(self) -> bool:
        """Whether the counts want (almost) no smoothing: then short intervals, which assume no spikes, may miss."""
        return self.strength <= LADDER[-2]


@dataclass(frozen=True)
class Grid:
    """What the fits of one table have in common."""

    edges: Floats
    law: Floats
    shape: tuple[int, int]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, marginal: Marginal, bins: int = BINS) -> Grid:
        """The law of joined cells given a bin of values, or "no value", and given the others' inputs."""
        edges = np.linspace(-1.0, 1.0, bins + 1)
        own = marginal.in_bins(edges)
        law = own.reshape(-1, own.shape[-1])
        if marginal.optional:
            law = np.concatenate([law, marginal.law[-1]])
        n_cells = law.shape[1]
        starts = np.arange(0, n_cells, -(-n_cells // _CELLS))
        return cls(edges, np.add.reduceat(law, starts, axis=1), (own.shape[0], own.shape[1]), starts)

    def joined(self, counts: Floats) -> Floats:
        """Counts of the joined cells."""
        return np.asarray(np.add.reduceat(counts, self.starts, axis=-1))

    def cumulative(self, states: Floats) -> Floats:
        """Cumulative shares among those who have a value, shape (rows, edges)."""
        bins, others = self.shape
        own = states[:, : bins * others].reshape(len(states), bins, others).sum(axis=2)
        total = np.cumsum(own, axis=1)
        return np.concatenate([np.zeros((len(own), 1)), total / total[:, -1:]], axis=1)


_bounds = lru_cache(maxsize=64)(Bounds)


def shapes(
    counted: Counted, dimensions: Sequence[int], progress: Callable[[int, int], None] | None = None
) -> dict[int, Shape]:
    """The shapes of dimensions that have two reports or more; those with the same table are fitted together."""
    alike: dict[tuple[int, int], list[int]] = {}
    counts = {j: counts_of(counted, j).astype(np.float64) for j in dimensions}
    for j in dimensions:
        if counts[j].sum() >= 2:
            channel, place = channel_of(counted.survey, j)
            alike.setdefault((id(channel), place), []).append(j)
    found: dict[int, Shape] = {}
    n_all = sum(map(len, alike.values()))
    for group in alike.values():
        marginal = marginal_of(counted, group[0])
        grid, bounds, done = Grid.of(marginal), _bounds(marginal), len(found)
        joined = grid.joined(np.stack([counts[j] for j in group]))

        def say(n: int, _: int, done: int = done) -> None:
            if progress is not None:
                progress(done + n, n_all)

        fits = climb(joined, grid.law, grid.shape, progress=say)
        for i, j in enumerate(group):
            found[j] = Shape(counts[j], bounds, grid, fits.p[i], float(fits.strength[i]))
    return found
