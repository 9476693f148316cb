"""One cell of Figures 4 and 5: a data set, a mechanism, a budget, a number of dimensions; many repeats."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
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
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper.datasets import Dataset, Moments
from hdr4me.paper.methods import NAIVE, Variant, enhanced
from hdr4me.paper.naive import naive_means
from hdr4me.paper.readings import Reading
from hdr4me.simulation.sums import way_of

MECHANISMS = {"laplace": "Laplace", "piecewise": "Piecewise", "square_wave": "Square"}
"""The three mechanisms of section VI, with the names its figures use."""


def title_of(mechanism: str) -> str:
    """A mechanism's name as tables and figures write it.

    >>> title_of("square_wave"), title_of("scdf")
    ('Square', 'Scdf')
    """
    return MECHANISMS.get(mechanism, mechanism.replace("_", " ").capitalize())


def law_for(name: str, epsilon: float) -> Mechanism:
    """The mechanism of one value in [−1, 1]; Square wave works there by rescaling and keeps its bias.

    >>> law_for("square_wave", 1.0).domain
    (-1.0, 1.0)
    """
    options = {"domain": (-1.0, 1.0)} if name == "square_wave" else {}
    return hd.mechanism(name, epsilon=epsilon, **options)


@dataclass(frozen=True)
class Cell:
    """What is simulated: every user reports all `n_dims` dimensions, so each value has the budget ε/d."""

    figure: str
    dataset: str
    mechanism: str
    epsilon: float
    n_users: int
    n_dims: int
    repeats: int

    @property
    def key(self) -> str:
        """A name that no other cell of the same run has."""
        return f"{self.figure}-{self.dataset}-{self.mechanism}-d{self.n_dims}-e{self.epsilon:g}"

    @property
    def law(self) -> Mechanism:
        """The mechanism of one value, under ε/d."""
        return law_for(self.mechanism, self.epsilon / self.n_dims)


@dataclass(frozen=True, kw_only=True)
class Outcome(Variant):
    """One method's MSE over the repeats; `better` is the share of repeats in which it beats the naive mean.

    `width`, `spread` and `reference` name the reading of λ* where there is one, `weight` is λ*'s median.
    """

    mse: float
    standard_error: float
    better: float
    weight: float | None = None


@dataclass(frozen=True)
class CellResult:
    """A finished cell: sizes, how it was simulated, the framework's prediction, every method's outcome.

    `some_above` and `all_above` are the probabilities that some, or every, dimension deviates by more than the
    threshold of L1 (first) and of L2 (second); `share_above` is the simulated share of dimensions that do.
    """

    cell: Cell
    title: str
    stand_in: bool
    normalisation: str
    seed: int
    how: str
    predicted_mse: float
    some_above: tuple[float, float]
    all_above: tuple[float, float]
    share_above: tuple[float, float]
    seconds: float
    outcomes: tuple[Outcome, ...]

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> CellResult:
        """Back from the dictionary that `asdict` makes."""
        outcomes = tuple(Outcome(**item) for item in document["outcomes"])
        pairs = {name: tuple(document[name]) for name in ("some_above", "all_above", "share_above")}
        return cls(**{**document, **pairs, "cell": Cell(**document["cell"]), "outcomes": outcomes})

    def outcome(self, method: str, reading: Reading | None = None) -> Outcome:
        """One method's outcome, under a reading of λ* where the method has one; the reading notes its numbers.

        Where a mechanism has no bias both spreads are the same and only the first is kept.
        """
        for item in self.outcomes:
            if item.method != method:
                continue
            if reading is None or not item.width:
                return item
            if item.width == reading.width and item.reference in ("", reading.reference):
                spreads = {o.spread for o in self.outcomes if o.method == method}
                if item.spread == (reading.spread if reading.spread in spreads else "noise"):
                    reading.note(
                        self.cell.key, method, item.mse, item.standard_error, item.better, item.weight
                    )
                    return item
        raise InvalidInput(f"method = {method!r} has no outcome in {self.cell.key}")

    def ratio(self, method: str, reading: Reading) -> float:
        """The method's MSE over that of the current aggregation."""
        return self.outcome(method, reading).mse / self.outcome("naive").mse

    def enhances(self, method: str, reading: Reading) -> bool:
        """The MSE is smaller than the naive one, by more than two standard errors of their difference."""
        return self._better(self.outcome(method, reading), self.outcome("naive"))

    def harms(self, method: str, reading: Reading) -> bool:
        """The MSE is larger than the naive one, by more than two standard errors of their difference."""
        return self._better(self.outcome("naive"), self.outcome(method, reading))

    @staticmethod
    def _better(one: Outcome, other: Outcome) -> bool:
        """The two are taken as independent."""
        return other.mse - one.mse > 2 * math.hypot(one.standard_error, other.standard_error)

    @property
    def distance(self) -> float:
        """From the naive MSE to its prediction, in standard errors."""
        naive = self.outcome("naive")
        return (naive.mse - self.predicted_mse) / naive.standard_error

    @property
    def panel(self) -> str:
        """The mechanism and the data set, as figures name them."""
        return f"{title_of(self.cell.mechanism)} on {self.title}"


