"""Plausible mistakes and the message that each gets: what is wrong, and what to do; never a traceback of internals."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.cli import main
from hdr4me.engines import Local
from hdr4me.errors import HDR4MEError
from hdr4me.io import RecordFiles

SCHEMA = hd.Schema([hd.Numeric("age", 0, 120), hd.Categorical("smoker", ["no", "yes"])])
SURVEY = hd.Survey(SCHEMA, epsilon=1.0)
CLIENT = hd.Client(SURVEY)
GOOD = {"age": 30, "smoker": "no"}
TALLY = hd.Tally(SURVEY).add(CLIENT.report(GOOD) for _ in range(200))
ANSWER = TALLY.estimate()
MODULE = Path(__file__).parents[1] / "clients" / "javascript" / "hdr4me.js"
FRAME = pd.DataFrame({"age": [30.0] * 20, "smoker": ["no"] * 20})
Any_: Any = hd  # mistakes of type are on purpose

PYTHON: dict[str, tuple[Callable[[], Any], str]] = {
    "range upside down": (lambda: hd.Numeric("age", 120, 0), "low = 120.0 must be below high = 0.0"),
    "range of text": (lambda: Any_.Numeric("age", "0", 120), "low = '0' must be a finite number"),
    "infinite range": (lambda: hd.Numeric("age", 0, float("inf")), "high = inf must be a finite number"),
    "default outside": (lambda: hd.Numeric("age", 0, 120, default=150), "default = 150.0 is outside"),
    "no name": (lambda: hd.Numeric("", 0, 1), "must be a non-empty string"),
    "name is a number": (lambda: Any_.Numeric(7, 0, 1), "name = 7 is not allowed"),
    "optional is text": (lambda: Any_.Numeric("a", 0, 1, optional="yes"), "must be true or false"),
    "categories as text": (lambda: hd.Categorical("s", "no,yes"), "must be a list"),
    "one category": (lambda: hd.Categorical("s", ["no"]), "1 category: 2 to"),
    "a category twice": (lambda: hd.Categorical("s", ["no", "no"]), "category 'no' appears twice"),
    "default not a category": (lambda: hd.Categorical("s", ["a", "b"], "c"), "is not one of its categories"),
    "default and optional": (
        lambda: hd.Categorical("s", ["a", "b"], "a", optional=True),
        "cannot be combined",
    ),
    "too many choices": (lambda: hd.Selection("s", ["a", "b"], 3), "must be an integer from 1 to 2"),
    "vector without length": (lambda: hd.Vector("v", 0), "must be an integer from 1 to"),
    "schema of names": (lambda: Any_.Schema(["age"]), "is not a dimension; use, for example, Numeric"),
    "empty schema": (lambda: hd.Schema([]), "a schema of 0 dimensions"),
    "a dimension twice": (lambda: hd.Schema([hd.Numeric("a", 0, 1)] * 2), "appears twice: names must differ"),
    "product of what is not there": (
        lambda: hd.Schema([hd.Numeric("a", 0, 1), hd.Product("p", ["a", "b"])]),
        "no dimension has that name",
    ),
    "schema given as a list": (lambda: Any_.Survey([hd.Numeric("a", 0, 1)]), "must be a Schema"),
    "product of a typo": (
        lambda: hd.Schema(
            [hd.Numeric("age", 0, 1), hd.Numeric("pay", 0, 1), hd.Product("p", ["age", "pya"])]
        ),
        "no dimension has that name; did you mean 'pay'",
    ),
    "tolerance of a typo": (
        lambda: hd.plan(schema=SCHEMA, epsilon=1.0, tolerance={"agee": 3}),
        "at least one of age, smoker; did you mean 'age'",
    ),
    "prior of a typo": (
        lambda: hd.plan(schema=SCHEMA, epsilon=1.0, users=1000, prior={"agee": "uniform"}),
        r"did you mean 'age'\? \(one of age, smoker\)",
    ),
    "records as a prior": (
        lambda: hd.plan(schema=SCHEMA, epsilon=1.0, users=1000, prior=FRAME),
        "prior = 'DataFrame' is not allowed",
    ),
    "comparison of a column with a typo": (
        lambda: hd.compare(FRAME, epsilon=1.0, columns=["agee"]),
        r"did you mean 'age'\? \(one of age, smoker\)",
    ),
    "rows of a statistic with a typo": (lambda: ANSWER.of("frequencies"), "did you mean 'frequency'"),
    "confidence as text": (
        lambda: Any_.ask(TALLY, "mean").table("95 %"),
        "a number between 0 and 1, such as 0.95",
    ),
    "method with a typo": (lambda: ANSWER.recalibrate("bays"), "did you mean 'bayes'"),
    "one choice as an object": (
        lambda: hd.Client(hd.Survey(hd.Schema([hd.Selection("s", ["a", "b"], 1)]))).report({"s": {"a": 1}}),
        "the value is not a list of the categories",
    ),
    "epsilon 0": (lambda: hd.Survey(SCHEMA, epsilon=0), "must be positive"),
    "epsilon negative": (lambda: hd.Survey(SCHEMA, epsilon=-1), "must be positive"),
    "epsilon as text": (lambda: Any_.Survey(SCHEMA, epsilon="1"), "epsilon = '1' is not allowed"),
    "more questions than there are": (
        lambda: hd.Survey(SCHEMA, sampled=3),
        "between 1 and the number of questions, 2",
    ),
    "half a question": (lambda: Any_.Survey(SCHEMA, sampled=1.5), "sampled = 1.5 is not allowed"),
    "unknown mechanism": (lambda: hd.Survey(SCHEMA, mechanism="gaussian"), "one of .*optimal"),
    "mechanism with a typo": (
        lambda: hd.Survey(SCHEMA, mechanism="laplas"),
        r"did you mean .laplace.\? \(one of laplace, ",
    ),
    "unknown oracle": (
        lambda: hd.Survey(SCHEMA, categorical="rappor"),
        "categorical = 'rappor' is not allowed",
    ),
    "unknown purpose": (lambda: hd.Survey(SCHEMA, purpose="means"), "purpose = 'means' is not allowed"),
    "weight of nothing": (lambda: hd.Survey(SCHEMA, weights={"Age": 2}), "weights = 'Age' is not allowed"),
    "pair with a category": (
        lambda: hd.Survey(SCHEMA, pair_questions=[("age", "smoker")]),
        "'smoker' is a category",
    ),
    "pair with a typo": (
        lambda: hd.Survey(SCHEMA, pair_questions=[("age", "smokr")]),
        "did you mean 'smoker'",
    ),
    "dimension with a typo": (lambda: SCHEMA["smokre"], "did you mean 'smoker'"),
    "record with a typo": (lambda: CLIENT.report({"Age": 30, "smoker": "no"}), "did you mean 'age'"),
    "empty record": (lambda: CLIENT.report({}), "the value is missing, and the schema declares neither"),
    "record is a list": (lambda: Any_.Client(SURVEY).report([30, "no"]), "a record must be a mapping"),
    "thousands on a device": (lambda: CLIENT.report({"age": "1,000", "smoker": "no"}), "is not a number"),
    "category with a capital": (
        lambda: CLIENT.report({"age": 1, "smoker": "No"}),
        "not one of the categories",
    ),
    "client without a survey": (lambda: Any_.Client(SCHEMA), "Survey"),
    "tally of one report": (
        lambda: Any_.Tally(SURVEY).add(CLIENT.report(GOOD)),
        "expected many|expected an iterable",
    ),
    "tally of records": (lambda: Any_.Tally(SURVEY).add([GOOD]), "is a dict, not a Report"),
    "unknown statistic": (lambda: TALLY.ask("quantil", "age"), "did you mean 'quantile'"),
    "unknown row of an answer": (lambda: ANSWER["agee"], "did you mean 'age'"),
    "unknown frequencies": (lambda: ANSWER.frequencies("smokre"), "did you mean 'smoker'"),
    "statistic of a typo": (lambda: TALLY.ask("mean", "agee"), "did you mean 'age'"),
    "mean of a category": (lambda: TALLY.ask("mean", "smoker"), "smoker"),
    "statistic of an answer": (lambda: Any_.ask(ANSWER, "mean"), "estimated from a Tally, not from a Answer"),
    "two surveys added": (lambda: TALLY + hd.Tally(hd.Survey(SCHEMA, epsilon=2.0)), "survey"),
    "survey and records swapped": (
        lambda: Any_.engines.Local().data_quality(SURVEY, FRAME),
        "must be a Survey",
    ),
    "frame without a column": (lambda: hd.collect(FRAME[["age"]], SURVEY), "no column 'smoker'"),
    "frame with a typo": (
        lambda: hd.collect(FRAME.rename(columns={"age": "Age"}), SURVEY),
        "no column 'age'",
    ),
    "records as a generator": (
        lambda: hd.collect(iter([GOOD]), SURVEY),
        "expected files, an Arrow table, a frame",
    ),
    "records as one dictionary": (
        lambda: hd.collect(GOOD, SURVEY),
        "expected files, an Arrow table, a frame",
    ),
    "matrix of a wrong width": (lambda: hd.collect(np.zeros((5, 3)), SURVEY), r"expected \(n, 2\)"),
    "matrix of text": (lambda: hd.collect(np.array([["a", "b"]]), SURVEY), "expected real numbers"),
    "a gap": (
        lambda: hd.collect(pa.table({"age": [None, 1.0], "smoker": ["no"] * 2}), SURVEY),
        "declares neither",
    ),
    "all out of range": (
        lambda: hd.collect(FRAME.assign(age=1990), SURVEY),
        "has no usable value among 20 .* above 120",
    ),
    "years as text": (lambda: hd.collect(FRAME.assign(age="30 y"), SURVEY), "not numbers"),
    "dates as numbers": (
        lambda: hd.collect(FRAME.assign(age=pd.Timestamp("2020-01-01")), SURVEY),
        "numbers are expected",
    ),
    "an encoding that is none": (lambda: RecordFiles("a.csv", encoding="utf8mb4"), "encoding = 'utf8mb4'"),
    "a delimiter of two": (lambda: RecordFiles("a.csv", delimiter=", "), "one character, such as ; or tab"),
    "no threads": (lambda: Local(threads=0), "must be a positive integer"),
    "no file": (lambda: list(Local().reports("nothing.csv", SURVEY)), "nothing.csv"),
    "a survey that is not there": (lambda: hd.Survey.load("nothing.json"), "nothing.json"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PYTHON)
def test_a_mistake_in_python(name: str) -> None:
    mistake, message = PYTHON[name]
    with pytest.raises((HDR4MEError, FileNotFoundError), match=message):
        mistake()


CSV = "age,smoker\n" + "30,no\n44,yes\n" * 20
FILES = {
    "people.csv": CSV,
    "headless.csv": "30,no\n44,yes\n",
    "semicolons.csv": CSV.replace(",", ";"),
    "empty.csv": "",
    "header.csv": "age,smoker\n",
    "ragged.csv": CSV + "31\n",
    "gap.csv": CSV + ",no\n",
    "twice.csv": "age,age,smoker\n1,2,no\n",
    "typo.csv": CSV.replace("age", "Age"),
    "people.jsonl": '{"age": 30, "smoker": "no"}\n' * 20,
    "broken.json": '{"age": 30, "smoker": "no"}\n{"age": 31,\n',
    "schema.toml": '[[dimensions]]\nname = "age"\nlow = 0\nhigh = 120\n',
    "wrong.toml": '[[dimensions]]\nname = "age"\nlow = 0\nmax = 120\n',
    "bad.toml": "dimensions = [",
    "nested.json": '{"type": "all",\n "people": [{"age": 30, "smoker": "no"}]}',
    "people.zip": "PK\x03\x04 people.csv",
    "people.dta": "<stata_dta><K>\x02\x00",
}
COMMANDS: dict[str, tuple[str, str]] = {
    "no file": ("perturb survey.json nothing.csv -o r.parquet", "nothing.csv"),
    "no output": ("perturb survey.json people.csv", "--output|-o"),
    "unknown suffix": ("perturb survey.json people.csv -o r.csv", "suffix must be one of .parquet"),
    "no header": ("perturb survey.json headless.csv -o r.parquet", "must be a header with the names"),
    "empty file": ("perturb survey.json empty.csv -o r.parquet", "is empty"),
    "only a header": ("perturb survey.json header.csv -o r.parquet", "has a header but no records"),
    "a ragged line": (
        "perturb survey.json ragged.csv -o r.parquet",
        "line 42 has 1 columns, the header has 2",
    ),
    "a gap": ("perturb survey.json gap.csv -o r.parquet", "declares neither a default nor optional"),
    "a column twice": (
        "perturb survey.json twice.csv -o r.parquet",
        "several columns have this name; use 'age \\(1\\)'",
    ),
    "a column with a typo": ("perturb survey.json typo.csv -o r.parquet", "has no column 'age'"),
    "broken JSON": ("perturb survey.json broken.json -o r.parquet", "line 2: not a JSON object"),
    "records in an object": ("perturb survey.json nested.json -o r.parquet", "save their array as a file"),
    "the range of an object": (
        "survey nested.json --range age=0:120",
        "records are a JSON array or JSON lines",
    ),
    "an archive": ("perturb survey.json people.zip -o r.parquet", "if it is a ZIP archive, unpack it"),
    "a file of Stata": (
        "perturb survey.json people.dta -o r.parquet",
        "save the file of another program as CSV",
    ),
    "a file without a header": (
        "survey headless.csv --range age=0:120",
        "no column 'age' among 2; the first line of a CSV file must have the names",
    ),
    "a wrong delimiter": ("perturb survey.json people.csv --delimiter tab -o r.parquet", "--delimiter"),
    "records to explain": (
        "explain people.csv",
        "not a survey; hdr4me survey makes one",
    ),
    "records as a survey": ("perturb people.csv survey.json -o r.parquet", "people.csv"),
    "records as reports": ("tally survey.json people.csv -o t.tally", "is not a file of reports"),
    "a survey as a tally": ("estimate survey.json", "survey.json"),
    "a schema with a wrong key": ("survey wrong.toml", "expected .*high.*low"),
    "a schema that is not TOML": ("survey bad.toml", "is not a schema"),
    "ranges missing": ("survey people.csv", "--range"),
    "epsilon 0": ("survey schema.toml --epsilon 0", "--epsilon"),
    "too many questions": ("survey schema.toml --sampled 2", "--sampled"),
    "unknown command": ("estimat survey.json", "estimat"),
    "unknown option": ("survey schema.toml --eps 1", "--eps"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistake_on_the_command_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message and a nonzero exit code, no traceback, no reports."""
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    SURVEY.save(tmp_path / "survey.json")
    monkeypatch.chdir(tmp_path)
    command, message = COMMANDS[name]
    code = main(command.split())
    shown = capsys.readouterr().err
    assert code != 0
    assert "Traceback" not in shown
    assert re.search(message, " ".join(shown.split())), shown
    assert not list(tmp_path.glob("r.parquet"))


