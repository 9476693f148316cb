"""Estimates of several rounds of one series, put together without pretending that permanent noise averages out.

A round's estimate x̂_t has a standard error s_t. Between rounds the errors are

* independent, if answers are fresh or other users are asked in each round: Var Σ a_t x̂_t = Σ a_t² s_t²;
* dependent in a way that tallies do not show, if the same users give permanent answers: an unchanged record repeats its
  noise exactly. Whatever the dependence, the standard error of Σ a_t x̂_t is at most Σ |a_t| s_t. That bound is printed.

With the reports of both rounds matched user by user, a difference is the mean of the users' own differences, and its
standard error is theirs: where nothing changed, both are zero (`paired_difference`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.accounting.channels import decoded_rows
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

__all__ = ["Combined", "average", "contrast", "difference", "paired_difference", "paired_rounds", "slope"]

Floats = NDArray[np.float64]
Answers = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Combined:
    """A combination of rounds, one element for each row of the answer, and its standard errors."""

    estimate: Floats
    standard_error: Floats


def contrast(
    weights: ArrayLike, estimates: ArrayLike, standard_errors: ArrayLike, *, permanent: bool
) -> Combined:
    """Σ a_t x̂_t and its standard error.

    Parameters
    ----------
    weights : array of T numbers
        a_t for each round.
    estimates, standard_errors : arrays of shape (T, rows)
        x̂_t and s_t of each round.
    permanent : bool
        Whether the same users give permanent answers. Then the standard error is an upper bound that holds whatever
        changed.

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


def paired_rounds(
    survey: Survey, first: Sequence[Answers], second: Sequence[Answers]
) -> list[dict[str, Any]]:
    """Means and frequencies of the second round minus those of the first, user by user.

    Permanent noise that two rounds share cancels in each user's own difference, so the standard error is that of what
    changed: zero where nothing did. Tallies cannot show this (see `hdr4me.accounting.rounds`).

    Parameters
    ----------
    survey : Survey
        The survey that both rounds answered.
    first, second : sequences of answers
        `report.answers` of each user in both rounds, in the same order of users.

    Returns
    -------
    list of dict
        dimension, category, estimate, standard_error (in the dimension's own units) and users, those who answered the
        question in both rounds; with fewer than two of them the numbers are None. An optional number has no estimate,
        as `status` says: its mean is a ratio, which has no difference for one user.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0, mechanism="duchi")
    >>> same = [((0, 1),), ((0, 0),), ((0, 1),)]
    >>> row = paired_rounds(survey, same, same)[0]
    >>> row["dimension"], row["estimate"], row["standard_error"], row["users"]
    ('age', 0.0, 0.0, 3)
    """
    if len(first) != len(second):
        sizes = f"{len(first)} and {len(second)} users"
        raise InvalidInput(f"{sizes} cannot be paired: give the reports of the same users")
    both: dict[int, list[tuple[Sequence[int], Sequence[int]]]] = {q: [] for q in range(len(survey.questions))}
    for before, after in zip(first, second, strict=True):
        later = {answer[0]: answer[1:] for answer in after}
        for q, *output in before:
            if q in later:
                both[q].append((output, later[q]))
    rows: list[dict[str, Any]] = []
    for q, pairs in both.items():
        for dimension, category, decode in decoded_rows(survey, q):
            row: dict[str, Any] = {"dimension": dimension, "category": category, "users": len(pairs)}
            row |= {"estimate": None, "standard_error": None, "status": "ok"}
            if decode is None:
                row["status"] = "not defined for an optional number"
            elif len(pairs) < 2:
                row["status"] = "fewer than two users in both rounds"
            else:
                values = np.array([[decode(before), decode(after)] for before, after in pairs])
                change = paired_difference(values[:, :1], values[:, 1:])
                row["estimate"] = float(change.estimate[0])
                row["standard_error"] = float(change.standard_error[0])
            rows.append(row)
    return rows


def _checked(weights: ArrayLike, estimates: ArrayLike, errors: ArrayLike) -> tuple[Floats, Floats, Floats]:
    a, x, s = (np.asarray(value, np.float64) for value in (weights, estimates, errors))
    if a.ndim != 1 or x.ndim != 2 or x.shape != s.shape or len(a) != len(x) or not len(a):
        raise InvalidInput(
            f"rounds of shapes {a.shape}, {x.shape}, {s.shape} do not fit: "
            "weights are (T,), estimates and standard errors (T, rows)"
        )
    return a, x, s
