"""Structured streaming: a stream of reports is added to a tally on disk, each report exactly once.

A stream has one folder on a file system of the driver with atomic rename:

    checkpoint/                        Spark's record of the input of each batch
    tally-<query>-<batch>.tally        the tally of all batches up to this one, written atomically
    rejected/batch-<batch>/            bad reports with their reasons, if requested

After a crash, Spark replays a batch with the same number and the same input. A batch whose tally exists is skipped; a
batch without a tally was not counted. So each batch is in the tally exactly once.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hdr4me.engines.spark_tally import count_reports
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


_NAME = re.compile(r"tally-[0-9a-f-]{36}-(\d{12})\.tally")


def follow(
    reports: DataFrame,
    survey: Survey,
    folder: str | os.PathLike[str],
    *,
    keep_rejected: bool = False,
    every: str | None = None,
) -> StreamingQuery:
    """Start adding a streaming DataFrame of reports to the tally in `folder`; the query runs until it is stopped.

    `every` is the interval between batches ("1 minute"); by default a batch starts when the previous one ends. Started
    again on the same folder after a stop or a crash, the query resumes.
    """
    if not reports.isStreaming:
        raise InvalidInput("reports must be a streaming DataFrame: use `tally` for other DataFrames")
    root = Path(folder).absolute()
    root.mkdir(parents=True, exist_ok=True)
    state = _latest(root)
    # Without its checkpoint the stream would begin again at batch 0 and skip all batches.
    if state is not None:
        try:
            found = _query(root)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(
                f"{root} has a tally but no checkpoint, so the stream cannot resume: use a new folder"
            ) from error
        if found != (query := state[1].name[6:42]):
            raise FormatError(f"{root}: the tally is of stream {query}, the checkpoint of stream {found}")
        Tally.load(state[1], survey)
    writer = reports.writeStream.foreachBatch(_fold(root, survey, keep_rejected))
    writer = writer.option("checkpointLocation", (root / "checkpoint").as_uri())
    return (writer.trigger(processingTime=every) if every else writer).start()


def committed_tally(folder: str | os.PathLike[str], survey: Survey | None = None) -> Tally | None:
    """The last committed tally of a stream, from any process; None before the first batch."""
    for _ in range(100):
        state = _latest(Path(folder))
        if state is None:
            return None
        try:
            return Tally.load(state[1], survey)
        except FileNotFoundError:  # a newer tally has replaced it in the meantime
            continue
    raise FormatError(f"the tally in {folder} changes faster than it can be read")


def _fold(root: Path, survey: Survey, keep_rejected: bool) -> Callable[[DataFrame, int], None]:
    """The function for each batch."""

    def fold(frame: DataFrame, batch: int) -> None:
        last, path = _latest(root) or (-1, None)
        if batch <= last:
            return  # replayed: its tally was committed before Spark recorded it
        if batch != last + 1:
            raise FormatError(f"{root}: batch {batch} follows batch {last}: a tally is missing")
        rejected = root / "rejected" / f"batch-{batch:012d}" if keep_rejected else None
        # A replayed batch may find the bad reports of its first run; it overwrites them with the same reports.
        where = None if rejected is None else rejected.as_uri()
        found = count_reports(frame.sparkSession, frame, survey, where, mode="overwrite")
        total = found if path is None else Tally.load(path, survey) + found
        total.save(root / f"tally-{_query(root)}-{batch:012d}.tally")
        if path is not None:
            path.unlink(missing_ok=True)

    return fold


def _latest(root: Path) -> tuple[int, Path] | None:
    """The last committed batch and its tally."""
    names = [(match, path) for path in root.glob("tally-*.tally") if (match := _NAME.fullmatch(path.name))]
    return max(((int(match[1]), path) for match, path in names), default=None)


def _query(root: Path) -> str:
    """The id that Spark gave the stream when it created the checkpoint."""
    return str(json.loads((root / "checkpoint" / "metadata").read_text())["id"])