# In the browser, with a client of the survey above whose store is in memory, and a collector that answers `status`.
DATES = hd.Schema([hd.Time("born", "1900-01-01", "2030-01-01")])
WEEKDAYS = hd.Schema([hd.Calendar("day", "weekday")])
DOCUMENTS = {
    "survey": SURVEY,
    "dates": hd.Survey(DATES, mechanism="duchi"),
    "weekdays": hd.Survey(WEEKDAYS),
    "vector": hd.Survey(hd.Schema([hd.Vector("v", 3)])),
}
JAVASCRIPT: dict[str, tuple[str, str]] = {
    "record with a typo": (
        "client.preview({Age: 30, smoker: 'no'})",
        "InvalidInput: unknown or unusable: age,Age",
    ),
    "empty record": ("client.answer({})", "InvalidInput: unknown or unusable: age,smoker"),
    "no record": ("client.answer()", "InvalidInput: unknown or unusable: age,smoker"),
    "a blank form": ("client.answer({age: '', smoker: ''})", "InvalidInput: unknown or unusable: age,smoker"),
    "record is a list": (
        "client.answer([30, 'no'])",
        "InvalidInput: unknown or unusable: age,smoker,0,1",
    ),
    "thousands": (
        "client.answer({age: '1,000', smoker: 'no'})",
        "InvalidInput: unknown or unusable: age",
    ),
    "category with a capital": (
        "client.answer({age: 30, smoker: 'No'})",
        "InvalidInput: unknown or unusable: smoker",
    ),
    "a survey with another epsilon": (
        "Client.open({...survey, epsilon: 9}, options)",
        "FormatError: invalid survey",
    ),
    "a schema as a survey": ("Client.open({dimensions: []}, options)", "FormatError: invalid survey"),
    "dates": ("Client.open(dates, options)", "Unsupported: time dimensions"),
    "weekdays": (
        "Client.open(weekdays, options)",
        "Unsupported: calendar dimensions",
    ),
    "a vector": ("Client.open(vector, options)", "Unsupported: vector dimensions"),
    "two answers": (
        "client.answer(good).then(() => client.answer(good))",
        "BudgetExceeded: budget is spent",
    ),
    "after opting out": ("client.optOut().then(() => client.answer(good))", "OptedOut: opted out"),
    "a closed round": ("(status = 409, client.answer(good))", "Refused: status 409"),
}


