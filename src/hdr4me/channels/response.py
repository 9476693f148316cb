"""Response: everything the server side knows about a channel, in NumPy.

A channel runs on the device and uses the standard library only. Its response stands beside it and is loaded when it is
first asked for (`Channel.response`). Engines, tallies, statistics, the framework, the planner, audits and accounting
call the response; none of them asks what kind a channel is.

An answer consists of *coordinates*: the mean of a number, the frequency of each category, the mean of each coordinate
of a vector. A report says about one coordinate that it fell into one of a few *cells*; a `Marginal` is the law of that
cell given the user's own value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels.channel import Channel
from hdr4me.channels.proof import BITS
from hdr4me.errors import InvalidInput

__all__ = ["Marginal", "Moments", "Response", "decoder_of", "inverse_of", "probabilities"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

MAX_ENUMERATED = 1 << 20
"""Inputs times outputs of a channel whose law may be listed."""


def probabilities(rows: ArrayLike) -> Floats:
    """Integer rows that sum to 2^32 as probabilities."""
    return np.ldexp(np.asarray(rows, np.float64), -BITS)


@dataclass(frozen=True, eq=False)
class Moments:
    """Of the decoded report y given each of n inputs: the means (n, k) and the second moments E[y yᵀ] (n, k, k)."""

    mean: Floats
    second: Floats

    def variance(self, weights: ArrayLike) -> Floats:
        """Var(c·y | x) for each input."""
        c = np.asarray(weights, np.float64)
        return np.asarray(np.einsum("nkl,k,l->n", self.second, c, c) - (self.mean @ c) ** 2)


@dataclass(frozen=True, eq=False)
class Marginal:
    """What a report says about one coordinate: the law of its cell given the own input.

    Parameters
    ----------
    law
        P(cell | own input, inputs of the other dimensions), shape (own inputs, others, cells).
    targets
        The mean of each decoder at each own input; "value" first, then "present" where a value may be missing.
    decoders
        A number for each cell, by the same names.
    levels
        The values of the own inputs, increasing. A value between two levels is rounded to one of them at random.
        Inputs beyond the levels are "no value".
    unary
        Whether the cells are those of a table for one entry, and not "named" and "not named".

    Examples
    --------
    >>> coin = np.array([[[0.75, 0.25]], [[0.25, 0.75]]])
    >>> ends = np.array([-1.0, 1.0])
    >>> Marginal(coin, {"value": ends}, {"value": 2 * ends}, ends).at([0.0]).tolist()
    [[[0.5, 0.5]]]
    """

    law: Floats
    targets: Mapping[str, Floats]
    decoders: Mapping[str, Floats]
    levels: Floats
    unary: bool = False

    @property
    def optional(self) -> bool:
        """Whether "no value" is an input."""
        return "present" in self.decoders

    @property
    def indicator(self) -> bool:
        """Whether the coordinate is the indicator of a category, whose law depends on nothing else."""
        return len(self.law) == 2 and not self.levels[0] and self.levels[1] == 1.0

    @property
    def least_noise(self) -> float | None:
        """The least variance of a decoded report, where it does not follow from the law."""
        return None

    @property
    def step(self) -> float:
        """The distance of two levels."""
        return float(self.levels[1] - self.levels[0])

    @cached_property
    def rows(self) -> Floats:
        """P(cell | input) for every input of the channel that matters, shape (inputs, cells)."""
        return self.law.reshape(-1, self.law.shape[-1])

    def target(self, name: str) -> Floats:
        """The mean of a decoder at each of `rows`."""
        return np.repeat(self.targets[name], self.law.shape[1])

    @cached_property
    def rank(self) -> int:
        """How many directions the rows of the levels span, the others' input held even."""
        return int(np.linalg.matrix_rank(self.law[: self.levels.size].mean(axis=1), tol=1e-6))

    @cached_property
    def _inverse(self) -> Floats:
        return inverse_of(self.rows)

    def decoder(self, target: Floats) -> Floats | None:
        """A number for each cell whose mean is `target` at each of `rows`, of least variance; None if there is none."""
        return decoder_of(self.rows, target, self._inverse)

    @cached_property
    def square(self) -> Floats | None:
        """The decoder of the square of the own level (0 without a value); None if no decoder has that mean."""
        return self.decoder(self.target("value") ** 2)

    def at(self, values: ArrayLike) -> Floats:
        """P(cell | value, others' input): between two levels the two rows are mixed."""
        position = (np.asarray(values, np.float64) - self.levels[0]) / self.step
        level = np.clip(position.astype(np.int64), 0, self.levels.size - 2)
        share = (position - level)[..., None, None]
        return np.asarray(self.law[level] * (1.0 - share) + self.law[level + 1] * share)

    def in_bins(self, edges: Floats) -> Floats:
        """P(cell | bin, others' input) for values spread evenly inside each bin, shape (bins, others, cells).

        The law is linear between levels, so the mean over each piece between an edge or a level and the next one is
        the law at the middle of the piece.
        """
        inside = self.levels[(self.levels > edges[0]) & (self.levels < edges[-1])]
        cuts = np.unique(np.concatenate([edges, inside]))
        middles, widths = (cuts[:-1] + cuts[1:]) / 2, np.diff(cuts)
        law = self.at(middles) * widths[:, None, None]
        starts = np.searchsorted(cuts, edges[:-1])
        return np.asarray(np.add.reduceat(law, starts, axis=0) / np.diff(edges)[:, None, None])

    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        """The moments of (value, present) for these values; NaN is "no value".

        Parameters
        ----------
        values
            Values on the scale of the levels.
        others
            The probability of each input of the other dimensions; equal if left out.
        """
        decode = np.stack(list(self.decoders.values()), axis=1)
        law = (
            self.law.mean(axis=1) if others is None else np.einsum("iok,o->ik", self.law, np.asarray(others))
        )
        if (
            len(law) > self.levels.size + self.optional
        ):  # several inputs for one level: each as often as the others
            law = np.stack([law[self.targets["value"] == x].mean(axis=0) for x in self.levels])
        mean, second = law @ decode, np.einsum("ic,ck,cl->ikl", law, decode, decode)
        return Moments(self._between(mean, values), self._between(second, values))

    def _between(self, at_inputs: Floats, values: ArrayLike) -> Floats:
        """Linear between the levels, since values are rounded at random; the last input where there is no value."""
        x = np.asarray(values, np.float64)
        flat = at_inputs.reshape(len(at_inputs), -1)
        n = self.levels.size
        found = np.stack([np.interp(np.nan_to_num(x), self.levels, column[:n]) for column in flat.T], axis=1)
        found[np.isnan(x)] = flat[-1]
        return found.reshape(x.size, *at_inputs.shape[1:])


