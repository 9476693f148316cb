"""Re-calibration of an answer: means together, frequencies of each dimension on the simplex."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from hdr4me.errors import InvalidInput
from hdr4me.recalibration.auto import containing
from hdr4me.recalibration.core import OPTIONS, check_kind, recalibrate
from hdr4me.recalibration.frequencies import FREQUENCY_OPTIONS, recalibrate_frequencies, same
from hdr4me.recalibration.inputs import check_method
from hdr4me.statistics.intervals import Floats, Rows, quantile
from hdr4me.survey import Schema

if TYPE_CHECKING:
    from hdr4me.recalibration import Recalibration
    from hdr4me.statistics.answer import Answer


SHARES = "Shares of selections are clipped to [0, 1], and numbers chosen to the allowed range."
VECTORS = "Coordinates of vectors are re-calibrated together with the means."


@dataclass(frozen=True)
class _Part:
    """Rows that were re-calibrated together: new values and errors on the scale of the method, advice, intervals."""

    rows: Rows
    scaled: Floats
    error: Floats
    advice: str
    found: Recalibration | None = None  # computes the other kinds of intervals, on the scale of the method


def recalibrated(answer: Answer, method: str = "auto", **options: Any) -> Answer:
    """The answer with all of its rows re-calibrated.

    Means and coordinates of vectors share one fit on [−1, 1]. Frequencies use the same method on [0, 1] and are then
    projected onto the simplex. Shares of selections and the number chosen are clipped to their range. Rows without a
    standard error and rows of other statistics are unchanged. A changed row has no standard error (NaN), because its
    bias is not known.
    """
    check_method(method, options, FREQUENCY_OPTIONS | OPTIONS)
    if method == "none":
        found: list[_Part | None] = [None]
    else:
        found = [_means(answer, method, options), *_frequencies(answer, method, options), _shares(answer)]
    means, parts = found[0], [part for part in found if part]
    low, high = _bounds(answer)
    shares = np.array([name != "mean" for name in answer.statistics], bool)

    def in_units(values: Floats, rows: Rows) -> Floats:
        own = low[rows] + (values + 1) / 2 * (high[rows] - low[rows])
        return np.asarray(np.where(shares[rows], values, own))

    value, error = answer.value.copy(), answer.standard_error.copy()
    scaled, scaled_error = answer.scaled_value.copy(), answer.scaled_error.copy()
    for part in parts:
        rows = part.rows
        scaled[rows], scaled_error[rows] = part.scaled, part.error
        moved = scaled[rows] != answer.scaled_value[rows]
        value[rows] = np.where(moved, in_units(scaled[rows], rows), value[rows])
        error[rows] = np.where(np.isnan(part.error), np.nan, error[rows])

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        check_kind(kind)
        lower, upper = answer.interval(level)
        for part in parts:
            rows = part.rows
            ends = (np.clip(end[rows], low[rows], high[rows]) for end in (lower, upper))
            conservative = containing(value[rows], *ends)
            if kind != "conservative" and part.found is not None:
                own = part.found.interval(level, kind)
                made = in_units(own[0], rows), in_units(own[1], rows)
                if kind == "average":
                    made = _for_small_samples(answer, rows, level, made, conservative)
                conservative = (
                    np.clip(made[0], low[rows], high[rows]),
                    np.clip(made[1], low[rows], high[rows]),
                )
            lower[rows], upper[rows] = conservative
        return lower, upper

    return replace(
        answer,
        value=value,
        standard_error=error,
        scaled_value=scaled,
        scaled_error=scaled_error,
        method=method,
        advice=(*(part.advice for part in parts), *_left(answer, method, means)),
        intervals=intervals,
        small_sample=None if answer.intervals is not None else answer.small_sample,
        recalibration=None if means is None else means.found,
    )


def _in_sentence(advice: str) -> str:
    """The advice with a small first letter, unless it begins with a name."""
    return advice if advice.startswith(("HDR4ME", "James", "SURE")) else advice[0].lower() + advice[1:]


def _means(answer: Answer, method: str, options: dict[str, Any]) -> _Part | None:
    rows = _known(answer, "mean")
    if not rows.size or method not in OPTIONS:
        return None
    if "order" in OPTIONS[method]:
        names = [answer.dimensions[i] for i in rows.tolist()]
        options = structure_of(answer.survey.schema, names, **options)
    found = recalibrate(
        answer.scaled_value[rows],
        answer.scaled_error[rows],
        method,
        steady_errors=_steady_errors(answer, rows),
        **options,
    )
    error = np.full(rows.size, np.nan) if found.standard_error is None else found.standard_error
    return _Part(rows, found.enhanced_mean, error, f"Means: {_in_sentence(found.advice)}", found)


def _known(answer: Answer, *statistics: str) -> Rows:
    """The rows of these statistics that have a standard error."""
    selected = np.array([name in statistics for name in answer.statistics], bool)
    return np.flatnonzero(np.isfinite(answer.scaled_error) & ~answer.not_significant & selected)


def _for_small_samples(
    answer: Answer,
    rows: Rows,
    level: float,
    average: tuple[Floats, Floats],
    conservative: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Average-coverage intervals, widened for small samples up to the conservative intervals.

    They are widened to the larger of the row's and the pooled standard error, and by the ratio of Student's quantile
    to the normal one.
    """
    small_sample = np.isin(rows, answer._small_sample_rows(level, False))
    if not small_sample.any():
        return average
    own, number = answer.scaled_error[rows], answer.n_answers[rows]
    known = np.maximum(own, np.finfo(np.float64).tiny)
    longer = np.maximum(own, _steady_errors(answer, rows)) / known
    longer *= quantile(level, number, 1) / float(ndtri(0.5 * (1 + level)))
    middle, half = 0.5 * (average[0] + average[1]), 0.5 * (average[1] - average[0]) * longer
    lower, upper = middle - half, middle + half
    safe = small_sample & ((own == 0) | (upper - lower > conservative[1] - conservative[0]))
    lower, upper = (
        np.where(small_sample, new, old) for new, old in zip((lower, upper), average, strict=True)
    )
    return np.where(safe, conservative[0], lower), np.where(safe, conservative[1], upper)


