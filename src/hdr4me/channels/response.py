"""Response: the statistical properties of a channel, in NumPy.

A channel runs on the device and uses the standard library only. Its response is loaded on first use
(`Channel.response`). Engines, tallies, statistics, the framework, the planner, audits and accounting call the response;
none of them depends on the kind of a channel.

An answer consists of *coordinates*: the mean of a number, the frequency of each category, the mean of each coordinate
of a vector. For each coordinate, a report falls into one of several *cells*. A `Marginal` is the conditional
distribution of that cell given the user's own value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels.blanket import Blanket, response_blanket, table_blanket
from hdr4me.channels.channel import Channel, SystemDraws
from hdr4me.channels.proof import BITS
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.kernels.exact.perturb import Columns
    from hdr4me.kernels.exact.secure import SecureDraws


Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Grids of values and of shares of users for the search for the worst population.
_GRID, _SHARES = np.linspace(-1.0, 1.0, 33), np.linspace(0.0, 1.0, 65)
MAX_ENUMERATED = 1 << 20  # largest product of inputs and outputs of a channel that is enumerated


def probabilities(rows: ArrayLike) -> Floats:
    """Integer rows that sum to 2^32 as probabilities."""
    return np.ldexp(np.asarray(rows, np.float64), -BITS)


@dataclass(frozen=True, eq=False)
class Moments:
    """The means (n, k) and second moments E[y yᵀ] (n, k, k) of the decoded report y given each of n inputs."""

    mean: Floats
    second: Floats

    def variance(self, weights: ArrayLike) -> Floats:
        """Var(c·y | x) for each input."""
        c = np.asarray(weights, np.float64)
        return np.asarray(np.einsum("nkl,k,l->n", self.second, c, c) - (self.mean @ c) ** 2)


class Coordinate(ABC):
    """One coordinate for predictions: the moments of a decoded report given the user's value."""

    indicator = False  # whether the value is 0 or 1

    @abstractmethod
    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        """The moments of (value, present) for these values; NaN means "no value"."""

    def optional_moments(self, values: ArrayLike) -> Moments:
        """The same if "no value" is a valid answer."""
        return self.moments(values)

    def worst(self, κ: float) -> float:
        """The largest E Var(y | x) + κ·Var E(y | x) over all populations.

        For a number, E[Var(y | x) + κx²] − κ(E x)² is at most the largest Var(y | x) + κx². If the variance is an even
        function, a population with half of the users at x and half at −x attains it. For an indicator, the population
        is a share of users.
        """
        if self.indicator:
            absent, present = self.moments([0.0, 1.0]).variance([1.0])
            return float(np.max((1 - _SHARES) * absent + _SHARES * present + κ * _SHARES * (1 - _SHARES)))
        found = self.moments(x := self.turning_points(κ))
        return float(np.max(found.variance([1.0]) + κ * x**2))

    def turning_points(self, κ: float) -> Floats:
        """Candidate values for the maximum of Var(y | x) + κx²."""
        return _GRID

    def worst_mean(self, present: float, κ: float) -> float:
        """The largest variance of one report for the mean among users with a value, whose share is `present`.

        The moments are linear in the population. For a given mean, two values therefore attain the maximum.
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
        """The largest variance of one report for the share of users with a value, over values and shares."""
        noise = self.optional_moments(np.append(_GRID, np.nan)).variance([0.0, 1.0])
        most = noise[:-1].max()
        return float(np.max(_SHARES * most + (1 - _SHARES) * noise[-1] + κ * _SHARES * (1 - _SHARES)))


@dataclass(frozen=True, eq=False)
class Marginal(Coordinate):
    """The distribution of a report's cell for one coordinate, given the coordinate's own input.

    `law` is P(cell | own input, inputs of the other dimensions), shape (own inputs, others, cells). `decoders` holds a
    number for each cell, and `targets` the mean of each decoder at each own input; their names are "value" and, if a
    value may be missing, "present". `levels` are the increasing values of the own inputs. A value between two levels
    is rounded randomly to one of them, and inputs beyond the levels mean "no value". `unary` means that the cells are
    those of one entry of unary encoding, rather than "supported" and "not supported".
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
    def indicator(self) -> bool:  # type: ignore[override]
        """Whether the coordinate is the indicator of a category, whose distribution does not depend on other inputs."""
        return len(self.law) == 2 and not self.levels[0] and self.levels[1] == 1.0

    @property
    def least_noise(self) -> float | None:
        """The smallest variance of a decoded report, if it does not follow from the distribution."""
        return None

    @property
    def step(self) -> float:
        """The distance between two levels."""
        return float(self.levels[1] - self.levels[0])

    @cached_property
    def rows(self) -> Floats:
        """P(cell | input) for the relevant inputs of the channel, shape (inputs, cells)."""
        return self.law.reshape(-1, self.law.shape[-1])

    def target(self, name: str) -> Floats:
        """The mean of a decoder at each of `rows`."""
        return np.repeat(self.targets[name], self.law.shape[1])

    @cached_property
    def rank(self) -> int:
        """The rank of the rows of the levels, averaged over the inputs of the other dimensions."""
        return int(np.linalg.matrix_rank(self.law[: self.levels.size].mean(axis=1), tol=1e-6))

    @cached_property
    def _inverse(self) -> Floats:
        return inverse_of(self.rows)

    def decoder(self, target: Floats) -> Floats | None:
        """The values of the cells with mean `target` at each of `rows` and minimum variance; None if there are none."""
        return decoder_of(self.rows, target, self._inverse)

    @cached_property
    def square(self) -> Floats | None:
        """The decoder of the squared own level (0 for a missing value); None if there is no unbiased decoder."""
        return self.decoder(self.target("value") ** 2)

    def at(self, values: ArrayLike) -> Floats:
        """P(cell | value, inputs of the others); a mixture of two rows for a value between two levels."""
        position = (np.asarray(values, np.float64) - self.levels[0]) / self.step
        level = np.clip(position.astype(np.int64), 0, self.levels.size - 2)
        share = (position - level)[..., None, None]
        return np.asarray(self.law[level] * (1.0 - share) + self.law[level + 1] * share)

    def in_bins(self, edges: Floats) -> Floats:
        """P(cell | bin, others' input) for values spread evenly inside each bin, shape (bins, others, cells).

        The distribution is linear between levels, so its mean over an interval between adjacent edges or levels is its
        value at the midpoint.
        """
        inside = self.levels[(self.levels > edges[0]) & (self.levels < edges[-1])]
        cuts = np.unique(np.concatenate([edges, inside]))
        middles, widths = (cuts[:-1] + cuts[1:]) / 2, np.diff(cuts)
        law = self.at(middles) * widths[:, None, None]
        starts = np.searchsorted(cuts, edges[:-1])
        return np.asarray(np.add.reduceat(law, starts, axis=0) / np.diff(edges)[:, None, None])

    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        decode = np.stack(list(self.decoders.values()), axis=1)
        weights = None if others is None else np.asarray(others, np.float64)
        if weights is not None and weights.ndim == 2:
            mean, second = self.law @ decode, np.einsum("ioc,ck,cl->iokl", self.law, decode, decode)
            return Moments(
                np.einsum("no,nok->nk", weights, self._between(mean, values)),
                np.einsum("no,nokl->nkl", weights, self._between(second, values)),
            )
        law = self.law.mean(axis=1) if weights is None else np.einsum("iok,o->ik", self.law, weights)
        # Several inputs may share one level with equal probabilities.
        if len(law) > self.levels.size + self.optional:
            law = np.stack([law[self.targets["value"] == x].mean(axis=0) for x in self.levels])
        mean, second = law @ decode, np.einsum("ic,ck,cl->ikl", law, decode, decode)
        return Moments(self._between(mean, values), self._between(second, values))

    def _between(self, at_inputs: Floats, values: ArrayLike) -> Floats:
        """Linear interpolation between levels (values are rounded randomly); the last input for a missing value."""
        x = np.asarray(values, np.float64)
        flat = at_inputs.reshape(len(at_inputs), -1)
        n = self.levels.size
        found = np.stack([np.interp(np.nan_to_num(x), self.levels, column[:n]) for column in flat.T], axis=1)
        found[np.isnan(x)] = flat[-1]
        return found.reshape(x.size, *at_inputs.shape[1:])

    def turning_points(self, κ: float) -> Floats:
        """The levels, and the maxima of E[y² | x] − (1 − κ)x² between them, where the first term is linear."""
        if κ >= 1:
            return self.levels
        slope = np.diff(self.moments(self.levels).second[:, 0, 0]) / np.diff(self.levels)
        return np.union1d(self.levels, np.clip(slope / (2 * (1 - κ)), self.levels[:-1], self.levels[1:]))

    def hat_weights(self, values: ArrayLike) -> Floats:
        """The probability that each value is rounded to each level, shape (values, levels)."""
        x = np.asarray(values, np.float64)[:, None]
        return np.asarray(np.maximum(0.0, 1.0 - np.abs(x - self.levels) / (self.levels[1] - self.levels[0])))


