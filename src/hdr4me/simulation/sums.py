"""Sums of the simulated reports of a collection, seeded, for analysis and not for deployment.

`simulate` draws every report, by the fused kernel or by the mechanism's own `sample`. `simulate_sums` has the same
distribution and uses exact shortcuts if there are any.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.kernels.simulate.aggregate import band_sums, laplace_noise_sums, uniform_sums
from hdr4me.kernels.simulate.fused import accumulate
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Mechanism, UniformMixture
from hdr4me.mechanisms.piecewise import Piecewise
from hdr4me.mechanisms.square_wave import SquareWave
from hdr4me.simulation.laws import fused_law

Floats = NDArray[np.float64]

GAMMA = "exact shortcut: Gamma differences"
SKIPPING = "exact shortcut: skipping"
DIRECT = "every report drawn"
# If a larger share of reports depends on the value, drawing every report is as fast (measured).
_SKIP_BELOW = 0.08
_CHUNK = 1 << 18  # values in a chunk; it determines the random streams, so that changing it changes the draws


def generator(seed: int, *names: object) -> np.random.Generator:
    """The generator of the stream called `names` under `seed`: the same for any number of workers.

    >>> bool(generator(1, "gaussian", 3).random() == generator(1, "gaussian", 3).random())
    True
    """
    digest = hashlib.sha256("\x1f".join(map(str, names)).encode()).digest()
    sequence = np.random.SeedSequence([seed, int.from_bytes(digest, "little")])
    return np.random.Generator(np.random.SFC64(sequence))


class Simulated(NamedTuple):
    """The sum, the sum of squares and the number of the reports of each dimension."""

    total: Floats
    squares: Floats
    n_reports: Floats

    @property
    def mean(self) -> Floats:
        """The mean report, not calibrated; NaN for a dimension without reports."""
        with np.errstate(invalid="ignore"):
            return self.total / self.n_reports


def simulate(
    mechanism: Mechanism | Channel, values: ArrayLike, *, seed: int, sampled: int = 1, threads: int = 1
) -> Simulated:
    """Perturb values [n, d] and sum the reports of each dimension, without storing the reports.

    Parameters
    ----------
    mechanism
        A continuous mechanism under the budget of one value; any `Mechanism`, including your own. A mechanism outside
        the fused kernel's families is drawn by its own `sample`, which is slower and uses one thread. Or the channel of
        an agreement block or of a vector: then every user answers it, and the sums are of decoded reports.
    values
        True values [n, d] in the mechanism's domain, d from 1 to 65536; vectors lie in the unit ball.
    seed
        A nonnegative integer; the same seed gives the same bits on any number of threads.
    sampled
        The number of dimensions that each user reports, drawn without replacement.
    threads
        The number of threads of the fused kernel.

    Returns
    -------
    Simulated
        `total`, `squares`, `n_reports` per dimension, and `mean`, which is not calibrated unless a channel was given.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> result = simulate(mechanism("piecewise", epsilon=1.0), np.full((100_000, 2), 0.5), seed=1, sampled=2)
    >>> bool(np.all(abs(result.mean - 0.5) < 0.05)), result.n_reports.tolist()
    (True, [100000.0, 100000.0])
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InvalidInput.of("seed", seed, "an integer from 0 to 2**63 - 1")
    seed = int(seed)
    if not isinstance(mechanism, Mechanism):
        response = getattr(mechanism, "response", None)
        if not getattr(response, "wide", False):
            raise InvalidInput.of(
                "mechanism", mechanism, "a mechanism, such as hd.mechanism('piecewise', epsilon=1.0)"
            )
        if sampled != 1:
            raise InvalidInput.of("sampled", sampled, "1, because a channel is one question")
        return _decoded_sums(response, np.asarray(values, np.float64), seed)
    data = _checked(mechanism, values)
    if not 1 <= sampled <= data.shape[1]:
        raise InvalidInput.of("sampled", sampled, f"an integer from 1 to {data.shape[1]}")
    fused = fused_law(mechanism)
    if fused is None:
        return accumulate_plainly(mechanism, data, sampled=sampled, seed=seed)
    return Simulated(*accumulate(data, *fused, sampled=sampled, seed=seed, threads=threads))


def _checked(mechanism: Mechanism, values: ArrayLike) -> NDArray[np.floating[Any]]:
    """The values as a matrix of floats inside the mechanism's domain."""
    data = np.asarray(values)
    if data.dtype != np.float32:
        data = data.astype(np.float64, copy=False)
    if data.ndim != 2 or not 1 <= data.shape[1] <= 65536:
        raise InvalidInput(f"values of shape {data.shape}: expected (n, d) with d from 1 to 65536")
    low, high = mechanism.domain
    if data.size and not (data.min() >= low and data.max() <= high):
        i, j = np.argwhere(~((data >= low) & (data <= high)))[0].tolist()
        allowed = f"a value in the domain [{low:g}, {high:g}] of {mechanism.name}"
        raise InvalidInput.of(f"values[{i}, {j}]", float(data[i, j]), allowed)
    return data


