"""The program that docs/cluster.md gives to spark-submit, submitted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdr4me.io import write_reports
from hdr4me.survey import Survey
from hdr4me.tally import Tally

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_the_submitted_job(
    spark_session: Any, mixed: Survey, some_reports: np.ndarray, tmp_path: Path
) -> None:
    import pyspark

    text = (ROOT / "docs" / "cluster.md").read_text()
    (program,) = re.findall(r"```python\n(# job\.py\n.*?)```", text, re.DOTALL)
    (tmp_path / "job.py").write_text(program)
    mixed.save(tmp_path / "survey.json")
    with write_reports(tmp_path / "reports.parquet", mixed) as writer:
        writer.write(some_reports)
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[1]"]
    settings = ["--conf", f"spark.pyspark.python={sys.executable}", "--conf", "spark.ui.enabled=false"]
    arguments = ["job.py", "survey.json", str(tmp_path / "reports.parquet"), "total.tally"]
    # The session of this process has left its own settings in the environment; a shell has none of them.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    loopback = {**clean, **quick, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable}
    run = subprocess.run(
        [*map(str, command), *settings, *arguments],
        cwd=tmp_path,
        env=loopback,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert Tally.load(tmp_path / "total.tally") == Tally(mixed).add_block(some_reports)
