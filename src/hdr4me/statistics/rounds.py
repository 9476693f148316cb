"""A second round: ranges narrowed to where a pilot found the values, and the answers of both rounds together.

A report about a range of half the width has half the error. What lies outside the narrower range counts as its nearer
end, which is a bias; the width is chosen so that the squared bias and the variance together are least for the pilot's
distribution, and intervals are widened by a bound on the bias (see `_biases`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Table
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.prior import optimal_mean, prior_variance
from hdr4me.mechanisms.priors import as_prior
from hdr4me.statistics.answer import Answer
from hdr4me.statistics.ask import estimate
from hdr4me.statistics.foretell import GENERAL, NEXT
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.ranges import CAUTION, Range, narrowed, spread_of, unseen_share
from hdr4me.statistics.readings import shows_shape
from hdr4me.statistics.shapes import Shape, shapes
from hdr4me.statistics.statistic import Counted
from hdr4me.survey import Numeric, Product, Schema, Survey

__all__ = ["combine", "refine"]

Floats = NDArray[np.float64]
DESIGNS, DESIGN_UP_TO = 4, 3.0
"""A design takes a second, and more above this budget of an answer, and its table makes the survey's document longer:
it is made for so many numbers. What it gains over the better of two general tables is 2 to 12 % of the noise."""
_BINS = 32
_DOUBT = 0.1
"""Of the prior of a design, the share that is spread evenly: the pilot's distribution is uncertain."""
SAFETY = 1.5
"""Intervals allow for this many times the users whom the choice of a range takes to be missed by the pilot."""


def refine(
    pilot: Counted,
    *,
    users: int | None = None,
    mechanism: Any = "designed",
    weigh: bool = True,
    name: str = "",
) -> Survey:
    """A survey for the next round: the same dimensions, numbers on narrower ranges, questions drawn by need.

    Parameters
    ----------
    pilot
        The first round's tally.
    users
        How many users will answer the next round: four times the pilot's unless given.
    mechanism
        How numbers are randomised in the next round. "designed": each by the table of least variance for the pilot's
        distribution, of two general ones and, for up to `DESIGNS` numbers, one designed for it.
    weigh
        Whether questions with more noise left are drawn more often (surveys of one question for each user).
    name
        A name for the next survey.

    Returns
    -------
    Survey
        Under the pilot's budget. A user answers one of the rounds: a ledger with that limit sees to it.

    Raises
    ------
    InvalidInput
        If the pilot has no number whose distribution can be told.

    Examples
    --------
    >>> from hdr4me.tally import Tally
    >>> survey = Survey(Schema([Numeric("delay", -60, 600)]), mechanism="piecewise")
    >>> pilot = Tally(survey)
    >>> rows = np.array(survey.questions[0].channel.weights)
    >>> pilot.counts[:] = rows[15] * 100_000 >> 32  # all near -60 + 660 · 15/122
    >>> pilot.n_reports = int(pilot.counts.sum())
    >>> wider = refine(pilot).schema["delay"]
    >>> -60 <= wider.low < 21 < wider.high < 300
    True
    """
    survey = pilot.survey
    served = _served(survey)
    if not served:
        raise InvalidInput(
            "no number of this survey shows its distribution, so no range can be narrowed: "
            "make the pilot with mechanism = 'square_wave', 'piecewise' or 'optimal' at epsilon above 0.05"
        )
    if users is not None and (type(users) is not int or users < 1):
        raise InvalidInput.of("users", users, "a whole number from 1")
    ranges = _ranges(pilot, served, users or 4 * max(pilot.n_reports, 1), mechanism)
    dimensions = [_narrow(dimension, ranges.get(j)) for j, dimension in enumerate(survey.schema)]
    pairs = [
        tuple(survey.schema.names[j] for j in question.dimensions)
        for question in survey.questions
        if len(question.dimensions) == 2
    ]
    designed = mechanism == "designed"
    weights = (
        _weights(survey, ranges) if weigh and survey.n_sampled == 1 and len(survey.questions) > 1 else None
    )
    following = Survey(
        Schema(dimensions),
        survey.epsilon,
        NEXT if designed else mechanism,
        survey.n_sampled,
        name=name or (f"{survey.name}, second round" if survey.name else "second round"),
        pairs=pairs,  # type: ignore[arg-type]
        weights=weights,
    )
    return _designed(following, pilot, served) if designed else following


