"""Response: everything the server side knows about a channel, in NumPy.

A channel runs on the device and uses the standard library only. Its response stands beside it and is loaded when it is
first asked for (`Channel.response`). Engines, tallies, statistics, the framework, the planner, audits and accounting
call the response; none of them asks what kind a channel is.

An answer consists of *coordinates*: the mean of a number, the frequency of each category, the mean of each coordinate
of a vector. A report says about one coordinate that it fell into one of a few *cells*; a `Marginal` is the law of that
cell given the user's own value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels.channel import Channel
from hdr4me.channels.proof import BITS
from hdr4me.errors import InvalidInput

__all__ = ["Coordinate", "Marginal", "Moments", "Response", "decoder_of", "inverse_of", "probabilities"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_GRID, _SHARES = np.linspace(-1.0, 1.0, 33), np.linspace(0.0, 1.0, 65)
"""Values of numbers, and shares of users, among which the worst population is looked for."""
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


class Coordinate(ABC):
    """What predictions need to know about one coordinate: the moments of a decoded report given the user's value."""

    indicator = False
    """Whether the value is 0 or 1."""

    @abstractmethod
    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        """The moments of (value, present) for these values; NaN is "no value"."""

    def optional_moments(self, values: ArrayLike) -> Moments:
        """The same where "no value" is an answer of its own."""
        return self.moments(values)

    def worst(self, κ: float) -> float:
        """The largest E Var(y | x) + κ·Var E(y | x) over all populations.

        Of a number, E[Var(y | x) + κx²] − κ(E x)² is at most the largest Var(y | x) + κx², which half of the users at x
        and half at −x attain where the variance is even. Of an indicator the population is a share of users.
        """
        if self.indicator:
            absent, present = self.moments([0.0, 1.0]).variance([1.0])
            return float(np.max((1 - _SHARES) * absent + _SHARES * present + κ * _SHARES * (1 - _SHARES)))
        found = self.moments(x := self.turning_points(κ))
        return float(np.max(found.variance([1.0]) + κ * x**2))

    def turning_points(self, κ: float) -> Floats:
        """Values among which Var(y | x) + κx² is largest."""
        return _GRID

    def worst_mean(self, present: float, κ: float) -> float:
        """The largest variance that one report adds to the mean among the share `present` of users with a value.

        The moments are linear in the population. For a given mean R the largest is therefore attained by two values.
        """
        largest, found = 0.0, self.optional_moments(np.append(_GRID, np.nan))
        for mean in _GRID.tolist():
            c = np.array([1.0, -mean])
            square = np.einsum("nkl,k,l->n", found.second, c, c)
            each = square[:-1] - (1 - κ) * (_GRID - mean) ** 2
            low, high = _GRID[_GRID <= mean], _GRID[_GRID >= mean]
            gap = high[None, :] - low[:, None]
            weight = np.divide(mean - low[:, None], gap, out=np.zeros_like(gap), where=gap > 0)
            two = (1 - weight) * each[mean >= _GRID][:, None] + weight * each[mean <= _GRID][None, :]
            largest = max(largest, present * float(two.max()) + (1 - present) * float(square[-1]))
        return largest / present**2

    def worst_share(self, κ: float) -> float:
        """The largest variance that one report adds to the share of users with a value, over values and shares."""
        noise = self.optional_moments(np.append(_GRID, np.nan)).variance([0.0, 1.0])
        most = noise[:-1].max()
        return float(np.max(_SHARES * most + (1 - _SHARES) * noise[-1] + κ * _SHARES * (1 - _SHARES)))


@dataclass(frozen=True, eq=False)
class Marginal(Coordinate):
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
    """

    law: Floats
    targets: Mapping[str, Floats]
    decoders: Mapping[str, Floats]
    levels: Floats

    @property
    def optional(self) -> bool:
        """Whether "no value" is an input."""
        return "present" in self.decoders

    @property
    def indicator(self) -> bool:  # type: ignore[override]
        """Whether the value is 0 or 1, so that it is its own square."""
        return self.levels.size == 2 and not self.levels[0] and self.levels[1] == 1.0

    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        """The moments of (value, present) for these values; NaN is "no value".

        Parameters
        ----------
        values
            Values on the scale of the levels.
        others
            The probability of each input of the other dimensions, the same for all values or a row for each; equal if
            left out.
        """
        decode = np.stack(list(self.decoders.values()), axis=1)
        weights = None if others is None else np.asarray(others, np.float64)
        if weights is not None and weights.ndim == 2:
            mean, second = self.law @ decode, np.einsum("ioc,ck,cl->iokl", self.law, decode, decode)
            return Moments(
                np.einsum("no,nok->nk", weights, self._between(mean, values)),
                np.einsum("no,nokl->nkl", weights, self._between(second, values)),
            )
        law = self.law.mean(axis=1) if weights is None else np.einsum("iok,o->ik", self.law, weights)
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

    def turning_points(self, κ: float) -> Floats:
        """The levels, and between two of them the peak of E[y² | x] − (1 − κ)x², whose first term is linear there."""
        if κ >= 1:
            return self.levels
        slope = np.diff(self.moments(self.levels).second[:, 0, 0]) / np.diff(self.levels)
        return np.union1d(self.levels, np.clip(slope / (2 * (1 - κ)), self.levels[:-1], self.levels[1:]))

    def hat_weights(self, values: ArrayLike) -> Floats:
        """The probability that each value is rounded to each level, shape (values, levels)."""
        x = np.asarray(values, np.float64)[:, None]
        return np.asarray(np.maximum(0.0, 1.0 - np.abs(x - self.levels) / (self.levels[1] - self.levels[0])))


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
        law = self._listed
        take = self.channel.takes[place]
        own = (
            np.arange(self.channel.n_inputs)
            // int(np.prod([t.size for t in self.channel.takes[place + 1 :]], dtype=np.int64))
            % take.size
        )
        if take.reads == "category":
            target, levels = (own == coordinate).astype(np.float64), np.array([0.0, 1.0])
        else:
            levels = np.linspace(-1.0, 1.0, take.size - (take.reads == "optional"))
            target = np.append(levels, 0.0)[own]
        decoder = decoder_of(law, target)
        if decoder is None:
            raise InvalidInput(
                f"channel {self.channel.mechanism!r} of kind {self.channel.kind!r} has no unbiased decoder: "
                "its counters do not determine the answer"
            )
        grouped = np.stack([law[target == x].mean(axis=0) for x in levels])
        return Marginal(grouped[:, None, :], {"value": levels}, {"value": decoder}, levels)

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
        if size > MAX_ENUMERATED:
            raise InvalidInput(
                f"channel {channel.mechanism!r} of kind {channel.kind!r} is too large to enumerate: "
                "it needs a response of its own"
            )
        law = np.zeros((channel.n_inputs, channel.n_counters))
        for output in channel.outputs():
            counters = list(channel.counters(output))
            for x in range(channel.n_inputs):
                law[x, counters] += float(channel.probability(x, output))
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
