"""The error that a survey will have on given data: by the channels' own moments, with no experiment.

A question that a user answers with probability π has the variance (within + (1 − π)·between)/(nπ): the noise of an
answer, and, unless everybody answers, who happens to.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook
from hdr4me.channels.response import probabilities
from hdr4me.comparison.truth import n_rows, shares_of, unit_values, unit_vectors
from hdr4me.framework.optional import OptionalReport
from hdr4me.framework.optional_vectors import OptionalVectorReport
from hdr4me.mechanisms.agreement import contrast
from hdr4me.mechanisms.codebook import scores_of, total_error
from hdr4me.survey import Dimension, Survey, Vector

__all__ = ["FORETOLD", "foretold_each", "foretold_mse"]

Floats = NDArray[np.float64]
FORETOLD = ("mean", "share", "frequency", "chosen")
"""The statistics whose error has a formula."""


def foretold_mse(survey: Survey, table: pa.Table, statistic: str) -> float | None:
    """The mean over all rows of the answer; None where one of them is not foretold."""
    if statistic not in FORETOLD:
        return None
    told = foretold_each(survey, table, statistic)
    known = [x for x in told.values() if x is not None]
    sizes = [n_rows(x, statistic) for x in survey.schema]
    return float(np.average(known, weights=sizes)) if len(known) == len(sizes) else None


def foretold_each(survey: Survey, table: pa.Table, statistic: str) -> dict[str, float | None]:
    """The mean squared error of each dimension, over its rows; None where a channel is unknown.

    Parameters
    ----------
    survey, table
        What is asked, and the clean values of all users.
    statistic
        One of `FORETOLD`. The mean of numbers is on [−1, 1], that of a vector a share of the norm.
    """
    found: dict[str, float | None] = {}
    for q, question in enumerate(survey.questions):
        share = float(survey.inclusion(q))
        own = [survey.schema.dimensions[j] for j in question.dimensions]
        for place, dimension in enumerate(own):
            spread = _spread(question.channel, own, place, table, share, statistic)
            found[dimension.name] = None if spread is None else spread / (table.num_rows * share)
    return {name: found[name] for name in survey.schema.names}


def _spread(
    channel: Channel, own: list[Dimension], place: int, table: pa.Table, share: float, statistic: str
) -> float | None:
    """within + (1 − π)·between for one of the dimensions of a question."""
    dimension = own[place]
    if isinstance(dimension, Vector):
        if not isinstance(channel, HeavySet) or not isinstance(channel.family, Codebook):
            return None
        vectors = unit_vectors(dimension, table)
        if dimension.optional:
            return _optional_vector(channel, vectors, share, statistic)
        return _vector(channel, vectors, share)
    if dimension.reads in ("category", "selection"):
        known = isinstance(channel, Entries | HeavySet)
        return _category(channel, shares_of(dimension, table), share) if known else None
    if isinstance(channel, HeavySet) and isinstance(channel.family, Agreement):
        values = unit_values(dimension, table)
        within = contrast(channel) ** -2 - np.square(values)
        return float(within.mean() + (1 - share) * values.var())
    if not isinstance(channel, Table) or len(channel.parts) != len(own):
        return None
    if dimension.reads == "optional":
        return _optional(channel, unit_values(dimension, table), share, statistic)
    return _number(channel, [unit_values(x, table) for x in own], place, share)


def _number(channel: Table, columns: list[Floats], place: int, share: float) -> float:
    """One number of a table: by itself, or beside another number, each rounded to a level independently."""
    name = "value" + (f" {place + 1}" if place else "")
    squares = probabilities(channel.weights) @ np.square(channel.decoders[name])
    grid = squares.reshape([part.size for part in channel.parts])
    values = columns[place]
    within = _between_levels(grid, columns) - np.square(values)
    return float(within.mean() + (1 - share) * values.var())


def _between_levels(grid: Floats, columns: list[Floats]) -> Floats:
    """A table's numbers at each user's values: a value between two levels is one of them, at random."""
    rows: Floats = np.broadcast_to(grid, (len(columns[0]), *grid.shape))
    for values in columns:
        at = (values + 1) / 2 * (rows.shape[1] - 1)
        low = np.minimum(at.astype(np.int64), rows.shape[1] - 2)
        user = np.arange(len(values))
        above = (at - low).reshape(-1, *[1] * (rows.ndim - 2))
        rows = (1 - above) * rows[user, low] + above * rows[user, low + 1]
    return rows


def _optional(channel: Table, values: Floats, share: float, statistic: str) -> float:
    """The share of users with a number, or the mean among those."""
    levels = np.linspace(-1.0, 1.0, channel.parts[0].size - 1)
    report = OptionalReport.of(
        levels, channel.weights, channel.decoders["value"], channel.decoders["present"]
    )
    known = values[~np.isnan(values)]
    even = np.full(len(known), 1.0 / max(len(known), 1))
    found = report.errors(known, even, len(known) / len(values), 1 - share)
    return found.share if statistic == "share" else found.mean


def _optional_vector(channel: HeavySet, vectors: Floats, share: float, statistic: str) -> float:
    """The share of users with a vector, or a coordinate of those, on average over the coordinates."""
    known = vectors[~np.isnan(vectors).any(axis=1)]
    energy = square = 0.0
    if len(known):
        energy, square = (float(x.mean()) for x in (np.square(known), np.square(known.mean(axis=0))))
    report = OptionalVectorReport(scores_of(channel))
    found = report.errors(energy, square, len(known) / len(vectors), 1 - share)
    return found.share if statistic == "share" else found.mean


def _vector(channel: HeavySet, vectors: Floats, share: float) -> float:
    """A coordinate of a vector, on average over the coordinates."""
    length = float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=1))))
    within = total_error(channel, length) / vectors.shape[1]
    return float(within + (1 - share) * vectors.var(axis=0).mean())


def _category(channel: Channel, shares: Floats, share: float) -> float:
    assert isinstance(channel, Entries | HeavySet)
    without, having = channel.indicator_variances
    within = shares * having + (1 - shares) * without
    return float((within + (1 - share) * shares * (1 - shares)).mean())
