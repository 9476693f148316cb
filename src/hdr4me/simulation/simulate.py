"""Simulated collections with continuous mechanisms, fast and seeded: for analysis, never for deployment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput
from hdr4me.kernels.simulate.draws import INTERVALS, LAPLACE, STEPS, TWO_INTERVALS
from hdr4me.kernels.simulate.fused import accumulate, perturb_values
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Mechanism, UniformMixture, probe_points
from hdr4me.mechanisms.staircase import StaircaseFamily
from hdr4me.simulation.any_law import accumulate_any

__all__ = ["Simulated", "known_to_kernels", "law_of", "simulate", "simulate_values"]

Floats = NDArray[np.float64]


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
    mechanism: Mechanism, values: ArrayLike, *, seed: int, n_sampled: int = 1, threads: int = 1
) -> Simulated:
    """Perturb values [n, d] (in the mechanism's domain) and sum the reports, without keeping them.

    Parameters
    ----------
    mechanism
        A law under the budget of one value. One that the kernels do not know is sampled by its own `sample`.
    values
        One row per user, one column per dimension.
    seed
        The same seed gives the same bits on any number of threads.
    n_sampled
        How many dimensions each user sends, drawn without replacement.
    threads
        How many threads the kernels use.

    Returns
    -------
    Simulated
        Sums, sums of squares and numbers of reports.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> found = simulate(mechanism("piecewise", epsilon=1.0), np.full((100_000, 2), 0.5), seed=1, n_sampled=2)
    >>> bool(np.all(abs(found.mean - 0.5) < 0.05)), found.n_reports.tolist()
    (True, [100000.0, 100000.0])
    """
    data, chosen = _checked(mechanism, values), seed
    if not 1 <= n_sampled <= data.shape[1]:
        raise InvalidInput.of("n_sampled", n_sampled, f"a whole number from 1 to {data.shape[1]}")
    if not known_to_kernels(mechanism):
        return Simulated(*accumulate_any(mechanism, data, n_sampled, _seed(chosen)))
    family, law = law_of(mechanism)
    return Simulated(*accumulate(data, family, law, n_sampled=n_sampled, seed=_seed(chosen), threads=threads))


def simulate_values(mechanism: Mechanism, values: ArrayLike, *, seed: int, threads: int = 1) -> Floats:
    """The perturbed values themselves, as `simulate` draws them when every dimension is sent."""
    data = _checked(mechanism, values)
    return perturb_values(data, *law_of(mechanism), seed=_seed(seed), threads=threads)


def law_of(mechanism: Mechanism) -> tuple[int, Floats]:
    """The kernel's family and parameters, all taken from the mechanism's own law.

    Centre and weight of every part must be affine in t, which is checked (`known_to_kernels`): then two values of t
    determine them.
    """
    if isinstance(mechanism, Laplace):
        return LAPLACE, np.array([[mechanism.scale]])
    if isinstance(mechanism, StaircaseFamily):
        top, mass = mechanism.top, mechanism.top_mass
        flat = _interval(0.0, mass, top / 2, top / 2)
        step = _interval(mass, 1 - mass, top + 1.0, 1.0) if mass < 1 else (top, 0.0)
        return STEPS, np.array([[1 / mechanism.epsilon, 1 + mass, 0, 0, 0], [*flat, *step, 2.0]])
    if isinstance(mechanism, UniformMixture) and known_to_kernels(mechanism):
        return _mixture(mechanism)
    raise InvalidInput.of("mechanism", mechanism.name, "its law is not one that the kernels simulate")


def known_to_kernels(mechanism: Mechanism) -> bool:
    """Do the kernels simulate this law? A mixture only if, wherever it is probed, its parts are affine in t."""
    if isinstance(mechanism, Laplace | StaircaseFamily):
        return True
    if not isinstance(mechanism, UniformMixture):
        return False
    t = probe_points(*mechanism.domain)
    parts = mechanism.parts(t)
    at, share = np.array([t[0], t[-1]]), (t - t[0]) / (t[-1] - t[0])
    ends = mechanism.parts(at)
    here, there = mechanism.mean(t) + parts.offset, mechanism.mean(at) + ends.offset
    return all(
        np.allclose(inside, end[:, :1] + (end[:, 1:] - end[:, :1]) * share, rtol=1e-9, atol=1e-9)
        for inside, end in ((parts.weight, ends.weight), (here, there), (parts.half_width, ends.half_width))
    )


def _mixture(mechanism: UniformMixture) -> tuple[int, Floats]:
    ends = np.array([0.0, 1.0])  # both lie in every domain
    weight, offset, half = mechanism.parts(ends)
    centre = mechanism.mean(ends) + offset
    order = np.argsort(weight[:, 0] != weight[:, 1], kind="stable")  # parts of fixed weight first
    rows, before, tilt = [], 0.0, 0.0
    for w, c, h in zip(weight[order], centre[order], half[order, 0], strict=True):
        if h > 0 and tilt != 0:
            raise InvalidInput(f"mechanism {mechanism.name!r}: an interval after a weight that depends on t")
        intercept, factor = _interval(before, w[0], c[0], h) if w[0] > 0 else (c[0], 0.0)
        before, tilt = before + w[0], tilt + (w[1] - w[0])
        rows.append([intercept, factor, c[1] - c[0], 1 + before, tilt])
    fixed = len(rows) == 2 and rows[0][4] == 0
    return TWO_INTERVALS if fixed else INTERVALS, np.array(rows)


def _interval(before: float, weight: float, centre: float, half: float) -> tuple[float, float]:
    """(a, b) with a + b·u running over centre ± half as u runs over 1 + [before, before + weight)."""
    factor = 2 * half / weight
    return centre - half - factor * (1 + before), factor


def _checked(mechanism: Mechanism, values: ArrayLike) -> NDArray[np.floating[Any]]:
    data = np.asarray(values)
    if data.dtype != np.float32:
        data = data.astype(np.float64, copy=False)
    if data.ndim != 2 or not 1 <= data.shape[1] <= 65536:
        raise InvalidInput(f"values of shape {data.shape}: expected (n, d) with d from 1 to 65536")
    low, high = mechanism.domain
    if data.size and not (data.min() >= low and data.max() <= high):
        raise InvalidInput(f"values must lie in the domain [{low:g}, {high:g}] of {mechanism.name}")
    return data


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InvalidInput(f"seed = {seed!r} must be a whole number from 0 to 2**63 - 1")
    return int(seed)
