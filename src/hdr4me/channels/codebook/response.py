"""The response of codebooks.

With z the inner product of the input's direction and the codeword sent, over its standard deviation, and v the variance
of a codeword's numbers, a codeword u has E u = √v·E[z]·x and E u_j² = v·(1 + (E[z²] − 1)·x_j²) for an input x on the
sphere. So u/c with c = √v·E[z] is unbiased for a vector x of the ball.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from hdr4me.channels.codebook.channel import N_LEVELS, thresholds, values, word_levels
from hdr4me.channels.k_subset_response import KSubsetResponse
from hdr4me.channels.proof import ONE
from hdr4me.channels.response import (
    Contrast,
    Floats,
    Marginal,
    Mask,
    Moments,
    Numbers,
    Records,
    coordinates,
    gram,
)
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


class Scores(NamedTuple):
    """E[z] and E[z²] of the codeword that is sent."""

    first: float
    second: float

    @property
    def contrast(self) -> float:
        """c: the mean of a codeword along a direction of length 1."""
        return float(np.sqrt(value_variance()) * self.first)

    def square(self, x: ArrayLike) -> Any:
        """The mean square of a decoded coordinate whose true mean square over users is `x`."""
        return (1.0 + (self.second - 1.0) * np.asarray(x)) / self.first**2


@lru_cache(maxsize=1)
def value_variance() -> float:
    """v: the variance of a codeword's numbers."""
    shares = np.diff(thresholds()) / 65536
    return float(shares @ np.square(values()))


@lru_cache(maxsize=4096)
def _top(codewords: int, heavy: int) -> tuple[float, float]:
    """The mean, and the mean square, of the k largest of K independent normal numbers.

    A number z is among them if fewer than k of the others exceed it:
    E g = (K/k)∫ g(z) φ(z) P(Bin(K − 1, Φ(−z)) < k) dz.
    """
    z = np.linspace(-9.0, 9.0, 1201)
    inside = special.betainc(codewords - heavy, heavy, special.ndtr(z))
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * inside * codewords / heavy
    step = z[1] - z[0]
    return float((z * density).sum() * step), float((z**2 * density).sum() * step)


@lru_cache(maxsize=4096)
def codebook_scores(codewords: int, heavy: int, p: float) -> Scores:
    """The moments of the scores of K codewords, the k heavy ones of which are sent with probability p."""
    first, second = _top(codewords, heavy)
    rest = heavy / (codewords - heavy)  # all K numbers have mean 0 and mean square 1
    others = 1 + rest * (1 - second)
    return Scores(p * first - (1 - p) * rest * first, p * second + (1 - p) * others)


class CodebookMarginal(Marginal):
    """A coordinate of a vector: one of 256 cells, whose distribution is described by its moments only."""

    scores: Scores

    @property
    def least_noise(self) -> float:
        """The smallest variance of a decoded report along a unit direction, over all vectors.

        A report u/c about a vector x of the sphere has the covariance (I + (E[z²] − 1 − E[z]²)·x·xᵀ)/E[z]².
        """
        first, second = self.scores
        return min(1.0, second - first**2) / first**2

    def moments(self, values: ArrayLike, others: ArrayLike | None = None) -> Moments:
        y = np.nan_to_num(np.asarray(values, np.float64))
        return Moments(y[:, None], self.scores.square(y**2)[:, None, None])

    def optional_moments(self, values: ArrayLike) -> Moments:
        """The moments of (value, present) of a coordinate of an optional vector; NaN means "no vector".

        The input is (x, 0) for a vector x and (0, −1) for a missing one: with s the last coordinate, present is 1 + s.
        In every input one of the two coordinates is 0, so their product has mean 0.
        """
        x = np.asarray(values, np.float64)
        y, s = np.nan_to_num(x), np.where(np.isnan(x), -1.0, 0.0)
        second = np.empty((x.size, 2, 2))
        second[:, 0, 0] = self.scores.square(y**2)
        second[:, 0, 1] = second[:, 1, 0] = y
        second[:, 1, 1] = 1.0 + 2.0 * s + self.scores.square(s**2)
        return Moments(np.stack([y, 1.0 + s], axis=1), second)

    def turning_points(self, κ: float) -> Floats:
        """Var(y | x) + κx² is linear in x²."""
        return np.array([0.0, 1.0])

    def worst_share(self, κ: float) -> float:
        """The variance is a quadratic function of the share, with its maximum at an end or at the vertex."""
        all_present, none_present = self.optional_moments([0.0, np.nan]).variance([0.0, 1.0])
        middle = 0.5 + (all_present - none_present) / (2 * κ) if κ else 0.0
        f = np.array([0.0, 1.0, min(max(middle, 0.0), 1.0)])
        return float(np.max(f * all_present + (1 - f) * none_present + κ * f * (1 - f)))


@lru_cache(maxsize=1)
def word_values() -> NDArray[np.float32]:
    """The value of each half word of a codeword."""
    return np.array(values(), np.float32)[_levels()]


def _levels() -> NDArray[np.uint8]:
    return np.frombuffer(word_levels(), np.uint8)


