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
from hdr4me.statistics.answer import Answer
from hdr4me.statistics.ask import estimate
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.ranges import CAUTION, Range, narrowed
from hdr4me.statistics.readings import shows_shape
from hdr4me.statistics.shapes import Shape, shapes
from hdr4me.statistics.statistic import Counted
from hdr4me.survey import Numeric, Product, Schema, Survey

__all__ = ["combine", "refine"]

Floats = NDArray[np.float64]
UNSEEN = 0.4
"""The share of users outside a moved end whom a pilot may miss, in units of the noise of its mean on [−1, 1]."""


def refine(
    pilot: Counted,
    *,
    users: int | None = None,
    mechanism: Any = "optimal",
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
        How numbers are randomised in the next round.
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
    >>> pilot.counts[:] = rows[15] * 10_000 >> 32  # all near -60 + 660 · 15/122
    >>> pilot.n_reports = int(pilot.counts.sum())
    >>> wider = refine(pilot).schema["delay"]
    >>> -60 <= wider.low < 21 < wider.high < 200
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
    ranges = _ranges(pilot, served, users or 4 * max(pilot.n_reports, 1))
    dimensions = [_narrow(dimension, ranges.get(j)) for j, dimension in enumerate(survey.schema)]
    pairs = [
        tuple(survey.schema.names[j] for j in question.dimensions)
        for question in survey.questions
        if len(question.dimensions) == 2
    ]
    weights = (
        _weights(survey, ranges) if weigh and survey.n_sampled == 1 and len(survey.questions) > 1 else None
    )
    return Survey(
        Schema(dimensions),
        survey.epsilon,
        mechanism,
        survey.n_sampled,
        name=name or (f"{survey.name}, second round" if survey.name else "second round"),
        pairs=pairs,  # type: ignore[arg-type]
        weights=weights,
    )


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
    bias, unseen = np.stack([_biases(pilot, counted, first) for counted in rounds], axis=1)
    value = np.stack([answer.value for answer in answers])
    error = np.stack([answer.standard_error for answer in answers])
    known = np.isfinite(value) & np.isfinite(error) & (error > 0)
    known &= np.stack([_comparable(pilot.survey, counted.survey, first) for counted in rounds])
    inverse = np.where(known, 1.0 / np.where(known, error**2 + bias**2, 1.0), 0.0)
    total = inverse.sum(axis=0)
    share = np.divide(inverse, total, out=np.zeros_like(inverse), where=total > 0)
    some = total > 0
    together = np.where(some, np.where(known, share * value, 0.0).sum(axis=0), first.value)
    noise = np.where(
        some, np.sqrt((np.where(known, share * error, 0.0) ** 2).sum(axis=0)), first.standard_error
    )
    shift = np.where(known, share * (bias + unseen), 0.0).sum(axis=0)
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


def _ranges(pilot: Counted, dimensions: Sequence[int], users: float) -> dict[int, Range]:
    found = {}
    for j, shape in shapes(pilot, dimensions).items():
        n = max(users * float(pilot.survey.inclusion(pilot.survey.question_of(j))), 1.0)
        found[j] = narrowed(shape.grid.edges, shape.cumulative, n, _noise(shape.bounds.reading.table))
    return found


def _noise(table: Table) -> float:
    """The mean variance of a report about a value."""
    law = np.ldexp(np.array(table.weights, np.float64), -32)
    decode = np.array(table.decoders["value"])
    return float((law @ decode**2 - (law @ decode) ** 2).mean())


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
    """The bias of each row of a round in units, as the pilot shows it and as it may have missed it: of narrowed means.

    The first is what the pilot's distribution has outside the narrower range. The second allows for a share of users
    whom the pilot's noise hides, `UNSEEN` times the noise of its mean, and who lie outside by half of that range.
    """
    found = np.zeros((2, len(rows)))
    schema, own = pilot.survey.schema, counted.survey.schema
    narrow = [j for j in _served(pilot.survey) if own[schema.names[j]].bounds != schema.dimensions[j].bounds]
    for j, shape in shapes(pilot, narrow).items():
        name = schema.names[j]
        (low, high), (new_low, new_high) = schema.dimensions[j].bounds, own[name].bounds
        half = (high - low) / 2
        a, b = ((x - low) / half - 1.0 for x in (new_low, new_high))
        lost = CAUTION * max(_outside(shape, a, left=True), _outside(shape, b, left=False)) * half
        noise = np.sqrt(_noise(shape.bounds.reading.table) / shape.counts.sum())
        unseen = UNSEEN * float(noise) * (new_high - new_low) / 2
        for row, (statistic, dimension) in enumerate(zip(rows.statistics, rows.dimensions, strict=True)):
            if dimension == name and statistic == "mean":
                found[:, row] = lost, unseen
    return found


def _outside(shape: Shape, end: float, *, left: bool) -> float:
    """E(end − t)₊ or E(t − end)₊ under the pilot's distribution."""
    x = np.linspace(-1.0, end, 400) if left else np.linspace(end, 1.0, 400)
    f = shape.cdf(x)
    return float(np.trapezoid(f if left else 1.0 - f, x))
