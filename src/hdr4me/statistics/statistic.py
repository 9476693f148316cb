"""What a statistic is: a question put to counts, with its estimate and its standard error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.channels.response import Marginal
from hdr4me.errors import InvalidInput
from hdr4me.registry import Registry
from hdr4me.statistics.intervals import FewLaw
from hdr4me.survey import Dimension, Survey
from hdr4me.survey.layout import Layout

Floats = NDArray[np.float64]
Intervals = Callable[[float, str], tuple[Floats, Floats]]
"""(level, kind) → the lower and the upper ends of every row."""


class Counted(Protocol):
    """What statistics need of a tally."""

    @property
    def survey(self) -> Survey: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def counts(self) -> NDArray[np.int64]: ...
    @property
    def n_reports(self) -> int: ...


def counts_of(counted: Counted, j: int) -> NDArray[np.int64]:
    """The counters of the question that asks for dimension j."""
    return counted.layout.of_question(counted.counts, counted.survey.question_of(j))


def channel_of(survey: Survey, j: int) -> tuple[Channel, int]:
    """The channel of dimension j, and which of its question's dimensions it is."""
    question = survey.questions[survey.question_of(j)]
    return question.channel, question.dimensions.index(j)


def marginal_of(counted: Counted, j: int) -> Marginal:
    """The law of a report about dimension j."""
    channel, place = channel_of(counted.survey, j)
    return channel.response.marginal(place)


@dataclass(frozen=True)
class Part:
    """The rows that a statistic gives for one dimension.

    `value` and `error` (a standard error, NaN if unknown) are on [−1, 1] if `scaled`, to be converted to the
    dimension's own units; otherwise they are final. `intervals`, on the same scale, are given where they are not the
    standard error times a quantile; `notes` has a remark for each row. `n_answers` and `unsure` are one for all rows or
    one for each. `few` holds a small-sample law and the number of each row in it.
    """

    dimension: int
    categories: tuple[str | None, ...]
    value: Floats
    error: Floats
    n_answers: int | NDArray[np.int64]
    scaled: bool = False
    unsure: bool | NDArray[np.bool_] = False
    intervals: Intervals | None = None
    notes: tuple[str, ...] = ()
    few: tuple[FewLaw, NDArray[np.int64]] | None = None


class Statistic(ABC):
    """A question put to the counts of a survey.

    Another package derives from this class and registers an instance in `STATISTICS`; `hdr4me.ask`, the command line
    and answers then know it by name. `by_default` says whether `tally.estimate()` asks it too.

    Examples
    --------
    >>> from hdr4me.statistics import STATISTICS
    >>> isinstance(STATISTICS["mean"], Statistic), STATISTICS["mean"].by_default
    (True, True)
    """

    name: str
    by_default: ClassVar[bool] = False

    @abstractmethod
    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        """Whether this channel's counts can answer it for this dimension."""

    @abstractmethod
    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        """The rows of these dimensions, each of which the statistic supports.

        Parameters
        ----------
        counted, dimensions
            A tally, and the dimensions' numbers in the schema.
        options
            Those of this statistic, by name.
        """

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        """Why it does not support a dimension, and what to do instead."""
        return f"the {self.name} of {dimension.name!r} cannot be told from reports by {channel.mechanism!r}"

    def no_more(self, options: dict[str, Any], *allowed: str) -> None:
        """Refuse options that the statistic does not accept."""
        more = set(options) - set(allowed)
        if more:
            raise InvalidInput(f"option {min(more)!r} is not one of the {self.name}")


STATISTICS: Registry[Statistic] = Registry(
    "statistic",
    "statistics",
    {
        "mean": "hdr4me.statistics.coordinates:MEAN",
        "share": "hdr4me.statistics.coordinates:SHARE",
        "frequency": "hdr4me.statistics.coordinates:FREQUENCY",
        "distribution": "hdr4me.statistics.distribution:DISTRIBUTION",
        "histogram": "hdr4me.statistics.distribution:HISTOGRAM",
        "cdf": "hdr4me.statistics.distribution:CDF",
        "quantile": "hdr4me.statistics.distribution:QUANTILE",
        "variance": "hdr4me.statistics.distribution:VARIANCE",
        "sd": "hdr4me.statistics.distribution:SD",
        "covariance": "hdr4me.statistics.pairs:COVARIANCE",
        "correlation": "hdr4me.statistics.pairs:CORRELATION",
        "mean_by": "hdr4me.statistics.pairs:MEAN_BY",
        "share_by": "hdr4me.statistics.pairs:SHARE_BY",
        "chosen": "hdr4me.statistics.coordinates:CHOSEN",
        "number chosen": "hdr4me.statistics.coordinates:NUMBER_CHOSEN",
    },
)
