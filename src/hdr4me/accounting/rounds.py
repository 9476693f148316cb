"""Estimates of several rounds of one series, put together without pretending that permanent noise averages out.

A round's estimate x̂_t has a standard error s_t. Between rounds the errors are

* independent, if answers are fresh or other users are asked in each round: Var Σ a_t x̂_t = Σ a_t² s_t²;
* dependent in a way that tallies do not show, if the same users give permanent answers: an unchanged record repeats its
  noise exactly. Whatever the dependence, the standard error of Σ a_t x̂_t is at most Σ |a_t| s_t. That bound is printed.

With the reports of both rounds matched user by user, a difference is the mean of the users' own differences, and its
standard error is theirs: where nothing changed, both are zero (`paired_difference`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Combined:
    """A combination of rounds, one element for each row of the answer, and its standard errors."""

    estimate: Floats
    standard_error: Floats


def contrast(
    weights: ArrayLike, estimates: ArrayLike, standard_errors: ArrayLike, *, permanent: bool
) -> Combined:
    """Σ a_t x̂_t and its standard error.

    Examples
    --------
    >>> x, s = [[1.0], [3.0]], [[0.1], [0.1]]
    >>> [float(contrast([0.5, 0.5], x, s, permanent=p).standard_error[0].round(4)) for p in (True, False)]
    [0.1, 0.0707]
    """
    a, x, s = _checked(weights, estimates, standard_errors)
    error = np.abs(a) @ s if permanent else np.sqrt(a**2 @ s**2)
    return Combined(a @ x, error)


def average(estimates: ArrayLike, standard_errors: ArrayLike, *, permanent: bool) -> Combined:
    """The mean over rounds, each weighed alike: with permanent answers it is no more exact than one round."""
    n = len(np.asarray(estimates))
    return contrast(np.full(n, 1.0 / max(n, 1)), estimates, standard_errors, permanent=permanent)


def difference(
    estimates: ArrayLike, standard_errors: ArrayLike, first: int, second: int, *, permanent: bool
) -> Combined:
    """Round `second` minus round `first`."""
    weights = np.zeros(len(np.asarray(estimates)))
    weights[first] -= 1.0
    weights[second] += 1.0
    return contrast(weights, estimates, standard_errors, permanent=permanent)


def slope(estimates: ArrayLike, standard_errors: ArrayLike, *, permanent: bool) -> Combined:
    """The least-squares change from one round to the next.

    >>> line = slope([[0.0], [1.0], [2.0]], [[0.1], [0.1], [0.1]], permanent=False)
    >>> float(line.estimate[0]), float(line.standard_error[0].round(4))
    (1.0, 0.0707)
    """
    n = len(np.asarray(estimates))
    if n < 2:
        raise InvalidInput(f"a trend over {n} round(s) is not defined: it needs at least 2")
    t = np.arange(n) - (n - 1) / 2
    return contrast(t / (t @ t), estimates, standard_errors, permanent=permanent)


def paired_difference(first: ArrayLike, second: ArrayLike) -> Combined:
    """The mean of second − first over users, from their decoded answers in the same order, one column for each row.

    >>> change = paired_difference([[2.0], [-2.0], [2.0], [2.0]], [[2.0], [2.0], [2.0], [2.0]])
    >>> float(change.estimate[0]), float(change.standard_error[0])
    (1.0, 1.0)
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 2 or len(a) < 2:
        raise InvalidInput(
            f"answers of shapes {a.shape} and {b.shape} cannot be paired: both need the same users, at least 2, in rows"
        )
    change = b - a
    return Combined(change.mean(axis=0), change.std(axis=0, ddof=1) / np.sqrt(len(change)))


def _checked(weights: ArrayLike, estimates: ArrayLike, errors: ArrayLike) -> tuple[Floats, Floats, Floats]:
    a, x, s = (np.asarray(value, np.float64) for value in (weights, estimates, errors))
    if a.ndim != 1 or x.ndim != 2 or x.shape != s.shape or len(a) != len(x) or not len(a):
        raise InvalidInput(
            f"rounds of shapes {a.shape}, {x.shape}, {s.shape} do not fit: "
            "weights are (T,), estimates and standard errors (T, rows)"
        )
    return a, x, s
