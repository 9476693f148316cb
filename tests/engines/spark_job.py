"""A driver program of its own, for tests on clusters: count reports slowly and leave marks, so that it can be killed.

python spark_job.py MASTER SURVEY REPORTS FOLDER: tallies REPORTS as files (FOLDER/files.tally) and as a frame of many
slow partitions (FOLDER/frame.tally). Each slow task leaves FOLDER/marks/<partition>.<attempt>.<executor's pid>.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hdr4me.engines import open_session, spark
from hdr4me.survey import Survey

N_PARTITIONS = 16
LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
}


def slow(batches: Iterator[Any], marks: str) -> Iterator[Any]:
    """The same batches, a little later; the mark names the executor, which is the Python daemon's parent."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    executor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    Path(marks, f"{context.partitionId()}.{context.taskAttemptId()}.{executor}").touch()
    time.sleep(0.25)
    yield from batches


def main(master: str, survey_path: str, reports: str, folder: str) -> None:
    session = open_session(master, settings=LOOPBACK)
    survey = Survey.load(survey_path)
    engine = spark(session)
    engine.tally(reports, survey).save(Path(folder, "files.tally"))
    marks = str(Path(folder, "marks"))
    frame = session.read.parquet(reports).repartition(N_PARTITIONS)
    frame = frame.mapInArrow(lambda batches: slow(batches, marks), frame.schema)
    engine.tally(frame, survey).save(Path(folder, "frame.tally"))
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
