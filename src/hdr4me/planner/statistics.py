"""The error of each statistic, predicted for an option, and options ranked by the statistic that is wanted.

Means, variances, covariances and means by group have formulas. The error of a distribution is that of an iterative fit
with smoothing, which has none: counts are drawn from the law of a report under the prior with a fixed seed, fitted as
an estimate would be, and compared with the prior; where nothing is known of the values, with three reference shapes.
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
from hdr4me.mechanisms.table import Table
from hdr4me.planner.candidates import BLOCKS, PAIR
from hdr4me.planner.option import Option
from hdr4me.planner.plan import Plan
from hdr4me.planner.reports import entry_variances
from hdr4me.planner.workload import Group

Floats = NDArray[np.float64]
SHARES = (0.25, 0.5, 0.75)
"""The quantiles whose errors are averaged, unless others are named."""
_DRAWS, _SEED, _BINS, _PER_BIN, _CELLS = 20, 20261116, 64, 8, 96
_LEAST_RANK = 3
_PAIRS = 64


@lru_cache(maxsize=256)
def _table(name: str, epsilon: float, prior: Prior) -> Table:
    """The table that is deployed."""
    if name == "optimal_mean" and not prior.uniform:
        return optimal_mean(epsilon, prior)
    found: Table = scaled_mechanism(name, epsilon=epsilon).exact()
    return found


@lru_cache(maxsize=256)
def _law(table: Table, prior: Prior) -> Floats:
    """The law of a report about a value of the prior."""
    parts = np.array_split(np.arange(prior.values.size), max(1, prior.values.size // 4096))
    return np.asarray(sum(prior.shares[part] @ table.law_at(prior.values[part]) for part in parts))


def _shows_shape(table: Table) -> bool:
    """Whether reports determine more than a mean: rows that span two directions carry nothing else."""
    return int(np.linalg.matrix_rank(table.probabilities, tol=1e-6)) >= _LEAST_RANK


@lru_cache(maxsize=1)
def _references() -> tuple[Prior, ...]:
    """Three shapes that stand for what values look like where nothing is known: skewed, with a long tail, two humps.

    An even spread would not do: it is where a smoothing fit starts, so that every table does well.
    """
    u = (np.arange(1024) + 0.5) / 1024
    normal = ndtri(u)
    humps = np.concatenate([-0.5 + 0.15 * normal[::2], 0.3 + 0.25 * normal[1::2]])
    columns = (2 * betaincinv(2.0, 5.0, u) - 1, np.exp(0.6 * normal) / 4 - 1, humps)
    return tuple(as_prior(np.clip(column, -1.0, 1.0)) for column in columns)


@lru_cache(maxsize=256)
def _fits(name: str, epsilon: float, expected: Prior, prior: Prior, r: int) -> tuple[Floats, Floats] | None:
    """Edges on [−1, 1] and fitted cumulative shares of seeded draws; None if the table determines a mean and no more.

    The table is designed for `expected`; the draws are of values as in `prior`.
    """
    table = _table(name, epsilon, expected)
    if not _shows_shape(table):
        return None
    edges = np.linspace(-1.0, 1.0, _BINS + 1)
    inside = (np.arange(_PER_BIN) + 0.5) / _PER_BIN
    law = table.law_at(edges[:-1, None] + np.diff(edges)[:, None] * inside).mean(axis=1)
    starts = np.arange(0, table.n_cells, -(-table.n_cells // _CELLS))
    shares = _law(table, prior)
    counts = np.random.default_rng(_SEED).multinomial(r, shares / shares.sum(), size=_DRAWS)
    joined, law = (np.add.reduceat(x, starts, axis=1) for x in (counts.astype(np.float64), law))
    p = climb(joined, law, (_BINS, 1)).p
    return edges, np.concatenate([np.zeros((_DRAWS, 1)), np.cumsum(p, axis=1)], axis=1)


def _distribution(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """The Wasserstein-1 distance of the fitted distribution from the values', on a range of width 2."""
    x = np.linspace(-1.0, 1.0, 1025)
    gaps = []
    for prior in _shapes(group):
        found = _fits(option.base, option.epsilon_per_value, group.prior, prior, _reports(option))
        if found is None:
            return math.inf
        order = np.argsort(prior.values)
        below = np.concatenate([[0.0], np.cumsum(prior.shares[order])])
        true = below[np.searchsorted(prior.values[order], x, side="right")]
        gaps += [np.abs(np.interp(x, found[0], row) - true).mean() * 2 for row in found[1]]
    return float(np.mean(gaps))


