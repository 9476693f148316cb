"""What is sent to the executors: functions that hold the survey and nothing of the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from hdr4me.engines import spark_counts, spark_pairs, spark_records
from hdr4me.io.reading import Part
from hdr4me.survey import Survey

__all__ = [
    "Work",
    "account_records",
    "count_pairs",
    "count_pairs_in_files",
    "count_reports",
    "count_reports_in_files",
    "make_reports",
    "read_records",
    "write_reports",
]

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task does with the rows of its partition."""

T = TypeVar("T")


# -- rows that are numbers of tasks ----------------------------------------------------------------------------------


def _each_task(tasks: Sequence[T], work: Callable[[T], Iterator[pa.RecordBatch]]) -> Work:
    """Do the tasks whose numbers are in the first column."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in np.asarray(batch.column(0)).tolist():
                yield from work(tasks[index])

    return read


def read_records(survey: Survey, tasks: Sequence[Sequence[Part]]) -> Work:
    """Read the records of files."""
    return _each_task(tasks, lambda parts: spark_records.part_batches(parts, survey))


def count_reports_in_files(survey: Survey, tasks: Sequence[Sequence[spark_counts.Split]], keep: bool) -> Work:
    """Count the reports of files; `keep`: bad reports are handed on."""
    return _each_task(tasks, lambda splits: spark_counts.count_splits(splits, survey, keep=keep))


def count_pairs_in_files(
    survey: Survey, tasks: Sequence[Sequence[spark_counts.Split]], names: spark_pairs.Names
) -> Work:
    """Count two answers of one report together, in files."""
    return _each_task(tasks, lambda splits: spark_pairs.pair_splits(splits, survey, names))


# -- rows that are reports -------------------------------------------------------------------------------------------


def count_reports(survey: Survey, keep: bool) -> Work:
    """Count reports; `keep`: bad reports are handed on."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        where = f"partition {_partition()}"
        return spark_counts.count_batches(batches, survey, keep=keep, where=where)

    return count


def count_pairs(survey: Survey, names: spark_pairs.Names) -> Work:
    """Count two answers of one report together."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_pairs.pair_batches(batches, survey, names)

    return count


# -- rows that `records` makes records of ----------------------------------------------------------------------------


def make_reports(survey: Survey, records: Work) -> Work:
    """Randomise records into a column of reports."""

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_records.report_batches(records(batches), survey)

    return make


def account_records(survey: Survey, records: Work) -> Work:
    """Count what is in records, without making a report."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_records.account_batches(records(batches), survey)

    return count


def write_reports(survey: Survey, records: Work, folder: str) -> Work:
    """Randomise records into a file of the task's own in `folder`."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_records.write_part(records(batches), survey, folder, _partition())

    return write


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0
