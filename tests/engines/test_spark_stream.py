"""A stream of reports: stopped, killed, replayed, and never a report lost or counted twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdr4me.engines import Local, Spark, committed_tally, spark
from hdr4me.engines.spark_session import report_schema
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.io import write_reports
from hdr4me.survey import Survey
from hdr4me.tally import Tally

pytestmark = pytest.mark.spark

JOB = Path(__file__).with_name("spark_stream_job.py")
PATIENCE = 240.0


@pytest.fixture
def engine(spark_session: Any) -> Spark:
    return spark(spark_session)


@pytest.fixture
def parts(some_reports: np.ndarray) -> list[np.ndarray]:
    """Ten blocks of reports, some of them bad."""
    reports = some_reports.copy()
    reports[::40, 2] = 255
    return np.array_split(reports, 10)


def write(folder: Path, survey: Survey, parts: list[np.ndarray], first: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    for i, part in enumerate(parts, start=first):
        with write_reports(folder / f"{i:03d}.parquet", survey) as writer:
            writer.write(part)


def local_tally(folder: Path, survey: Survey) -> Tally:
    return Local(threads=1).tally(sorted(folder.glob("*.parquet")), survey)


def run(engine: Spark, survey: Survey, tmp_path: Path, *, files_a_batch: int = 3) -> None:
    """Follow tmp_path/in until nothing is left."""
    reader = engine.session.readStream.schema(report_schema(survey)).option(
        "maxFilesPerTrigger", files_a_batch
    )
    query = engine.follow(
        reader.parquet(str(tmp_path / "in")), survey, tmp_path / "state", keep_rejected=True
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def test_a_stream_goes_on_where_it_was(
    engine: Spark, mixed: Survey, other: Survey, parts: list[np.ndarray], tmp_path: Path
) -> None:
    source, state = tmp_path / "in", tmp_path / "state"
    assert committed_tally(state) is None
    write(source, mixed, parts[:5])
    run(engine, mixed, tmp_path)
    assert committed_tally(state, mixed) == local_tally(source, mixed)
    write(source, mixed, parts[5:], first=5)
    run(engine, mixed, tmp_path)
    expected = local_tally(source, mixed)
    assert committed_tally(state) == expected

    # A crash after our commit and before Spark's: Spark replays the batch, which is there already.
    last = max((state / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    run(engine, mixed, tmp_path)
    assert last.exists()
    assert committed_tally(state) == expected
    assert len(list(state.glob("tally-*"))) == 1

    # Every bad report is written down once.
    written = [
        line for file in (state / "rejected").rglob("part-*") for line in file.read_text().splitlines()
    ]
    assert len(written) == sum(expected.rejected.values()) == 25
    assert {json.loads(line)["reason"] for line in written} == set(expected.rejected)

    # What would lose or mix something is refused before it starts.
    with pytest.raises(FingerprintMismatch):
        run(engine, other, tmp_path)
    shutil.move(state / "checkpoint", tmp_path / "checkpoint")
    with pytest.raises(FormatError, match="no checkpoint"):
        run(engine, mixed, tmp_path)
    (state / "checkpoint").mkdir()
    (state / "checkpoint" / "metadata").write_text('{"id": "00000000-0000-0000-0000-000000000000"}')
    with pytest.raises(FormatError, match="the checkpoint of stream 0000"):
        run(engine, mixed, tmp_path)


def test_a_tally_that_is_gone_stops_the_stream(
    engine: Spark, mixed: Survey, parts: list[np.ndarray], tmp_path: Path
) -> None:
    write(tmp_path / "in", mixed, parts[:2])
    run(engine, mixed, tmp_path, files_a_batch=1)
    for path in (tmp_path / "state").glob("tally-*"):
        path.unlink()
    write(tmp_path / "in", mixed, parts[2:3], first=2)
    with pytest.raises(Exception, match="a tally is missing"):
        run(engine, mixed, tmp_path)


def test_only_streams_are_followed(engine: Spark, mixed: Survey, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be a streaming DataFrame"):
        engine.follow(engine.session.range(1), mixed, tmp_path)


@pytest.mark.slow
def test_a_killed_stream_loses_and_doubles_nothing(
    engine: Spark, mixed: Survey, parts: list[np.ndarray], tmp_path: Path
) -> None:
    """SIGKILL to a driver, its JVM and its workers in the middle; another driver goes on: one machine's tally."""
    source, state = tmp_path / "in", tmp_path / "state"
    write(source, mixed, parts[:6])
    mixed.save(tmp_path / "survey.json")
    command = [sys.executable, str(JOB), str(tmp_path / "survey.json"), str(source), str(state)]
    quick = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    with (tmp_path / "log").open("wb") as log:
        victim = subprocess.Popen(command, stdout=log, stderr=log, env=quick, start_new_session=True)
        deadline = time.monotonic() + PATIENCE
        while not (state.exists() and (committed_tally(state) or Tally(mixed)).n_reports):
            assert victim.poll() is None, (tmp_path / "log").read_text()[-4000:]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
    halfway = committed_tally(state, mixed)
    assert halfway is not None
    expected = local_tally(source, mixed)
    assert 0 < halfway.n_reports < expected.n_reports
    run(engine, mixed, tmp_path)
    assert committed_tally(state, mixed) == expected
    assert expected.rejected
