"""No message has a value of a record: every cell of a broken file is a marker, which no command may print."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pandas as pd
import pytest

import hdr4me as hd
from hdr4me.cli import main

WORD, NUMBER = "qSECRETz", "7770001"
SCHEMA = hd.Schema([
    hd.Numeric("age", 0, 120),
    hd.Categorical("smoker", ["no", "yes"]),
    hd.Time("born", "1900-01-01", "2020-01-01"),
])  # fmt: skip
SURVEY = hd.Survey(SCHEMA)
COMMANDS = (
    "survey {}",
    "survey {} --range *=0:1",
    "survey {} --range age=0:120 --categories smoker=no,yes --optional age",
    "perturb survey.json {} -o r.parquet",
    "perturb survey.json {} -o r.jsonl --allow-unusable --decimal ,",
    "perturb survey.json {} --check-only --date-format %d.%m.%Y",
    "compare {} --schema schema.json --repeats 1",
    "plan --users 1000 --epsilon 1 --schema schema.json --prior {}",
    "tally survey.json {} -o t.tally",
    "estimate {}",
    "explain {}",
    "study {} --users 9999999",
    "tables {}",
    "rounds {}",
)


def files(mark: str) -> dict[str, bytes]:
    """Files of records in forms that are wrong in one way each; all values are the mark."""
    row = dict.fromkeys(SCHEMA.names, mark)
    line, head = f"{mark},{mark},{mark}\n", "age,smoker,born\n"
    objects = [json.dumps(row)] * 3
    return {
        "text.csv": (head + 3 * line).encode(),
        "headless.csv": (3 * line).encode(),
        "ragged.csv": (head + line + f"{mark},{mark}\n").encode(),
        "quote.csv": (head + line + f'"{mark}\n').encode(),
        "semicolons.csv": (head + 3 * line).replace(",", ";").encode(),
        "latin.csv": (head + f"é{line}").encode("latin-1"),
        "wide.csv": (head + 3 * line).encode("utf-16-le"),
        "lines.jsonl": "\n".join(objects).encode(),
        "cut.jsonl": "\n".join(objects).encode()[:-4],
        "array.json": f"[{','.join(objects)}]".encode(),
        "cut.json": f"[{','.join(objects)}".encode(),
        "keyed.json": json.dumps({mark: row}, indent=1).encode(),
        "archive.zip": b"PK\x03\x04" + mark.encode(),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mark", [WORD, NUMBER])
def test_no_message_has_a_value(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SURVEY.save("survey.json")
    Path("schema.json").write_text(json.dumps(SCHEMA.to_dict()))
    made = files(mark)
    for name, data in made.items():
        Path(name).write_bytes(data)
    frame = pd.DataFrame([[mark] * 3] * 3, columns=list(SCHEMA.names))
    frame.to_excel("table.xlsx", index=False)
    frame.to_excel("headless.xlsx", index=False, header=False)
    frame.to_parquet("table.parquet")
    for name in (*made, "table.xlsx", "headless.xlsx", "table.parquet"):
        for command in COMMANDS:
            main(shlex.split(command.format(name)))
            shown = capsys.readouterr()
            assert mark.lower() not in (shown.out + shown.err).lower(), (command, name)
            assert "Traceback" not in shown.err, (command, name)
