"""The survey of a second round: ranges narrowed to where a pilot found the values, and tables for them.

A report about a range of half the width has half the error. What lies outside the narrower range counts as its nearer
end, which is a bias; the width is chosen so that the squared bias and the variance together are least for the pilot's
distribution and for what the pilot may have missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.response import Marginal
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.joint import optimal_mean, prior_variance
from hdr4me.mechanisms.priors import as_prior
from hdr4me.statistics.foretell import GENERAL, NEXT
from hdr4me.statistics.ranges import Range, narrowed, unseen_share
from hdr4me.statistics.shapes import Shape, shapes, shows_shape
from hdr4me.statistics.statistic import Counted
from hdr4me.survey import Schema, Survey

Floats = NDArray[np.float64]
DESIGNS, DESIGN_UP_TO = 4, 3.0
"""A design takes a second, and more above this budget of an answer, and its table makes the survey's document longer:
it is made for so many numbers. What it gains over the better of two general tables is 2 to 12 % of the noise."""
_BINS = 32
_DOUBT = 0.1
"""Of the prior of a design, the share that is spread evenly: the pilot's distribution is uncertain."""


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

    Examples
    --------
    >>> from hdr4me.survey import Numeric
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
    shown = served(survey)
    if not shown:
        raise InvalidInput(
            "no number of this survey shows its distribution, so no range can be narrowed: "
            "make the pilot with mechanism = 'square_wave', 'piecewise' or 'optimal' at epsilon above 0.05; "
            "categories, selections, vectors and blocks have no range to narrow, and are asked again by the same survey"
        )
    if users is not None and (type(users) is not int or users < 1):
        raise InvalidInput.of("users", users, "a whole number from 1")
    ranges = _ranges(pilot, shown, users or 4 * max(pilot.n_reports, 1), mechanism)
    dimensions = [_narrow(dimension, ranges.get(j)) for j, dimension in enumerate(survey.schema)]
    together = [
        (question.channel.per_report == 1, tuple(survey.schema.names[j] for j in question.dimensions))
        for question in survey.questions
        if len(question.dimensions) > 1
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
        pairs=[names for pair, names in together if pair],  # type: ignore[misc]
        blocks=[names for pair, names in together if not pair],
        weights=weights,
    )
    return _designed(following, pilot, shown) if designed else following


def served(survey: Survey) -> list[int]:
    """The numbers whose distribution is told, so that their ranges can be narrowed."""
    return [
        j
        for j, dimension in enumerate(survey.schema)
        if hasattr(dimension, "low")
        and shows_shape(dimension, survey.questions[survey.question_of(j)].channel)
    ]


def _ranges(pilot: Counted, dimensions: Sequence[int], users: float, mechanism: Any) -> dict[int, Range]:
    name = NEXT if mechanism == "designed" else mechanism
    law = named(name, epsilon=pilot.survey.epsilon_per_answer) if isinstance(name, str) else name
    noise = float(law.exact().mean_variance())
    found = {}
    for j, shape in shapes(pilot, dimensions).items():
        n = max(users * float(pilot.survey.inclusion(pilot.survey.question_of(j))), 1.0)
        hidden = unseen_share(shape.grid.edges, shape.cumulative, noise_of(shape))
        found[j] = narrowed(shape.grid.edges, shape.cumulative, n, noise, hidden)
    return found


def _designed(following: Survey, pilot: Counted, dimensions: Sequence[int]) -> Survey:
    """The next survey, each number that is asked alone by the table of least variance for the pilot's distribution."""
    questions = list(following.questions)
    general = [named(name, epsilon=following.epsilon_per_answer).exact() for name in GENERAL]
    shared = [table.channel() for table in general]
    for j, shape in shapes(pilot, dimensions).items():
        q = following.question_of(j)
        if len(questions[q].dimensions) > 1 or not following.schema.dimensions[j].is_number:
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


def _noise(marginal: Marginal) -> float:
    """The mean variance of a report over the levels; of a category that a user has not, or a coordinate of 0."""
    at = [0.0] if marginal.indicator or not marginal.law.size else marginal.levels
    weights = [1.0, 0.0] if marginal.optional else [1.0]
    return float(marginal.moments(at).variance(weights).mean())


def noise_of(shape: Shape) -> float:
    """The standard error of a mean on [−1, 1] by the noise of its table alone."""
    return float(np.sqrt(_noise(shape.bounds.marginal) / shape.counts.sum()))


def _narrow(dimension: Any, found: Range | None) -> Any:
    if found is None or found.gain == 1.0:
        return dimension
    low, high = dimension.bounds
    middle, half = (low + high) / 2, (high - low) / 2
    new = middle + half * found.low, middle + half * found.high
    default = min(max(dimension.default, new[0]), new[1])
    return replace(dimension, low=new[0], high=new[1], default=default)


def _weights(survey: Survey, ranges: dict[int, Range]) -> dict[str, int]:
    """How often each question is drawn: as the root of the noise that is left, so that the sum of errors is least."""
    need = []
    for question in survey.questions:
        total = 0.0
        for place, j in enumerate(question.dimensions):
            marginal = question.channel.response.marginal(place)
            found = ranges.get(j)
            # A share's range has half a number's width.
            width = 2.0 if marginal.indicator else (found.high - found.low) / 2 if found else 1.0
            total += width**2 * _noise(marginal) * question.channel.response.n_coordinates(place)
        need.append(total)
    whole = [max(1, isqrt(round(10_000 * x / max(need)))) for x in need]
    return {survey.schema.names[q.dimensions[0]]: w for q, w in zip(survey.questions, whole, strict=True)}