class Response:
    """What the server knows about a channel; this class serves any small channel by enumeration of its outputs.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> channel = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi").channels[0]
    >>> found = channel.response.marginal().moments([0.0, 1.0])
    >>> found.mean.round(6).tolist(), found.variance([1.0]).round(3).tolist()
    ([[0.0], [1.0]], [4.683, 3.683])
    """

    def __init__(self, channel: Channel) -> None:
        self.channel: Any = channel

    @property
    def alike(self) -> bool:
        """Whether all coordinates of a dimension have the same marginal."""
        return type(self) is not Response

    # -- the law of one coordinate -------------------------------------------------------------------------------

    def n_coordinates(self, place: int = 0) -> int:
        """How many coordinates the answer about dimension number `place` of the question has."""
        take = self.channel.takes[place]
        return take.size if take.reads == "category" else 1

    def marginal(self, place: int = 0, coordinate: int = 0) -> Marginal:
        """The law of one coordinate of dimension number `place` of the question.

        For a channel without a response of its own: the cells are the counters, the decoder is the unbiased one of
        least variance.
        """
        take, after = self.channel.takes[place], math.prod(t.size for t in self.channel.takes[place + 1 :])
        own = np.arange(self.channel.n_inputs) // after % take.size
        if take.reads == "category":
            levels = np.array([0.0, 1.0])
            target = (own == coordinate).astype(np.float64)
        else:
            levels = np.linspace(-1.0, 1.0, take.size)
            target = levels[own]
        decoder = decoder_of(self._listed, target, self._inverse)
        if decoder is None:
            raise InvalidInput(
                f"channel {self.channel.mechanism!r} of kind {self.channel.kind!r} has no unbiased decoder: "
                "its counters do not determine the answer"
            )
        return Marginal(self._listed[:, None, :], {"value": target}, {"value": decoder}, levels)

    def classes(self, place: int = 0, coordinate: int = 0) -> tuple[Floats, Numbers, bool]:
        """For joint counts: what each class of answers counts for, the counters of the classes, and whether there is
        one more class, of answers that add to none of them."""
        return self.marginal(place, coordinate).decoders["value"], np.arange(self.channel.n_counters), False

    @cached_property
    def _inverse(self) -> Floats:
        return inverse_of(self._listed)

    def supports(self, counts: Numbers) -> Numbers:
        """How many reports support each category, where a report adds 1 to the counters of categories."""
        return counts

    def cells(self, counts: Numbers, place: int = 0) -> Numbers:
        """How often each cell of each coordinate was reported, shape (coordinates, cells)."""
        return np.broadcast_to(counts, (self.n_coordinates(place), counts.size))

    @cached_property
    def _listed(self) -> Floats:
        """P(a report adds to each counter | input), by listing all outputs."""
        channel = self.channel
        size = channel.n_inputs
        for field in channel.fields:
            size *= field.bound
        if (
            size > MAX_ENUMERATED
            or channel.per_report != 1
            or any(t.reads == "optional" for t in channel.takes)
        ):
            raise InvalidInput(
                f"channel {channel.mechanism!r} of kind {channel.kind!r} needs a response of its own: only small "
                "channels whose reports add to one counter are enumerated"
            )
        law = np.zeros((channel.n_inputs, channel.n_counters))
        for output in channel.outputs():
            (counter,) = channel.counters(output)
            for x in range(channel.n_inputs):
                law[x, counter] += float(channel.probability(x, output))
        return law


def inverse_of(law: Floats) -> Floats:
    """Applied to numbers given for every input, a number for each cell with these means, of least variance.

    The weight of a cell is its mean probability. Where no numbers for the cells have these means, the nearest ones.
    """
    mass = law.mean(axis=0)
    scale = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
    return np.asarray(scale[:, None] * np.linalg.pinv(law * scale, rcond=1e-12))


def decoder_of(law: Floats, target: Floats, inverse: Floats | None = None) -> Floats | None:
    """A number for each cell whose mean is `target` at every input, of least variance; None if there is none.

    >>> coin = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> decoder_of(coin, np.array([-1.0, 1.0])).round(6).tolist()
    [-2.0, 2.0]
    """
    found = (inverse_of(law) if inverse is None else inverse) @ target
    gap = float(np.abs(law @ found - target).max())
    return np.asarray(found) if gap < 1e-7 * (1.0 + float(np.abs(target).max())) else None