class Records(NamedTuple):
    """Records for the kernels: addresses of values, vectors of the unit ball, and the conversion to positions."""

    columns: Columns
    vectors: Mapping[int, Floats]
    ranges: Floats


class Contrast(NamedTuple):
    """Classes of outputs by which of two inputs they favor, and the distribution of the classes under each input."""

    classify: Callable[[Numbers], Numbers]
    first: Floats
    second: Floats


class Response:
    """The statistical properties of a channel; this class supports any small channel by enumeration of its outputs.

    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> channel = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi").channels[0]
    >>> result = channel.response.marginal().moments([0.0, 1.0])
    >>> result.mean.round(6).tolist(), result.variance([1.0]).round(3).tolist()
    ([[0.0], [1.0]], [4.683, 3.683])
    """

    wide = False  # whether inputs may exceed 64 bits; `encode` then gives rows
    in_order: bool | None = None
    """Whether the fields of an output increase; None if validity needs more than the bounds of the fields."""

    def __init__(self, channel: Channel) -> None:
        self.channel: Any = channel

    @cached_property
    def shared(self) -> Marginal | None:
        """The marginal that all coordinates share, if there is one."""
        return None

    @property
    def alike(self) -> bool:
        """Whether all coordinates of a dimension have the same marginal, which is only known if they share it."""
        return self.shared is not None

    @property
    def cost(self) -> int:
        """The cost of one draw in multiplications; the audit makes fewer draws if they are expensive."""
        return 1

    # -- from records to reports ---------------------------------------------------------------------------------

    def encode(
        self, records: Records, dimensions: Sequence[int], users: Numbers, draws: SecureDraws
    ) -> NDArray[Any]:
        """The inputs of a wide channel; the engine computes the integer inputs of other channels itself."""
        raise NotImplementedError(f"inputs of channel {self.channel.mechanism!r} are integers")

    def inputs_of(self, x: int, n: int) -> NDArray[Any]:
        """Input x for n users, as `sample` accepts it."""
        return np.full(n, x, np.int64)

    def sample(self, inputs: NDArray[Any], draws: SecureDraws) -> Numbers:
        """Outputs [n, fields] for n inputs; by default the channel draws them one by one."""
        single = SystemDraws(draws.bits)
        outputs = [self.channel.sample(x, single) for x in inputs.tolist()]
        return np.array(outputs, np.int64).reshape(len(inputs), len(self.channel.fields))

    def to_bytes(self, outputs: Numbers) -> NDArray[np.uint8]:
        """Outputs [n, fields] as little-endian bytes [n, wire_size]."""
        sizes = [field.size for field in self.channel.fields]
        if len(set(sizes)) == 1:
            return np.ascontiguousarray(outputs.astype(f"<u{sizes[0]}")).view(np.uint8)
        parts = [outputs[:, [column]].astype(f"<u{size}").view(np.uint8) for column, size in enumerate(sizes)]
        return np.concatenate(parts, axis=1)

    def from_bytes(self, data: NDArray[np.uint8]) -> Numbers:
        """The outputs [n, fields] in bytes [n, wire_size]; 64-bit fields keep their bit patterns."""
        sizes = [field.size for field in self.channel.fields]
        if len(set(sizes)) == 1:
            return np.ascontiguousarray(data).view(f"<u{sizes[0]}").astype(np.int64)
        parts = zip(np.split(data, np.cumsum(sizes)[:-1], axis=1), sizes, strict=True)
        columns = [np.ascontiguousarray(part).view(f"<u{size}").astype(np.int64) for part, size in parts]
        return np.concatenate(columns, axis=1)

    # -- from reports to counters --------------------------------------------------------------------------------

    def valid(self, outputs: Numbers) -> Mask:
        """Which of the rows [n, fields] are outputs of the channel."""
        if self.in_order is None:
            return np.fromiter(map(self.channel.is_output, outputs.tolist()), bool, len(outputs))
        good = (outputs.view(np.uint64) <= self._largest).all(axis=1)
        return np.asarray(good & (np.diff(outputs, axis=1) > 0).all(axis=1) if self.in_order else good)

    @cached_property
    def _largest(self) -> NDArray[np.uint64]:
        return np.array([field.bound - 1 for field in self.channel.fields], np.uint64)

    def counters(self, outputs: Numbers) -> Numbers:
        """The counters [n, per_report] that each valid output increments."""
        found = [list(self.channel.counters(output)) for output in outputs.tolist()]
        return np.array(found, np.int64).reshape(len(outputs), self.channel.per_report)

    def count(self, outputs: Numbers, good: Mask, counts: Numbers) -> None:
        """Add the good rows of the outputs to the counters of the question."""
        chosen = outputs if good.all() else outputs[good]
        counts += np.bincount(self.counters(chosen).ravel(), minlength=counts.size)

    # -- privacy -------------------------------------------------------------------------------------------------

    def contrast(self, first: int, second: int) -> Contrast:
        """Classes 0 (more likely under the first input), 1 (equally likely) and 2, from the channel's probabilities.

        The distribution of these classes is not exact: it only shows that class 0 favors the first input.
        """

        def classify(outputs: Numbers) -> Numbers:
            distinct, where = np.unique(outputs, axis=0, return_inverse=True)
            law = self.channel.probability
            pairs = [(law(first, row), law(second, row)) for row in distinct.tolist()]
            return np.array([1 - (p > q) + (p < q) for p, q in pairs])[where.ravel()]

        return self._three(classify)

    def _three(self, classify: Callable[[Numbers], Numbers]) -> Contrast:
        return Contrast(
            classify, np.array([1.0, 0.0, 0.0]), np.array([math.exp(-self.channel.epsilon), 0.0, 1.0])
        )

    def bounds(self) -> tuple[Floats, Floats] | None:
        """The smallest and largest probability, over all inputs, that a report increments each counter.

        None if the channel is too large to enumerate.
        """
        law = self._listed
        return None if law is None else (law.min(axis=0), law.max(axis=0))

    @property
    def table(self) -> Floats | None:
        """P(cell | input) if an answer is one cell of a table of integers; otherwise None."""
        rows = self.channel.rows
        return None if rows is None or len(self.channel.fields) != 1 else probabilities(rows)

    @property
    def field_laws(self) -> tuple[tuple[Floats, int], ...]:
        """The distributions of independent fields with their multiplicities, if these are the same for all inputs."""
        return ()

    def likeliest(self) -> float:
        """An upper bound of the probability of any output for any input."""
        return 1.0 if self.table is None else float(self.table.max())

    def blanket(self) -> Blanket:
        """The privacy blanket; for an unknown channel, a bound from its likelihood ratio."""
        rows = self.channel.rows
        return response_blanket(float(self.channel.likelihood_ratio)) if rows is None else table_blanket(rows)

    def reach(self, position: int = 0) -> float | None:
        """The largest distance of a decoded report from a true value; None if there is no decoder."""
        try:
            found = self.marginal(position)
        except InvalidInput:
            return None
        values, levels = found.decoders["value"], found.levels
        return float(max(values.max() - levels.min(), levels.max() - values.min()))

    # -- the distribution of one coordinate -------------------------------------------------------------------------

    def n_coordinates(self, position: int = 0) -> int:
        """The number of coordinates of dimension number `position` of the question."""
        input_ = self.channel.inputs[position]
        return input_.size if input_.input_kind == "category" else 1

    def marginal(self, position: int = 0, coordinate: int = 0) -> Marginal:
        """The distribution of one coordinate of dimension number `position` of the question.

        For a channel without its own response, the cells are the counters, and the decoder is the unbiased decoder of
        minimum variance.
        """
        if self.shared is not None:
            return self.shared
        law = self._listed
        optional = any(input_.input_kind == "optional" for input_ in self.channel.inputs)
        if law is None or self.channel.per_report != 1 or optional:
            raise InvalidInput(
                f"channel {self.channel.mechanism!r} of kind {self.channel.kind!r} needs its own response: only "
                "small channels whose reports increment one counter are enumerated"
            )
        input_, after = (
            self.channel.inputs[position],
            math.prod(t.size for t in self.channel.inputs[position + 1 :]),
        )
        own = np.arange(self.channel.n_inputs) // after % input_.size
        if input_.input_kind == "category":
            levels = np.array([0.0, 1.0])
            target = (own == coordinate).astype(np.float64)
        else:
            levels = np.linspace(-1.0, 1.0, input_.size)
            target = levels[own]
        decoder = decoder_of(law, target, self._inverse)
        if decoder is None:
            raise InvalidInput(
                f"channel {self.channel.mechanism!r} of kind {self.channel.kind!r} has no unbiased decoder: "
                "its counters do not determine the answer"
            )
        return Marginal(law[:, None, :], {"value": target}, {"value": decoder}, levels)

    def classes(self, position: int = 0, coordinate: int = 0) -> tuple[Floats, Numbers, bool]:
        """For joint counts: the decoded value of each class of answers, the counters of the classes, and whether there
        is one more class, of answers without any of these counters."""
        return (
            self.marginal(position, coordinate).decoders["value"],
            np.arange(self.channel.n_counters),
            False,
        )

    @cached_property
    def _inverse(self) -> Floats | None:
        return None if self._listed is None else inverse_of(self._listed)

    def covariance(self, values: Floats, shares: Floats, *, optional: bool = False) -> Floats:
        """E Cov(y | x): the mean covariance of the coordinates y of a decoded report, over users with these shares.

        `values` [users, coordinates] are the coordinates of all dimensions of the question. With `optional`, NaN means
        "no value", and the last row and column of the result are those of "present".
        """
        law, decoders = self.joint
        weights, first = shares[:, None], 0
        for position in range(len(self.channel.inputs)):
            own = values[:, first : (first := first + self.n_coordinates(position))]
            weights = (weights[:, :, None] * self._rounded(own, position, optional)[:, None, :]).reshape(
                len(own), -1
            )
        second = (decoders * (weights.sum(axis=0) @ law)) @ decoders.T
        return np.asarray(second - gram(coordinates(values, optional=optional), shares))

    def _rounded(self, values: Floats, position: int, optional: bool) -> Floats:
        """The probability of each input of one dimension, given its coordinates."""
        if self.channel.inputs[position].input_kind == "category":
            return values
        missing = np.isnan(values)
        found = self.marginal(position).hat_weights(np.nan_to_num(values[:, 0]))
        return np.concatenate([found * ~missing, missing], axis=1) if optional else found

    @cached_property
    def joint(self) -> tuple[Floats, Floats]:
        """P(cell | input), and the decoded value of each cell for each coordinate of all dimensions."""
        marginals = [
            self.marginal(position, i)
            for position in range(len(self.channel.inputs))
            for i in range(self.n_coordinates(position))
        ]
        law = self._listed if self.table is None else self.table
        assert law is not None  # only then is there a marginal
        return law, np.stack([decoder for marginal in marginals for decoder in marginal.decoders.values()])

    def supports(self, counts: Numbers) -> Numbers:
        """The number of reports that support each category, if the counters are those of categories."""
        return counts

    def cells(self, counts: Numbers, position: int = 0) -> Numbers:
        """The number of reports in each cell of each coordinate, shape (coordinates, cells)."""
        return np.broadcast_to(counts, (self.n_coordinates(position), counts.size))

    def decoded(self, outputs: Numbers, position: int = 0) -> Floats:
        """The decoded values of the reports, shape (reports, coordinates)."""
        decode, size = self.marginal(position).decoders["value"], self.channel.n_counters
        rows = [
            self.cells(np.bincount(at, minlength=size), position) @ decode for at in self.counters(outputs)
        ]
        return np.array(rows).reshape(len(outputs), self.n_coordinates(position))

    @cached_property
    def _listed(self) -> Floats | None:
        """P(a report increments each counter | input), by enumeration of all outputs; None if there are too many."""
        channel = self.channel
        if channel.n_inputs * math.prod(field.bound for field in channel.fields) > MAX_ENUMERATED:
            return None
        law = np.zeros((channel.n_inputs, channel.n_counters))
        for output in channel.outputs():
            counters = list(channel.counters(output))
            for x in range(channel.n_inputs):
                law[x, counters] += float(channel.probability(x, output))
        return law


