"""The data-quality report: the numbers of values that were read, missing, unknown or out of range, by column.

It is for the owner of the records. Its counts are exact functions of the true values, so it is not private. It is
stored next to the file of reports, or of the tally, under a name that begins with an underscore: readers of reports
ignore such files, and no command sends them.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import write_text
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Schema, Survey
from hdr4me.survey.canonical import parse
from hdr4me.survey.dimension import FAULTS, UNDECLARED
from hdr4me.survey.values import NO_TIMES

FORMAT, VERSION = "hdr4me-data-quality", 1

FIELDS = ("read", *FAULTS)
_REPORTED = 0.01  # a share of faulty values above this is reported
_REPLACED = 0.05  # a share of replaced values above this is refused


class RecordsWarning(UserWarning):
    """More than 1 % of the values of a column are missing, unknown or out of range."""


@dataclass(frozen=True, eq=False)
class DataQuality:
    """Counts [d, 5] of values read, missing, unknown, below and above the range; reports of parts can be added.

    For a `Selection`, `unknown` counts values without a known category, `low` values with known and unknown choices,
    and `high` values with too many choices.
    """

    schema: Schema
    counts: NDArray[np.int64]

    @classmethod
    def empty(cls, survey: Survey) -> DataQuality:
        """The data-quality report of no records."""
        return cls(survey.schema, np.zeros((len(survey.schema), len(FIELDS)), np.int64))

    def __add__(self, other: DataQuality) -> DataQuality:
        return DataQuality(self.schema, self.counts + other.counts)

    @property
    def n_records(self) -> int:
        """The number of records."""
        return int(self.counts[0, 0])

    def rows(self) -> list[dict[str, Any]]:
        """The counts of each column."""
        pairs = zip(self.schema.names, self.counts.tolist(), strict=True)
        return [{"column": name, **dict(zip(FIELDS, counts, strict=True))} for name, counts in pairs]

    def unusable(self) -> list[str]:
        """A sentence for each column without a usable value."""
        return [sentence for sentence, usable in self._refused() if not usable]

    def refused(self) -> list[str]:
        """A sentence for each column that is refused.

        Such a column has no usable value; or missing or unknown values, and its dimension declares neither a default
        nor `optional`; or more than 5 % of its values would be replaced.
        """
        return [sentence for sentence, _ in self._refused()]

    def _refused(self) -> list[tuple[str, bool]]:
        """The sentence of each column that is refused, and whether the column has a usable value."""
        found = []
        for dimension, row in zip(self.schema, self.rows(), strict=True):
            faults = {name: fault for name, fault in dimension.faults().items() if not fault.usable}
            n, name = row["read"], f"column {dimension.name!r}"
            replaced = {
                fault.what: row[kind] for kind, fault in faults.items() if kind in FAULTS[:2] and row[kind]
            }
            parts = ", ".join(f"{row[kind]:,} {fault.what}" for kind, fault in faults.items())
            if 0 < n <= sum(row[kind] for kind in faults):
                found.append((f"{name} has no usable value among {n:,} ({parts})", False))
            elif replaced and not dimension.replaces:
                what = " and ".join(f"{_share(k, n)} are {what}" for what, k in replaced.items())
                found.append((f"{name}: {what}, and {UNDECLARED}", True))
            elif sum(replaced.values()) > _REPLACED * n:
                effect = next(fault.effect for fault in faults.values() if fault.what in replaced)
                what = " and ".join(f"{_share(k, n)} are {what}" for what, k in replaced.items())
                found.append((f"{name}: {what} {effect}, which biases the answer", True))
        return found

    def notes(self, above: float = _REPORTED) -> list[str]:
        """A sentence for each kind of faulty values above this share of a column, with their treatment."""
        return [f"column {name!r}: {sentence}" for name, sentence in self._notes(above)]

    def remarks(self) -> dict[str, str]:
        """The notes on each dimension, for the rows of an answer."""
        by_dimension: dict[str, str] = {}
        for name, sentence in self._notes(_REPORTED):
            by_dimension[name] = f"{by_dimension[name]}; {sentence}" if name in by_dimension else sentence
        return by_dimension

    def _notes(self, above: float) -> list[tuple[str, str]]:
        return [
            (dimension.name, f"{_share(row[name], row['read'])} are {fault.what} {fault.effect}")
            for dimension, row in zip(self.schema, self.rows(), strict=True)
            for name, fault in dimension.faults().items()
            if fault.effect and row[name] > above * row["read"]
        ]


def _share(n: int, of: int) -> str:
    return f"{n:,} of {of:,} values ({100 * n / of:.3g} %)"


# Called with the data-quality report before the reports become visible; an exception discards them.
OnQuality = Callable[[DataQuality], None]


def check_quality(quality: DataQuality, *, allow_unusable: bool = False) -> None:
    """Warn of faulty values above 1 %; refuse the columns of `DataQuality.refused` unless `allow_unusable`."""
    refused = quality.refused()
    if refused and not allow_unusable:
        raise refusal(refused)
    for sentence in quality.notes():
        warnings.warn(sentence, RecordsWarning, stacklevel=3)


def refusal(
    unusable: Sequence[str],
    remedy: str = "To accept the columns as they are, use allow_unusable=True (--allow-unusable)",
) -> InvalidInput:
    """The error for columns that are refused: what is wrong, and what to do."""
    more = f"; {len(unusable) - 3:,} more columns" if len(unusable) > 3 else ""
    ending, shown = f", and {UNDECLARED}", list(unusable[:3])
    if all(sentence.endswith(ending) for sentence in shown):
        shown = [*(sentence.removesuffix(ending) for sentence in shown[:-1]), shown[-1]]
    advice = [f"{'; '.join(shown)}{more}"]
    if not unusable[0].endswith(ending):
        advice.append("Check the file, and the ranges and categories of the schema")
    if any(NO_TIMES in sentence for sentence in unusable):
        advice.append("For other forms of dates, give --date-format, such as %d.%m.%Y")
    if any("not numbers" in sentence for sentence in unusable):
        advice.append("For numbers with other separators, give --thousands and --decimal")
    if any(UNDECLARED in sentence for sentence in unusable):
        advice.append("Correct the values, or declare one of the two (hdr4me survey --default, --optional)")
    return InvalidInput(". ".join([*advice, remedy]))


# -- files -------------------------------------------------------------------------------------------------------

FilePath = str | os.PathLike[str]
_WARNING = "Exact counts of true values: keep this file with the records, and do not publish it."


def quality_path(path: FilePath) -> Path:
    """The data-quality report that belongs to a file of reports or to a tally.

    >>> quality_path("data/reports.parquet").name
    '_reports.parquet.quality.json'
    """
    return Path(path).with_name(f"_{Path(path).name}.quality.json")


def save_quality(quality: DataQuality | None, survey: Survey, path: FilePath) -> None:
    """Write the data-quality report of a file next to it, readable by its owner only; None removes an old one."""
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        return  # a pipe
    target = quality_path(path)
    if quality is None:
        target.unlink(missing_ok=True)
        return
    document = {
        "format": FORMAT,
        "version": VERSION,
        "survey": survey.fingerprint,
        "note": _WARNING,
        "columns": quality.rows(),
    }
    write_text(target, json.dumps(document, ensure_ascii=False, indent=1) + "\n", mode=0o600)


def load_quality(paths: Iterable[FilePath], survey: Survey) -> DataQuality | None:
    """The sum of the data-quality reports that belong to these files; None if there is none."""
    return read_quality([path for path in map(quality_path, paths) if path.is_file()], survey)


def read_quality(files: Iterable[FilePath], survey: Survey) -> DataQuality | None:
    """The sum of data-quality reports, of which those about other surveys are left out; None if there is none."""
    found = [_read(Path(file), survey) for file in files]
    return sum(found[1:], found[0]) if found else None


def _read(path: Path, survey: Survey) -> DataQuality:
    try:
        document = parse(path.read_bytes())
        if (document["format"], document["version"]) != (FORMAT, VERSION):
            raise ValueError
        if document["survey"] != survey.fingerprint:
            return DataQuality.empty(survey)
        rows = [[row[field] for field in FIELDS] for row in document["columns"]]
        counts = np.array(rows, np.int64).reshape(len(survey.schema), len(FIELDS))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        raise FormatError(
            f"{path} is not a data-quality report: remove it, or restore it from a backup"
        ) from None
    return DataQuality(survey.schema, counts)
