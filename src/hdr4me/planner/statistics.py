"""Predicted errors of statistics other than the mean, and the ranking of options by them.

The error of a smoothed distribution has no formula. Counts are drawn with a fixed seed, fitted and compared with the
prior, or with three reference distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from hdr4me.channels.response import decoder_of
from hdr4me.errors import InvalidInput
from hdr4me.framework.em import climb
from hdr4me.mechanisms.joint import optimal_mean
from hdr4me.mechanisms.priors import Prior, as_prior
from hdr4me.mechanisms.registry import scaled_mechanism
from hdr4me.mechanisms.table import TableMechanism
from hdr4me.planner.candidates import BLOCKS, PAIR
from hdr4me.planner.plan import Option, Plan
from hdr4me.planner.reports import entry_variances
from hdr4me.planner.workload import Group

Floats = NDArray[np.float64]
_QUANTILES = (0.25, 0.5, 0.75)
# The draws bring a random error of about 4 % into a predicted distance and of 6 % into the error of a quantile. Between
# 48 and 256 joined cells a predicted distance is the same within 2 %.
_DRAWS, _SEED, _BINS, _PER_BIN, _CELLS = 20, 20261116, 64, 8, 96
_LEAST_RANK = 3  # a table of rank 2 determines only the mean
_PAIRS = 64


@lru_cache(maxsize=256)
def _deployed(name: str, epsilon: float, prior: Prior) -> TableMechanism:
    if name == "optimal_mean" and not prior.uniform:
        return optimal_mean(epsilon, prior)
    found: TableMechanism = scaled_mechanism(name, epsilon=epsilon).exact()
    return found


def _table(option: Option, group: Group) -> TableMechanism:
    """The deployed table of a group of numbers."""
    return _deployed(option.base, option.epsilon_per_value, group.prior)


@lru_cache(maxsize=256)
def _law(table: TableMechanism, prior: Prior) -> Floats:
    """The law of a report about a value of the prior."""
    parts = np.array_split(np.arange(prior.values.size), max(1, prior.values.size // 4096))
    return np.asarray(sum(prior.shares[part] @ table.law_at(prior.values[part]) for part in parts))


def _shows_shape(table: TableMechanism) -> bool:
    return int(np.linalg.matrix_rank(table.probabilities, tol=1e-6)) >= _LEAST_RANK


def _noise(option: Option, group: Group) -> float:
    """The mean variance of a report."""
    return float(group.prior.shares @ np.asarray(_table(option, group).variance(group.prior.values)))


@lru_cache(maxsize=1)
def _references() -> tuple[Prior, ...]:
    """Three distributions: skewed, long-tailed, bimodal; the fit starts at the uniform one, which would not test it."""
    u = (np.arange(1024) + 0.5) / 1024
    normal = ndtri(u)
    humps = np.concatenate([-0.5 + 0.15 * normal[::2], 0.3 + 0.25 * normal[1::2]])
    columns = (2 * betaincinv(2.0, 5.0, u) - 1, np.exp(0.6 * normal) / 4 - 1, humps)
    return tuple(as_prior(np.clip(column, -1.0, 1.0)) for column in columns)


_EDGES = np.linspace(-1.0, 1.0, _BINS + 1)


@lru_cache(maxsize=256)
def _fitted(table: TableMechanism, prior: Prior, r: int) -> Floats:
    """Fitted cumulative shares at the edges, for seeded draws of values from the prior."""
    inside = (np.arange(_PER_BIN) + 0.5) / _PER_BIN
    law = table.law_at(_EDGES[:-1, None] + np.diff(_EDGES)[:, None] * inside).mean(axis=1)
    starts = np.arange(0, table.n_cells, -(-table.n_cells // _CELLS))
    shares = _law(table, prior)
    counts = np.random.default_rng(_SEED).multinomial(r, shares / shares.sum(), size=_DRAWS)
    joined, law = (np.add.reduceat(x, starts, axis=1) for x in (counts.astype(np.float64), law))
    p = climb(joined, law, (_BINS, 1)).p
    return np.concatenate([np.zeros((_DRAWS, 1)), np.cumsum(p, axis=1)], axis=1)


def _fits(option: Option, group: Group) -> list[tuple[Prior, Floats]]:
    """The fits for the given distribution, or for each reference shape; none if the table has no shape."""
    table, shapes = _table(option, group), _references() if group.prior.uniform else (group.prior,)
    return [(x, _fitted(table, x, _reports(option))) for x in shapes] if _shows_shape(table) else []


def _quantiles(prior: Prior, p: Floats) -> Floats:
    order = np.argsort(prior.values)
    below = np.cumsum(prior.shares[order])
    return np.asarray(prior.values[order][np.minimum(np.searchsorted(below, p), below.size - 1)])


def _distribution(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """The Wasserstein-1 distance of the fitted distribution from the values', on a range of width 2."""
    x, gaps = np.linspace(-1.0, 1.0, 1025), []
    for prior, rows in _fits(option, group):
        order = np.argsort(prior.values)
        below = np.concatenate([[0.0], np.cumsum(prior.shares[order])])
        true = below[np.searchsorted(prior.values[order], x, side="right")]
        gaps += [np.abs(np.interp(x, _EDGES, row) - true).mean() * 2 for row in rows]
    return float(np.mean(gaps)) if gaps else math.inf


