"""`hdr4me estimate --recalibrate` with a declared structure and a kind of interval."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hdr4me as hd
from hdr4me.cli.app import app


@pytest.fixture(scope="module")
def tally(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [f"steps_{h}" for h in range(6)]
    schema = hd.Schema(
        [*(hd.Numeric(name, 0, 100, curve="steps") for name in names), hd.Numeric("age", 0, 100)]
    )
    survey = hd.Survey(schema, epsilon=4.0, mechanism="duchi")
    counted = hd.Tally(survey)
    for block in hd.engines.Local().reports(np.tile(np.linspace(20, 80, 7), (400, 1)), survey):
        counted = counted.add_block(block)
    path = tmp_path_factory.mktemp("tally") / "day.tally"
    counted.save(path)
    return path


def _run(*arguments: object) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, ["estimate", *map(str, arguments)])
    return (
        outcome.exit_code,
        outcome.output if outcome.exception is None else f"{outcome.exception}{outcome.output}",
    )


def test_a_declared_curve_and_each_kind_of_interval_are_used(tally: Path) -> None:
    for more in ((), ("--interval", "average"), ("--interval", "credible")):
        code, text = _run(tally, "--recalibrate", "auto", "--json", *more)
        assert code == 0
        rows = json.loads(text)["rows"]
        assert len(rows) == 7
        assert all(0 <= row["lower"] <= row["estimate"] <= row["upper"] <= 100 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--interval", "average"), "needs --recalibrate"),
        (("--recalibrate", "auto", "--interval", "narrow"), "--interval 'narrow' is not allowed"),
    ],
)
def test_refusals_name_the_option(tally: Path, arguments: tuple[str, ...], message: str) -> None:
    code, text = _run(tally, *arguments)
    assert code != 0
    assert message in text