def coordinates(values: Floats, *, optional: bool) -> Floats:
    """The means of the coordinates of a decoded report, given the values; if `optional`, that of "present" is last."""
    return np.column_stack([np.nan_to_num(values), ~np.isnan(values[:, 0])]) if optional else values


def gram(x: Floats, shares: Floats) -> Floats:
    """E[x xᵀ] over users with these shares; without a product if each user has one coordinate, which is 1."""
    if x.shape[0] == x.shape[1] == np.count_nonzero(x) and (np.diag(x) == 1).all():
        return np.diag(shares)
    return np.asarray((x.T * shares) @ x)


def inverse_of(law: Floats) -> Floats:
    """The matrix that maps means for all inputs to the values of the cells with these means and minimum variance.

    The weight of a cell is its mean probability. If no values have these means, the result is a least-squares solution.
    """
    mass = law.mean(axis=0)
    scale = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
    return np.asarray(scale[:, None] * np.linalg.pinv(law * scale, rcond=1e-12))


def decoder_of(law: Floats, target: Floats, inverse: Floats | None = None) -> Floats | None:
    """The values of the cells with mean `target` at every input and minimum variance; None if there are none."""
    found = (inverse_of(law) if inverse is None else inverse) @ target
    gap = float(np.abs(law @ found - target).max())
    return np.asarray(found) if gap < 1e-7 * (1.0 + float(np.abs(target).max())) else None