def combine(rounds: Sequence[Counted]) -> Answer:
    """The answers of several rounds, each row weighted by the inverse of its squared error.

    The first round is the pilot, on the whole ranges. A mean from a narrower range has a bias that the pilot's
    distribution bounds; the bound counts as an error when rounds are weighed, and widens the interval.

    Parameters
    ----------
    rounds
        Tallies: the pilot and those of surveys that `refine` made. Their dimensions have the same names.

    Returns
    -------
    Answer
        In units, with the rows of the pilot's `estimate()`.

    Raises
    ------
    InvalidInput
        If there is no tally, or the rounds do not ask for the same dimensions.
    """
    if not rounds:
        raise InvalidInput.of("rounds", [], "at least one tally")
    pilot, answers = rounds[0], [estimate(counted) for counted in rounds]
    first = answers[0]
    rows = (first.statistics, first.dimensions, first.categories)
    for other in answers[1:]:
        if (other.statistics, other.dimensions, other.categories) != rows:
            raise InvalidInput("the rounds do not ask for the same dimensions and categories")
    bias, unseen, spread = np.stack([_biases(pilot, counted, first) for counted in rounds], axis=1)
    value = np.stack([answer.value for answer in answers])
    error = np.stack([answer.standard_error for answer in answers])
    known = np.isfinite(value) & np.isfinite(error) & (error > 0)
    known &= np.stack([_comparable(pilot.survey, counted.survey, first) for counted in rounds])
    inverse = np.where(known, 1.0 / np.where(known, error**2 + bias**2 + unseen**2, 1.0), 0.0)
    total = inverse.sum(axis=0)
    share = np.divide(inverse, total, out=np.zeros_like(inverse), where=total > 0)
    some = total > 0
    together = np.where(some, np.where(known, share * value, 0.0).sum(axis=0), first.value)
    # Each round's error is about its own users. The truth is about all of them, each as often as the others: rounds
    # whose weights are not their shares of the users add the chance by which their users differ.
    users = np.array([[max(counted.n_reports, 1)] for counted in rounds], float)
    apart = (share - users / users.sum()) ** 2 * spread.max(axis=0) ** 2 / users
    squares = (np.where(known, share * error, 0.0) ** 2).sum(axis=0) + np.where(some, apart.sum(axis=0), 0.0)
    noise = np.where(some, np.sqrt(squares), first.standard_error)
    shift = np.where(known, share * (bias + SAFETY * unseen), 0.0).sum(axis=0)
    n_answers = sum((answer.n_answers for answer in answers[1:]), first.n_answers)

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        if kind not in ("honest", "short"):
            raise InvalidInput.of("kind", kind, "one of honest, short")
        reach = quantile(level, n_answers) * noise + (shift if kind == "honest" else 0.0)
        return together - reach, together + reach

    bounds = np.array([pilot.survey.schema[name].bounds for name in first.dimensions]).reshape(-1, 2)
    scaled = np.array([name == "mean" for name in first.statistics], bool)
    half, middle = (bounds[:, 1] - bounds[:, 0]) / 2, bounds.mean(axis=1)
    return replace(
        first,
        n_reports=sum(counted.n_reports for counted in rounds),
        value=together,
        standard_error=noise,
        n_answers=np.asarray(n_answers),
        scaled_value=np.where(scaled, (together - middle) / half, together),
        scaled_error=np.where(scaled, noise / half, noise),
        unsure=np.where(some, False, first.unsure),
        intervals=intervals,
    )


def _comparable(pilot: Survey, later: Survey, rows: Answer) -> NDArray[np.bool_]:
    """Which rows mean the same in both rounds: a product is taken from the middles of its numbers' ranges."""
    same = {
        dimension.name: not isinstance(dimension, Product)
        or all(pilot.schema[name].bounds == later.schema[name].bounds for name in dimension.product)
        for dimension in pilot.schema
    }
    return np.array([same[name] for name in rows.dimensions], bool)


def _served(survey: Survey) -> list[int]:
    return [
        j
        for j, dimension in enumerate(survey.schema)
        if isinstance(dimension, Numeric)
        and shows_shape(dimension, survey.questions[survey.question_of(j)].channel)
    ]


def _ranges(pilot: Counted, dimensions: Sequence[int], users: float, mechanism: Any) -> dict[int, Range]:
    name = NEXT if mechanism == "designed" else mechanism
    law = named(name, epsilon=pilot.survey.epsilon_per_answer) if isinstance(name, str) else name
    noise = float(law.exact().mean_variance())
    found = {}
    for j, shape in shapes(pilot, dimensions).items():
        n = max(users * float(pilot.survey.inclusion(pilot.survey.question_of(j))), 1.0)
        hidden = unseen_share(shape.grid.edges, shape.cumulative, _error(shape))
        found[j] = narrowed(shape.grid.edges, shape.cumulative, n, noise, hidden)
    return found


