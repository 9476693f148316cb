"""No path from records to an answer replaces more than 5 % of the values without saying so.

The numbers are written as "11,960": 76 % of a column are not numbers. With a declared default of 100,000 the mean
would be near 76,000 instead of near 9,300, with a narrow interval.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import hdr4me as hd
from hdr4me.cli import main
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput

FRAME = pd.DataFrame({"income": ["11,960"] * 760 + ["900"] * 240})
SAID = "760 of 1,000 values (76 %) are not numbers"


def asked(default: float | None) -> hd.Survey:
    return hd.Survey(hd.Schema([hd.Numeric("income", 0, 200_000, default)]), epsilon=2.0, mechanism="duchi")


PYTHON: dict[str, Callable[[hd.Survey, Path], Any]] = {
    "hd.run": lambda survey, _: hd.run(FRAME, survey.schema, epsilon=2.0),
    "hd.collect, a frame": lambda survey, _: hd.collect(FRAME, survey),
    "hd.collect, dictionaries": lambda survey, _: hd.collect(FRAME.to_dict("records"), survey),
    "hd.collect, a file": lambda survey, path: hd.collect(path, survey),
    "Local.reports": lambda survey, _: list(Local(1).reports(FRAME, survey)),
    "Local.table": lambda survey, _: Local(1).table(FRAME, survey),
    "Local.perturb": lambda survey, path: Local(1).perturb(path, survey, path.with_name("r.parquet")),
}
COMMANDS = {
    "perturb": "perturb survey.json people.csv -o r.parquet",
    "perturb --check-only": "perturb survey.json people.csv --check-only",
    "send": "send survey.json people.csv --to http://127.0.0.1:9",
}


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.mark.parametrize("default", [None, 100_000])
@pytest.mark.parametrize("name", PYTHON)
def test_python_refuses(name: str, default: float | None, people: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        PYTHON[name](asked(default), people)
    assert SAID in str(refusal.value)
    assert not people.with_name("r.parquet").exists()


@pytest.mark.parametrize("default", [None, 100_000])
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_refuse(
    name: str, default: float | None, people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The counts are printed once, and no reports are written or sent."""
    asked(default).save("survey.json")
    assert main(COMMANDS[name].split()) == 2
    assert " ".join(capsys.readouterr().err.split()).count("760 of 1,000") == 1
    assert not people.with_name("r.parquet").exists()


@pytest.mark.parametrize("default", [None, 100_000])
def test_what_is_allowed_is_said_in_every_form_of_the_answer(
    default: float | None, people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(default).save("survey.json")
    assert main(["perturb", "survey.json", "people.csv", "-o", "r.parquet", "--allow-unusable"]) == 0
    assert main(["tally", "survey.json", "r.parquet", "-o", "t.tally"]) == 0
    assert capsys.readouterr().err.count("760 of 1,000") == 1
    page, table = Path("a.html"), Path("a.csv")
    assert main(["estimate", "t.tally", "--output", str(page), "--output", str(table)]) == 0
    texts = [page.read_text(), table.read_text()]
    for option in ([], ["--json"]):
        assert main(["estimate", "t.tally", *option]) == 0
        texts.append(" ".join(capsys.readouterr().out.split()))
    assert [f"{SAID} and count as 100000" in text for text in texts] == [True] * 4
    answer = hd.Tally.load("t.tally").estimate()
    assert [SAID in note for note in answer.notes] == [True]
    assert SAID in answer.to_pandas()["note"][0]
