"""A small collection on disk that every command can be tried on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.cli import main

SCHEMA = {
    "dimensions": [
        {"name": "age", "type": "numeric", "low": 0, "high": 120},
        {"name": "height", "type": "numeric", "low": 100, "high": 220},
        {"name": "smoker", "type": "categorical", "categories": ["no", "yes"]},
    ]
}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def call(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def plain(run: Run) -> Callable[..., str]:
    """Run what must fail plainly: exit code 2, one line on standard error, nothing on standard output."""

    def call(*arguments: object) -> str:
        code, out, err = run(*arguments)
        assert code == 2, (code, out, err)
        assert out == ""
        lines = [line for line in err.splitlines() if line.startswith("hdr4me: ")]
        assert len(lines) == 1
        assert "Traceback" not in err
        return lines[0]

    return call


class Collection(NamedTuple):
    folder: Path
    schema: Path
    survey: Path
    records: Path
    reports: Path
    tally: Path


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Schema, survey, 20,000 records, their reports and the tally, made by the commands themselves."""
    folder = tmp_path_factory.mktemp("collection")
    names = ["schema.json", "survey.json", "records.parquet", "reports.parquet", "a.tally"]
    made = Collection(folder, *(folder / name for name in names))
    made.schema.write_text(json.dumps(SCHEMA))
    rng = np.random.default_rng(5)
    n = 20_000
    columns = {
        "age": rng.normal(40, 10, n),
        "height": rng.normal(170, 10, n),
        "smoker": np.where(rng.random(n) < 0.3, "yes", "no"),
    }
    pq.write_table(pa.table(columns), made.records)
    assert (
        main(["survey", str(made.schema), "--epsilon", "2", "--mechanism", "duchi", "-o", str(made.survey)])
        == 0
    )
    assert main(["perturb", str(made.survey), str(made.records), "-o", str(made.reports)]) == 0
    assert main(["tally", str(made.survey), str(made.reports), "-o", str(made.tally)]) == 0
    return made
