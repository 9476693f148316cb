"""Simulated collections with continuous mechanisms, fast and seeded: for analysis, never for deployment.

Most mechanisms are drawn by the fused kernel, any other by its own `sample`. Blocks of signs and vectors are drawn
from the law of their decoded reports. No codebook is generated: the rank of the codeword that is sent determines its
score by the distribution of order statistics, and the rest of it, orthogonal to the input, is normal. That is exact for
codewords of normal numbers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from hdr4me.channels import HeavySet
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook
from hdr4me.channels.proof import ONE
from hdr4me.errors import InvalidInput
from hdr4me.kernels.simulate.fused import accumulate
from hdr4me.mechanisms.agreement import contrast
from hdr4me.mechanisms.codebook import scores_of, value_variance
from hdr4me.mechanisms.law import Mechanism
from hdr4me.simulation.laws import fused_law
from hdr4me.simulation.seeds import generator

__all__ = ["Simulated", "accumulate_plainly", "simulate"]

Floats = NDArray[np.float64]
_CHUNK = 1 << 18
"""Values in a chunk. Part of the streams' names: another number gives other draws."""


class Simulated(NamedTuple):
    """What a collector would know of each dimension: sum and sum of squares of the reports, and their number."""

    total: Floats
    squares: Floats
    n_reports: Floats

    @property
    def mean(self) -> Floats:
        """The mean report, not calibrated; NaN where there was none."""
        with np.errstate(invalid="ignore"):
            return self.total / self.n_reports


def simulate(
    mechanism: Mechanism | HeavySet, values: ArrayLike, *, seed: int, n_sampled: int = 1, threads: int = 1
) -> Simulated:
    """Perturb values [n, d] and sum the reports of each dimension, without keeping them.

    The mechanism's law is compared with what the fused kernel draws at a grid of values and at random ones. A law that
    is not of the kernel's families is drawn by the mechanism's own `sample`, which is slower and uses one thread.

    Parameters
    ----------
    mechanism
        A continuous mechanism under the budget of one value; any `Mechanism`, also one of your own. Or the channel of
        an agreement block or of a vector: then every user answers it, and the sums are those of decoded reports.
    values
        True values [n, d], d from 1 to 65536, in the mechanism's domain; for a vector those of the ball of norm 1.
    seed
        A non-negative integer; the same seed gives the same bits on any number of threads.
    n_sampled
        How many dimensions each user reports, drawn without replacement.
    threads
        How many threads the fused kernel uses.

    Returns
    -------
    Simulated
        `total`, `squares`, `n_reports` per dimension, and `mean`, which is not calibrated unless a channel was given.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> found = simulate(mechanism("piecewise", epsilon=1.0), np.full((100_000, 2), 0.5), seed=1, n_sampled=2)
    >>> bool(np.all(abs(found.mean - 0.5) < 0.05)), found.n_reports.tolist()
    (True, [100000.0, 100000.0])
    """
    if isinstance(mechanism, HeavySet) and mechanism.family.name in ("agreement", "codebook"):
        if n_sampled != 1:
            raise InvalidInput.of("n_sampled", n_sampled, "1: a channel is one question")
        return Simulated(*_simulate_together(mechanism, np.asarray(values, np.float64), _seed(seed)))
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput.of(
            "mechanism", mechanism, "a mechanism, such as hd.mechanism('piecewise', epsilon=1.0)"
        )
    data, checked_seed = _checked(mechanism, values), _seed(seed)
    if not 1 <= n_sampled <= data.shape[1]:
        raise InvalidInput.of("n_sampled", n_sampled, f"an integer from 1 to {data.shape[1]}")
    fused = fused_law(mechanism)
    if fused is None:
        return Simulated(*accumulate_plainly(mechanism, data, n_sampled=n_sampled, seed=checked_seed))
    return Simulated(*accumulate(data, *fused, n_sampled=n_sampled, seed=checked_seed, threads=threads))


def _checked(mechanism: Mechanism, values: ArrayLike) -> NDArray[np.floating[Any]]:
    data = np.asarray(values)
    if data.dtype != np.float32:
        data = data.astype(np.float64, copy=False)
    if data.ndim != 2 or not 1 <= data.shape[1] <= 65536:
        raise InvalidInput(f"values of shape {data.shape}: expected (n, d) with d from 1 to 65536")
    low, high = mechanism.domain
    _check_inside(data, low, high, mechanism.name)
    return data


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InvalidInput.of("seed", seed, "an integer from 0 to 2**63 - 1")
    return int(seed)


