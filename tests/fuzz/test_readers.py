"""The benchmark of readers makes the files it says it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

import readers


@pytest.mark.parametrize("name", readers.CASES)
def test_every_case_can_be_read(name: str, tmp_path: Path) -> None:
    make, _, quarantine = readers.CASES[name]
    found = readers._read(make(tmp_path, 50), quarantine)
    assert found["bytes"] > 0
    assert (tmp_path / "bad.jsonl").exists() == (quarantine and "reports" not in name)
