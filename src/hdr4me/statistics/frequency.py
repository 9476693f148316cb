"""How often each category was meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hdr4me.channels import Channel
from hdr4me.statistics.calibrate import frequency_moments
from hdr4me.statistics.few import few_categories
from hdr4me.statistics.statistic import Counted, Part, Statistic
from hdr4me.survey import Dimension

__all__ = ["FREQUENCY"]


class Frequency(Statistic):
    """The frequency of each category."""

    name = "frequency"
    by_default = True

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return dimension.reads == "category" and hasattr(channel, "indicator_variances")

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        survey, made = counted.survey, []
        for j in dimensions:
            q = survey.question_of(j)
            channel = survey.questions[q].channel
            counts = counted.layout.of_question(counted.counts, q)
            answers = int(counts.sum()) // channel.per_report
            categories = survey.schema.dimensions[j].categories
            frequency = error = np.full(len(categories), np.nan)
            few = None
            if answers:
                frequency, variance = frequency_moments(counts, counted.n_reports, answers, channel)
                error = np.sqrt(variance) if answers > 1 else error
                law = few_categories(channel, counts, answers, error, counted.n_reports)
                few = law, np.arange(len(categories))
            made.append(Part(j, categories, frequency, error, answers, few=few))
        return made


FREQUENCY = Frequency()
