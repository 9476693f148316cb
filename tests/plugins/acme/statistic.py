"""A statistic: the largest frequency of a dimension's categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hdr4me.channels import Channel
from hdr4me.statistics import Part, Statistic, TallyLike
from hdr4me.statistics.coordinates import FREQUENCY
from hdr4me.survey import Dimension


class Largest(Statistic):
    """The frequency of the most frequent category."""

    name = "largest"

    def supports(self, dimension: Dimension, channel: Channel) -> bool:
        return FREQUENCY.supports(dimension, channel)

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        found = []
        for part in FREQUENCY.parts(tally, dimensions):
            if part.n_answers:
                k = int(np.argmax(part.value))
                found.append(
                    Part(
                        part.dimension,
                        (part.categories[k],),
                        part.value[[k]],
                        part.error[[k]],
                        part.n_answers,
                    )
                )
            else:
                found.append(Part(part.dimension, (None,), np.array([np.nan]), np.array([np.nan]), 0))
        return found


LARGEST = Largest()
