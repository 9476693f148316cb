"""`optimal_mean`: the table of least mean variance over a prior.

Where few of many dimensions are sent, the spread of the values counts for more than the largest variance of a report,
and a table may favour the values that are common. It is unbiased for every value; only its variance depends on how
well the prior was guessed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hdr4me.mechanisms.designs import Design, cached_design
from hdr4me.mechanisms.law import check_epsilon
from hdr4me.mechanisms.optimal import DUCHI_UP_TO
from hdr4me.mechanisms.priors import Prior, as_prior
from hdr4me.mechanisms.rounding import unbiased_rows
from hdr4me.mechanisms.table import BITS, MAX_CELLS, Table
from hdr4me.mechanisms.vectors import Question, solve
from hdr4me.mechanisms.windows import duchi_table, window_table

__all__ = ["optimal_mean", "prior_variance"]

_UNBIASED = 1e-12
"""How far a row's mean may be from its level, relative to the largest decoded value."""

_LARGEST = 10.0
"""Beyond, 256 cells limit the variance and not privacy: the window of least mean variance is taken."""
_LEVELS = ((1.5, 17), (3.0, 33), (math.inf, 65))
_WINDOWS = ((256, 1), (256, 2), (256, 3), (256, 4), (256, 6), (256, 8))


def optimal_mean(epsilon: float, prior: Any = "uniform") -> Table:
    """The table of least E V(t) with t drawn from `prior`, among those that are ε-LDP and unbiased for every value.

    Parameters
    ----------
    epsilon
        The budget of one value.
    prior
        "uniform", a SciPy distribution, a histogram (edges, weights) or an array of values, on [-1, 1].

    Returns
    -------
    Table
        With up to 65 levels. Designs are kept in memory and on disk.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> narrow = norm(0, 0.1)
    >>> prior_variance(optimal_mean(2.0, narrow), narrow) < 0.540
    True
    """
    check_epsilon(epsilon)
    law = as_prior(prior)
    if epsilon <= DUCHI_UP_TO:
        return duchi_table("optimal_mean", epsilon)
    if epsilon > _LARGEST:
        windows = [window_table("optimal_mean", epsilon, n, width) for n, width in _WINDOWS]
        return min(windows, key=lambda table: prior_variance(table, law))
    budget = float(epsilon)
    most = next(levels for top, levels in _LEVELS if budget <= top)
    key = {"takes": "number", "epsilon": budget.hex(), "prior": law.key}
    design = cached_design(key, lambda: _design(budget, most, law))
    return Table(
        "optimal_mean",
        budget,
        np.array(design.levels),
        np.array(design.decoders["value"]),
        np.array(design.weights, dtype=np.int64),
    )


def prior_variance(table: Table, prior: Any) -> float:
    """E V(t) of a table's report, t drawn from the prior, with the random rounding to a level."""
    law = as_prior(prior)
    second = table.probabilities @ table.decode**2
    return float(law.on_levels(table.n_levels) @ second) - law.mean_square


def _design(epsilon: float, most: int, prior: Prior) -> Design:
    """With as many levels as the cells can tell apart: with fewer cells than levels no decoding meets every level."""
    n_levels = most
    while True:
        levels = np.linspace(-1.0, 1.0, n_levels)
        question = Question(levels[:, None], prior.on_levels(n_levels), np.ones(1))
        # the largest report of an unbiased channel that is any good is below twice Duchi's C
        reach = 2.0 / math.tanh(epsilon / 2)
        channel = solve(epsilon, question, np.array([reach]), coarse=41, fine=801)
        weights, decoders = unbiased_rows(
            channel.rows, epsilon, question.inputs, np.zeros_like(channel.outputs), question.prior
        )
        miss = np.abs(np.ldexp(weights.astype(np.float64), -BITS) @ decoders - question.inputs).max()
        if channel.outputs.shape[0] <= MAX_CELLS and miss < _UNBIASED * max(1.0, np.abs(decoders).max()):
            break
        n_levels = (n_levels + 1) // 2
    return Design(
        "number",
        epsilon,
        tuple(levels.tolist()),
        tuple(tuple(row) for row in weights.tolist()),
        {"value": tuple(decoders[:, 0].tolist())},
    )
