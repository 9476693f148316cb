"""What each method makes of a cell's naive means: its MSE, with the error of that number."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.normal import (
    L1_THRESHOLD,
    L2_THRESHOLD,
    probability_all_exceed,
    probability_some_exceed,
)
from hdr4me.paper.cells import Cell, law_of, predicted
from hdr4me.paper.datasets import Dataset, Moments
from hdr4me.paper.enhance import NAIVE, Variant, enhanced
from hdr4me.paper.naive import naive_means
from hdr4me.simulation.aggregate import way_of

__all__ = ["CellResult", "Outcome", "run_cell"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """One method's MSE over the repeats; `better` is the share of repeats in which it beats the naive mean.

    `width`, `spread` and `reference` name the reading of λ* where there is one, `weight` is λ*'s median.
    """

    method: str
    width: str
    spread: str
    reference: str
    mse: float
    standard_error: float
    better: float
    weight: float | None = None


@dataclass(frozen=True)
class CellResult:
    """A finished cell: sizes, how it was simulated, what the framework foretold, every method's outcome.

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

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> CellResult:
        """Back from `to_json`."""
        outcomes = tuple(Outcome(**item) for item in document["outcomes"])
        pairs = {name: tuple(document[name]) for name in ("some_above", "all_above", "share_above")}
        return cls(**{**document, **pairs, "cell": Cell(**document["cell"]), "outcomes": outcomes})


def _at_thresholds(f: Callable[[float], float]) -> tuple[float, float]:
    return f(L1_THRESHOLD), f(L2_THRESHOLD)


def run_cell(
    cell: Cell, data: Dataset, moments: Moments, dimensions: NDArray[np.int64], seed: int
) -> CellResult:
    """Simulate the cell's naive means, apply every method to each repeat, and compare with the true means.

    Parameters
    ----------
    cell
        What is simulated.
    data, moments
        The population and its moments.
    dimensions
        Which of its columns are reported.
    seed
        Of the run; the cell's key names its streams.

    Returns
    -------
    CellResult
    """
    start = time.process_time()
    law = law_of(cell)
    here = moments.take(dimensions)
    foretold = predicted(law, here, cell.n_users, (data.column(int(j)) for j in dimensions))
    bias, sd = (np.broadcast_to(x, dimensions.shape) for x in (foretold.bias, foretold.sd))
    means = naive_means(law, data, moments, dimensions, cell.repeats, seed, cell.key)
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
        predicted_mse=foretold.mse,
        some_above=_at_thresholds(lambda t: probability_some_exceed(bias, sd, t)),
        all_above=_at_thresholds(lambda t: probability_all_exceed(bias, sd, t)),
        share_above=_at_thresholds(lambda t: float(np.mean(away > t))),
        seconds=time.process_time() - start,
        outcomes=outcomes,
    )