def _check_inside(values: NDArray[np.floating[Any]], low: float, high: float, whose: str) -> None:
    """Refuse values outside [low, high] or NaN, and name the first one.

    >>> _check_inside(np.array([[0.5, 2.0]]), -1, 1, "duchi")
    Traceback (most recent call last):
    hdr4me.errors.InvalidInput: values[0, 1] = 2.0 is not allowed: values must lie in the domain [-1, 1] of duchi
    """
    if not values.size or (values.min() >= low and values.max() <= high):
        return
    inside = (values >= low) & (values <= high)
    at = tuple(int(index) for index in np.argwhere(~inside)[0])
    raise InvalidInput.of(
        f"values{list(at)}",
        float(values[at]),
        f"values must lie in the domain [{low:g}, {high:g}] of {whose}",
    )


def accumulate_plainly(
    mechanism: Mechanism, values: NDArray[np.floating[Any]], *, n_sampled: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of reports per dimension, each report drawn by `mechanism.sample`.

    Each user reports `n_sampled` of the d dimensions of values [n, d], drawn without replacement. Each chunk of users
    has its own stream under the seed.
    """
    n, d = values.shape
    total, squares, reports = np.zeros(d), np.zeros(d), np.zeros(d)
    rows = max(1, _CHUNK // d)
    for chunk, start in enumerate(range(0, n, rows)):
        rng = generator(seed, "plain", chunk)
        part = np.asarray(values[start : start + rows], dtype=np.float64)
        if n_sampled == d:
            x = mechanism.sample(part, rng)
            total += x.sum(axis=0)
            squares += (x**2).sum(axis=0)
            reports += len(part)
            continue
        dims = rng.random(part.shape).argpartition(n_sampled - 1, axis=1)[:, :n_sampled]
        x = mechanism.sample(np.take_along_axis(part, dims, axis=1), rng).ravel()
        where = dims.ravel()
        total += np.bincount(where, weights=x, minlength=d)
        squares += np.bincount(where, weights=x**2, minlength=d)
        reports += np.bincount(where, minlength=d)
    return total, squares, reports


def _simulate_together(channel: HeavySet, values: Floats, seed: int) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of decoded reports for each number of the question.

    Values [n, b] lie on [−1, 1]; vectors [n, length] in the ball of norm 1. Each chunk of users has its own stream.
    """
    family = channel.family
    size = family.size if isinstance(family, Agreement) else getattr(family, "length", 0)
    if values.ndim != 2 or values.shape[1] != size:
        raise InvalidInput(f"values of shape {values.shape}: expected (n, {size})")
    rows = max(1, _CHUNK // size)
    total, squares = np.zeros((2, size))
    for chunk, start in enumerate(range(0, len(values), rows)):
        part = np.asarray(values[start : start + rows], np.float64)
        rng = generator(seed, family.name, chunk)
        made = _signs(channel, part, rng) if isinstance(family, Agreement) else _codewords(channel, part, rng)
        total += made.sum(axis=0)
        squares += np.square(made).sum(axis=0)
    return total, squares, np.full(size, float(len(values)))


def _signs(channel: HeavySet, values: Floats, rng: np.random.Generator) -> Floats:
    """Decoded signs ±1/c."""
    family = channel.family
    assert isinstance(family, Agreement)
    _check_inside(values, -1.0, 1.0, "an agreement block")
    n, b = values.shape
    signs = np.where(rng.random(values.shape) < (1 + values) / 2, 1.0, -1.0)
    k, most = family.n_heavy, family.size - family.agreeing
    heavy = rng.random(n) < channel.weight / ONE
    inside = np.array([float(Fraction(end, k)) for end in family.ends[: most + 1]])
    outside = np.array([float(Fraction(end - k, family.n_outputs - k)) for end in family.ends[most + 1 :]])
    u = rng.random(n)
    t = np.where(
        heavy,
        np.searchsorted(inside, u, side="right"),
        most + 1 + np.searchsorted(outside, u, side="right"),
    )
    places = rng.random((n, b)).argsort(axis=1).argsort(axis=1)
    return np.asarray(np.where(places < t[:, None], -signs, signs) / contrast(channel))


def _codewords(channel: HeavySet, values: Floats, rng: np.random.Generator) -> Floats:
    """Decoded codewords without their last number, which was added to normalise the vector."""
    family = channel.family
    assert isinstance(family, Codebook)
    squares = np.square(values).sum(axis=1)
    if not np.all(squares <= 1 + 1e-9):
        raise InvalidInput("values must lie in the ball of norm 1 of a codebook")
    n, d = values.shape
    target = np.concatenate([values, np.sqrt(np.maximum(0.0, 1 - squares))[:, None]], axis=1)
    heavy = rng.random(n) < channel.weight / ONE
    place = np.where(heavy, rng.integers(0, family.heavy, n), rng.integers(family.heavy, family.codewords, n))
    score = -special.ndtri(rng.beta(place + 1.0, family.codewords - place))
    free = rng.standard_normal((n, d + 1))
    along = score - (free * target).sum(axis=1)
    found = free + along[:, None] * target
    return np.asarray(found[:, :d] * np.sqrt(value_variance()) / scores_of(channel).contrast)
