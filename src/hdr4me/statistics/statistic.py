"""The `Statistic` base class, the registry of statistics, and `estimate` and `ask`, which compute them from a tally."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hdr4me.accounting.rounds import staleness
from hdr4me.channels import Channel
from hdr4me.channels.response import Marginal
from hdr4me.errors import InvalidInput
from hdr4me.registry import Registry
from hdr4me.statistics.answer import Answer, joined_notes
from hdr4me.statistics.intervals import Floats, Intervals, SmallSampleLaw, joined, quantile
from hdr4me.survey import Dimension, Survey
from hdr4me.survey.layout import Layout

Progress = Callable[[int, int], None]


class TallyLike(Protocol):
    """The attributes of a tally that statistics use."""

    @property
    def survey(self) -> Survey: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def counts(self) -> NDArray[np.int64]: ...
    @property
    def n_reports(self) -> int: ...


def counts_of(tally: TallyLike, j: int) -> NDArray[np.int64]:
    """The counters of the question that asks for dimension j."""
    return tally.layout.of_question(tally.counts, tally.survey.question_of(j))


def channel_of(survey: Survey, j: int) -> tuple[Channel, int]:
    """The channel of dimension j, and the position of that dimension in its question."""
    question = survey.questions[survey.question_of(j)]
    return question.channel, question.dimensions.index(j)


def marginal_of(tally: TallyLike, j: int) -> Marginal:
    """The distribution of a report about dimension j, given the value."""
    channel, position = channel_of(tally.survey, j)
    return channel.response.marginal(position)


@dataclass(frozen=True)
class Part:
    """The rows of a statistic for one dimension.

    `value` and `error` (a standard error, NaN if unknown) are on [−1, 1] if `scaled`, otherwise in final units.
    `intervals`, on the same scale, are given where they are not the standard error times a quantile. `n_answers` and
    `not_significant` are one for all rows or one for each. `small_sample` holds a small-sample law and the index of
    each row in it. `also` is another dimension whose values the rows depend on.
    """

    dimension: int
    categories: tuple[str | None, ...]
    value: Floats
    error: Floats
    n_answers: int | NDArray[np.int64]
    scaled: bool = False
    not_significant: bool | NDArray[np.bool_] = False
    intervals: Intervals | None = None
    notes: tuple[str, ...] = ()
    small_sample: tuple[SmallSampleLaw, NDArray[np.int64]] | None = None
    also: int | None = None


class Statistic(ABC):
    """A statistic that is computed from the counts of a survey.

    Another package derives from this class and registers an instance in `STATISTICS`. `hdr4me.ask` and the command
    line then find the statistic by its name. If `by_default` is true, `tally.estimate()` computes it too.

    Examples
    --------
    >>> from hdr4me.statistics import STATISTICS
    >>> isinstance(STATISTICS["mean"], Statistic), STATISTICS["mean"].by_default
    (True, True)
    """

    name: str
    by_default: ClassVar[bool] = False

    @abstractmethod
    def supports(self, dimension: Dimension, channel: Channel) -> bool:
        """Whether the statistic can be computed for this dimension from the counts of this channel."""

    @abstractmethod
    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        """The rows of these dimensions, each of which the statistic supports.

        Parameters
        ----------
        tally, dimensions
            A tally, and the positions of the dimensions in the schema.
        options
            The options of this statistic, by name.
        """

    def named(self, tally: TallyLike, names: Sequence[str], **options: Any) -> list[Part]:
        """The rows of the dimensions with these names; an error if the statistic does not support one of them.

        Parameters
        ----------
        tally, names
            A tally, and the names that a user gives.
        options
            The options of this statistic, by name.
        """
        survey = tally.survey
        chosen = [survey.schema.index(name) for name in names]
        for j in chosen:
            if not _supports(self, tally, j):
                raise InvalidInput(self.refusal(survey.schema.dimensions[j], channel_of(survey, j)[0]))
        return self.parts(tally, chosen, **options)

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        """Why the statistic does not support a dimension, and what to do instead."""
        return (
            f"the {self.name} of {dimension.name!r} cannot be estimated from reports by {channel.mechanism!r}"
        )

    def check_options(self, options: dict[str, Any], *allowed: str) -> None:
        """Refuse options that the statistic does not accept."""
        more = set(options) - set(allowed)
        if more:
            raise InvalidInput(f"the {self.name} has no option {min(more)!r}")


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


def estimate(tally: TallyLike) -> Answer:
    """Every default statistic of every dimension that supports it, in the order of the schema.

    The default statistics are means of numbers, frequencies of categories, and those that other packages add.

    Examples
    --------
    >>> from hdr4me.survey import Categorical, Numeric, Schema, Survey
    >>> from hdr4me.tally import Tally
    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> estimate(Tally(Survey(schema, mechanism="duchi"))).statistics
    ('mean', 'frequency', 'frequency')
    """
    schema = tally.survey.schema
    by_dimension: dict[int, list[tuple[str, Part]]] = {j: [] for j in range(len(schema))}
    # Other built-in statistics are not needed here, so their modules are not imported.
    own = {name for dimension in schema for name in dimension.statistics}
    for name in STATISTICS.names:
        if name in STATISTICS.built_in - own:
            continue
        statistic = STATISTICS[name]
        if statistic.by_default:
            supported = [j for j in by_dimension if _supports(statistic, tally, j)]
            for part in statistic.parts(tally, supported):
                by_dimension[part.dimension].append((statistic.name, part))
    return answer_of(tally, [pair for pairs in by_dimension.values() for pair in pairs])


def ask(
    tally: TallyLike, statistic: str, dimensions: str | Sequence[str] | None = None, **options: Any
) -> Answer:
    """One statistic of one, some or all dimensions.

    Parameters
    ----------
    tally, statistic
        A tally, and the statistic's name: `hdr4me.statistics.STATISTICS.names` lists them.
    dimensions
        A name, several names, or None for every dimension that the statistic supports.
    options
        Options of the statistic. Statistics of a distribution accept `progress`, a function of two integers: the
        number of dimensions that are done and the total number. It is called while distributions are fitted and
        while intervals are computed.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> from hdr4me.tally import Tally
    >>> tally = Tally(Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi"))
    >>> ask(tally, "mean", "age").status
    ('no reports',)
    """
    if not hasattr(tally, "layout"):
        raise InvalidInput(f"a statistic is estimated from a Tally, not from a {type(tally).__name__}")
    requested, survey = STATISTICS[statistic], tally.survey
    if dimensions is None:
        dimensions = [x.name for j, x in enumerate(survey.schema) if _supports(requested, tally, j)]
    names = [dimensions] if isinstance(dimensions, str) else list(dimensions)
    parts = requested.named(tally, names, **options)
    return answer_of(tally, [(requested.name, part) for part in parts], options.get("progress"))


def _supports(statistic: Statistic, tally: TallyLike, j: int) -> bool:
    return statistic.supports(tally.survey.schema.dimensions[j], channel_of(tally.survey, j)[0])


def answer_of(tally: TallyLike, pairs: list[tuple[str, Part]], progress: Progress | None = None) -> Answer:
    """The answer with the rows of these parts, each with the name of its statistic."""
    survey = tally.survey
    parts = [part for _, part in pairs]

    def each(name: str, dtype: Any) -> NDArray[Any]:
        """The values of an attribute for each row; a single value is repeated."""
        filled = [np.broadcast_to(getattr(part, name), len(part.categories)) for part in parts]
        return np.concatenate([np.zeros(0, dtype), *filled]).astype(dtype)

    scaled_value, scaled_error = each("value", np.float64), each("error", np.float64)
    scaled = each("scaled", np.bool_)
    bounds = np.array([survey.schema.dimensions[part.dimension].bounds for part in parts]).reshape(-1, 2)
    low, high = np.repeat(bounds, [len(part.categories) for part in parts], axis=0).T
    in_units = low + (scaled_value + 1) / 2 * (high - low)
    rows = [(name, part.dimension, category) for name, part in pairs for category in part.categories]
    scale, middle = np.where(scaled, (high - low) / 2, 1.0), np.where(scaled, (high + low) / 2, 0.0)
    return Answer(
        survey=survey,
        n_reports=tally.n_reports,
        statistics=tuple(name for name, _, _ in rows),
        dimensions=tuple(survey.schema.names[j] for _, j, _ in rows),
        categories=tuple(category for _, _, category in rows),
        value=np.where(scaled, in_units, scaled_value),
        standard_error=np.where(scaled, scaled_error / 2 * (high - low), scaled_error),
        n_answers=each("n_answers", np.int64),
        scaled_value=scaled_value,
        scaled_error=scaled_error,
        not_significant=each("not_significant", np.bool_),
        intervals=_intervals(parts, scale, middle, progress),
        small_sample=joined([(len(part.categories), part.small_sample) for part in parts], scale, middle),
        notes=tuple(note for part in parts for note in _notes(tally, part)),
        stale=staleness(survey, getattr(tally, "round_number", None)),
    )


def _notes(tally: TallyLike, part: Part) -> list[str]:
    """The notes on the rows of a part, with the remarks on the data quality of the dimensions that they depend on."""
    known, remarks = getattr(tally, "remarks", {}), []
    for j in (part.dimension, part.also) if known else ():
        if j is not None:
            dimension = tally.survey.schema.dimensions[j]
            named = dimension.columns if dimension.name not in known else (dimension.name,)
            several = len(named) > 1 or part.also is not None
            remarks += [
                f"{name}: {known[name]}" if several else known[name] for name in named if name in known
            ]
    return [joined_notes(note, *remarks) for note in part.notes or ("",) * len(part.categories)]


def _intervals(
    parts: list[Part], scale: Floats, middle: Floats, progress: Progress | None
) -> Intervals | None:
    """Intervals of all parts in units; a part without intervals of its own gets them from its standard errors."""
    if all(part.intervals is None for part in parts):
        return None

    def found(level: float, kind: str) -> tuple[Floats, Floats]:
        ends = []
        for done, part in enumerate(parts):
            if progress is not None:
                progress(done, len(parts))
            if part.intervals is not None:
                ends.append(np.stack(part.intervals(level, kind)))
            else:
                reach = quantile(level, part.n_answers) * part.error
                ends.append(np.stack([part.value - reach, part.value + reach]))
        low, high = np.concatenate(ends, axis=1)
        return middle + scale * low, middle + scale * high

    return found