def _decoded_sums(response: Any, values: Floats, seed: int) -> Simulated:
    """Sums of the decoded reports of a channel for several numbers."""
    size = response.channel.per_report
    if values.ndim != 2 or values.shape[1] != size:
        raise InvalidInput(f"values of shape {values.shape}: expected (n, {size})")
    rows = max(1, _CHUNK // size)
    total, squares = np.zeros((2, size))
    for chunk, start in enumerate(range(0, len(values), rows)):
        rng = generator(seed, response.channel.family.name, chunk)
        made = response.simulate(values[start : start + rows], rng)
        total += made.sum(axis=0)
        squares += np.square(made).sum(axis=0)
    return Simulated(total, squares, np.full(size, float(len(values))))


def accumulate_plainly(
    mechanism: Mechanism, values: NDArray[np.floating[Any]], *, sampled: int, seed: int
) -> Simulated:
    """The reports of any mechanism, each drawn by `mechanism.sample`."""
    n, d = values.shape
    total, squares, reports = np.zeros((3, d))
    rows = max(1, _CHUNK // d)
    for chunk, start in enumerate(range(0, n, rows)):
        rng = generator(seed, "plain", chunk)
        part = np.asarray(values[start : start + rows], dtype=np.float64)
        if sampled == d:
            x = mechanism.sample(part, rng)
            total += x.sum(axis=0)
            squares += (x**2).sum(axis=0)
            reports += len(part)
            continue
        dims = rng.random(part.shape).argpartition(sampled - 1, axis=1)[:, :sampled]
        x = mechanism.sample(np.take_along_axis(part, dims, axis=1), rng).ravel()
        where = dims.ravel()
        total += np.bincount(where, weights=x, minlength=d)
        squares += np.bincount(where, weights=x**2, minlength=d)
        reports += np.bincount(where, minlength=d)
    return Simulated(total, squares, reports)


def band_share(mechanism: Mechanism) -> float:
    """The probability that a report depends on the value; 1 if skipping is not possible.

    Skipping needs a background that does not depend on t and one band about a multiple of t: Piecewise and Square wave.
    """
    if not isinstance(mechanism, Piecewise | SquareWave) or fused_law(mechanism) is None:
        return 1.0
    return float(mechanism.parts(np.zeros(1)).weight[1, 0])


def way_of(mechanism: Mechanism) -> str:
    """The method by which sums of reports are drawn for this mechanism.

    >>> from hdr4me.mechanisms import mechanism
    >>> [way_of(mechanism("piecewise", epsilon=epsilon)) for epsilon in (0.1, 1.0)]
    ['exact shortcut: skipping', 'every report drawn']
    """
    if isinstance(mechanism, Laplace) and fused_law(mechanism) is not None:
        return GAMMA
    return SKIPPING if band_share(mechanism) < _SKIP_BELOW else DIRECT


def simulate_sums(mechanism: Mechanism, values: ArrayLike, rng: np.random.Generator) -> Floats:
    """Sums of the reports of each dimension if every user reports all d values of [n, d].

    The noise of n Laplace reports is a difference of two Gamma variates. If a small share of reports depends on the
    value (Piecewise, Square wave), only these are drawn, and the others are counted. Otherwise every report is drawn.
    """
    data = np.asarray(values, dtype=np.float64)
    n, d = data.shape
    way = way_of(mechanism)
    if way == GAMMA and isinstance(mechanism, Laplace):
        return np.asarray(data.sum(0) + laplace_noise_sums(mechanism.scale, n, d, rng))
    if way == SKIPPING and isinstance(mechanism, UniformMixture):
        return _by_skipping(mechanism, data, rng)
    return simulate(mechanism, data, seed=int(rng.integers(2**63)), sampled=d).total


def _by_skipping(mechanism: UniformMixture, data: Floats, rng: np.random.Generator) -> Floats:
    """The background reports are counted instead of drawn, with the centers and widths of the mechanism's parts."""
    ends = np.array([0.0, 1.0])
    weight, offset, half = mechanism.parts(ends)
    center = mechanism.mean(ends) + offset
    slope = center[:, 1] - center[:, 0]
    sums, chosen = band_sums(data, float(weight[1, 0]), rng)
    rest = len(data) - chosen
    background = rest * (center[0, 0] - half[0, 0]) + 2 * half[0, 0] * uniform_sums(rest, rng)
    band = chosen * (center[1, 0] - half[1, 0]) + 2 * half[1, 0] * uniform_sums(chosen, rng)
    return np.asarray(background + band + slope[1] * sums)
