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
    "send": "send survey.json people.csv --url http://127.0.0.1:9",
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


@pytest.mark.filterwarnings("ignore")
def test_every_statistic_and_every_row_says_it(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also the rows that a selection keeps, statistics of two dimensions, combined rounds, tables and figures."""
    n = 4_000
    frame = pd.DataFrame({
        "pay": [10.0, 60.0] * (n // 2),
        "age": [None if i % 5 == 0 else 30.0 + i % 40 for i in range(n)],
        "vote": [None if i % 4 == 0 else "ab"[i % 2] for i in range(n)],
        "sex": ["f", "m"] * (n // 2),
    })  # fmt: skip
    age, vote = hd.Numeric("age", 0, 120, default=100), hd.Categorical("vote", ["a", "b"], "b")
    pay, sex = hd.Numeric("pay", 0, 100), hd.Categorical("sex", ["f", "m"])
    product = hd.Product("pay × age", ("pay", "age"))
    numbers = hd.Survey(hd.Schema([pay, age, product]), epsilon=4.0, purpose="both")
    tally = hd.collect(frame, numbers, allow_unusable=True)
    voters = hd.collect(frame, hd.Survey(hd.Schema([vote]), epsilon=8.0), allow_unusable=True)
    both = hd.Survey(hd.table_schema(hd.Schema([vote, sex])), epsilon=4.0)
    joint = hd.collect(frame, both, allow_unusable=True)
    found = [
        voters.estimate(),
        voters.estimate().top(1),
        voters.estimate().recalibrate(),
        hd.combine([voters, voters]),
        tally.estimate()["pay × age"],
        *(tally.ask(name, "age") for name in ("mean", "variance", "sd", "quantile", "distribution")),
        tally.ask("covariance", ("pay", "age")),
        joint.ask("share_by", ("sex", "vote")),
    ]
    for answer in found:
        assert len(answer), answer
        assert all("20 %" in row["note"] or "25 %" in row["note"] for row in answer.table()), answer.table()
        assert f"; {len(answer)} with notes" in repr(answer)
    assert "25 %" in hd.tables(joint).notes["vote × sex"]
    drawing: Any = tally.estimate().plot()
    assert "age: 800 of 4,000 values (20 %) are missing" in drawing.get_supxlabel()
    joint.save("joint.tally")
    voters.save("a.tally")
    for command in (
        "tables joint.tally",
        "tables joint.tally --json",
        "rounds a.tally a.tally --noise fresh",
    ):
        assert main(command.split()) == 0
        shown = capsys.readouterr()
        assert "1,000 of 4,000" in " ".join((shown.out + shown.err).split())
