"""What every statistic must keep: rows for what it serves, of one length, and no answer from no reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from hdr4me.statistics import Statistic
from hdr4me.survey import Survey
from hdr4me.tally import Tally


def check_statistic(statistic: Statistic, survey: Survey, **options: Any) -> None:
    """An empty tally is answered by "no reports", and each part has as many values as rows.

    Parameters
    ----------
    statistic
        An instance.
    survey
        A survey with at least one dimension that the statistic serves.
    options
        What the statistic takes.

    Raises
    ------
    AssertionError
        With the sentence that does not hold.
    """
    served = [
        j
        for j, dimension in enumerate(survey.schema)
        if statistic.serves(dimension, survey.questions[survey.question_of(j)].channel)
    ]
    assert served, "the survey has no dimension that the statistic serves"
    for part in statistic.parts(Tally(survey), served, **options):
        assert part.dimension in served, "a part is of a dimension that was not asked for"
        sizes = {len(part.categories), np.size(part.value), np.size(part.error)}
        assert len(sizes) == 1, "rows, values and errors are of different numbers"
        assert part.n_answers == 0, "an empty tally has answers"
        assert bool(np.isnan(part.value).all()), "an empty tally gives a value"