def predicted(
    law: Mechanism, data: Moments, n_users: int, columns: Iterable[NDArray[np.floating]] = ()
) -> Deviation:
    """What the framework predicts for this population when all dimensions are reported (Lemmas 2 and 3).

    Mean and mean square of each dimension are enough where E[t*|t] is affine and Var(t*|t) quadratic in t; `columns`,
    the values of each dimension, are used only where the law is not of that kind.
    """
    if not _is_quadratic(law):
        return _predicted_from(law, columns, n_users)
    values, shares = data.two_points()
    d = data.mean.size
    return hd.deviation(law, n_users=n_users, n_dims=d, n_sampled=d, values=values, probabilities=shares)


def _is_quadratic(law: Mechanism) -> bool:
    """Whether E[t*|t] is affine and Var(t*|t) quadratic in t, at 101 values of [−1, 1]."""
    t = np.linspace(-1.0, 1.0, 101)
    for values, degree in ((law.mean(t), 1), (law.variance(t), 2)):
        differences = np.diff(values, n=degree + 1)
        if np.abs(differences).max() > 1e-9 * np.abs(values).max():
            return False
    return True


def _predicted_from(law: Mechanism, columns: Iterable[NDArray[np.floating]], n_users: int) -> Deviation:
    """Bias and variance averaged over every value; with m = d nobody is left out, so Var θ̂_j = V̄_j/n."""
    wide = [np.asarray(column, dtype=np.float64) for column in columns]
    bias = np.array([float(np.mean(law.mean(t) - t)) for t in wide])
    variance = np.array([float(np.mean(law.variance(t))) for t in wide]) / n_users
    ones = np.ones(len(wide), dtype=np.int64)
    return Deviation(bias, variance, ones, float(n_users), np.full(len(wide), np.nan), "exact")


def _at_thresholds(f: Callable[[float], float]) -> tuple[float, float]:
    return f(L1_THRESHOLD), f(L2_THRESHOLD)


def run_cell(cell: Cell, data: Dataset, dimensions: NDArray[np.int64], seed: int) -> CellResult:
    """Simulate the naive means of these columns, apply every method to each repeat, compare with the true means.

    The cell's key names its random streams under `seed`.
    """
    start = time.process_time()
    law = cell.law
    here = data.moments.take(dimensions)
    prediction = predicted(law, here, cell.n_users, (data.column(int(j)) for j in dimensions))
    bias, sd = (np.broadcast_to(x, dimensions.shape) for x in (prediction.bias, prediction.sd))
    means = naive_means(law, data, dimensions, cell.repeats, seed, cell.key)
    errors: dict[Variant, list[float]] = {}
    weights: dict[Variant, list[float]] = {}
    for row in means:
        for variant, better, weight in enhanced(row, sd, bias, here.mean, law.calibration.slope):
            errors.setdefault(variant, []).append(float(np.mean((better - here.mean) ** 2)))
            if weight is not None:
                weights.setdefault(variant, []).append(weight)
    naive = np.array(errors[NAIVE])
    outcomes = tuple(
        Outcome(
            **asdict(variant),
            mse=float(np.mean(mse)),
            standard_error=float(np.std(mse, ddof=1) / np.sqrt(cell.repeats)),
            better=float(np.mean(np.array(mse) < naive)),
            weight=float(np.median(weights[variant])) if variant in weights else None,
        )
        for variant, mse in errors.items()
    )
    away = np.abs(means - here.mean)
    return CellResult(
        cell=cell,
        title=data.title,
        stand_in=data.stand_in,
        normalisation=data.normalisation,
        seed=seed,
        how=way_of(law),
        predicted_mse=prediction.mse,
        some_above=_at_thresholds(lambda t: probability_some_exceed(bias, sd, t)),
        all_above=_at_thresholds(lambda t: probability_all_exceed(bias, sd, t)),
        share_above=_at_thresholds(lambda t: float(np.mean(away > t))),
        seconds=time.process_time() - start,
        outcomes=outcomes,
    )
