"""Simulated collections with continuous mechanisms, fast and seeded: for analysis, never for deployment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.kernels.simulate.fused import accumulate
from hdr4me.mechanisms.law import Mechanism
from hdr4me.simulation.inside import check_inside
from hdr4me.simulation.laws import fused_law
from hdr4me.simulation.plain import accumulate_plainly
from hdr4me.simulation.seeds import generator

Floats = NDArray[np.float64]
_CHUNK = 1 << 18
"""Numbers in a chunk. Part of the streams' names: another number gives other draws."""


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
    mechanism: Mechanism | Channel, values: ArrayLike, *, seed: int, n_sampled: int = 1, threads: int = 1
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
        A whole number from 0; the same seed gives the same bits on any number of threads.
    n_sampled
        How many dimensions each user reports, drawn without replacement.
    threads
        How many threads the fused kernel uses.

    Returns
    -------
    Simulated
        `total`, `squares`, `n_reports` per dimension, and `mean`, which is not calibrated unless a channel was given.

    Raises
    ------
    InvalidInput
        Where an argument is not allowed; the message names it.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> found = simulate(mechanism("piecewise", epsilon=1.0), np.full((100_000, 2), 0.5), seed=1, n_sampled=2)
    >>> bool(np.all(abs(found.mean - 0.5) < 0.05)), found.n_reports.tolist()
    (True, [100000.0, 100000.0])
    """
    if not isinstance(mechanism, Mechanism):
        response = getattr(mechanism, "response", None)
        if getattr(response, "wide", False):
            if n_sampled != 1:
                raise InvalidInput.of("n_sampled", n_sampled, "1: a channel is one question")
            return Simulated(*_together(response, np.asarray(values, np.float64), _seed(seed)))
        raise InvalidInput.of(
            "mechanism", mechanism, "a mechanism, such as hd.mechanism('piecewise', epsilon=1.0)"
        )
    data, checked_seed = _checked(mechanism, values), _seed(seed)
    if not 1 <= n_sampled <= data.shape[1]:
        raise InvalidInput.of("n_sampled", n_sampled, f"a whole number from 1 to {data.shape[1]}")
    fused = fused_law(mechanism)
    if fused is None:
        return Simulated(*accumulate_plainly(mechanism, data, n_sampled=n_sampled, seed=checked_seed))
    return Simulated(*accumulate(data, *fused, n_sampled=n_sampled, seed=checked_seed, threads=threads))


def _together(response: Any, values: Floats, seed: int) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of decoded reports of a channel that answers many numbers at once."""
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
    return total, squares, np.full(size, float(len(values)))


def _checked(mechanism: Mechanism, values: ArrayLike) -> NDArray[np.floating[Any]]:
    data = np.asarray(values)
    if data.dtype != np.float32:
        data = data.astype(np.float64, copy=False)
    if data.ndim != 2 or not 1 <= data.shape[1] <= 65536:
        raise InvalidInput(f"values of shape {data.shape}: expected (n, d) with d from 1 to 65536")
    low, high = mechanism.domain
    check_inside(data, low, high, mechanism.name)
    return data


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InvalidInput.of("seed", seed, "a whole number from 0 to 2**63 - 1")
    return int(seed)
