"""Which of many categories are shown: the significantly largest ones, with intervals of all categories at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.statistics.intervals import FEW_NOTE

if TYPE_CHECKING:
    from hdr4me.statistics.answer import Answer


Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Row = dict[str, Any]
# A dimension with more than SHOWN categories shows those that are significantly the largest, and at most so many; a
# vector with more than _COORDINATES coordinates shows the first SHOWN of them.
SHOWN, _COORDINATES = 20, 40


def joint_interval(answer: Answer, level: float) -> tuple[Floats, Floats]:
    """Ends that hold for all rows at once.

    After re-calibration they are those of the answer before it, cut to the range and extended to hold the estimate.
    """
    if answer.method == "raw" or answer.intervals is None:
        return answer.interval(level, simultaneous=True)
    return answer.interval(1.0 - (1.0 - level) / max(len(answer), 1), kind="honest")  # Bonferroni


def surely_largest(value: Floats, low: Floats, high: Floats) -> tuple[Rows, Rows]:
    """The rows from the largest value to the smallest, and each k for which the first k lie above all the others.

    >>> value = np.array([0.1, 0.5, 0.12, 0.2])
    >>> order, k = surely_largest(value, value - 0.03, value + 0.03)
    >>> order.tolist(), k.tolist()
    ([1, 3, 2, 0], [1, 2])
    """
    order = np.argsort(-value, kind="stable")
    above = np.minimum.accumulate(low[order])[:-1]
    below = np.maximum.accumulate(high[order][::-1])[::-1][1:]
    return order, np.flatnonzero(above > below) + 1


def largest_rows(
    answer: Answer,
    rows: Sequence[Row],
    level: float = 0.95,
    *,
    simultaneous: bool = False,
    where: str = "--all, --csv or --json",
) -> tuple[list[Row], list[str]]:
    """The rows of an answer that are shown, and a note for each dimension that was cut.

    Of a dimension with more than `SHOWN` categories these are the rows that are surely larger than all the others, at
    least 1 and at most `SHOWN`, with intervals that hold for all its categories at once. Anything else would be a page
    of noise: the largest of thousands of estimates are mostly those with the largest errors, and their own intervals
    do not hold after such a choice.

    Examples
    --------
    >>> import hdr4me as hd
    >>> survey = hd.Survey(hd.Schema([hd.Categorical("town", range(50))]), epsilon=6.0)
    >>> answer = hd.Tally(survey).add(hd.Client(survey).report({"town": 7}) for _ in range(500)).estimate()
    >>> shown, notes = largest_rows(answer, answer.table())
    >>> [row["category"] for row in shown]
    ['7']
    >>> notes[0].partition(";")[0]
    'town: 1 of 50 is surely larger than all the others'
    """
    shown: list[Row] = []
    notes: list[str] = []
    at = 0
    for (name, statistic), group in groupby(rows, key=lambda row: (row["dimension"], row["statistic"])):
        part = list(group)
        places, at = np.arange(at, at + len(part)), at + len(part)
        if statistic == "mean" and len(part) > _COORDINATES:
            notes.append(f"{name}: {len(part) - SHOWN:,} more coordinates are not shown ({where})")
            part = part[:SHOWN]
        elif statistic in ("frequency", "chosen") and len(part) > SHOWN:
            part, sure = _surest(answer._taken(places), part, level, simultaneous)
            notes.append(_note(name, len(places), sure, level, where, answer.method))
        shown += part
    return shown, notes


def _surest(answer: Answer, rows: list[Row], level: float, simultaneous: bool) -> tuple[list[Row], int]:
    """The rows of one dimension that are shown, with joint intervals, and how many are significantly the largest."""
    if simultaneous:  # the rows have joint intervals already
        low, high = (np.array([row[end] for row in rows], np.float64) for end in ("lower", "upper"))
    else:
        low, high = joint_interval(answer, level)
    order, found = surely_largest(answer.value, low, high)
    shown = found[found <= SHOWN]
    more = found[(found > SHOWN) & (found <= len(rows) // 2)]
    sure = int(shown[-1]) if shown.size else int(more[0]) if more.size else 0
    exact = set(answer._few_rows(1.0 - (1.0 - level) / len(rows), False).tolist())
    part = []
    for i in order[: min(max(sure, 1), SHOWN)].tolist():
        row = dict(rows[i])
        if row["lower"] is not None and not simultaneous:
            row |= {"lower": float(low[i]), "upper": float(high[i])}
            if i in exact and FEW_NOTE not in row.get("note", ""):
                row["note"] = "; ".join(note for note in (row.get("note", ""), FEW_NOTE) if note)
        part.append(row)
    return part, sure


def _note(name: str, size: int, sure: int, level: float, where: str, method: str) -> str:
    """The note on one dimension that was cut."""
    number, are = (f"{sure:,}", "are" if sure > 1 else "is") if sure else ("none", "is")
    rest = "the largest estimate is shown" if not sure else f"{SHOWN} of them are shown"
    if 0 < sure <= SHOWN:
        rest = f"the other {size - sure:,} {'cannot be put in order' if sure < SHOWN else 'are not shown'}"
    which = "" if method == "raw" else ", before re-calibration and cut to [0, 1]"
    return (
        f"{name}: {number} of {size:,} {are} surely larger than all the others; {rest} ({where}). "
        f"This and the intervals shown: {100 * level:g} %, all {size:,} at once{which}"
    )
