"""Linear combinations of the rounds of one series, with standard errors that account for memoized responses.

Errors are independent if the noise is fresh or the users differ: Var Σ a_t x̂_t = Σ a_t² s_t². With memoized responses
of the same users the errors of two rounds are dependent, and tallies do not show how strongly. For any dependence the
standard error of Σ a_t x̂_t is at most Σ |a_t| s_t. This bound is reported for memoized responses.

Memoized responses can also be stale. A device with a budget of K rows answers at most K different values of a question
with new noise and then repeats a stored response, whatever the current value is. A device has visited at most t rows in
round t, so rounds 1 to K are current. In a later round an unknown share of the responses is stale, and its estimate may
differ from the current truth by any amount up to the width of the range. This *slack* is reported beside the standard
error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

Floats = NDArray[np.float64]
Answers = Sequence[Sequence[int]]
ROW_BUDGET = 1  # the row budget of the default ledger


class Combined(NamedTuple):
    """A linear combination of rounds and its standard errors, one element for each row of the answer."""

    estimate: Floats
    standard_error: Floats
    slack: Floats | float = 0.0
    """The largest error by stale responses; it adds to an interval on both sides."""
    weight: float = 1.0
    """Σ |a_t|: an interval of ± half of it, in widths of the range, contains every possible value."""


def may_be_stale(number: int, row_budget: int) -> bool:
    """Whether memoized responses of round `number` (from 1) may be stale with a budget of `row_budget` rows."""
    if type(row_budget) is not int or row_budget < 1:
        raise InvalidInput.of("row_budget", row_budget, "a positive integer")
    return number > row_budget


def declared_budget(survey: Survey) -> int | None:
    """The row budget of a survey with memoized responses; None for a survey that may have fresh noise."""
    return survey.row_budget or (ROW_BUDGET if survey.memoized_epsilon > survey.epsilon else None)


def staleness(survey: Survey, number: int | None) -> str:
    """Why the responses of a round may be stale; empty if they are current.

    A survey that declares a row budget, or that has two stages, is answered by devices with memoized responses. Without
    the number of the round, every round may be a late one. The number of a later round states that responses are
    memoized, by default with the budget ROW_BUDGET.
    """
    budget = declared_budget(survey) or (ROW_BUDGET if number is not None and number > 1 else None)
    if budget is None or (number is not None and not may_be_stale(number, budget)):
        return ""
    if number is None:
        return f"may be stale after round {budget}: give the number of the round"
    return f"may be stale: the row budget of {budget} is spent before round {number}"


UNDECLARED = (
    "No row budget is declared: if devices memoize their responses, those of this round may be stale."
)


def stale_note(row_budget: int) -> str:
    """The sentence that goes with estimates from responses that may be stale."""
    return (
        f"Changes after round {row_budget} cannot be estimated: with memoized responses and a row budget of "
        f"{row_budget}, a device then repeats stored responses."
    )


def contrast(
    weights: ArrayLike,
    estimates: ArrayLike,
    standard_errors: ArrayLike,
    *,
    memoized: bool,
    stale: ArrayLike | None = None,
) -> Combined:
    """Σ a_t x̂_t and its standard error; `stale` holds, like the estimates, the largest errors by stale responses."""
    a, x, s = (np.asarray(value, np.float64) for value in (weights, estimates, standard_errors))
    if a.ndim != 1 or x.ndim != 2 or x.shape != s.shape or len(a) != len(x) or not len(a):
        raise InvalidInput(
            f"weights, estimates and standard errors of shapes {a.shape}, {x.shape} and {s.shape}: "
            "expected (T,), (T, rows) and (T, rows) for T rounds"
        )
    slack = 0.0 if stale is None else np.abs(a) @ np.asarray(stale, np.float64)
    return Combined(a @ x, np.abs(a) @ s if memoized else np.sqrt(a**2 @ s**2), slack, float(np.abs(a).sum()))


def average(
    estimates: ArrayLike, standard_errors: ArrayLike, *, memoized: bool, stale: ArrayLike | None = None
) -> Combined:
    """The mean over rounds with equal weights; with memoized responses its error bound is that of one round."""
    n = len(np.asarray(estimates))
    weights = np.full(n, 1.0 / max(n, 1))
    return contrast(weights, estimates, standard_errors, memoized=memoized, stale=stale)


def difference(
    estimates: ArrayLike,
    standard_errors: ArrayLike,
    first: int,
    second: int,
    *,
    memoized: bool,
    stale: ArrayLike | None = None,
) -> Combined:
    """Round `second` minus round `first`."""
    unit = np.eye(len(np.asarray(estimates)))
    weights = unit[second] - unit[first]
    return contrast(weights, estimates, standard_errors, memoized=memoized, stale=stale)


def slope(
    estimates: ArrayLike, standard_errors: ArrayLike, *, memoized: bool, stale: ArrayLike | None = None
) -> Combined:
    """The least-squares change from one round to the next."""
    n = len(np.asarray(estimates))
    if n < 2:
        raise InvalidInput(f"a trend over {n} round(s) is not defined: it needs at least 2")
    t = np.arange(n) - (n - 1) / 2
    return contrast(t / (t @ t), estimates, standard_errors, memoized=memoized, stale=stale)


def paired_difference(first: Floats, second: Floats) -> Combined:
    """The mean of second − first over users, from their decoded answers: one row for each of at least two users."""
    change = second - first
    return Combined(change.mean(axis=0), change.std(axis=0, ddof=1) / np.sqrt(len(change)))


def paired_rounds(
    survey: Survey,
    first: Sequence[Answers],
    second: Sequence[Answers],
    *,
    round_number: int = 2,
    row_budget: int | None = None,
) -> list[dict[str, Any]]:
    """Means and frequencies of the second round minus those of the first, from `report.answers` of the same users.

    Memoized noise that two rounds share cancels in each user's own difference, so the standard error is that of the
    changes alone. Tallies do not link a user's reports, so they cannot give this estimate.

    A user with the same answer in both rounds may have a stale one if `round_number`, that of the second round, exceeds
    the row budget of the memoized responses (by default the survey's, or 1). Then `slack` is the largest error by stale
    responses, and the status says so. Pass `row_budget=round_number` if the noise is fresh.

    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0, mechanism="duchi")
    >>> same = [((0, 1),), ((0, 0),), ((0, 1),)]
    >>> row = paired_rounds(survey, same, same)[0]
    >>> row["estimate"], row["standard_error"], row["slack"], row["status"]
    (0.0, 0.0, 120.0, 'may be stale: the row budget of 1 is spent before round 2')
    """
    if len(first) != len(second):
        raise InvalidInput(
            f"{len(first)} and {len(second)} users cannot be paired: pass the reports of the same users, "
            "in the same order"
        )
    outputs: list[list[tuple[Sequence[int], Sequence[int]]]] = [[] for _ in survey.questions]
    for before, after in zip(first, second, strict=True):
        later = {answer[0]: answer[1:] for answer in after}
        for q, *output in before:
            if q in later:
                outputs[q].append((output, later[q]))
    row_budget = survey.row_budget or ROW_BUDGET if row_budget is None else row_budget
    stale = may_be_stale(round_number, row_budget)
    status = (
        f"may be stale: the row budget of {row_budget} is spent before round {round_number}"
        if stale
        else "ok"
    )
    return [row for q, pairs in enumerate(outputs) for row in _paired_rows(survey, q, pairs, status)]


def _paired_rows(
    survey: Survey, q: int, pairs: list[tuple[Sequence[int], Sequence[int]]], known: str
) -> Iterator[dict[str, Any]]:
    """One row for each number and category of question q; `status` says why a row has no estimate."""
    question = survey.questions[q]
    response = question.channel.response
    same = sum(tuple(a) == tuple(b) for a, b in pairs) / max(len(pairs), 1) if known != "ok" else 0.0
    for place, j in enumerate(question.dimensions):
        dimension, status, change = survey.schema.dimensions[j], known if same else "ok", None
        labels: tuple[str | None, ...] = dimension.categories or (None,)
        if response.marginal(place).optional:
            labels, status = (None,), "not defined for an optional number"
        elif response.n_coordinates(place) != len(labels):
            labels, status = (None,), "not defined for a vector"
        elif len(pairs) < 2:
            status = "fewer than two users in both rounds"
        else:
            low, high = (0.0, 2.0) if dimension.categories else dimension.bounds
            before, after = (
                response.decoded(np.array(reported, np.int64), place) * ((high - low) / 2)
                for reported in zip(*pairs, strict=True)
            )
            change = paired_difference(before, after)
        for i, label in enumerate(labels):
            yield {
                "dimension": dimension.name,
                "category": label,
                "users": len(pairs),
                "estimate": None if change is None else float(change.estimate[i]),
                "standard_error": None if change is None else float(change.standard_error[i]),
                "slack": None if change is None else same * (1.0 if dimension.categories else high - low),
                "status": status,
            }
