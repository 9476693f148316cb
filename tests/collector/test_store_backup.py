"""Backups of both stores: taken while the collector writes, verified, restored into either kind, refused if damaged."""

from __future__ import annotations

import random
import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from collector_memory import Arrival, write

from hdr4me.collector.backup import backup, restore, verify
from hdr4me.collector.errors import Damaged, SchemaTooNew, StoreUnavailable
from hdr4me.collector.stores.protocol import Quarantine
from hdr4me.errors import FormatError, HDR4MEError, InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally.file import dumps

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def batch_of(n: int, seed: int, *, round: int = 1) -> list[Arrival]:
    rng = random.Random(seed)
    return [
        Arrival(round, rng.randbytes(16), bytes([rng.randrange(2), 0, 1]), 100 + i % 3, i % 2)
        for i in range(n)
    ]


def filled(store: Any, survey: Survey) -> list[Arrival]:
    """A store with an open round, a finalized one, a deleted report, and something in each table."""
    store.open_round(survey, now=NOW)
    store.open_round(survey, now=NOW)
    batch = batch_of(120, 1)
    write(store, batch)
    write(store, batch_of(30, 2, round=2))
    store.close_round(2, now=NOW)
    store.finalize(2)
    store.delete(1, batch[0].id)
    store.set_quarantine(1, Quarantine(source=1))
    store.rejected(1, "not a report", 100, 4)
    store.add_token(b"a" * 32, "read", "é")
    store.remove_token(store.add_token(b"b" * 32, "admin").number)
    return batch


def facts(store: Any) -> list[Any]:
    """The complete contents of a store."""
    return [
        store.rounds(),
        [dumps(store.tally(n)) for n in (1, 2)],
        dumps(store.tally(1, without=store.quarantines(1))),
        store.arrivals(1),
        store.rejections(1),
        store.quarantines(1),
        store.tokens(),
        sorted(pair for b in store.blocks(1) for pair in zip(b.ids, b.payloads, strict=True)),
    ]


@pytest.fixture
def saved(tmp_path: Path, opened: Any, small_survey: Survey) -> Path:
    """The backup of a filled SQLite store."""
    store = opened(tmp_path / "reports.db")
    filled(store, small_survey)
    backup(tmp_path / "reports.db", tmp_path / "saved")
    store.close()
    return tmp_path / "saved"


@pytest.mark.parametrize("into", ["sqlite", "postgres"])
def test_a_restored_store_is_the_same_store(
    store: Any, where: Any, tmp_path: Path, opened: Any, small_survey: Survey, into: str, request: Any
) -> None:
    batch = filled(store, small_survey)
    before = facts(store)
    contents = backup(where, tmp_path / "saved")
    assert (contents.rounds, contents.reports) == (2, 119)
    assert verify(tmp_path / "saved") == contents
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    store.close()
    target: Any = tmp_path / "new.db"
    if into == "postgres":
        target = request.getfixturevalue("database")
        request.getfixturevalue("emptied")(target)
    assert restore(tmp_path / "saved", target, keep_tokens=True) == contents
    again = opened(target)
    assert facts(again) == before
    assert write(again, batch).n_stored == 0  # the deleted one too
    assert again.add_token(b"c" * 32, "read").number == 3
    assert again.open_round(small_survey, now=NOW).number == 3
    assert write(again, batch_of(5, 9, round=3)).n_stored == 5


def test_a_backup_is_taken_while_the_collector_writes(
    store: Any, where: Any, tmp_path: Path, small_survey: Survey, opened: Any
) -> None:
    store.open_round(small_survey, now=NOW)
    done, faults = threading.Event(), []

    def fill() -> None:
        try:
            for i in range(1000):
                write(store, batch_of(20, i))
                if done.is_set():
                    return
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=fill)
    thread.start()
    found = [backup(where, tmp_path / f"saved{i}").reports for i in range(3)]
    done.set()
    thread.join()
    assert faults == []
    assert found == sorted(found)
    assert all(n % 20 == 0 for n in found)  # a batch is in it wholly or not at all
    restore(tmp_path / "saved2", tmp_path / "new.db")
    assert opened(tmp_path / "new.db").tally(1).n_reports == found[2]


def test_every_flipped_bit_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    rng = random.Random(3)
    bits = [rng.randrange(8 * len(whole)) for _ in range(60)] + list(range(0, 8 * 300, 131))
    for bit in bits:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        saved.write_bytes(data)
        with pytest.raises((Damaged, FormatError, SchemaTooNew)):
            verify(saved)
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:size])
        with pytest.raises((Damaged, FormatError)):
            verify(saved)
    saved.write_bytes(whole)
    verify(saved)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("update blocks set hour = hour + 1 where number = (select min(number) from blocks)", "its checksum"),
        ("update tokens set scope = 'admin'", "tokens"),
        ("update rounds set state = 'open'", "rounds"),
        ("delete from blocks where number = (select min(number) from blocks)", "blocks"),
        ("update tallies set content = zeroblob(20) where kind = 'kept'", r"the tally \(kept\) of round 2"),
        ("update surveys set document = replace(document, 'age', 'agf')", "survey "),
    ],
)
def test_what_is_damaged_is_named_and_nothing_is_restored(
    saved: Path, tmp_path: Path, sql: str, named: str
) -> None:
    header, _, body = saved.read_bytes().partition(b"\n")
    inside = tmp_path / "inside.db"
    inside.write_bytes(body)
    with sqlite3.connect(inside) as connection:
        connection.execute(sql)
    connection.close()
    saved.write_bytes(header + b"\n" + inside.read_bytes())
    with pytest.raises(Damaged, match=named):
        restore(saved, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_nothing_is_overwritten(saved: Path, tmp_path: Path, database: str) -> None:
    with pytest.raises(InvalidInput, match="exists already"):
        restore(saved, tmp_path / "reports.db")
    restore(saved, database)
    with pytest.raises(InvalidInput, match="has rounds already"):
        restore(saved, database)


def test_a_damaged_store_is_backed_up_only_on_request(
    store: Any, where: Any, tmp_path: Path, small_survey: Survey, opened: Any
) -> None:
    store.open_round(small_survey, now=NOW)
    for seed in range(3):
        write(store, batch_of(20, seed))
    if isinstance(where, Path):
        with sqlite3.connect(where) as connection:
            connection.execute("update blocks set n = 1 where number = (select min(number) from blocks)")
        connection.close()
    else:
        store._rows("update blocks set n = 1 where number = (select min(number) from blocks)")
    with pytest.raises(Damaged, match="checksum"):
        backup(where, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    contents = backup(where, tmp_path / "saved", despite_damage=True)
    assert 0 < contents.reports < 60
    restore(tmp_path / "saved", tmp_path / "new.db")
    assert opened(tmp_path / "new.db").tally(1).n_reports == contents.reports


def test_what_is_no_backup_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content in (
        b"",
        b"{}\n",
        b'{"format": "hdr4me-backup", "version": 7}\n',
        b"\xff" * 100,
        b"[" * 100_000,
    ):
        path.write_bytes(content)
        with pytest.raises(FormatError):
            verify(path)
    for call in (lambda: verify(tmp_path / "none"), lambda: backup(tmp_path / "none", tmp_path / "y")):
        with pytest.raises((StoreUnavailable, HDR4MEError)):
            call()
    path.write_text("hello " * 1000)
    with pytest.raises(FormatError, match="not an SQLite file"):
        backup(path, tmp_path / "y")
