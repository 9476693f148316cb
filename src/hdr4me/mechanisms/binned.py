"""`exact`: a proven integer table for any law, by binning its reports.

A report that falls into a bin is sent as the bin's number. That is post-processing, so the privacy of the law is kept;
`rounding.py` makes integers whose ratio is proven, and the cells are decoded so that the mean is the value, whatever
the law's own bias. A law that does not keep its ε is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import Floats, check_epsilon
from hdr4me.mechanisms.rounding import unbiased_rows
from hdr4me.mechanisms.table import MAX_CELLS, Table

__all__ = ["exact"]

_COARSE, _FINE, _FINE_FROM = (65, 17, 5, 3, 2), (129, 33, 9, 3, 2), 6.0
_TAIL = 1e-4
_SMALLEST = 1e-6


def exact(law: Any, *, levels: int | None = None, cells: int | None = None) -> Table:
    """The integer table that deploys `law`, proven private at the law's own ε and unbiased.

    Parameters
    ----------
    law
        Anything with `epsilon`, a `name` and `cdf(x, t)`; its `domain` and `support` are used where it has them
        ([-1, 1] and the whole line where it has not). Values of its domain are mapped to [-1, 1].
    levels
        How many values the table tells apart; a value between two is rounded to one of them at random. Left out: the
        number of least mean variance.
    cells
        How many bins, at most 256. Left out: 256. Bins that no value reaches are left out.

    Returns
    -------
    Table
        Its `privacy_loss` is a fraction, at most e^ε.

    Raises
    ------
    InvalidInput
        If the law has no `cdf`, is not ε-private, or does not tell values apart.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> table = exact(mechanism("three_outputs", epsilon=2.0))
    >>> table.n_levels, table.n_cells
    (3, 3)
    >>> round(float(table.variance(0.5)), 4)
    0.9448
    """
    if isinstance(law, Table):
        return law
    for attribute in ("epsilon", "cdf"):
        if not hasattr(law, attribute):
            raise InvalidInput.of("law", law, f"it must have {attribute} to be made exact")
    check_epsilon(law.epsilon)
    name = str(getattr(law, "name", type(law).__name__))
    try:
        law.cdf(np.zeros(1), np.full(1, sum(_domain(law)) / 2))
    except NotImplementedError:
        raise InvalidInput.of("law", name, "it has no cdf, which is needed to make it exact") from None
    if law.epsilon < _SMALLEST:
        raise InvalidInput.of("epsilon", law.epsilon, f"bins of 32 bits express {_SMALLEST} or more")
    for name, count in (("levels", levels), ("cells", cells)):
        if count is not None and not (isinstance(count, int) and 2 <= count <= MAX_CELLS):
            raise InvalidInput.of(name, count, f"a whole number from 2 to {MAX_CELLS}")
    edges = _edges(law, MAX_CELLS if cells is None else cells)
    choices = _FINE if law.epsilon > _FINE_FROM else _COARSE
    made = []
    for n in choices if levels is None else (levels,):
        table = _table(law, n, edges)
        if table is not None:
            made.append(table)
            # the finest that keeps the law's own variance; laws of two or three reports try them all
            if table.n_cells >= n > 3 and _faithful(table, law):
                break
    if not made:
        raise InvalidInput.of("law", law, "32 bits cannot tell its values apart with these levels and cells")
    least = min(table.mean_variance() for table in made)
    # the fewest levels that do as well as any
    return min((t for t in made if t.mean_variance() <= least * (1 + 1e-6)), key=lambda t: t.n_levels)


def _faithful(table: Table, law: Any) -> bool:
    """Is the table's mean variance the law's, after calibration by the ends of its mean, to 2 %?"""
    if not (hasattr(law, "variance") and hasattr(law, "mean")):
        return False
    low, high = _domain(law)
    t = np.linspace(low, high, 65)
    mean = np.asarray(law.mean(t), dtype=np.float64)
    slope = float(mean[-1] - mean[0]) / 2
    return table.mean_variance() <= 1.02 * float(np.mean(law.variance(t))) / slope**2


def _domain(law: Any) -> tuple[float, float]:
    low, high = getattr(law, "domain", (-1.0, 1.0))
    return float(low), float(high)


def _edges(law: Any, n_cells: int) -> Floats:
    """Equal bins over the support, or over all but 1e-4 of the reports at either end."""
    low, high = getattr(law, "support", (-math.inf, math.inf))
    first, last = _domain(law)
    if not math.isfinite(low):
        low = -_quantile(lambda x: float(law.cdf(-x, first)), -first)
    if not math.isfinite(high):
        high = _quantile(lambda x: 1.0 - float(law.cdf(x, last)), last)
    edges = np.linspace(low, high, n_cells + 1)
    edges[[0, -1]] = -np.inf, np.inf
    return edges


def _quantile(beyond: Callable[[float], float], start: float) -> float:
    """x with `beyond(x)` about 1e-4, by doubling steps from `start` and bisection."""
    low, step = start, 1.0
    while beyond(low + step) > _TAIL:
        step *= 2
    high = low + step
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > _TAIL else (low, middle)
    return high


def _table(law: Any, n_levels: int, edges: Floats) -> Table | None:
    """The table with these levels; None if its rows cannot be decoded without bias."""
    rows, places = _rows(law, n_levels, edges)
    least, most = rows.min(axis=0), rows.max(axis=0)
    # cdf differences carry a rounding error of about 1e-16 each
    if (most > math.exp(min(law.epsilon, 700.0)) * (least + 1e-14) * (1 + 1e-9)).any():
        raise InvalidInput.of("law", law, f"it is not private at its epsilon = {law.epsilon}")
    levels = np.linspace(-1.0, 1.0, n_levels)
    means = rows @ places
    slope = (means[-1] - means[0]) / 2
    if slope == 0:
        raise InvalidInput.of("law", law, "its reports do not tell the ends of its domain apart")
    start = (places - (means[0] + means[-1]) / 2) / slope
    weights, decoders = unbiased_rows(rows, law.epsilon, levels[:, None], start[:, None])
    try:
        return Table(
            str(getattr(law, "name", type(law).__name__)), law.epsilon, levels, decoders[:, 0], weights
        )
    except InvalidInput as refusal:
        if "unbiased" not in str(refusal):
            raise
        return None


def _rows(law: Any, n_levels: int, edges: Floats) -> tuple[Floats, Floats]:
    """P(bin | level) and the bins' middles; bins that no level reaches are left out."""
    first, last = _domain(law)
    t = np.linspace(first, last, n_levels)
    inner = np.asarray(law.cdf(edges[None, 1:-1], t[:, None]), dtype=np.float64)
    if inner.shape != (n_levels, edges.size - 2) or not ((inner >= -1e-12) & (inner <= 1 + 1e-12)).all():
        raise InvalidInput.of("law", law, "its cdf(x, t) must be probabilities and broadcast over x and t")
    rows = np.diff(np.concatenate([np.zeros((n_levels, 1)), inner, np.ones((n_levels, 1))], axis=1), axis=1)
    width = edges[2] - edges[1] if edges.size > 3 else 1.0
    places = np.concatenate(
        [[edges[1] - width / 2], (edges[1:-2] + edges[2:-1]) / 2, [edges[-2] + width / 2]]
    )
    reached = rows.max(axis=0) > 1e-12
    rows = np.clip(rows[:, reached], 0.0, None)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True)), np.asarray(places[reached])
