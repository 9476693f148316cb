"""An answer re-calibrated: its means together, the frequencies of each dimension on their simplex."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.recalibration.core import OPTIONS, recalibrate
from hdr4me.recalibration.expected import unmoved
from hdr4me.recalibration.inputs import check_method
from hdr4me.recalibration.simplex import FREQUENCY_OPTIONS, recalibrate_frequencies

if TYPE_CHECKING:
    from hdr4me.statistics.answer import Answer

__all__ = ["recalibrated"]

Floats = NDArray[np.float64]


def recalibrated(answer: Answer, method: str = "auto", **options: Any) -> Answer:
    """Everything an answer holds, re-calibrated; `standard_error` is the method's own, or NaN where it has none.

    Means share one fit on [−1, 1]. Frequencies are encoded entries: the same method on [0, 1], then the simplex.
    `norm_sub` and `base_cut` are for frequencies and leave the means as they are; `none` leaves all. Rows without a
    standard error, and rows of other statistics, stay as they are.
    """
    check_method(method, options, OPTIONS | FREQUENCY_OPTIONS)
    value, error = answer.value.copy(), answer.standard_error.copy()
    scaled, scaled_error = answer.scaled_value.copy(), answer.scaled_error.copy()
    advice: list[str] = []
    finders: list[tuple[NDArray[np.int64], Any]] = []
    known = np.isfinite(answer.scaled_error)
    means = np.flatnonzero(known & np.array([name == "mean" for name in answer.statistics], bool))
    if means.size and method in OPTIONS and method != "none":
        found = recalibrate(scaled[means], scaled_error[means], method, **options)
        moved = ~unmoved(found.used, found.estimated_mean, found.enhanced_mean)
        rows = means[moved]
        scaled[rows], scaled_error[rows] = found.enhanced_mean[moved], found.posterior_sd[moved]
        low, high = _bounds(answer, rows)
        value[rows] = low + (scaled[rows] + 1) / 2 * (high - low)
        error[rows] = scaled_error[rows] / 2 * (high - low)
        advice.append(found.advice)
        finders.append((rows, _of_means(found, moved, low, high)))
    if method != "none":
        for name in dict.fromkeys(answer.dimensions):
            rows = np.flatnonzero(
                [
                    s == "frequency" and d == name
                    for s, d in zip(answer.statistics, answer.dimensions, strict=True)
                ]
            )
            if not rows.size or not known[rows].all():
                continue
            distribution = recalibrate_frequencies(scaled[rows], scaled_error[rows], method, **options)
            value[rows] = scaled[rows] = distribution.frequencies
            advice.append(f"{name}: {distribution.advice}")
            finders.append((rows, _inside(answer, rows, distribution.frequencies)))

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        low, high = answer.interval(level)
        for rows, find in finders:
            low[rows], high[rows] = find(level, kind)
        return low, high

    return replace(
        answer,
        value=value,
        standard_error=error,
        scaled_value=scaled,
        scaled_error=scaled_error,
        method=method,
        advice=tuple(advice),
        intervals=intervals,
    )


def _bounds(answer: Answer, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
    names = [answer.dimensions[i] for i in rows.tolist()]
    pairs = np.array([answer.survey.schema[name].bounds for name in names]).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _of_means(found: Any, moved: NDArray[np.bool_], low: Floats, high: Floats) -> Any:
    def find(level: float, kind: str) -> tuple[Floats, Floats]:
        ends = found.interval(level)
        first, second = (low + (end[moved] + 1) / 2 * (high - low) for end in ends)
        return first, second

    return find


def _inside(answer: Answer, rows: NDArray[np.int64], frequencies: Floats) -> Any:
    """The interval before, cut to [0, 1], with the frequency inside."""

    def find(level: float, kind: str) -> tuple[Floats, Floats]:
        low, high = (end[rows] for end in answer.interval(level))
        return np.minimum(np.clip(low, 0.0, 1.0), frequencies), np.maximum(
            np.clip(high, 0.0, 1.0), frequencies
        )

    return find
