"""Ten and more files of different make, each from the file to an estimate on the command line.

The data are real tables of statsmodels and scikit-learn, in the forms in which people have such files. A case lists the
commands of a person who knows the columns, but not how the file is written. At most two commands may fail, and the
message of each must give what the corrected command adds.

Reports are drawn with the system's randomness. An estimate must lie within eight standard errors of the truth: a false
alarm has a probability below 10^-7 in each case (see `test_pipeline.py`).
"""

from __future__ import annotations

import json
import shlex
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import statsmodels
from sklearn import datasets

from hdr4me.cli import main

STATSMODELS = Path(statsmodels.__file__).parent / "datasets"
N = 20_000


def people() -> pd.DataFrame:
    """6,366 women who answered a magazine's questions in 1974."""
    return pd.read_csv(STATSMODELS / "fair" / "fair.csv")


def health() -> pd.DataFrame:
    """20,190 person-years of the RAND health insurance experiment."""
    return pd.read_csv(STATSMODELS / "randhie" / "src" / "randhie.csv")


def voters() -> pd.DataFrame:
    """944 voters of the American National Election Studies of 1996."""
    frame = pd.read_csv(STATSMODELS / "anes96" / "anes96.csv", sep="\t")
    return frame.rename(columns=lambda name: name.strip("'"))


