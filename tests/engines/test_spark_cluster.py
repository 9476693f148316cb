"""A real cluster on the loopback: an executor and a worker killed in the middle of a job; the same tally."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from hdr4me.engines import Local
from hdr4me.io import write_reports
from hdr4me.survey import Survey
from hdr4me.tally import Tally

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("java") or os.environ.get("JAVA_HOME")),
        reason="no Java on this machine: Spark needs Java 17 or later",
    ),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="executors are found through /proc"),
]

JOB = Path(__file__).with_name("spark_job.py")
PATIENCE = 240.0
"""Seconds before a cluster that does nothing is given up; everything below ends long before on an idle machine."""


def environment() -> dict[str, str]:
    loopback = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    # Six short-lived JVMs: one compiler and one collector thread each start much sooner.
    quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    return {**os.environ, **loopback, **quick}


@contextmanager
def process(*command: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, all of which is gone at the end."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            [str(part) for part in command],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
        try:
            yield running
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def wait_for(ready: Callable[[], bool], what: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, f"{what} did not happen:\n{log.read_text()[-4000:]}"
        time.sleep(0.05)


@pytest.fixture
def job(mixed: Survey, some_reports: np.ndarray, tmp_path: Path) -> tuple[Tally, tuple[Path, ...]]:
    """The tally that one machine gives, and the job's arguments."""
    reports = some_reports.copy()
    reports[::40, 2] = 255
    (tmp_path / "marks").mkdir()
    mixed.save(tmp_path / "survey.json")
    (tmp_path / "reports").mkdir()
    paths = [tmp_path / "reports" / f"{i}.parquet" for i in range(4)]
    for path, part in zip(paths, np.array_split(reports, 4), strict=True):
        with write_reports(path, mixed) as writer:
            writer.write(part)
    expected = Local(threads=1).tally(paths, mixed)
    assert expected.rejected
    return expected, (tmp_path / "survey.json", tmp_path / "reports", tmp_path)


def parent_of(process_id: int) -> int:
    return int(Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[1])


def test_standalone_cluster_with_a_killed_executor_and_a_killed_worker(
    job: tuple[Tally, tuple[Path, ...]],
) -> None:
    """A master and two workers from the pip package.

    First an executor dies, and its worker starts another. Then a worker dies with its executor, as a machine would.
    """
    import pyspark

    expected, arguments = job
    folder = arguments[-1]
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    master = f"spark://127.0.0.1:{port}"
    common = ("--host", "127.0.0.1", "--webui-port", "0")

    def marks() -> list[Path]:
        return sorted((folder / "marks").iterdir(), key=lambda path: path.stat().st_mtime)

    def executor_of(mark: Path) -> int:
        return int(mark.name.split(".")[2])

    with ExitStack() as stack:
        log = folder / "master.log"
        command = (spark_class, "org.apache.spark.deploy.master.Master", *common, "--port", port)
        stack.enter_context(process(*command, log=log))
        wait_for(lambda: "I have been elected leader" in log.read_text(), "the master's start", log)
        for i in range(2):
            home = ("--cores", "1", "--memory", "1g", "--work-dir", folder / f"work{i}")
            command = (spark_class, "org.apache.spark.deploy.worker.Worker", *common, *home, master)
            stack.enter_context(process(*command, log=folder / f"worker{i}.log"))
        wait_for(lambda: log.read_text().count("Registering worker") == 2, "two workers", log)

        log = folder / "driver.log"
        driver = stack.enter_context(process(sys.executable, JOB, master, *arguments, log=log))

        def running_task(n: int) -> int:
            """The executor of the newest of `n` slow tasks."""
            wait_for(lambda: len(marks()) >= n or driver.poll() is not None, f"slow task {n}", log)
            assert driver.poll() is None, log.read_text()[-4000:]
            return executor_of(marks()[-1])

        first = running_task(4)
        os.kill(first, signal.SIGKILL)
        before = len(marks())
        second = running_task(before + 4)
        worker = parent_of(second)
        assert "deploy.worker.Worker" in Path(f"/proc/{worker}/cmdline").read_text()
        os.kill(worker, signal.SIGKILL)
        os.kill(second, signal.SIGKILL)
        assert driver.wait(PATIENCE) == 0, log.read_text()[-4000:]

    executors = {executor_of(path) for path in marks()}
    partitions = [path.name.split(".")[0] for path in marks()]
    assert len(executors) >= 3, "no executor took the place of the dead"
    assert len(set(partitions)) == 16
    assert len(partitions) >= 18, "a kill made nothing run again: it came too late"
    assert Tally.load(folder / "files.tally") == expected
    assert Tally.load(folder / "frame.tally") == expected
