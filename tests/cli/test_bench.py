"""hdr4me bench: options checked, one document in all forms; the measuring itself is tested in its own room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import run as module

DOCUMENT = {
    "date": "2026-01-01",
    "machine": {"processor": "any"},
    "suites": [
        {"title": "A", "unit": "GB", "rates": {"x": 1.0}, "ratios": {"x over y": (2.0, 1.0)}},
        {"title": "B", "unit": "", "rates": {"slope": 1.0}, "ratios": {}},
    ],
    "memory_megabytes": {"tally": {"1000000": 1.0, "10000000": 1.0}},
    "absent": {"peer": "gone"},
}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def fake(**options: Any) -> dict[str, Any]:
        seen.update(options)
        return DOCUMENT

    monkeypatch.setattr(module, "run", fake)
    return seen


def test_json_is_the_document(run: Callable[..., Any], asked: dict[str, Any]) -> None:
    outcome = run("bench", "--json", "--no-peers", "--rounds", "2")
    assert outcome.code == 0
    assert outcome.json["suites"][0]["ratios"]["x over y"] == [2.0, 1.0]
    assert (asked["rounds"], asked["peers_folder"]) == (2, None)


def test_tables_and_files(run: Callable[..., Any], asked: dict[str, Any], tmp_path: Path) -> None:
    outcome = run("bench", "--output", tmp_path / "made", "--peers", tmp_path / "peers")
    assert outcome.code == 0
    assert "x over y" in outcome.out
    assert "peer is absent: gone" in outcome.err
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "bench.json",
        "bench.md",
        "bench.svg",
    ]
    assert asked["peers_folder"] == tmp_path / "peers"


def test_rounds_are_checked(plain: Callable[..., str]) -> None:
    assert "--rounds 0" in plain("bench", "--rounds", "0")


def test_a_failed_figure_leaves_no_file(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_: dict[str, Any], path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "plot", half)
    assert run("bench", "--output", tmp_path, "--no-peers").code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.md"]