@pytest.fixture(scope="module")
def browser_messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The error of each mistake, with its name; empty if there is none."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    documents = ", ".join(f"{name} = {made.to_json()}" for name, made in DOCUMENTS.items())
    mistakes = ", ".join(f"[{name!r}]: () => {call}" for name, (call, _) in JAVASCRIPT.items())
    program = tmp_path_factory.mktemp("node") / "mistakes.mjs"
    program.write_text(f"""
        import {{ Client }} from {MODULE.as_uri()!r};
        const {documents}, good = {{age: 30, smoker: "no"}}, found = {{}};
        let client, options, status;
        globalThis.fetch = async () => new Response(null, {{ status }});
        for (const [name, call] of Object.entries({{ {mistakes} }})) {{
          const state = {{}};
          const store = {{ update: async (change) => change(state), alone: (work) => work() }};
          options = {{ store, round: 1 }};
          status = 200;
          client = await Client.open(survey, options);
          found[name] = await call().then(() => "", (error) => `${{error.name}}: ${{error.message}}`);
        }}
        console.log(JSON.stringify(found));
    """)
    done = subprocess.run([node, program], capture_output=True, text=True, timeout=60, check=True)
    messages: dict[str, str] = json.loads(done.stdout)
    return messages


@pytest.mark.parametrize("name", JAVASCRIPT)
def test_a_mistake_in_javascript(name: str, browser_messages: dict[str, str]) -> None:
    assert browser_messages[name] == JAVASCRIPT[name][1]


def test_the_table_is_not_shortened() -> None:
    assert len(PYTHON) + len(COMMANDS) + len(JAVASCRIPT) >= 95
