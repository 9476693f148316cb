"""The command of the benchmarks, with the measurements replaced."""

from pathlib import Path
from typing import Any

import pytest

from bench import run as module
from bench.__main__ import main

DOCUMENT = {
    "date": "2026-01-01",
    "machine": {"processor": "any"},
    "suites": [{"title": "A", "unit": "GB", "rates": {"x": 1.0}, "ratios": {"x over y": (2.0, 1.0)}}],
    "memory_megabytes": {"tally": {"1000000": 1.0, "10000000": 1.0}},
    "absent": {"peer": "gone"},
}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def measured(**options: Any) -> dict[str, Any]:
        seen.update(options)
        return DOCUMENT

    monkeypatch.setattr(module, "run", measured)
    return seen


def test_markdown_on_standard_output(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rounds", "2"])
    assert "x over y" in capsys.readouterr().out
    assert (asked["rounds"], asked["peers_folder"]) == (2, None)


def test_files(asked: dict[str, Any], tmp_path: Path) -> None:
    main(["--output", str(tmp_path / "made"), "--peers", str(tmp_path / "peers")])
    names = ["bench.json", "bench.md", "bench.svg"]
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == names
    assert asked["peers_folder"] == tmp_path / "peers"


def test_rounds_are_checked() -> None:
    with pytest.raises(SystemExit):
        main(["--rounds", "0"])