def _designed(following: Survey, pilot: Counted, dimensions: Sequence[int]) -> Survey:
    """The next survey, each number that is asked alone by the table of least variance for the pilot's distribution."""
    questions = list(following.questions)
    general = [named(name, epsilon=following.epsilon_per_answer).exact() for name in GENERAL]
    shared = [table.channel() for table in general]
    for j, shape in shapes(pilot, dimensions).items():
        q = following.question_of(j)
        if len(questions[q].dimensions) > 1 or following.schema.dimensions[j].reads != "number":
            continue
        low, high = pilot.survey.schema.dimensions[j].bounds
        a, b = (2.0 * (x - low) / (high - low) - 1.0 for x in following.schema.dimensions[j].bounds)
        inside = shape.cdf(np.linspace(a, b, _BINS + 1)[1:-1])  # what lies outside counts as the nearer end
        shares = np.diff(np.concatenate([[0.0], inside, [1.0]]))
        even = _DOUBT / _BINS + (1.0 - _DOUBT) * shares
        prior = as_prior((np.linspace(-1.0, 1.0, _BINS + 1), even))
        budget = following.epsilon_per_answer
        few = len(dimensions) <= DESIGNS and budget <= DESIGN_UP_TO
        tables = [*general, optimal_mean(budget, prior)] if few else general
        variances = [prior_variance(table, prior) for table in tables]
        best = variances.index(min(variances))
        channel = shared[best] if best < len(general) else tables[best].channel()
        questions[q] = replace(questions[q], channel=channel)
    return Survey.from_questions(
        following.schema,
        epsilon=following.epsilon,
        n_sampled=following.n_sampled,
        questions=questions,
        name=following.name,
    )


def _noise(table: Table) -> float:
    """The mean variance of a report about a value."""
    law = np.ldexp(np.array(table.weights, np.float64), -32)
    decode = np.array(table.decoders["value"])
    return float((law @ decode**2 - (law @ decode) ** 2).mean())


def _error(shape: Shape) -> float:
    """The standard error of a mean on [−1, 1] by the noise of its table alone."""
    return float(np.sqrt(_noise(shape.bounds.reading.table) / shape.counts.sum()))


def _narrow(dimension: Any, found: Range | None) -> Any:
    if found is None or found.gain == 1.0:
        return dimension
    low, high = dimension.bounds
    middle, half = (low + high) / 2, (high - low) / 2
    new = middle + half * found.low, middle + half * found.high
    default = min(max(dimension.default, new[0]), new[1])
    return Numeric(dimension.name, *new, default=default, optional=dimension.optional)


def _weights(survey: Survey, ranges: dict[int, Range]) -> dict[str, int]:
    """How often each question is drawn: as the root of the noise that is left, so that the sum of errors is least."""
    need = []
    for question in survey.questions:
        channel = question.channel
        if isinstance(channel, Table):
            widths = [(r.high - r.low) / 2 if (r := ranges.get(j)) else 1.0 for j in question.dimensions]
            need.append(sum(width**2 for width in widths) * _noise(channel))
        else:  # a share's range has half a number's width
            absent = float(channel.indicator_variances[0])  # type: ignore[attr-defined]
            need.append(4.0 * absent * len(survey.schema.dimensions[question.dimensions[0]].categories))
    whole = [max(1, isqrt(round(10_000 * x / max(need)))) for x in need]
    return {survey.schema.names[q.dimensions[0]]: w for q, w in zip(survey.questions, whole, strict=True)}


def _biases(pilot: Counted, counted: Counted, rows: Answer) -> Floats:
    """In units, for each row of a round: its bias as the pilot shows it, what the pilot may have missed, and S.

    The first is what the pilot's distribution has outside the narrower range. The second allows for a share of users
    whom the pilot's noise hides (`unseen_share`), spread evenly over what was cut off. Both are 0 for ranges that were
    kept. S is the standard deviation of the users' own values.
    """
    found = np.zeros((3, len(rows)))
    schema, own = pilot.survey.schema, counted.survey.schema
    narrow = [j for j in _served(pilot.survey) if own[schema.names[j]].bounds != schema.dimensions[j].bounds]
    found[2] = [
        0.0 if statistic != "frequency" else np.sqrt(max(value * (1.0 - value), 0.0))
        for statistic, value in zip(rows.statistics, rows.value, strict=True)
    ]
    for j, shape in shapes(pilot, narrow).items():
        name = schema.names[j]
        (low, high), (new_low, new_high) = schema.dimensions[j].bounds, own[name].bounds
        half = (high - low) / 2
        a, b = ((x - low) / half - 1.0 for x in (new_low, new_high))
        lost = CAUTION * max(_outside(shape, a, left=True), _outside(shape, b, left=False)) * half
        share = unseen_share(shape.grid.edges, shape.cumulative, _error(shape))
        unseen = share * max(1.0 + a, 1.0 - b) / 2 * half
        spread = float(np.sqrt(spread_of(shape.grid.edges, shape.cumulative))) * half
        for row, (statistic, dimension) in enumerate(zip(rows.statistics, rows.dimensions, strict=True)):
            if dimension == name and statistic == "mean":
                found[:, row] = lost, unseen, spread
    return found


def _outside(shape: Shape, end: float, *, left: bool) -> float:
    """E(end − t)₊ or E(t − end)₊ under the pilot's distribution."""
    x = np.linspace(-1.0, end, 400) if left else np.linspace(end, 1.0, 400)
    f = shape.cdf(x)
    return float(np.trapezoid(f if left else 1.0 - f, x))
