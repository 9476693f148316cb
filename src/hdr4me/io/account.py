"""The account of records: for each column how many values were read, missing, unknown or out of range.

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
from hdr4me.io.columns import MISSING, UNKNOWN, Source
from hdr4me.survey import Categorical, Dimension, Numeric, Product, Schema, Selection, Survey, Vector
from hdr4me.survey.selection import SEPARATOR

__all__ = ["Account", "OnAccount", "RecordsWarning", "account_of", "judge"]

FIELDS = ("read", "missing", "unknown", "low", "high")
_TOLD = 0.01
"""A share of values above this is told."""


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
        """A sentence for each column in which no value is a number in the range, or a category."""
        usable = self.counts[:, 0] - self.counts[:, 1:].sum(axis=1)
        optional = np.array([_missing_is_asked(x) for x in self.schema])
        usable += np.where(optional, self.counts[:, 1], 0)
        several = np.array([isinstance(x, Selection | Vector) for x in self.schema])
        # Of choices that are too many, or of which some are unknown, the others count; long vectors are scaled.
        kept = self.counts[:, 0] - self.counts[:, 2]
        vectors = np.array([isinstance(x, Vector) for x in self.schema])
        kept -= np.where(vectors & ~optional, self.counts[:, 1], 0)
        usable = np.where(several, kept, usable)
        chosen = np.flatnonzero((usable == 0) & (self.counts[:, 0] > 0)).tolist()
        return [self._unusable(j) for j in chosen]

    def _unusable(self, j: int) -> str:
        read, missing, unknown, low, high = self.counts[j].tolist()
        dimension = self.schema.dimensions[j]
        parts = [f"{missing:,} missing", f"{unknown:,} {_what_unknown(dimension)}"]
        if isinstance(dimension, Numeric):
            parts += [f"{low:,} below {dimension.low:g}", f"{high:,} above {dimension.high:g}"]
        return f"column {dimension.name!r} has no usable value among {read:,} ({', '.join(parts)})"

    def notes(self) -> list[str]:
        """A sentence for each share above one in a hundred, and what becomes of those values."""
        shares = self.counts[:, 1:] > _TOLD * self.counts[:, :1]
        return [self._note(j, k + 1) for j, k in np.argwhere(shares).tolist() if self._is_told(j, k + 1)]

    def _is_told(self, j: int, k: int) -> bool:
        return not (FIELDS[k] == "missing" and _missing_is_asked(self.schema.dimensions[j]))

    def _note(self, j: int, k: int) -> str:
        read, count = int(self.counts[j, 0]), int(self.counts[j, k])
        dimension = self.schema.dimensions[j]
        default = getattr(dimension, "default", "its own default")
        if isinstance(dimension, Numeric) and dimension.optional:
            default = "no value"
        what, becomes = {
            "missing": ("missing", default),
            "unknown": (_what_unknown(dimension), default),
            "low": ("below the range", getattr(dimension, "low", None)),
            "high": ("above the range", getattr(dimension, "high", None)),
        }[FIELDS[k]]
        if isinstance(dimension, Selection):
            return (
                f"column {dimension.name!r}: {count:,} of {read:,} values ({100 * count / read:.3g} %) "
                + {
                    "high": f"have more than {dimension.at_most} choices, of which the first ones in the schema's "
                    "order count",
                    "low": "name something that is not in the list beside a category that is: the known ones count",
                }.get(
                    FIELDS[k],
                    f"name none of the categories and count as {'missing' if dimension.optional else 'nothing chosen'} "
                    f"(in text, '{SEPARATOR}' is between choices)",
                )
            )
        if isinstance(dimension, Vector):
            return (
                f"column {dimension.name!r}: {count:,} of {read:,} vectors ({100 * count / read:.3g} %) "
                + {
                    "missing": "are missing and count as 0",
                    "unknown": f"are not {dimension.length} numbers: a vector of another length counts as "
                    f"{'no vector' if dimension.optional else '0 altogether'}, and of the right length what is no "
                    "number counts as 0",
                    "high": f"are longer than {dimension.norm:g} and are scaled to that norm",
                }[FIELDS[k]]
            )
        shown = f"{becomes:g}" if isinstance(becomes, float) else repr(becomes)
        return (
            f"column {dimension.name!r}: {count:,} of {read:,} values ({100 * count / read:.3g} %) are {what} "
            f"and count as {shown}"
        )


OnAccount = Callable[[Account], None]
"""Takes the account when all records are read and before the reports appear; what it raises stops them."""


def judge(account: Account, *, allow_unusable: bool = False) -> None:
    """Warn of shares above one in a hundred; refuse a column in which no value is usable.

    Parameters
    ----------
    account
        What `perturb` counted.
    allow_unusable
        Warn of columns without a usable value too, rather than refuse them.

    Raises
    ------
    InvalidInput
        If a column has no usable value, and that is not allowed.
    """
    unusable = account.unusable()
    if unusable and not allow_unusable:
        raise refusal(unusable)
    for sentence in account.notes():
        warnings.warn(sentence, RecordsWarning, stacklevel=3)


def refusal(unusable: Sequence[str]) -> InvalidInput:
    """The error for columns without a usable value."""
    more = f", and {len(unusable) - 3} columns more" if len(unusable) > 3 else ""
    return InvalidInput(
        f"{'; '.join(unusable[:3])}{more}: check the range, the categories and the file, or allow it "
        "(--allow-unusable)"
    )


def account_of(source: Source, survey: Survey) -> Account:
    """The account of the records that a kernel is about to read."""
    if not source.states:
        return Account(survey.schema, _matrix_counts(source.owners[0], survey.schema))
    counts = np.zeros((len(survey.schema), len(FIELDS)), np.int64)
    for j, dimension in enumerate(survey.schema):
        array, state = source.owners[j], source.states[j]
        if isinstance(dimension, Categorical):
            assert state is not None
            counts[j] = _categorical_counts(array, state)
        elif isinstance(dimension, Numeric):
            counts[j] = _numeric_counts(_values(array), array.null_count, dimension)
            counts[j, 2] = source.unknown[j]
            counts[j, 1] -= source.unknown[j]
        elif isinstance(dimension, Selection | Vector):
            counts[j, 1:] = source.selections[j]
        counts[j, 0] = source.n
    return Account(survey.schema, counts)


def _values(array: Any) -> NDArray[Any]:
    """The values that are there."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not array.null_count:
        return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]
    return np.asarray(array.drop_null())


