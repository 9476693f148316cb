"""What both stores promise."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collector_memory import Arrival, write

from hdr4me.collector.errors import Finalized, StoreUnavailable, UnknownRound
from hdr4me.collector.export import write_parquet
from hdr4me.collector.stores.protocol import Quarantine, Rejection, Store, Stored, covered
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = 492_000


def arrivals(
    n: int, seed: int, *, round: int = 1, hours: Sequence[int] = (HOUR,), sources: Sequence[int] = (0,)
) -> list[Arrival]:
    """Valid reports of `small_survey`."""
    rng = random.Random(seed)
    return [
        Arrival(
            round,
            rng.randbytes(16),
            bytes([rng.randrange(2), 0, rng.randrange(2)]),
            rng.choice(hours),
            rng.choice(sources),
        )
        for _ in range(n)
    ]


def counted(batch: Sequence[Arrival], survey: Survey) -> Tally:
    """The tally of some arrivals by the library alone."""
    rows = np.frombuffer(b"".join(arrival.payload for arrival in batch), np.uint8)
    return Tally(survey).add_block(rows.reshape(len(batch), survey.report_size))


@pytest.fixture
def round_one(store: Any, small_survey: Survey) -> Any:
    store.open_round(small_survey, now=NOW)
    return store


def test_it_is_a_store(store: Any) -> None:
    assert isinstance(store, Store)
    assert store.schema_version == 2
    assert store.rounds() == []
    store.ping()


def test_rounds_open_and_close(store: Any, small_survey: Survey, mixed: Survey) -> None:
    one = store.open_round(small_survey, now=NOW)
    two = store.open_round(mixed, now=NOW + timedelta(days=1))
    assert (one.number, two.number) == (1, 2)
    assert (one.state, one.opened, one.closed, one.stored) == ("open", date(2026, 3, 1), None, 0)
    assert (one.fingerprint, one.series) == (small_survey.fingerprint, small_survey.series)
    closed = store.close_round(1, now=NOW + timedelta(days=2))
    assert (closed.state, closed.closed) == ("closed", date(2026, 3, 3))
    assert store.close_round(1, now=NOW + timedelta(days=9)) == closed
    assert store.rounds() == [closed, two]
    assert store.survey(mixed.fingerprint) == mixed
    assert store.survey(mixed.fingerprint).to_json() == mixed.to_json()


def test_what_is_not_there_is_reported(store: Any) -> None:
    for call in (store.round, store.tally, lambda n: store.close_round(n, now=NOW)):
        with pytest.raises(UnknownRound):
            call(7)
    with pytest.raises(UnknownRound):
        list(store.blocks(7))
    with pytest.raises(UnknownRound):
        write(store, [Arrival(7, bytes(16), b"abc", HOUR)])
    with pytest.raises(InvalidInput, match="fingerprint"):
        store.survey("ab" * 32)
    with pytest.raises(InvalidInput, match="time zone"):
        store.open_round(None, now=datetime(2026, 3, 1))


def test_a_report_is_stored_once(round_one: Any, small_survey: Survey) -> None:
    batch = arrivals(20, 1)
    first = write(round_one, [*batch, batch[3], batch[5]])
    assert first.stored == (True,) * 20 + (False, False)
    assert first.duplicates == (False,) * 20 + (True, True)
    again = write(round_one, batch[::-1])
    assert again.stored == (False,) * 20
    assert again.n_stored == 0
    assert round_one.round(1).stored == 20
    assert round_one.tally(1) == counted(batch, small_survey)
    assert write(round_one, []).stored == ()


def test_the_first_of_two_reports_with_one_id_counts(round_one: Any, small_survey: Survey) -> None:
    one, other = Arrival(1, bytes(16), b"\0\0\0", HOUR), Arrival(1, bytes(16), b"\1\0\1", HOUR)
    assert write(round_one, [one, other]).stored == (True, False)
    assert write(round_one, [other]).stored == (False,)
    assert round_one.tally(1) == counted([one], small_survey)


def test_the_same_id_in_two_rounds_is_two_reports(store: Any, small_survey: Survey) -> None:
    store.open_round(small_survey, now=NOW)
    store.open_round(small_survey, now=NOW)
    batch = arrivals(5, 1)
    both = batch + [arrival._replace(round=2) for arrival in batch]
    assert write(store, both).n_stored == 10
    assert [r.stored for r in store.rounds()] == [5, 5]


def test_everything_is_there_after_reopening(
    store: Any, where: Any, opened: Callable[[Any], Any], small_survey: Survey
) -> None:
    store.open_round(small_survey, now=NOW)
    batch = arrivals(300, 2, hours=range(HOUR, HOUR + 3), sources=(0, 4))
    for start in range(0, 300, 7):
        write(store, batch[start : start + 7])
    tally, rounds, by_hour = dumps(store.tally(1)), store.rounds(), store.arrivals(1)
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        write(store, batch[:1])
    again = opened(where)
    assert (dumps(again.tally(1)), again.rounds(), again.arrivals(1)) == (tally, rounds, by_hour)
    assert write(again, batch).n_stored == 0
    assert again.damage() == []


def test_a_closed_round_accepts_nothing_and_the_rest_of_the_batch_is_stored(
    store: Any, small_survey: Survey
) -> None:
    store.open_round(small_survey, now=NOW)
    store.open_round(small_survey, now=NOW)
    store.close_round(1, now=NOW)
    batch = [*arrivals(3, 3), *arrivals(4, 4, round=2)]
    written = write(store, batch)
    assert written.refused == (True,) * 3 + (False,) * 4
    assert written.stored == (False,) * 3 + (True,) * 4
    assert written.duplicates == (False,) * 7


def test_what_is_no_report_of_the_survey_is_refused(round_one: Any) -> None:
    batch = [*arrivals(3, 5), Arrival(1, bytes(16), b"too long", HOUR)]
    with pytest.raises(InvalidInput, match="payload"):
        write(round_one, batch)
    assert round_one.round(1).stored == 0
    assert write(round_one, batch[:3]).n_stored == 3


def test_blocks_hold_ids_payloads_hours_and_sources_and_no_more(round_one: Any) -> None:
    batch = arrivals(200, 6, hours=(HOUR, HOUR + 1), sources=(0, 9))
    for start in range(0, 200, 10):
        write(round_one, batch[start : start + 10])
    found = {
        (id, payload, block.hour, block.source)
        for block in round_one.blocks(1)
        for id, payload in zip(block.ids, block.payloads, strict=True)
    }
    assert found == {(a.id, a.payload, a.hour, a.source) for a in batch}
    assert all(block.ids == sorted(block.ids) for block in round_one.blocks(1))
    assert sum(stored for _, _, stored in round_one.arrivals(1)) == 200
    expected = sum(a.hour == HOUR and a.source == 9 for a in batch)
    assert Stored(HOUR, 9, expected) in round_one.arrivals(1)


def test_the_tally_is_that_of_the_exported_reports_to_the_byte(
    store: Any, mixed: Survey, simulate: Any, wire: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.open_round(mixed, now=NOW)
    rng = np.random.default_rng(7)
    rows = simulate(mixed, 500, lambda j, users: np.zeros(len(users)), rng)
    batch = [Arrival(1, rng.bytes(16), payload, HOUR) for payload in wire(rows, mixed)]
    for start in range(0, 500, 30):
        write(store, batch[start : start + 30])
    monkeypatch.setattr("hdr4me.collector.export._ROWS", 100)  # several row groups
    path = tmp_path / "reports.parquet"
    path.write_bytes(b"".join(write_parquet(store, 1, mixed)))
    assert dumps(store.tally(1)) == dumps(Local(threads=1).tally(path, mixed))
    assert store.tally(1) == Tally(mixed).add_block(rows)


def test_a_report_is_deleted_exactly(round_one: Any, small_survey: Survey, where: Any, opened: Any) -> None:
    batch = arrivals(150, 8)
    for start in range(0, 150, 50):
        write(round_one, batch[start : start + 50])
    assert round_one.delete(1, bytes(16)) is False
    for index in (0, 75, 149):
        assert round_one.delete(1, batch[index].id) is True
        assert round_one.delete(1, batch[index].id) is False
    kept = [arrival for index, arrival in enumerate(batch) if index not in (0, 75, 149)]
    assert dumps(round_one.tally(1)) == dumps(counted(kept, small_survey))
    assert round_one.round(1).stored == 147
    # A late repetition of the upload does not bring it back, not even after a restart.
    assert write(round_one, [batch[75]]).stored == (False,)
    round_one.close()
    again = opened(where)
    assert write(again, batch).n_stored == 0
    assert dumps(again.tally(1)) == dumps(counted(kept, small_survey))
    with pytest.raises(UnknownRound):
        again.delete(2, bytes(16))


def test_the_only_report_of_a_block_is_deleted(round_one: Any, small_survey: Survey) -> None:
    (one,) = batch = arrivals(1, 9)
    write(round_one, batch)
    assert round_one.delete(1, one.id)
    assert list(round_one.blocks(1)) == []
    assert round_one.tally(1) == Tally(small_survey)


@pytest.mark.parametrize(
    "without",
    [
        [Quarantine(hour=HOUR)],
        [Quarantine(source=3)],
        [Quarantine(hour=HOUR, source=3)],
        [Quarantine(hour=HOUR), Quarantine(source=3), Quarantine(source=3)],
        [Quarantine(hour=1)],
    ],
)
def test_a_tally_without_what_is_in_quarantine(
    round_one: Any, small_survey: Survey, without: list[Quarantine]
) -> None:
    batch = arrivals(120, 10, hours=(HOUR, HOUR + 1, HOUR + 2), sources=(0, 3))
    write(round_one, batch[:60])
    write(round_one, batch[60:])
    kept = [a for a in batch if not covered(without, a.hour, a.source)]
    assert dumps(round_one.tally(1, without=without)) == dumps(counted(kept, small_survey))
    assert round_one.tally(1) == counted(batch, small_survey)


def test_quarantine_is_remembered_and_taken_back(round_one: Any) -> None:
    some = [Quarantine(hour=HOUR), Quarantine(source=0), Quarantine(hour=5, source=2)]
    for quarantine in (*some, some[0]):
        round_one.set_quarantine(1, quarantine)
    assert set(round_one.quarantines(1)) == set(some)
    assert len(round_one.quarantines(1)) == 3
    round_one.set_quarantine(1, some[1], on=False)
    assert set(round_one.quarantines(1)) == {some[0], some[2]}
    with pytest.raises(UnknownRound):
        round_one.set_quarantine(3, some[0])
    for bad in ({}, {"hour": -1}, {"source": "x"}, {"hour": 1 << 31}):
        with pytest.raises(InvalidInput):
            Quarantine(**bad)


def test_uploads_that_are_no_reports_are_counted(round_one: Any) -> None:
    round_one.rejected(1, "not a report", HOUR, 3)
    round_one.rejected(1, "not a report", HOUR)
    round_one.rejected(1, "code out of support", HOUR + 1, 2)
    assert round_one.rejections(1) == [
        Rejection("code out of support", HOUR + 1, 2),
        Rejection("not a report", HOUR, 4),
    ]
    assert round_one.tally(1).rejected == {}
    for bad in ({"hour": -1}, {"count": 0.5}):
        with pytest.raises(InvalidInput):
            round_one.rejected(1, "x", **{"hour": 1, **bad})


def test_tokens_are_known_by_their_hash(store: Any) -> None:
    one = store.add_token(b"a" * 32, "send", "phones")
    two = store.add_token(b"b" * 32, "admin")
    assert store.tokens() == [one, two]
    assert (one.scope, one.label, one.sha256) == ("send", "phones", b"a" * 32)
    with pytest.raises(InvalidInput, match="exists already"):
        store.add_token(b"a" * 32, "read")
    assert store.remove_token(two.number)
    assert not store.remove_token(two.number)
    assert store.add_token(b"c" * 32, "read").number > two.number  # never given again
    for bad in ((b"short", "read"), (b"a" * 32, "write")):
        with pytest.raises(InvalidInput):
            store.add_token(*bad)


def test_a_finalized_round_is_its_tally_and_nothing_else(
    round_one: Any, small_survey: Survey, where: Any, opened: Any
) -> None:
    batch = arrivals(200, 11, hours=(HOUR, HOUR + 1), sources=(0, 3))
    for start in range(0, 200, 20):
        write(round_one, batch[start : start + 20])
    round_one.delete(1, batch[0].id)
    round_one.set_quarantine(1, Quarantine(source=3))
    with pytest.raises(InvalidInput, match="is open"):
        round_one.finalize(1)
    round_one.close_round(1, now=NOW)
    finalized = round_one.finalize(1)
    assert (finalized.state, finalized.stored) == ("finalized", 199)
    assert round_one.finalize(1) == finalized
    round_one.close()
    again = opened(where)
    assert again.rounds() == [finalized]
    assert dumps(again.tally(1)) == dumps(counted(batch[1:], small_survey))
    kept = [arrival for arrival in batch[1:] if arrival.source != 3]
    assert dumps(again.tally(1, without=[Quarantine(source=3)])) == dumps(counted(kept, small_survey))
    assert list(again.blocks(1)) == []
    assert again.arrivals(1) == []
    assert write(again, batch[:2]).refused == (True, True)
    for call in (
        lambda: again.delete(1, batch[1].id),
        lambda: again.set_quarantine(1, Quarantine(hour=HOUR)),
        lambda: again.tally(1, without=[Quarantine(hour=HOUR)]),
    ):
        with pytest.raises(Finalized):
            call()
    # The store goes on with the next round.
    assert again.open_round(small_survey, now=NOW).number == 2
    assert write(again, arrivals(5, 12, round=2)).n_stored == 5


def test_a_clock_that_was_set_back_loses_nothing(round_one: Any, small_survey: Survey) -> None:
    batch = [*arrivals(5, 13, hours=(HOUR,)), *arrivals(5, 14, hours=(HOUR - 1000,))]
    assert write(round_one, batch).n_stored == 10
    assert [stored.hour for stored in round_one.arrivals(1)] == [HOUR - 1000, HOUR]
    closed = round_one.close_round(1, now=NOW - timedelta(days=400))
    assert closed.closed == closed.opened
    assert round_one.tally(1) == counted(batch, small_survey)


def test_readers_read_while_one_writes(round_one: Any, small_survey: Survey) -> None:
    import threading

    batch = arrivals(600, 15)
    faults: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                tally = round_one.tally(1)
                n = sum(len(block) for block in round_one.blocks(1))
                assert tally.n_reports <= n
                round_one.rounds()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for start in range(0, 600, 5):
        write(round_one, batch[start : start + 5])
    done.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert round_one.tally(1) == counted(batch, small_survey)
