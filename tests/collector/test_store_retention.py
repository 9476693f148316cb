"""Raw reports are kept while a round is open and for seven days; a clock that is wrong finalizes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from collector_memory import Arrival, write

from hdr4me.collector.config import Settings
from hdr4me.collector.stores.protocol import finalize_due
from hdr4me.survey import Survey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = int(NOW.timestamp()) // 3600


@pytest.fixture
def two(store: Any, small_survey: Survey) -> Any:
    """Round 1 is closed, round 2 is open."""
    store.open_round(small_survey, now=NOW)
    store.open_round(small_survey, now=NOW)
    write(store, [Arrival(n, bytes([i]) * 16, b"\0\0\1", HOUR) for n in (1, 2) for i in range(5)])
    store.close_round(1, now=NOW)
    return store


def test_a_round_is_finalized_when_the_grace_period_is_over(two: Any) -> None:
    assert Settings("collector.db").retain_days == 7
    for days in range(8):
        kept = finalize_due(two, now=NOW + timedelta(days=days), grace_days=7)
        assert (kept.finalized, kept.clock) == ((), None)
        assert two.delete(1, bytes(16)) is (days == 0)
    assert finalize_due(two, now=NOW + timedelta(days=8), grace_days=7).finalized == (1,)
    assert [r.state for r in two.rounds()] == ["finalized", "open"]
    assert two.tally(1).n_reports == 4
    assert finalize_due(two, now=NOW + timedelta(days=400), grace_days=7).finalized == ()


def test_without_a_grace_period_a_round_is_finalized_the_day_after(two: Any) -> None:
    assert finalize_due(two, now=NOW, grace_days=0).finalized == ()
    assert finalize_due(two, now=NOW + timedelta(days=1), grace_days=0).finalized == (1,)


def test_dates_in_the_future_are_corrected_and_nothing_is_finalized(two: Any) -> None:
    earlier = NOW - timedelta(days=3)
    kept = finalize_due(two, now=earlier, grace_days=7)
    assert kept == ((), "the clock says 2026-02-26, and the store has a round of 2026-03-01")
    assert [(r.opened, r.closed) for r in two.rounds()] == [(earlier.date(),) * 2, (earlier.date(), None)]
    assert finalize_due(two, now=earlier + timedelta(days=7), grace_days=7) == ((), None)
    assert finalize_due(two, now=earlier + timedelta(days=8), grace_days=7).finalized == (1,)
