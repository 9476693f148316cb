"""Real clusters on the loopback: separate executors, one of them killed in the middle of a job; the same tally."""

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
from hdr4me.reports import write_reports
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


def run_and_kill(master: str, job: tuple[Tally, tuple[Path, ...]], kill: Callable[[int], None]) -> None:
    """Run the job; when a few slow tasks have begun, kill the executor of the last; compare the tallies."""
    expected, arguments = job
    folder = arguments[-1]
    log = folder / "driver.log"

    def marks() -> list[Path]:
        return sorted((folder / "marks").iterdir(), key=lambda path: path.stat().st_mtime)

    with process(sys.executable, JOB, master, *arguments, log=log) as driver:
        wait_for(lambda: len(marks()) >= 5 or driver.poll() is not None, "the fifth slow task", log)
        assert driver.poll() is None, log.read_text()[-4000:]
        victim = int(marks()[-1].name.split(".")[2])
        kill(victim)
        assert driver.wait(PATIENCE) == 0, log.read_text()[-4000:]
    executors = {int(path.name.split(".")[2]) for path in marks()}
    partitions = [path.name.split(".")[0] for path in marks()]
    assert len(executors) >= 2
    assert len(set(partitions)) == 16
    assert len(partitions) > 16, "the kill made nothing run again: it came too late"
    assert Tally.load(folder / "files.tally") == expected
    assert Tally.load(folder / "frame.tally") == expected


def test_local_cluster_with_a_killed_executor(job: tuple[Tally, tuple[Path, ...]]) -> None:
    run_and_kill("local-cluster[2,1,1024]", job, lambda executor: os.kill(executor, signal.SIGKILL))


def test_standalone_cluster_with_a_killed_worker(job: tuple[Tally, tuple[Path, ...]]) -> None:
    """A master and two workers from the pip package; one worker dies with its executor, as a machine would."""
    import pyspark

    folder = job[1][-1]
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    master = f"spark://127.0.0.1:{port}"
    common = ("--host", "127.0.0.1", "--webui-port", "0")
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

        def kill(executor: int) -> None:
            worker = int(Path(f"/proc/{executor}/stat").read_text().rpartition(")")[2].split()[1])
            assert "deploy.worker.Worker" in Path(f"/proc/{worker}/cmdline").read_text()
            os.kill(worker, signal.SIGKILL)
            os.kill(executor, signal.SIGKILL)

        run_and_kill(master, job, kill)
