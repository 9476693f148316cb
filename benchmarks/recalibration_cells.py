"""The cells of the re-calibration benchmark: true means, and the exact standard error of each collected mean.

θ̂_j is drawn from N(slope·θ̄_j, σ_j²) with the mechanism's own variance at the data's moments: at 10⁵ reports
the normal limit is exact to far below the differences that are measured here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms import mechanism

Floats = NDArray[np.float64]

PAPER_BUDGETS = {
    "laplace": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
    "piecewise": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
    "square_wave": (0.1, 10.0, 100.0, 500.0, 1000.0, 5000.0),
}
EASY_BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class Data:
    """True means and mean squares of the users' values in each dimension, and a law to draw new means from."""

    name: str
    users: int
    mean: Floats
    mean_square: Floats


@dataclass(frozen=True)
class Cell:
    """One cell: data, mechanism, budget, how many dimensions are reported."""

    regime: str
    data: Data
    mechanism: str
    epsilon: float
    sampled: int
    users: int
    slope: float
    standard_error: Floats

    @property
    def name(self) -> str:
        """A line that names the cell."""
        return (
            f"{self.regime}/{self.data.name}/{self.mechanism}/eps={self.epsilon:g}/n={self.users}"
            f"/m={self.sampled}"
        )

    def rng(self, seed: int = 0) -> np.random.Generator:
        """A generator of the cell's own, the same in every run with this seed."""
        return np.random.default_rng([zlib.crc32(self.name.encode()), seed])


def cell(regime: str, data: Data, name: str, epsilon: float, sampled: int, users: int) -> Cell:
    """The exact variance of a collected mean: (E Var(t*|t) + S²)/r − S²/n, S² the users' spread of E[t*|t]."""
    options = {"domain": (-1, 1)} if name == "square_wave" else {}
    mech = mechanism(name, epsilon=epsilon / sampled, **options)
    d = data.mean.size
    # Var(t*|t) is a polynomial of degree two in t for all three, so three values give its expectation.
    low, zero, high = (float(mech.variance(t)) for t in (-1.0, 0.0, 1.0))
    noise = zero + 0.5 * (high - low) * data.mean + (0.5 * (high + low) - zero) * data.mean_square
    slope = mech.calibration.slope
    spread = slope**2 * (data.mean_square - data.mean**2)
    r = users * sampled / d
    variance = (noise + spread) / r - spread / users
    return Cell(regime, data, name, epsilon, sampled, users, slope, np.sqrt(variance))


def _spread(rng: np.random.Generator, center: Floats, sd: Floats | float, n: int) -> tuple[Floats, Floats]:
    """The mean of n users' values around a center, and the mean square."""
    mean = np.clip(center + rng.normal(size=center.size) * sd / np.sqrt(n), -1, 1)
    return mean, np.minimum(mean**2 + np.asarray(sd) ** 2, 1.0)


def gaussian(dims: int = 100, users: int = 100_000) -> Data:
    """A tenth of the dimensions at 0.9, the others at 0, users' sd 1/16."""
    rng = np.random.default_rng(1)
    center = np.where(np.arange(dims) < dims // 10, 0.9, 0.0)
    return Data("gaussian", users, *_spread(rng, center, 1 / 16, users))


def poisson(dims: int = 300, users: int = 150_000, normalize: str = "minmax") -> Data:
    """Poisson with expectations 1..99, into [−1, 1] by each dimension's own extremes or by the range [0, 150]."""
    rng = np.random.default_rng(2)
    expectation = rng.uniform(1, 99, dims)
    means, squares = np.empty(dims), np.empty(dims)
    for j, λ in enumerate(expectation):
        values = rng.poisson(λ, users).astype(np.float64)
        low, high = (values.min(), values.max()) if normalize == "minmax" else (0.0, 150.0)
        values = 2 * (values - low) / (high - low) - 1
        means[j], squares[j] = values.mean(), np.mean(values**2)
    return Data("poisson" if normalize == "minmax" else "poisson-fixed", users, means, squares)


def uniform(dims: int = 500, users: int = 120_000) -> Data:
    """Uniform values: every mean near 0."""
    rng = np.random.default_rng(3)
    return Data("uniform", users, *_spread(rng, np.zeros(dims), 1 / np.sqrt(3), users))


def correlated(dims: int = 750, users: int = 150_000) -> Data:
    """A stand-in for COV-19: means of dimensions that load on five factors, squashed into [−1, 1]."""
    rng = np.random.default_rng(4)
    factors = rng.normal(size=5)
    loadings = rng.normal(size=(dims, 5)) / np.sqrt(5)
    means = np.tanh(0.5 * loadings @ factors - 0.15)
    return Data("correlated", users, means, np.minimum(means**2 + 0.05, 1.0))


def shapes(dims: int = 200, users: int = 100_000) -> list[Data]:
    """Five shapes of our own."""
    rng = np.random.default_rng(5)
    j = np.arange(dims)
    centers = {
        "sparse": np.where(j % 20 == 0, np.where(j % 40 == 0, 0.8, -0.6), 0.0),
        "offset": rng.normal(0.4, 0.05, dims),
        "two-clusters": np.where(j % 3 == 0, 0.6, -0.3),
        "edge": rng.uniform(0.85, 1.0, dims),
        "zero": np.zeros(dims),
    }
    out = []
    for name, center in centers.items():
        mean, square = (center, center**2) if name == "zero" else _spread(rng, center, 0.1, users)
        out.append(Data(name, users, mean, square if name != "zero" else square + 0.01))
    return out


def all_cells() -> Iterator[Cell]:
    """The paper's grid, the easy regime, and our shapes in both."""
    paper = [gaussian(), poisson(), uniform(), correlated()]
    own = [*shapes(), poisson(normalize="range")]
    for regime, group, mechanisms in (
        ("paper", paper, ("laplace", "piecewise", "square_wave")),
        ("own", own, ("laplace", "piecewise")),
    ):
        for data in group:
            for name in mechanisms:
                for epsilon in PAPER_BUDGETS[name]:
                    yield cell(regime, data, name, epsilon, data.mean.size, data.users)
    for data in [*paper, *own]:
        for users in (100_000, 1_000_000):
            for name in ("laplace", "piecewise"):
                for epsilon in EASY_BUDGETS:
                    yield cell("easy", data, name, epsilon, best_sampled(data, name, epsilon), users)


def best_sampled(data: Data, name: str, epsilon: float) -> int:
    """The number of reported dimensions with the least mean variance."""
    candidates = (1, 2, 3, 4, 5, 6, 8)
    costs = [
        float(np.mean(cell("", data, name, epsilon, m, data.users).standard_error ** 2)) for m in candidates
    ]
    return candidates[int(np.argmin(costs))]
