"""The error that a survey will have on given data: by the channels' own moments, with no experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.channels import Entries, HeavySet, Table
from hdr4me.channels.proof import ONE
from hdr4me.survey import Dimension, Survey

__all__ = ["foretold_mse", "shares_of", "unit_values"]

Floats = NDArray[np.float64]


def unit_values(dimension: Dimension, column: Any) -> Floats:
    """A number's values on [−1, 1]."""
    low, high = dimension.bounds
    values = column.to_numpy().astype(float)
    return np.asarray(2 * (np.clip(values, low, high) - low) / (high - low) - 1)


def shares_of(dimension: Dimension, column: Any) -> Floats:
    """The share of each category."""
    labels = column.cast(pa.string()).to_pylist()
    index = {label: i for i, label in enumerate(dimension.categories)}
    found = np.bincount([index[label] for label in labels], minlength=len(index))
    return np.asarray(found / len(labels))


def foretold_mse(survey: Survey, table: pa.Table) -> dict[str, float | None]:
    """The mean squared error of each dimension's mean (on [−1, 1]) or frequencies; None where a channel is unknown.

    A question that a user answers with probability π has the variance (within + (1 − π)·between)/(nπ): the noise of
    an answer, and, unless everybody answers, who happens to.
    """
    found: dict[str, float | None] = {}
    n = table.num_rows
    for q, question in enumerate(survey.questions):
        share = float(survey.inclusion(q))
        for place, j in enumerate(question.dimensions):
            dimension, channel = survey.schema.dimensions[j], question.channel
            column = table.column(dimension.name)
            spread = None
            if isinstance(channel, Table) and dimension.reads == "number" and len(channel.parts) == 1:
                spread = _number(channel, unit_values(dimension, column), share)
            elif isinstance(channel, Entries | HeavySet) and dimension.reads == "category":
                spread = _category(channel, shares_of(dimension, column), share)
            found[dimension.name] = None if spread is None or place else spread / (n * share)
    return found


def _number(channel: Table, values: Floats, share: float) -> float:
    rows = np.array(channel.weights, np.float64) / ONE
    squares = rows @ np.square(channel.decoders["value"])
    levels = np.linspace(-1, 1, len(rows))
    within = np.interp(values, levels, squares) - np.square(values)
    return float(within.mean() + (1 - share) * values.var())


def _category(channel: Entries | HeavySet, shares: Floats, share: float) -> float:
    without, having = channel.indicator_variances
    within = shares * having + (1 - shares) * without
    return float((within + (1 - share) * shares * (1 - shares)).mean())