class CodebookResponse(KSubsetResponse):
    """The mean of each coordinate of the vectors."""

    wide = True
    in_order = False

    @property
    def cost(self) -> int:
        return int(self.channel.family.codewords * (self.channel.family.length + 1))

    def encode(
        self, records: Records, dimensions: Sequence[int], users: Numbers, draws: SecureDraws
    ) -> Floats:
        return records.vectors[dimensions[0]][users]

    def inputs_of(self, x: int, n: int) -> Floats:
        return np.tile(np.array(self.channel.family.vector(x)), (n, 1))

    def sample(self, inputs: Floats, draws: SecureDraws) -> Numbers:
        from hdr4me.kernels.exact.channels import choose

        n, d = inputs.shape
        targets = np.zeros((n, 4 * (d // 4 + 1)), np.float32)
        targets[:, :d] = inputs
        targets[:, d] = np.sqrt(np.maximum(0.0, 1.0 - np.square(inputs).sum(axis=1)))
        seeds = draws.words(n) >> np.uint32(32 - self.channel.family.seed_bits)
        found = np.empty((n, 2), np.int64)
        found[:, 0] = seeds
        ranks = self.ranks(n, draws)
        choose(targets, seeds, ranks, self.channel.family.codewords, word_values(), found[:, 1])
        return found

    def ranks(self, n: int, draws: SecureDraws) -> Numbers:
        """The random ranks of n users: below k with probability W/2^32, otherwise from k on."""
        family = self.channel.family
        heavy = draws.words(n) < self.channel.weight
        light = draws.below(family.codewords - family.heavy, n) + family.heavy
        return np.asarray(np.where(heavy, draws.below(family.heavy, n), light))

    def counters(self, outputs: Numbers) -> Numbers:
        from hdr4me.kernels.exact.channels import levels_of

        length = self.channel.family.length
        found = np.empty((len(outputs), length), np.int64)
        levels_of(outputs[:, 0], outputs[:, 1], _levels(), found)
        return np.asarray(found + N_LEVELS * np.arange(length))

    def count(self, outputs: Numbers, good: Mask, counts: Numbers) -> None:
        from hdr4me.kernels.exact.channels import count_levels

        by_coordinate = counts.reshape(self.channel.family.length, N_LEVELS)
        count_levels(outputs[:, 0], outputs[:, 1], good, _levels(), by_coordinate)

    def contrast(self, first: int, second: int) -> Contrast:
        """Computed by a kernel for the two ends of the first axis, the worst pair."""
        if (first, second) != self.channel.worst_pair():
            return super().contrast(first, second)
        from hdr4me.kernels.exact.channels import axis_ranks

        def classify(outputs: Numbers) -> Numbers:
            family, ranks = self.channel.family, np.empty((len(outputs), 2), np.int64)
            axis_ranks(outputs[:, 0], outputs[:, 1], family.codewords, word_values(), ranks)
            heavy = ranks < family.heavy
            return np.asarray(1 - heavy[:, 0].astype(np.int64) + heavy[:, 1])

        return self._three(classify)

    def simulate(self, values: Floats, rng: np.random.Generator) -> Floats:
        """Decoded codewords of users with these vectors [n, length], without the lifted coordinate; not private.

        No codebook is generated: the rank of the reported codeword gives its score by the distribution of order
        statistics, and its component orthogonal to the input is normal. That is exact for normal codewords.
        """
        squares = np.square(values).sum(axis=1)
        if not np.all(squares <= 1 + 1e-9):
            raise InvalidInput("values must lie in the unit ball")
        family, (n, d) = self.channel.family, values.shape
        target = np.concatenate([values, np.sqrt(np.maximum(0.0, 1 - squares))[:, None]], axis=1)
        heavy = rng.random(n) < self.channel.weight / ONE
        rank = np.where(
            heavy, rng.integers(0, family.heavy, n), rng.integers(family.heavy, family.codewords, n)
        )
        score = -special.ndtri(rng.beta(rank + 1.0, family.codewords - rank))
        free = rng.standard_normal((n, d + 1))
        along = score - (free * target).sum(axis=1)
        found = free + along[:, None] * target
        return np.asarray(found[:, :d] * np.sqrt(value_variance()) / self.scores.contrast)

    def n_coordinates(self, position: int = 0) -> int:
        return int(self.channel.family.length)

    @cached_property
    def scores(self) -> Scores:
        """E[z] and E[z²]."""
        family = self.channel.family
        return codebook_scores(family.codewords, family.heavy, self.channel.weight / ONE)

    @cached_property
    def shared(self) -> CodebookMarginal:
        levels = np.array([-1.0, 1.0])
        decode = np.array(values()) / self.scores.contrast
        found = CodebookMarginal(np.empty((0, 1, N_LEVELS)), {"value": levels}, {"value": decode}, levels)
        object.__setattr__(found, "scores", self.scores)
        return found

    def covariance(self, values: Floats, shares: Floats, *, optional: bool = False) -> Floats:
        """(I + (E[z²] − 1 − E[z]²)·x·xᵀ)/E[z]² on average; in the input the last coordinate is present − 1."""
        x = coordinates(values, optional=optional)
        if optional:
            x[:, -1] -= 1.0
        first, second = self.scores
        both = gram(x, shares)
        return np.asarray((np.eye(len(both)) + (second - 1.0) * both) / first**2 - both)

    def cells(self, counts: Numbers, position: int = 0) -> Numbers:
        return counts.reshape(self.channel.family.length, N_LEVELS)