def _quantile(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """The root mean square error of quantiles, over the shares p."""
    squares = []
    for prior in _shapes(group):
        found = _fits(option.base, option.epsilon_per_value, group.prior, prior, _reports(option))
        if found is None:
            return math.inf
        order = np.argsort(prior.values)
        below = np.cumsum(prior.shares[order])
        last = below.size - 1
        true = prior.values[order][np.minimum(np.searchsorted(below, np.array(p) - 1e-12), last)]
        fitted = np.array([np.interp(p, row, found[0]) for row in found[1]])
        squares.append(np.mean((fitted - true) ** 2))
    return float(np.sqrt(np.mean(squares)))


def _shapes(group: Group) -> tuple[Prior, ...]:
    """What is known of a group's values, or else the reference shapes."""
    return _references() if group.prior.uniform else (group.prior,)


def _variance(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """To first order V̂ moves as the mean of g − 2μy over reports, g decoding the square of a level."""
    table = _table(option.base, option.epsilon_per_value, group.prior)
    square = decoder_of(table.probabilities, table.levels**2) if _shows_shape(table) else None
    if square is None:
        return math.inf
    moves = square - 2 * group.prior.mean * table.decode
    law = _law(table, group.prior)
    total = float(law @ moves**2 - (law @ moves) ** 2)
    each = table.law_at(group.prior.values) @ moves
    spread = float(group.prior.shares @ each**2 - (group.prior.shares @ each) ** 2)
    return math.sqrt(max(total / _reports(option) - spread / option.n_users, 0.0))


def _deviation(option: Option, group: Group, p: tuple[float, ...]) -> float:
    return _variance(option, group, p) / (2 * math.sqrt(max(group.prior.variance, 1e-12)))


def _covariance(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """By a product question if the schema has one, else from reports that answer both (m ≥ 2); independent numbers."""
    prior = group.prior
    table = _table(option.base, option.epsilon_per_value, prior)
    noise = float(prior.shares @ np.asarray(table.variance(prior.values)))
    spread = prior.variance
    if option.schema is not None and any(getattr(x, "product", None) for x in option.schema.dimensions):
        order = np.argsort(prior.values)
        below, at = np.cumsum(prior.shares[order]), (np.arange(_PAIRS) + 0.5) / _PAIRS
        few = prior.values[order][np.minimum(np.searchsorted(below, at), below.size - 1)]
        products = np.outer(few, few).ravel()
        own = float(np.mean(np.asarray(table.variance(products)))) + float(products.var())
        return math.sqrt((own + 2 * prior.mean**2 * (noise + spread)) / _reports(option))
    both = _both(option)
    return math.sqrt((noise**2 + 2 * noise * spread) / both) if both >= 1 else math.inf


def _mean_by(option: Option, group: Group, p: tuple[float, ...]) -> float:
    """The mean in one of v equal groups: √(E(y − μ)²·E z²/r)/f, z decoding the indicator of the group, f = 1/v."""
    sizes = [size for size, _ in option.workload.categorical]
    both = _both(option)
    if not sizes or both < 1:
        return math.inf
    noise = float(
        group.prior.shares
        @ np.asarray(_table(option.base, option.epsilon_per_value, group.prior).variance(group.prior.values))
    )
    errors = []
    for size in sizes:
        f = 1.0 / size
        absent, present = entry_variances(option.categorical, option.base, option.epsilon_per_value, size)
        squares = f * (present + 1.0) + (1.0 - f) * absent
        errors.append(math.sqrt((noise + group.prior.variance) * squares / both) / f)
    return float(np.mean(errors))


def _reports(option: Option) -> int:
    """Reports about one dimension."""
    return max(2, round(option.reports_per_dimension))


def _both(option: Option) -> float:
    """Reports that answer two given dimensions."""
    m, d = option.n_sampled, option.n_dims
    return option.n_users * m * (m - 1) / (d * (d - 1)) if d > 1 else 0.0


STATISTICS: dict[str, Callable[[Option, Group, tuple[float, ...]], float]] = {
    "distribution": _distribution,
    "quantile": _quantile,
    "variance": _variance,
    "sd": _deviation,
    "covariance": _covariance,
    "mean_by": _mean_by,
}
"""Beside the mean, which every plan has: the statistics whose error is predicted."""


def foretell(option: Option, statistic: str, p: tuple[float, ...] = SHARES) -> float:
    """The error of a statistic on the scale [−1, 1] if an option is carried out, averaged over its numbers.

    The standard error of a mean, a variance, a standard deviation, a covariance and a mean by group (of groups of one
    size); the Wasserstein-1 distance of a distribution; the root mean square error of quantiles. Infinite where the
    option cannot estimate the statistic. `statistic` is "mean" or a name of `STATISTICS`, `p` says which quantiles.

    >>> from hdr4me.planner import plan
    >>> found = plan(n_users=100_000, n_dims=1, epsilon=1.0, mechanisms=["square_wave", "duchi"])
    >>> error = {option.mechanism: foretell(option, "distribution") for option in found}
    >>> error["duchi"], 0.005 < error["square_wave"] < 0.03
    (inf, True)
    """
    groups = [group for group in option.workload.groups if group.is_number]
    if statistic == "mean":
        return math.sqrt(option.mse)
    if statistic not in STATISTICS:
        raise InvalidInput.of("statistic", statistic, f"one of mean, {', '.join(STATISTICS)}")
    if not groups:
        raise InvalidInput.of(
            "statistic",
            statistic,
            "a plan with numbers that everybody has: categories have frequencies only, vectors the means of their "
            "coordinates, optional numbers means and shares",
        )
    if option.base in (BLOCKS, PAIR):  # signs determine a mean and no more; of pairs only means are predicted
        return math.inf
    counts = np.array([group.count for group in groups], float)
    errors = np.array([STATISTICS[statistic](option, group, p) for group in groups])
    return float(counts @ errors / counts.sum())


def by_statistic(plan: Plan, statistic: str, p: Any = None) -> Plan:
    """The same plan, its options ranked by the error of a statistic; those that cannot estimate it are left out."""
    shares = SHARES if p is None else tuple(float(x) for x in np.atleast_1d(p))
    if p is not None and (statistic != "quantile" or not all(0.0 < x < 1.0 for x in shares)):
        raise InvalidInput.of("p", p, "shares strictly between 0 and 1, with statistic = 'quantile'")
    found = [(foretell(option, statistic, shares), option) for option in plan.options]
    possible = [(error, option) for error, option in found if math.isfinite(error)]
    if not possible:
        raise InvalidInput(_WHY[statistic])
    possible.sort(key=lambda pair: (pair[0], pair[1].n_sampled))
    return replace(
        plan,
        options=tuple(option for _, option in possible),
        statistic=statistic,
        statistic_errors=tuple(error for error, _ in possible),
    )


_SHAPE = "none of these mechanisms tells more than the mean: add square_wave, piecewise or optimal"
_TOGETHER = (
    "needs users who answer two questions: plan at least two dimensions, by other mechanisms than pair and "
    "agreement"
)
_WHY = {
    "distribution": _SHAPE,
    "quantile": _SHAPE,
    "variance": _SHAPE,
    "sd": _SHAPE,
    "covariance": f"a covariance {_TOGETHER}",
    "mean_by": f"a mean by group {_TOGETHER}, a number and a category (use a schema)",
}
