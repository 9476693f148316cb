"""Raw reports are kept while a round is open and for seven days; a clock that is wrong seals nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from collector_memory import Arrival, write

from hdr4me.collector.stores.protocol import GRACE_DAYS, clock_fault, due, hour_of, seal_due
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def two(store: Any, small_survey: Survey) -> Any:
    """Round 1 is closed, round 2 is open."""
    store.open_round(small_survey, now=NOW)
    store.open_round(small_survey, now=NOW)
    write(store, [Arrival(n, bytes([i]) * 16, b"\0\0\1", hour_of(NOW)) for n in (1, 2) for i in range(5)])
    store.close_round(1, now=NOW)
    return store


def test_a_round_is_sealed_when_the_grace_period_is_over(two: Any) -> None:
    assert GRACE_DAYS == 7
    for days in range(8):
        kept = seal_due(two, now=NOW + timedelta(days=days))
        assert (kept.sealed, kept.clock) == ((), None)
        assert two.delete(1, bytes(16)) is (days == 0)
    assert seal_due(two, now=NOW + timedelta(days=8)).sealed == (1,)
    assert [r.state for r in two.rounds()] == ["sealed", "open"]
    assert two.tally(1).n_reports == 4
    assert seal_due(two, now=NOW + timedelta(days=400)).sealed == ()


def test_other_periods(two: Any) -> None:
    assert due(two.rounds(), now=NOW, grace_days=0) == []
    assert [r.number for r in due(two.rounds(), now=NOW + timedelta(days=1), grace_days=0)] == [1]
    for bad in (-1, 0.5):
        with pytest.raises(InvalidInput, match="grace_days"):
            due([], now=NOW, grace_days=bad)


def test_a_clock_that_was_set_back_is_told_and_seals_nothing(two: Any) -> None:
    assert clock_fault(two, now=NOW) is None
    back = NOW - timedelta(days=3)
    assert "set the clock" in (clock_fault(two, now=back) or "")
    write(two, [Arrival(2, b"z" * 16, b"\0\0\1", hour_of(NOW + timedelta(days=30)))])
    kept = seal_due(two, now=NOW + timedelta(days=20))
    assert kept.sealed == ()
    assert kept.clock is not None
    assert "the store has reports of hour" in kept.clock
    assert seal_due(two, now=NOW + timedelta(days=30)).sealed == (1,)


def test_hours_are_whole_and_utc() -> None:
    assert hour_of(datetime(1970, 1, 1, 1, 59, 59, tzinfo=UTC)) == 1
    for bad in (datetime(2026, 1, 1), datetime(1960, 1, 1, tzinfo=UTC), 5):
        with pytest.raises(InvalidInput, match="now"):
            hour_of(bad)