def repeated(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows repeated, so that a table of some hundred rows gives narrow intervals."""
    return frame.iloc[np.arange(N) % len(frame)].reset_index(drop=True)


Truth = dict[str, float]


def utf16(folder: Path) -> Truth:
    frame = people()
    text = frame.to_csv(index=False, sep=";")
    (folder / "people.csv").write_bytes(text.encode("utf-16-le"))
    return {"age": frame["age"].mean()}


def decimal_comma(folder: Path) -> Truth:
    wine = datasets.load_wine(as_frame=True).frame
    frame = repeated(wine[["alcohol", "hue"]])
    frame.to_csv(folder / "wine.csv", index=False, sep=";", decimal=",")
    return {"alcohol": frame["alcohol"].mean(), "hue": frame["hue"].mean()}


def thousands(folder: Path) -> Truth:
    income = health()["income"]
    written = income.map(lambda x: f"{x:,.0f}")
    pd.DataFrame({"income": written}).to_csv(folder / "health.csv", index=False)
    return {"income": income.round().clip(0, 30_000).mean()}


def dates(folder: Path) -> Truth:
    frame = repeated(pd.read_csv(STATSMODELS / "co2" / "co2.csv", dtype=str))
    days = pd.to_datetime(frame["date"], format="%Y%m%d")
    frame.assign(date=days.dt.strftime("%d.%m.%Y")).to_csv(folder / "co2.csv", index=False)
    return {"date": (days - pd.Timestamp("1958-01-01")).dt.days.mean()}


def excel(folder: Path) -> Truth:
    frame = repeated(voters())
    with pd.ExcelWriter(folder / "voters.xlsx") as book:
        pd.DataFrame({"about": ["American National Election Studies, 1996"]}).to_excel(
            book, sheet_name="About"
        )
        frame[["age", "educ"]].to_excel(book, sheet_name="Voters", index=False)
    return {"age": frame["age"].mean()}


def excel_dates(folder: Path) -> Truth:
    days = pd.to_datetime(repeated(pd.read_csv(STATSMODELS / "co2" / "co2.csv", dtype=str))["date"])
    pd.DataFrame({"day": days, "month": days}).to_excel(folder / "co2.xlsx", index=False)
    shares = {f"month {name}": (days.dt.month_name() == name).mean() for name in ("January", "June")}
    return {"day": (days - pd.Timestamp("1958-01-01")).dt.days.mean()} | shares


def nested(folder: Path) -> Truth:
    frame = repeated(voters())
    rows = [
        {"id": i, "person": {"age": age, "view": {"party": party}}}
        for i, (age, party) in enumerate(zip(frame["age"].tolist(), frame["PID"].tolist(), strict=True))
    ]
    (folder / "voters.json").write_text(json.dumps(rows))
    return {"person.age": frame["age"].mean()} | {
        f"person.view.party {k}": (frame["PID"] == k).mean() for k in range(7)
    }


def many_categories(folder: Path) -> Truth:
    """The names of the first 18,931 characters of Unicode, one of which is frequent."""
    names = [name for k in range(1 << 17) if (name := unicodedata.name(chr(k), ""))][:18_931]
    (folder / "names.txt").write_text("\n".join(names))
    column = ["DIGIT ONE", "DIGIT TWO", *names[:: len(names) // 1_000]]
    values = (["DIGIT ONE"] * 900 + column) * 10
    codes = [ord(unicodedata.lookup(name)) for name in values]
    pd.DataFrame({"code": codes, "character": values}).to_csv(folder / "text.csv", index=False)
    return {"character DIGIT ONE": values.count("DIGIT ONE") / len(values)}


def duplicates(folder: Path) -> Truth:
    frame = people()
    both = frame[["age", "occupation", "occupation_husb"]]
    both.columns = pd.Index(["age", "occupation", "occupation"])
    both.to_csv(folder / "people.csv", index=False)
    return {"age": frame["age"].mean(), "occupation (2)": frame["occupation_husb"].mean()}


def byte_order_mark(folder: Path) -> Truth:
    frame = health()
    text = frame[["mdvis", "female"]].to_csv(index=False, lineterminator="\r\n")
    (folder / "health.csv").write_bytes(text.encode("utf-8-sig"))
    return {"mdvis": frame["mdvis"].clip(0, 20).mean(), "female 1": (frame["female"] == 1).mean()}


def mixed(folder: Path) -> Truth:
    frame = people()
    children: Any = frame["children"].astype(object)
    children[frame["children"] == 5.5] = "more than 4"
    children[::40] = "n/a"
    pairs = enumerate(zip(frame["age"], children, strict=True))
    rows = [{"age": str(age) if i % 2 else age, "children": n} for i, (age, n) in pairs]
    (folder / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"age": frame["age"].mean()}


class Case(NamedTuple):
    """A file with its true means and shares, and commands; one that begins with ✗ fails and is corrected next."""

    write: Callable[[Path], Truth]
    commands: tuple[str, ...]


CASES = {
    "UTF-16 with semicolons": Case(utf16, (
        "✗ survey people.csv --range age=17:50 --epsilon 4 -o survey.json",
        "survey people.csv --range age=17:50 --epsilon 4 -o survey.json --encoding utf-16-le",
        "perturb survey.json people.csv -o r.parquet --encoding utf-16-le",
    )),
    "decimal comma": Case(decimal_comma, (
        "survey wine.csv --range alcohol=10:16 --range hue=0:2 --epsilon 4 -o survey.json",
        "✗ perturb survey.json wine.csv -o r.parquet",
        "perturb survey.json wine.csv -o r.parquet --decimal ,",
    )),
    "thousands separators": Case(thousands, (
        "survey health.csv --range income=0:30000 --epsilon 4 -o survey.json",
        "✗ perturb survey.json health.csv -o r.parquet",
        "perturb survey.json health.csv -o r.parquet --thousands ,",
    )),
    "dates": Case(dates, (
        "survey co2.csv --range date=1958-01-01:2002-01-01 --epsilon 4 -o survey.json",
        "✗ perturb survey.json co2.csv -o r.parquet",
        "perturb survey.json co2.csv -o r.parquet --date-format %d.%m.%Y",
    )),
    "Excel": Case(excel, (
        "✗ survey voters.xlsx --range age=18:100 --epsilon 4 -o survey.json",
        "survey voters.xlsx --range age=18:100 --epsilon 4 -o survey.json --sheet Voters",
        "perturb survey.json voters.xlsx -o r.parquet --sheet Voters",
    )),
    "Excel with dates": Case(excel_dates, (
        "✗ survey co2.xlsx --range day=0:20000 --categories month=month --epsilon 4 -o survey.json",
        "survey co2.xlsx --range day=1958-01-01:2002-01-01 --categories month=month --epsilon 4 -o survey.json",
        "perturb survey.json co2.xlsx -o r.parquet",
    )),
    "nested JSON": Case(nested, (
        "✗ survey voters.json --range age=18:100 --categories party=0,1,2,3,4,5,6 --epsilon 4 -o survey.json",
        "survey voters.json --range person.age=18:100 --categories person.view.party=0,1,2,3,4,5,6 --epsilon 4 "
        "-o survey.json",
        "perturb survey.json voters.json -o r.parquet",
    )),
    "18,931 categories": Case(many_categories, (
        "✗ survey text.csv --epsilon 4 -o survey.json",
        "survey text.csv --categories character=@names.txt --epsilon 4 -o survey.json",
        "perturb survey.json text.csv -o r.parquet",
    )),
    "duplicate columns": Case(duplicates, (
        "✗ survey people.csv --range age=17:50 --range occupation=1:6 --epsilon 4 -o survey.json",
        "survey people.csv --range age=17:50 --range 'occupation (2)=1:6' --epsilon 4 -o survey.json",
        "perturb survey.json people.csv -o r.parquet",
    )),
    "byte order mark": Case(byte_order_mark, (
        "survey health.csv --range mdvis=0:20 --categories female=0,1 --epsilon 4 -o survey.json",
        "perturb survey.json health.csv -o r.parquet",
    )),
    "mixed types": Case(mixed, (
        "survey people.jsonl --range age=17:50 --categories 'children=0,1,2,3,4,more than 4' --epsilon 4 "
        "-o survey.json",
        "✗ perturb survey.json people.jsonl -o r.parquet",
        "✗ survey people.jsonl --range age=17:50 --categories 'children=0,1,2,3,4,more than 4' --optional children "
        "--epsilon 4 -o survey.json",
        "survey people.jsonl --range age=17:50 --categories 'children=0,1,2,3,4,more than 4' --optional children "
        "--epsilon 4 -o survey.json --force",
        "perturb survey.json people.jsonl -o r.parquet",
    )),
}  # fmt: skip


def added(earlier: list[str], corrected: str) -> list[str]:
    """What the corrected command has and no earlier one has: options, and names of columns."""
    old = {word for command in earlier for word in shlex.split(command)}
    new = [word for word in shlex.split(corrected) if word not in old]
    return [part for word in new for part in (word.split("=")[0], "@" * ("=@" in word))]


@pytest.mark.parametrize("name", CASES)
def test_from_the_file_to_an_estimate(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    truth = CASES[name].write(tmp_path)
    commands = [*CASES[name].commands, "tally survey.json r.parquet -o t.tally", "estimate t.tally --json"]
    assert sum(command.startswith("✗") for command in commands) <= 2
    out = ""
    for i, command in enumerate(commands):
        fails = command.startswith("✗")
        code = main(shlex.split(command.removeprefix("✗ ")))
        out, err = capsys.readouterr()
        assert (code != 0) == fails, (command, err)
        if fails:
            message = " ".join(err.split())
            lacking = [word for word in added(commands[: i + 1], commands[i + 1]) if word not in message]
            assert not lacking, (lacking, message)
    rows = json.loads(out)["rows"]
    found = {" ".join(filter(None, (row["dimension"], row["category"]))): row for row in rows}
    for key, value in truth.items():
        assert abs(found[key]["estimate"] - value) < 8 * found[key]["standard_error"], (key, value)