def _steady_errors(answer: Answer, rows: Rows) -> Floats:
    """Standard errors from the variance of one answer, pooled over all numbers with the same channel.

    Unlike the standard error of a single dimension they are not correlated with its mean. An optional number and each
    coordinate of an optional vector keep their own standard errors.
    """
    survey = answer.survey
    names = [answer.dimensions[i] for i in rows.tolist()]
    groups: dict[Any, int] = {}
    group = np.empty(rows.size, np.int64)
    for i, name in enumerate(names):
        dimension, channel = survey.schema[name], survey.questions[survey.question_of(name)].channel
        own = (name, i) if getattr(dimension, "optional", False) else name
        group[i] = groups.setdefault(id(channel) if dimension.is_number else own, len(groups))
    error, number = answer.scaled_error[rows], answer.n_answers[rows].astype(np.float64)
    pooled = np.bincount(group, number**2 * error**2) / np.bincount(group, number)
    return np.asarray(np.where(error > 0, np.sqrt(pooled[group] / number), error))


def _frequencies(answer: Answer, method: str, options: dict[str, Any]) -> list[_Part]:
    rest = {name: value for name, value in options.items() if name not in ("order", "groups")}
    by_name: dict[str, list[int]] = {}
    for i, (statistic, name) in enumerate(zip(answer.statistics, answer.dimensions, strict=True)):
        if statistic == "frequency":
            by_name.setdefault(name, []).append(i)
    parts = []
    for name, places in by_name.items():
        rows = np.array(places)
        before, error = answer.scaled_value[rows], answer.scaled_error[rows]
        if np.isfinite(error).all():
            found = recalibrate_frequencies(before, error, method, **rest)
            after = np.where(same(found.frequencies, before), error, np.nan)
            parts.append(_Part(rows, found.frequencies, after, f"{name}: {found.advice}"))
    return parts


def _shares(answer: Answer) -> _Part | None:
    """Shares of selections, which need not sum to 1, and the number chosen, clipped to their range."""
    rows = _known(answer, "chosen", "number chosen")
    if not rows.size:
        return None
    low, high = _bounds(answer)
    before = answer.scaled_value[rows]
    after = np.clip(before, low[rows], high[rows])
    return _Part(rows, after, np.where(after == before, answer.scaled_error[rows], np.nan), SHARES)


def _left(answer: Answer, method: str, means: _Part | None) -> list[str]:
    """The advice on means that are unchanged, and on vectors."""
    of_means = answer.of("mean")
    if method not in OPTIONS:
        return [f"means are unchanged: {method} is a method for frequencies"] if len(of_means) else []
    return [VECTORS] if means is not None and any(c is not None for c in of_means.categories) else []


def _bounds(answer: Answer) -> tuple[Floats, Floats]:
    """The range of each row: that of the dimension for numbers, [0, 1] for shares, 0 to at_most for numbers chosen."""
    schema = answer.survey.schema
    pairs = np.tile([0.0, 1.0], (len(answer), 1))
    for i, (name, statistic) in enumerate(zip(answer.dimensions, answer.statistics, strict=True)):
        if statistic == "mean":
            pairs[i] = schema[name].bounds
        elif statistic == "number chosen":
            pairs[i, 1] = getattr(schema[name], "at_most", 1)
    return pairs[:, 0], pairs[:, 1]


def structure_of(
    schema: Schema,
    names: Sequence[str],
    order: Sequence[Any] | None = None,
    groups: Iterable[Any] | Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The options `order` and `groups` of `hdr4me.recalibrate` for the numbers `names`; empty if none is declared."""
    numbers = [x.name for x in schema if not x.is_category]
    if order is None and groups is None:
        order, groups = _labelled(schema, "curve"), _labelled(schema, "group")
    along = _listed(order)
    curves = [along] if along and isinstance(along[0], str) else along
    together = _listed(groups.values() if isinstance(groups, Mapping) else groups)
    position_of: dict[str, int] = {}
    label: dict[str, str] = {}
    for kind, given, lists, words in (
        ("order", order, curves, "a list of names in order along a curve, or several such lists"),
        ("groups", groups, together, "lists of names that belong together"),
    ):
        if lists is None or any(_listed(members) is None for members in lists):
            raise InvalidInput.of(kind, given, words)
        for number, members in enumerate(lists):
            for position, name in enumerate(members):
                if name not in numbers:
                    raise InvalidInput.of(kind, name, f"names of numeric dimensions: {', '.join(numbers)}")
                if name in label:
                    raise InvalidInput.of(kind, name, "each name at most once: in one curve or one group")
                label[name] = f"{kind} {number}"
                if kind == "order":
                    position_of[name] = position
    if not label:
        return {}
    return {"order": [position_of.get(name) for name in names], "groups": [label.get(name) for name in names]}


def _listed(given: Any) -> list[Any] | None:
    """The members of a list, an empty list for None; None if the argument is not a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None


def _labelled(schema: Schema, attribute: str) -> list[list[str]]:
    groups: dict[Any, list[str]] = {}
    for x in schema:
        groups.setdefault(getattr(x, attribute, None), []).append(x.name)
    return [names for label, names in groups.items() if label is not None]
