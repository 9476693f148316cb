"""What a collection says about the values of the next one: a prior for each dimension, in its own units."""

from __future__ import annotations

from typing import Any

import numpy as np

from hdr4me.errors import InvalidInput
from hdr4me.framework.em import prior_from_counts
from hdr4me.statistics.ask import estimate
from hdr4me.statistics.shapes import has_law
from hdr4me.statistics.statistic import Counted

_LEVELS = 5
"""A table with fewer levels tells a mean and hardly anything of the spread."""


def priors(counted: Counted) -> dict[str, Any]:
    """A histogram (edges, weights) for each number, and frequencies by label for each category.

    Of an optional number the histogram of those who have one and their share, by the names "values" and "present". Of
    an optional vector the share, which is taken as at least its standard error and at most 1.

    A number whose table has fewer than five levels (Duchi's has two) tells its mean and not its spread, and a number
    that shares its table with another dimension is not deconvolved: both are left out, and so is a dimension without
    answers.

    Examples
    --------
    >>> from hdr4me.client import Client
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> from hdr4me.tally import Tally
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=8.0)
    >>> tally = Tally(survey).add(Client(survey).report({"age": 30}) for _ in range(500))
    >>> edges, weights = priors(tally)["age"]
    >>> bool(20 < weights @ (edges[1:] + edges[:-1]) / 2 < 40)
    True
    """
    survey = counted.survey
    found: dict[str, Any] = {}
    answer = estimate(counted)
    for j, dimension in enumerate(survey.schema.dimensions):
        q = survey.question_of(j)
        channel = survey.questions[q].channel
        counts = counted.layout.of_question(counted.counts, q)
        if not counts.sum() or len(survey.questions[q].dimensions) > 1:
            continue
        if "frequency" in dimension.statistics:
            rows = answer.frequencies(dimension.name)
            shares = np.maximum(rows.value, 0.0)
            if shares.sum() > 0:
                found[dimension.name] = dict(zip(rows.categories, shares.tolist(), strict=True))
        elif "mean" in dimension.statistics and has_law(channel):
            marginal = channel.response.marginal()
            shares, optional = prior_from_counts(marginal.rows, counts).shares, marginal.optional
            shares = shares[:-1] if optional else shares  # the last row has no value
            if shares.size >= _LEVELS and shares.sum() > 0:
                low, high = dimension.bounds
                middles = (np.arange(shares.size - 1) + 0.5) / (shares.size - 1)
                edges = low + (high - low) * np.concatenate([[0.0], middles, [1.0]])
                told = edges, shares / shares.sum()
                found[dimension.name] = {"values": told, "present": float(shares.sum())} if optional else told
        elif "share" in dimension.statistics:
            share = answer[dimension.name].of("share")
            value, error = float(share.value[0]), float(share.standard_error[0])
            if not np.isnan(error):
                found[dimension.name] = {"present": min(max(value, error), 1.0)}
    if not found:
        raise InvalidInput(
            "the tally tells no dimension's distribution: it needs answers, and for numbers a table of five levels or "
            "more of their own (optimal, piecewise)"
        )
    return found
