"""Asking: one statistic of some dimensions, or all that are asked by default, as an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.statistics.answer import Answer
from hdr4me.statistics.intervals import Few, quantile
from hdr4me.statistics.statistic import STATISTICS, Counted, Intervals, Part, Statistic, channel_of

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


def estimate(counted: Counted) -> Answer:
    """Every statistic that is asked by default, of every dimension that it supports, in the schema's order.

    These are means of numbers and frequencies of categories, and what other packages add.

    Examples
    --------
    >>> from hdr4me.survey import Categorical, Numeric, Schema, Survey
    >>> from hdr4me.tally import Tally
    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> estimate(Tally(Survey(schema, mechanism="duchi"))).statistics
    ('mean', 'frequency', 'frequency')
    """
    schema = counted.survey.schema
    by_dimension: dict[int, list[tuple[str, Part]]] = {j: [] for j in range(len(schema))}
    # Modules of other built-in statistics are not loaded.
    own = {name for dimension in schema for name in dimension.statistics}
    for name in STATISTICS.names:
        if name in STATISTICS.built_in - own:
            continue
        statistic = STATISTICS[name]
        if statistic.by_default:
            served = [j for j in by_dimension if _serves(statistic, counted, j)]
            for part in statistic.parts(counted, served):
                by_dimension[part.dimension].append((statistic.name, part))
    return _answer(counted, [pair for pairs in by_dimension.values() for pair in pairs])


def ask(
    counted: Counted, statistic: str, dimensions: str | Sequence[str] | None = None, **options: Any
) -> Answer:
    """One statistic of one, some or all dimensions.

    Parameters
    ----------
    counted, statistic
        A tally, and the statistic's name: `hdr4me.statistics.STATISTICS.names` lists them.
    dimensions
        A name, several names, or None for every dimension that the statistic supports.
    options
        Those of the statistic itself. Statistics of a distribution accept `progress`, a function that is called with
        how many dimensions are done and how many there are, while they are fitted and while intervals are made.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> from hdr4me.tally import Tally
    >>> tally = Tally(Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi"))
    >>> ask(tally, "mean", "age").status
    ('no reports',)
    """
    asked, survey = STATISTICS[statistic], counted.survey
    if dimensions is None:
        chosen = [j for j in range(len(survey.schema)) if _serves(asked, counted, j)]
    else:
        names = [dimensions] if isinstance(dimensions, str) else list(dimensions)
        chosen = [survey.schema.index(name) for name in names]
        for j in chosen:
            if not _serves(asked, counted, j):
                raise InvalidInput(asked.refusal(survey.schema.dimensions[j], channel_of(survey, j)[0]))
    parts = asked.parts(counted, chosen, **options)
    return _answer(counted, [(asked.name, part) for part in parts], options.get("progress"))


def _serves(statistic: Statistic, counted: Counted, j: int) -> bool:
    return statistic.serves(counted.survey.schema.dimensions[j], channel_of(counted.survey, j)[0])


def _answer(counted: Counted, pairs: list[tuple[str, Part]], progress: Progress | None = None) -> Answer:
    survey = counted.survey
    parts = [part for _, part in pairs]
    sizes = [len(part.categories) for part in parts]

    def each(name: str, dtype: Any) -> NDArray[Any]:
        """A part's numbers, or its one number, for each of its rows."""
        filled = [np.broadcast_to(getattr(part, name), len(part.categories)) for part in parts]
        return np.concatenate([np.zeros(0, dtype), *filled]).astype(dtype)

    scaled_value, scaled_error = each("value", np.float64), each("error", np.float64)
    scaled = each("scaled", np.bool_)
    bounds = np.array([survey.schema.dimensions[part.dimension].bounds for part in parts]).reshape(-1, 2)
    low, high = np.repeat(bounds, sizes, axis=0).T
    in_units = low + (scaled_value + 1) / 2 * (high - low)
    rows = [(name, part.dimension, category) for name, part in pairs for category in part.categories]
    scale, middle = np.where(scaled, (high - low) / 2, 1.0), np.where(scaled, (high + low) / 2, 0.0)
    return Answer(
        survey=survey,
        n_reports=counted.n_reports,
        statistics=tuple(name for name, _, _ in rows),
        dimensions=tuple(survey.schema.names[j] for _, j, _ in rows),
        categories=tuple(category for _, _, category in rows),
        value=np.where(scaled, in_units, scaled_value),
        standard_error=np.where(scaled, scaled_error / 2 * (high - low), scaled_error),
        n_answers=each("n_answers", np.int64),
        scaled_value=scaled_value,
        scaled_error=scaled_error,
        unsure=each("unsure", np.bool_),
        intervals=_intervals(parts, scale, middle, progress),
        few=Few.of([(len(part.categories), part.few) for part in parts], scale, middle),
        notes=tuple(note for part in parts for note in part.notes or ("",) * len(part.categories)),
    )


def _intervals(
    parts: list[Part], scale: Floats, middle: Floats, progress: Progress | None
) -> Intervals | None:
    """Intervals of all parts in units, where a part has its own; the others' come from their standard errors."""
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
