"""Work for executors: files cut into tasks, and functions that hold the survey and nothing of the driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from hdr4me.engines.spark_counts import Split
from hdr4me.errors import InvalidInput
from hdr4me.io.files import files_of
from hdr4me.io.origin import RecordFiles
from hdr4me.io.reading import Part, plan_parts

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task does with the rows of its partition."""

T = TypeVar("T")

_SMALLEST, _LARGEST = 1 << 23, 1 << 27
"""A task reads at least 8 MiB, since starting one takes as long, and at most 128 MiB, so that a retry is cheap."""

_RECORDS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


def plan_tasks(paths: Iterable[str | os.PathLike[str]], parallelism: int) -> list[list[Split]]:
    """What each task reads: large files are cut, small ones put together, about one task for each core or more.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.parquet").write_bytes(bytes(24 << 20))
    ...     _ = Path(folder, "b.parquet").write_bytes(bytes(100))
    ...     [[(split.start >> 20, split.stop >> 20) for split in task] for task in plan_tasks([folder], 2)]
    [[(0, 12)], [(12, 24), (0, 0)]]
    """
    files = [(file, file.stat().st_size) for path in paths for file in _files(path)]
    share = -(-sum(size for _, size in files) // parallelism)
    step = min(max(share, _SMALLEST), _LARGEST)
    tasks: list[list[Split]] = []
    room = 0
    for file, size in files:
        pieces = max(1, round(size / step))
        cuts = [size * i // pieces for i in range(pieces + 1)]
        for start, stop in pairwise(cuts):
            if room <= 0 or (room < step and stop - start > room + step // 4):
                tasks.append([])
                room = step
            tasks[-1].append(Split(str(file), start, stop))
            room -= stop - start
    return tasks


def record_tasks(files: RecordFiles, parallelism: int) -> list[list[Part]]:
    """What each task reads of files of records: row groups of Parquet files; text files go whole to one task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "abc":
    ...         _ = Path(folder, f"{name}.csv").write_text("age\\n31\\n")
    ...     [[Path(part.path).name for part in task] for task in record_tasks(RecordFiles(folder), 2)]
    [['a.csv', 'b.csv', 'c.csv']]
    """
    total = sum(Path(path).stat().st_size for path in files.files() if Path(path).exists())
    step = min(max(-(-total // parallelism), _SMALLEST), _LARGEST)
    tasks: list[list[Part]] = []
    room = 0
    for part in plan_parts(files, step):
        if room <= 0:
            tasks.append([])
            room = step
        tasks[-1].append(part)
        room -= part.n_bytes
    return tasks


def record_format(path: str) -> str:
    """Spark's name of a file's format, by its suffix; what has none is Spark's default, Parquet.

    >>> record_format("s3://bucket/people.csv"), record_format("people")
    ('csv', 'parquet')
    """
    suffix = Path(urlsplit(path).path if "://" in path else path).suffix.lower()
    return _RECORDS.get(suffix, "parquet")


def _files(path: str | os.PathLike[str]) -> Iterator[Path]:
    text = os.fspath(path)
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    elif "://" in text:
        raise InvalidInput(
            f"{text} is not a path that executors can open: read it with Spark and give the DataFrame, "
            "as in engine.tally(session.read.parquet(path), survey)"
        )
    yield from files_of(Path(text).absolute())


def each_task(tasks: Sequence[T], work: Callable[[T], Iterator[pa.RecordBatch]]) -> Work:
    """Do the tasks whose numbers are in the first column."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in np.asarray(batch.column(0)).tolist():
                yield from work(tasks[index])

    return read


def partition() -> int:
    """The number of the partition that this executor works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0