def _numeric_counts(values: NDArray[Any], n_null: int, dimension: Numeric) -> tuple[int, ...]:
    """Two passes where all is well: the least and the largest value, either of which shows a NaN too."""
    n = len(values) + n_null
    if not len(values):
        return n, n_null, 0, 0, 0
    least, largest = values.min(), values.max()
    missing, low, high = n_null, 0, 0
    if least != least:
        missing += int(np.isnan(values).sum())
    # Comparisons in double precision, as the kernel's: a NaN is in no range and is not counted twice.
    if not least >= dimension.low:
        low = int(np.count_nonzero(values < np.float64(dimension.low)))
    if not largest <= dimension.high:
        high = int(np.count_nonzero(values > np.float64(dimension.high)))
    return n, missing, 0, low, high


def _categorical_counts(indices: Any, states: NDArray[np.uint8]) -> tuple[int, ...]:
    missing = unknown = 0
    if states.any():
        found = np.bincount(_values(indices), minlength=len(states))
        missing, unknown = int(found[states == MISSING].sum()), int(found[states == UNKNOWN].sum())
    return len(indices), missing + indices.null_count, unknown, 0, 0


def _matrix_counts(values: NDArray[Any], schema: Schema) -> NDArray[np.int64]:
    """A matrix holds numbers, and the numbers of categories."""
    counts = np.zeros((len(schema), len(FIELDS)), np.int64)
    ends = [x.bounds if isinstance(x, Numeric) else (0.0, len(x.categories) - 1.0) for x in schema]
    ends = [(-1.0, 1.0) if isinstance(x, Product) else pair for x, pair in zip(schema, ends, strict=True)]
    low, high = np.array(ends).T
    counts[:, 0] = len(values)
    if len(values):
        least, largest = values.min(axis=0), values.max(axis=0)
        for j in np.flatnonzero(~((least >= low) & (largest <= high))).tolist():
            dimension, column = schema.dimensions[j], values[:, j]
            if isinstance(dimension, Numeric):
                counts[j] = _numeric_counts(column, 0, dimension)
            else:
                counts[j, 1] = int(np.isnan(column).sum()) if column.dtype.kind == "f" else 0
                counts[j, 2] = int(np.count_nonzero((column < 0) | (column >= high[j] + 1)))
    return counts


def _missing_is_asked(dimension: Dimension) -> bool:
    """Whether a missing value is an answer; of several choices, choosing nothing is one."""
    return isinstance(dimension, Selection) or bool(getattr(dimension, "optional", False))


def _what_unknown(dimension: Dimension) -> str:
    return "none of the categories" if isinstance(dimension, Categorical | Selection) else "no number"
