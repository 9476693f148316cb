"""One cell of Figures 4 and 5: a data set, a mechanism, a budget, a number of dimensions, and its repeats."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.framework import Deviation
from hdr4me.framework.normal import (
    L1_THRESHOLD,
    L2_THRESHOLD,
    probability_all_exceed,
    probability_some_exceed,
)
from hdr4me.kernels.simulate.aggregate import laplace_noise_sums
from hdr4me.kernels.simulate.fused import accumulate
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper.datasets import Dataset, Moments
from hdr4me.paper.methods import METHODS, NAIVE, Floats, LambdaChoice, Variant, enhanced
from hdr4me.simulation.laws import fused_law
from hdr4me.simulation.sums import (
    DIRECT,
    GAMMA,
    SKIPPING,
    accumulate_plainly,
    band_share,
    generator,
    simulate,
    simulate_sums,
    way_of,
)

# The three mechanisms of section VI, with their names in the figures.
MECHANISMS = {"laplace": "Laplace", "piecewise": "Piecewise", "square_wave": "Square"}
_BLOCK = 32  # Dimensions drawn together. It is part of the names of the random streams: a change alters every draw.


def title_of(mechanism: str) -> str:
    """A mechanism's name in tables and figures."""
    return MECHANISMS.get(mechanism, mechanism.replace("_", " ").capitalize())


def law_for(name: str, epsilon: float) -> Mechanism:
    """The mechanism of one value in [−1, 1]; Square wave is rescaled from [0, 1] and is not calibrated."""
    options = {"domain": (-1.0, 1.0)} if name == "square_wave" else {}
    return hd.mechanism(name, epsilon=epsilon, **options)


def _slope(law: Mechanism) -> float:
    """The slope of E[t*|t], or 1 where it is not affine: such a mechanism is not calibrated."""
    try:
        return law.calibration.slope
    except InvalidInput:
        return 1.0


@dataclass(frozen=True)
class Cell:
    """One simulated collection; every user reports `m` of `dims` dimensions, each with the budget ε/m."""

    figure: str
    dataset: str
    mechanism: str
    epsilon: float
    users: int
    dims: int
    repeats: int
    sampled: int | None = None

    @property
    def m(self) -> int:
        """How many dimensions a user reports: all, if `sampled` is None."""
        return self.dims if self.sampled is None else self.sampled

    @property
    def key(self) -> str:
        """The name of the cell, unique in a run."""
        some = "" if self.sampled is None else f"-m{self.sampled}"
        return f"{self.figure}-{self.dataset}-{self.mechanism}-d{self.dims}{some}-e{self.epsilon:g}"

    @property
    def law(self) -> Mechanism:
        """The mechanism of one value, with the budget ε/m."""
        return law_for(self.mechanism, self.epsilon / self.m)

    @property
    def cost(self) -> int:
        """A rough running time in milliseconds, for the order of the work and the progress bar."""
        way = way_of(self.law) if self.sampled is None else DIRECT
        share = {GAMMA: 0.0, SKIPPING: 10 * band_share(self.law), DIRECT: 1.0}[way]
        drawn = share * self.users * self.m * self.repeats / 500_000
        return 1 + int(drawn + self.repeats * self.dims * 0.06 + self.repeats * 25)


@dataclass(frozen=True, kw_only=True)
class Outcome(Variant):
    """The MSE of a method over the repeats, the share in which it is below the naive MSE, and the median of λ*.

    The figures of the paper have the predicted MSE of the naive mean only, a study that of every method.
    """

    mse: float
    standard_error: float
    better: float
    weight: float | None = None
    predicted_mse: float | None = None

    @property
    def variant(self) -> Variant:
        """The method and its choice of λ*."""
        return Variant(self.method, self.width, self.spread, self.reference)


