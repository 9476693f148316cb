"""A draft of a schema from a public sample loads, covers the sample, and names what it leaves out."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pandas as pd
import pytest

import hdr4me as hd
from hdr4me.cli import main
from hdr4me.errors import InvalidInput
from hdr4me.io.draft import WARNING

SAMPLE = pd.DataFrame(
    {
        "age": [17, 63, 40, 22],
        "income": [1200.5, None, 87_000.0, 30_000.0],
        'say "hi"': ["no", "yes", "no", "é"],
        "late": [True, False, True, True],
        "born": [date(1990, 1, 1)] * 4,
        "constant": ["x"] * 4,
        "same": [7.0] * 4,
        "nothing": [None] * 4,
    }
)


def test_a_draft_is_a_schema_that_covers_the_sample(tmp_path: Path) -> None:
    text = hd.draft_schema(SAMPLE)
    assert text.startswith(f"# {WARNING}")
    for name in ("constant", "nothing"):
        assert f'# "{name}" is left out' in text
    path = tmp_path / "schema.toml"
    path.write_text(text, encoding="utf-8")
    schema = hd.Schema.load(path)
    assert schema.names == ("age", "income", 'say "hi"', "late", "born", "same")
    assert schema["age"].bounds == (10.0, 70.0)
    assert schema["income"].bounds == (0.0, 90_000.0)
    assert schema["income"].has_gaps
    assert schema['say "hi"'].categories == ("no", "yes", "é")
    assert schema["late"].categories == ("false", "true")
    assert schema["born"] == hd.Time("born", "1990-01-01", "1990-01-02")
    low, high = schema["same"].bounds
    assert low <= 7 <= high
    tally = hd.collect(SAMPLE, hd.Survey(schema, epsilon=4.0))
    assert tally.n_reports == 4


def test_identifiers_are_left_out() -> None:
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(500)], "x": range(500)})
    assert '# "id" is left out: it has 500 distinct values' in hd.draft_schema(frame)
    with pytest.raises(InvalidInput, match="no column of the sample"):
        hd.draft_schema(frame[["id"]])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public, draft = tmp_path / "public.csv", tmp_path / "schema.toml"
    SAMPLE[["age", "late"]].to_csv(public, index=False)
    assert main(["schema", "draft", str(public)]) == 0
    shown = capsys.readouterr().out
    assert main(["schema", "draft", str(public), "-o", str(draft)]) == 0
    assert f"wrote {draft}; edit it" in capsys.readouterr().err
    assert draft.read_text(encoding="utf-8") == shown
    assert main(["survey", str(draft), "--epsilon", "1", "-o", str(tmp_path / "s.json")]) == 0
