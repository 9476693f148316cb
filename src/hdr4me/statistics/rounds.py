"""The answers of several rounds together: each row weighted by the inverse of its squared error.

Intervals are widened by a bound on the bias of narrower ranges (see `_biases`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.statistics.answer import Answer
from hdr4me.statistics.ask import estimate
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.next_round import noise_of, served
from hdr4me.statistics.ranges import CAUTION, spread_of, unseen_share
from hdr4me.statistics.shapes import Shape, shapes
from hdr4me.statistics.statistic import Counted
from hdr4me.survey import Product, Survey

Floats = NDArray[np.float64]
SAFETY = 1.5
"""Intervals allow for this many times the users whom the choice of a range takes to be missed by the pilot."""


def combine(rounds: Sequence[Counted]) -> Answer:
    """The answers of several rounds, each row weighted by the inverse of its squared error.

    The first round is the pilot, on the whole ranges. A mean from a narrower range has a bias that the pilot's
    distribution bounds; the bound counts as an error when rounds are weighed, and widens the interval.

    Returns
    -------
    Answer
        In units, with the rows of the pilot's `estimate()`.

    Examples
    --------
    >>> from hdr4me.client import Client
    >>> from hdr4me.survey import Categorical, Schema, Survey
    >>> from hdr4me.tally import Tally
    >>> survey = Survey(Schema([Categorical("smoker", ["no", "yes"])]), epsilon=2.0)
    >>> rounds = [Tally(survey).add(Client(survey).report({"smoker": "no"}) for _ in range(100)) for _ in range(2)]
    >>> combine(rounds).n_reports
    200
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


def _biases(pilot: Counted, counted: Counted, rows: Answer) -> Floats:
    """In units, for each row of a round: its bias as the pilot shows it, what the pilot may have missed, and S.

    The first is what the pilot's distribution has outside the narrower range. The second allows for a share of users
    whom the pilot's noise hides (`unseen_share`), spread evenly over what was cut off. Both are 0 for ranges that were
    kept. S is the standard deviation of the users' own values.
    """
    found = np.zeros((3, len(rows)))
    schema, own = pilot.survey.schema, counted.survey.schema
    narrow = [j for j in served(pilot.survey) if own[schema.names[j]].bounds != schema.dimensions[j].bounds]
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
        share = unseen_share(shape.grid.edges, shape.cumulative, noise_of(shape))
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
