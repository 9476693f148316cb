"""The data-quality report of records: for each column how many values were read, missing, unknown or out of range.

It is made where the true records are, for whoever holds them. It is counted from the true values, so it is not
private: it is never written beside the reports and never sent.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.io.columns import Source
from hdr4me.survey import Schema, Survey
from hdr4me.survey.columns import number_counts
from hdr4me.survey.dimension import FAULTS

FIELDS = ("read", *FAULTS)
_REPORTED = 0.01
"""A share of faulty values above this is reported."""


class RecordsWarning(UserWarning):
    """More than one value in a hundred of a column is not what the survey asks for."""


@dataclass(frozen=True, eq=False)
class Account:
    """Counts [d, 5] of values read, missing, unknown, below and above the range; accounts of parts add up.

    Of several choices, `unknown` are values that name no category, `low` those that name something unknown beside a
    category, and `high` those with more choices than are allowed.

    >>> from hdr4me.survey import Numeric
    >>> schema = Schema([Numeric("age", 0, 120)])
    >>> part = Account(schema, np.array([[100, 2, 1, 0, 5]]))
    >>> (part + part).rows()
    [{'column': 'age', 'read': 200, 'missing': 4, 'unknown': 2, 'low': 0, 'high': 10}]
    """

    schema: Schema
    counts: NDArray[np.int64]

    @classmethod
    def empty(cls, survey: Survey) -> Account:
        """The account of no records."""
        return cls(survey.schema, np.zeros((len(survey.schema), len(FIELDS)), np.int64))

    def __add__(self, other: Account) -> Account:
        return Account(self.schema, self.counts + other.counts)

    @property
    def n_records(self) -> int:
        """How many records were read."""
        return int(self.counts[0, 0])

    def rows(self) -> list[dict[str, Any]]:
        """A row for each column."""
        pairs = zip(self.schema.names, self.counts.tolist(), strict=True)
        return [{"column": name, **dict(zip(FIELDS, counts, strict=True))} for name, counts in pairs]

    def unusable(self) -> list[str]:
        """A sentence for each column in which no value is usable."""
        found = []
        for dimension, row in zip(self.schema, self.rows(), strict=True):
            faults = {name: fault for name, fault in dimension.faults().items() if not fault.usable}
            if 0 < row["read"] <= sum(row[name] for name in faults):
                parts = ", ".join(f"{row[name]:,} {fault.what}" for name, fault in faults.items())
                found.append(f"column {dimension.name!r} has no usable value among {row['read']:,} ({parts})")
        return found

    def notes(self) -> list[str]:
        """A sentence for each share of faulty values above one in a hundred, and what becomes of those values."""
        return [
            f"column {dimension.name!r}: {row[name]:,} of {row['read']:,} values "
            f"({100 * row[name] / row['read']:.3g} %) are {fault.what} {fault.effect}"
            for dimension, row in zip(self.schema, self.rows(), strict=True)
            for name, fault in dimension.faults().items()
            if fault.effect and row[name] > _REPORTED * row["read"]
        ]


OnAccount = Callable[[Account], None]
"""Takes the account when all records are read and before the reports appear; what it raises stops them."""


def judge(account: Account, *, allow_unusable: bool = False) -> None:
    """Warn of shares above one in a hundred; refuse a column in which no value is usable, unless that is allowed."""
    unusable = account.unusable()
    if unusable and not allow_unusable:
        raise refusal(unusable)
    for sentence in account.notes():
        warnings.warn(sentence, RecordsWarning, stacklevel=3)


def refusal(unusable: Sequence[str], remedy: str = "allow it (--allow-unusable)") -> InvalidInput:
    """The error for columns without a usable value."""
    more = f", and {len(unusable) - 3} columns more" if len(unusable) > 3 else ""
    return InvalidInput(
        f"{'; '.join(unusable[:3])}{more}: check the range, the categories and the file, or {remedy}"
    )


def account_of(source: Source, survey: Survey) -> Account:
    """The account of the records that a kernel is about to read."""
    counts = np.zeros((len(survey.schema), len(FIELDS)), np.int64)
    counts[:, 0] = source.n
    if source.n and len(source.cleaned) < len(survey.schema):
        _count_matrix(source.owners[0], survey.schema, counts)
    for j, column in source.cleaned.items():
        counts[j, 1:] = column.counts()
    return Account(survey.schema, counts)


def _count_matrix(values: NDArray[Any], schema: Schema, counts: NDArray[np.int64]) -> None:
    """Count the faults of a matrix of numbers and of the indices of categories."""
    ends = [(0.0, len(x.categories) - 1.0) if x.categories else x.bounds for x in schema]
    low, high = np.array(ends).T
    least, largest = values.min(axis=0), values.max(axis=0)
    for j in np.flatnonzero(~((least >= low) & (largest <= high))).tolist():
        missing, below, above = number_counts(values[:, j], *ends[j])
        if schema.dimensions[j].categories:
            # A fraction is cut off, so that an index is too large only from the number of categories on.
            above = int(np.count_nonzero(values[:, j] >= high[j] + 1))
            counts[j, 1:] = missing, below + above, 0, 0
        else:
            counts[j, 1:] = missing, 0, below, above
