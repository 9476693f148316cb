"""The service killed with SIGKILL under load, five times for each store: the short form of the long campaign."""

from __future__ import annotations

from typing import Any

import pytest

from collector_crash_service import Forked, campaign


@pytest.mark.no_cover
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_five_times_under_load(where: Any, workers: int, request: pytest.FixtureRequest) -> None:
    """Acknowledged and lost: none. Counted twice: none. The tally is that of the reports."""
    if workers == 2 and not str(where).startswith("postgres"):
        pytest.skip("SQLite has one process")
    found = campaign(str(where), 5, workers=workers, longest=0.4, serving=Forked, say=lambda _: None)
    assert found["acknowledged"] >= 5
    assert (found["acknowledged_lost"], found["counted_twice"], found["changed"]) == (0, 0, 0)
    assert found["tally_is_that_of_the_reports"]
    assert found["wrong_answers"] == []
