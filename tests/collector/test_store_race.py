"""Every operation of a store at once, for two seconds: the short form of the campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from collector_race import Race


@pytest.mark.no_cover
def test_everything_at_once(where: Any, tmp_path: Path) -> None:
    found = Race(str(where), tmp_path, seed=2).run(2.0)
    assert found["faults"] == []
    assert found["rounds"] > 1
    assert set(found["done"]) == {
        "write", "delete", "close", "finalize", "export", "backup", "read", "maintain"
    }  # fmt: skip