@dataclass(frozen=True)
class CellResult:
    """A finished cell: the outcome of every method.

    `some_above` and `all_above` are the probabilities that some dimension, or every dimension, deviates by more than
    the threshold of L1 (first) and of L2 (second). `share_above` is the simulated share of dimensions that do.
    """

    cell: Cell
    title: str
    stand_in: bool
    normalization: str
    seed: int
    how: str
    some_above: tuple[float, ...]
    all_above: tuple[float, ...]
    share_above: tuple[float, ...]
    seconds: float
    outcomes: tuple[Outcome, ...]

    def outcome(self, method: str, choice: LambdaChoice | None = None) -> Outcome:
        """The outcome of a method, under a choice of λ* if the method has one; the choice receives the numbers."""
        found = [item for item in self.outcomes if item.method == method]
        if choice is None or not found[0].width:
            return found[0]
        # Without bias both spreads are equal, and only the first is stored.
        spread = choice.spread if any(item.spread == choice.spread for item in found) else "noise"
        wanted = (choice.width, spread, choice.reference if method == "l2" else "")
        item = next(item for item in found if (item.width, item.spread, item.reference) == wanted)
        choice.note(self.cell.key, method, item.mse, item.standard_error, item.better, item.weight)
        return item

    def ratio(self, method: str, choice: LambdaChoice) -> float:
        """The MSE of the method over that of the naive mean."""
        return self.outcome(method, choice).mse / self.outcome("naive").mse

    def effect(self, method: str, choice: LambdaChoice) -> int:
        """1 if the MSE is below the naive MSE by more than two standard errors, −1 if above, otherwise 0."""
        one, naive = self.outcome(method, choice), self.outcome("naive")
        gain = naive.mse - one.mse
        return int(np.sign(gain)) * (abs(gain) > 2 * math.hypot(one.standard_error, naive.standard_error))

    @property
    def predicted_mse(self) -> float:
        """The predicted MSE of the naive mean."""
        found = self.outcome("naive").predicted_mse
        return math.nan if found is None else found

    @property
    def distance(self) -> float:
        """The naive MSE less its prediction, in standard errors."""
        naive = self.outcome("naive")
        return (naive.mse - self.predicted_mse) / naive.standard_error

    @property
    def panel(self) -> str:
        """The mechanism and the data set, as in the titles of the figures."""
        return f"{title_of(self.cell.mechanism)} on {self.title}"


def predicted(
    law: Mechanism,
    data: Moments,
    users: int,
    columns: Iterable[NDArray[np.floating]] = (),
    sampled: int | None = None,
) -> Deviation:
    """The predicted deviation, with the sampling of users for m < d.

    `columns` are used where the moments are not enough.
    """
    d, t = data.mean.size, np.linspace(-1.0, 1.0, 101)
    m = sampled or d
    # The moments are enough if E[t*|t] is affine and Var(t*|t) quadratic in t: higher differences vanish.
    moments = ((law.mean(t), 2), (law.variance(t), 3))
    if all(np.abs(np.diff(x, n=order)).max() <= 1e-9 * np.abs(x).max() for x, order in moments):
        values, shares = data.two_points()
        return hd.deviation(law, users=users, dims=d, sampled=m, values=values, probabilities=shares)
    wide = [np.asarray(column, dtype=np.float64) for column in columns]
    if m < d:
        return hd.deviation(law, users=users, dims=d, sampled=m, values=np.stack(wide))
    # With m = d every user reports every dimension, so Var θ̂_j is the mean of Var(t*) over n.
    bias = np.array([float(np.mean(law.mean(t) - t)) for t in wide])
    variance = np.array([float(np.mean(law.variance(t))) for t in wide]) / users
    return Deviation(bias, variance, np.ones(d, dtype=np.int64), float(users), np.full(d, np.nan), "exact")


def predicted_errors(
    cell: Cell, prediction: Deviation, true_means: Floats, seed: int, methods: Collection[str]
) -> dict[Variant, float]:
    """The predicted MSE of every method, from the normal distribution of the naive means.

    A method that treats each dimension separately is integrated by quadrature. `auto` uses all means together: its MSE
    is the average over as many draws from that distribution as there are repeats.
    """
    bias, sd = (np.broadcast_to(x, true_means.shape) for x in (prediction.bias, prediction.sd))
    nodes = np.linspace(-7.0, 7.0, 141)
    weights = np.exp(-(nodes**2) / 2) / np.exp(-(nodes**2) / 2).sum()
    normal = generator(seed, "predicted", cell.key).standard_normal((cell.repeats, true_means.size))
    separate = [name for name in methods if name != "auto"]
    together = [name for name in methods if name == "auto"]
    errors = defaultdict[Variant, float](float)
    for names, points, shares in (
        (separate, nodes, weights),
        (together, normal, np.full(cell.repeats, 1 / cell.repeats)),
    ):
        for z, share in zip(points, shares, strict=True) if names else ():
            means = true_means + bias + z * sd
            for variant, better, _ in enhanced(means, sd, bias, true_means, _slope(cell.law), names):
                if variant.method in names:
                    errors[variant] += float(share * np.mean((better - true_means) ** 2))
    return dict(errors)