def _quantile(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """The root mean square error of quantiles, over the shares p."""
    squares = []
    for prior, rows in _fits(option, group):
        fitted = np.array([np.interp(p, row, _EDGES) for row in rows])
        squares.append(np.mean((fitted - _quantiles(prior, np.array(p) - 1e-12)) ** 2))
    return float(np.sqrt(np.mean(squares))) if squares else math.inf


def _variance(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """To first order the error of V̂ is that of the mean of g − 2μy over reports, where g decodes the squared level."""
    table, prior = _table(option, group), group.prior
    square = decoder_of(table.probabilities, table.levels**2) if _shows_shape(table) else None
    if square is None:
        return math.inf
    moves = square - 2 * prior.mean * table.decode
    law = _law(table, prior)
    total = float(law @ moves**2 - (law @ moves) ** 2)
    each = table.law_at(prior.values) @ moves
    spread = float(prior.shares @ each**2 - (prior.shares @ each) ** 2)
    return math.sqrt(max(total / _reports(option) - spread / option.users, 0.0))


def _sd(option: Option, group: Group, p: tuple[float, ...]) -> float:
    return _variance(option, group, p) / (2 * math.sqrt(max(group.prior.variance, 1e-12)))


def _covariance(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """By a product question if there is one, else from reports that answer both (m ≥ 2), for independent numbers."""
    prior, noise, both = group.prior, _noise(option, group), _both(option)
    if option.schema is not None and any(getattr(x, "product", None) for x in option.schema.dimensions):
        some = _quantiles(prior, (np.arange(_PAIRS) + 0.5) / _PAIRS)
        products = np.outer(some, some).ravel()
        own = float(np.mean(np.asarray(_table(option, group).variance(products)))) + float(products.var())
        return math.sqrt((own + 2 * prior.mean**2 * (noise + prior.variance)) / _reports(option))
    return math.sqrt((noise**2 + 2 * noise * prior.variance) / both) if both >= 1 else math.inf


def _mean_by(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """The mean in one of v equal groups: √(E(y − μ)²·E z²/r)/f, where z decodes the group's indicator and f = 1/v."""
    both, errors = _both(option), []
    for size, _ in option.workload.categorical if both >= 1 else ():
        absent, present = entry_variances(option.categorical, option.base, option.epsilon_per_value, size)
        squares = (present + 1.0) / size + (1.0 - 1.0 / size) * absent
        errors.append(math.sqrt((_noise(option, group) + group.prior.variance) * squares / both) * size)
    return float(np.mean(errors)) if errors else math.inf


def _reports(option: Option) -> int:
    """The number of reports about one dimension."""
    return max(2, round(option.reports_per_dimension))


def _both(option: Option) -> float:
    """The expected number of reports that answer two given dimensions."""
    m, d = option.sampled, option.dims
    return option.users * m * (m - 1) / (d * (d - 1)) if d > 1 else 0.0


_SHAPE = "these mechanisms estimate only means: add square_wave, piecewise or optimal"
_NEEDS_TWO_ANSWERS = "needs users who answer two questions, by mechanisms other than pair and agreement"
# For each statistic other than the mean: the prediction of its error, and the reason if no option can estimate it.
STATISTICS: dict[str, tuple[Callable[[Option, Group, tuple[float, ...]], float], str]] = {
    "distribution": (_distribution, _SHAPE),
    "quantile": (_quantile, _SHAPE),
    "variance": (_variance, _SHAPE),
    "sd": (_sd, _SHAPE),
    "covariance": (_covariance, f"a covariance {_NEEDS_TWO_ANSWERS}"),
    "mean_by": (_mean_by, f"a mean by group {_NEEDS_TWO_ANSWERS}, a number and a category (use a schema)"),
}


def predict(option: Option, statistic: str, p: tuple[float, ...] = _QUANTILES) -> float:
    """The error of a statistic on the scale [−1, 1], averaged over an option's numbers; infinite if not estimable.

    The standard error of a mean, variance, standard deviation, covariance or mean by group, the Wasserstein-1 distance
    of a distribution, the root mean square error of quantiles `p`.
    """
    groups = [group for group in option.workload.groups if group.is_number]
    if statistic == "mean":
        return math.sqrt(option.mse)
    if statistic not in STATISTICS:
        raise InvalidInput.of("statistic", statistic, f"one of mean, {', '.join(STATISTICS)}")
    if not groups:
        words = "'mean', because other statistics need a number that is not optional"
        raise InvalidInput.of("statistic", statistic, words)
    # Signs determine only means, and errors of pairs are predicted only for means.
    if option.base in (BLOCKS, PAIR):
        return math.inf
    counts = np.array([group.count for group in groups], float)
    errors = np.array([STATISTICS[statistic][0](option, group, p) for group in groups])
    return float(counts @ errors / counts.sum())


def by_statistic(plan: Plan, statistic: str, quantiles: Any = None) -> Plan:
    """The plan with options ranked by the error of a statistic, without those that cannot estimate it."""
    shares = _QUANTILES if quantiles is None else tuple(float(x) for x in np.atleast_1d(quantiles))
    if quantiles is not None and statistic != "quantile":
        raise InvalidInput.of("quantiles", quantiles, "it needs statistic = 'quantile'")
    if not all(0.0 < x < 1.0 for x in shares):
        raise InvalidInput.of("quantiles", quantiles, "shares above 0 and below 1, such as 0.5")
    found = [(predict(option, statistic, shares), option) for option in plan.options]
    possible = [(error, option) for error, option in found if math.isfinite(error)]
    if not possible:
        raise InvalidInput(STATISTICS[statistic][1])
    possible.sort(key=lambda pair: (pair[0], pair[1].sampled))
    errors, options = zip(*possible, strict=True)
    return replace(plan, options=options, statistic=statistic, statistic_errors=errors)