def naive_means(
    mechanism: Mechanism,
    data: Dataset,
    dimensions: NDArray[np.int64],
    repeats: int,
    seed: int,
    name: str,
    sampled: int | None = None,
) -> Floats:
    """θ̂ [repeats, dimensions]; for m = d `way_of` chooses an exact shortcut where there is one."""
    n, d = data.users, dimensions.size
    if sampled is not None and sampled < d:
        values = np.stack([data.column(int(j)) for j in dimensions], axis=1)
        words = generator(seed, name).integers(2**63, size=repeats)
        found = [simulate(mechanism, values, seed=int(word), sampled=sampled).mean for word in words]
        # A dimension that nobody reported is estimated by the middle of the domain.
        return np.nan_to_num(np.stack(found), nan=0.0)
    way = way_of(mechanism)
    if way == GAMMA and isinstance(mechanism, Laplace):
        noise = laplace_noise_sums(mechanism.scale, n, repeats * d, generator(seed, name)) / n
        return data.moments.mean[dimensions] + noise.reshape(repeats, d)
    means = np.empty((repeats, d))
    fused = fused_law(mechanism)
    for start in range(0, d, _BLOCK):
        block = dimensions[start : start + _BLOCK]
        rng = generator(seed, name, start)
        columns = [data.column(int(j)) for j in block]
        into = means[:, start : start + block.size]
        if way == DIRECT:
            values = np.stack(columns, axis=1)
            for repeat, word in enumerate(rng.integers(2**63, size=repeats)):
                options: Any = {"sampled": block.size, "seed": int(word)}
                if fused is None:
                    into[repeat] = accumulate_plainly(mechanism, values, **options)[0] / n
                else:
                    into[repeat] = accumulate(values, *fused, **options)[0] / n
            continue
        for place, column in enumerate(columns):
            # One column, `repeats` times: the shortcut treats each repeat as a dimension.
            same = np.broadcast_to(column.astype(np.float64)[:, None], (n, repeats))
            into[:, place] = simulate_sums(mechanism, same, rng) / n
    return means


def run_cell(
    cell: Cell, data: Dataset, dimensions: NDArray[np.int64], seed: int, methods: Collection[str] = METHODS
) -> CellResult:
    """Simulate the naive means of these columns, apply every method to each repeat, and compute the errors."""
    start = time.process_time()
    law = cell.law
    here = Moments(data.moments.mean[dimensions], data.moments.square[dimensions])
    prediction = predicted(law, here, cell.users, (data.column(int(j)) for j in dimensions), cell.sampled)
    bias, sd = (np.broadcast_to(x, dimensions.shape) for x in (prediction.bias, prediction.sd))
    expected_mse = (
        {} if cell.figure != "own" else predicted_errors(cell, prediction, here.mean, seed, methods)
    )
    expected_mse[NAIVE] = prediction.mse
    means = naive_means(law, data, dimensions, cell.repeats, seed, cell.key, cell.sampled)
    errors, weights = defaultdict[Variant, list[float]](list), defaultdict[Variant, list[float]](list)
    for row in means:
        for variant, better, weight in enhanced(row, sd, bias, here.mean, _slope(law), methods):
            errors[variant].append(float(np.mean((better - here.mean) ** 2)))
            if weight is not None:
                weights[variant].append(weight)
    outcomes = tuple(
        Outcome(
            **asdict(variant),
            mse=float(np.mean(mse)),
            standard_error=float(np.std(mse, ddof=1) / np.sqrt(cell.repeats)),
            better=float(np.mean(np.array(mse) < np.array(errors[NAIVE]))),
            weight=float(np.median(weights[variant])) if variant in weights else None,
            predicted_mse=expected_mse.get(variant),
        )
        for variant, mse in errors.items()
    )
    away = np.abs(means - here.mean)
    thresholds = (L1_THRESHOLD, L2_THRESHOLD)
    return CellResult(
        cell=cell,
        title=data.title,
        stand_in=data.stand_in,
        normalization=data.normalization,
        seed=seed,
        how=way_of(law) if cell.sampled is None else DIRECT,
        some_above=tuple(probability_some_exceed(bias, sd, t) for t in thresholds),
        all_above=tuple(probability_all_exceed(bias, sd, t) for t in thresholds),
        share_above=tuple(float(np.mean(away > t)) for t in thresholds),
        seconds=time.process_time() - start,
        outcomes=outcomes,
    )
