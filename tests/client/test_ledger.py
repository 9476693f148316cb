"""The ledger: exact arithmetic, atomic writes, a lock, and an error for every damaged file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hdr4me.client import Client, Ledger, ledger_file
from hdr4me.client.ledger import days
from hdr4me.errors import BudgetExceeded, FormatError, InvalidInput
from hdr4me.survey import Numeric, Question, Schema, Survey

DAY = 86_400


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "ledger.json"


@pytest.fixture(scope="module")
def small(mixed: Survey) -> Survey:
    """One question under ε = 1.1."""
    return Survey.from_questions(
        mixed.schema.__class__([mixed.schema["debt"]]),
        epsilon=1.1,
        sampled=1,
        questions=[Question((0,), mixed.questions[1].channel)],
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the clock: clock(3) is day 20,003 since 1970."""

    def to(day: float) -> None:
        monkeypatch.setattr("hdr4me.client.ledger.time.time", lambda: (20_000 + day) * DAY + 5)

    to(0)
    return to


# -- what is allowed ----------------------------------------------------------------------------------------------


def test_one_report_for_each_series(mixed: Survey, other: Survey, small: Survey, path: Path) -> None:
    """A survey under another name has no budget of its own."""
    ledger = Ledger(path)
    Client(mixed, ledger).report({})
    with pytest.raises(BudgetExceeded, match=mixed.fingerprint):
        Client(mixed, ledger).report({})
    with pytest.raises(BudgetExceeded, match="on this survey or on one that differs only in name"):
        Client(other, ledger).report({})
    Client(small, ledger).report({})
    assert ledger.spent(mixed) == ledger.spent(other) == 12
    assert Ledger(path).total == 12 + Fraction(1.1)


def test_more_reports_per_survey(mixed: Survey, path: Path) -> None:
    client = Client(mixed, Ledger(path, reports_per_survey=3, limit=None))
    for _ in range(3):
        client.report({})
    with pytest.raises(BudgetExceeded, match="reports_per_survey = 3"):
        client.report({})


def test_the_default_limit(path: Path) -> None:
    ledger = Ledger(path)
    surveys = [Survey(Schema([Numeric(f"x{i}", 0, 1)]), epsilon=4.0, mechanism="duchi") for i in range(5)]
    for survey in surveys[:4]:
        ledger.spend(survey)
    with pytest.raises(BudgetExceeded, match="limit of 16"):
        ledger.spend(surveys[4])
    assert ledger.left(surveys[4]) == 0
    Ledger(path, limit=None).spend(surveys[4])


def test_the_limit_is_exact(small: Survey, path: Path) -> None:
    """The double 1.1 is slightly more than 11/10, so a limit of 11 refuses the tenth charge."""
    ledger = Ledger(path, limit=11.0, reports_per_survey=100)
    for _ in range(9):
        ledger.spend(small)
    with pytest.raises(BudgetExceeded, match="limit of 11"):
        ledger.spend(small)
    assert ledger.total == 9 * Fraction(1.1)
    assert ledger.left(small) == 11 - 9 * Fraction(1.1)


def test_a_claim_never_exceeds_the_budget(small: Survey, path: Path) -> None:
    ledger = Ledger(path, reports_per_survey=2)
    ledger.claim(small, lambda secret, known, affordable: (None, ["ab" * 16]))
    with pytest.raises(BudgetExceeded, match=r"2 new rows were claimed, but .* allows 1"):
        ledger.claim(small, lambda secret, known, affordable: (None, ["cd" * 16, "ef" * 16]))
    assert ledger.total == Fraction(1.1)
    assert ledger.claim(small, lambda secret, known, affordable: (list(known), [])) == ["ab" * 16]
    assert ledger.total == Fraction(1.1)


# -- periods ------------------------------------------------------------------------------------------------------


def test_a_budget_renews_after_its_period(small: Survey, path: Path, clock: Any) -> None:
    ledger = Ledger(path, every="week")
    ledger.spend(small)
    for day in (0, 1, 6):
        clock(day)
        with pytest.raises(BudgetExceeded, match="spent in 7 days on this survey"):
            ledger.spend(small)
    clock(7)
    ledger.spend(small)
    assert ledger.total == 2 * Fraction(1.1)
    with pytest.raises(BudgetExceeded, match=r"allows reports_per_survey = 2: survey"):
        Ledger(path, reports_per_survey=2).spend(small)  # without a period all of it counts


def test_the_limit_holds_in_every_window(small: Survey, path: Path, clock: Any) -> None:
    """The window slides, so no two budgets meet at a border."""
    ledger, spent = Ledger(path, every=7, reports_per_survey=3), []
    for day in range(40):
        clock(day)
        for _ in range(2):
            try:
                ledger.spend(small)
            except BudgetExceeded:
                continue
            spent.append(day)
    assert max(sum(d - 7 < x <= d for x in spent) for d in range(40)) == 3
    assert len(spent) == 18


def test_a_clock_set_back_renews_nothing(small: Survey, path: Path, clock: Any) -> None:
    clock(400)
    ledger = Ledger(path, every="week")
    ledger.spend(small)
    clock(0)
    with pytest.raises(BudgetExceeded):
        ledger.spend(small)


@pytest.mark.parametrize(
    "length", [0, -1, 1.5, True, "", "fortnight", "0d", "9" * 30 + "d", "1e3d", None, "40000d"]
)
def test_a_period_is_a_length_of_time(path: Path, length: Any) -> None:
    with pytest.raises(InvalidInput, match="every = "):
        days(length)
    if length is not None:
        with pytest.raises(InvalidInput, match="every = "):
            Ledger(path, every=length)


def test_lengths_of_time() -> None:
    assert [days(x) for x in (1, "day", "7 days", "Quarter", "6m", " 2 years ")] == [1, 1, 7, 91, 180, 730]


# -- the file -----------------------------------------------------------------------------------------------------


def test_the_file_is_json_and_private(small: Survey, path: Path, clock: Any) -> None:
    Ledger(path).spend(small)
    document = json.loads(path.read_text())
    assert (document["version"], document["counter"]) == (2, 1)
    assert document["spent"] == {small.series: {"20000": str(Fraction(1.1))}}
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "ledger.json",
        "ledger.json.counter",
        "ledger.json.lock",
    ]
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def flips(whole: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


def test_every_flipped_bit_is_refused(small: Survey, path: Path) -> None:
    """Every single-bit flip is refused by the parser."""
    ledger, counter = Ledger(path), ledger_file.beside(path, "counter")
    ledger.spend(small)
    whole, beside = path.read_bytes(), counter.read_bytes()
    for number, flipped in enumerate(flips(whole)):
        with pytest.raises((ValueError, RecursionError, TypeError, AttributeError, KeyError)):
            ledger_file._parse(flipped)
        if number % 50 == 0:
            path.write_bytes(flipped)
            with pytest.raises(FormatError, match="not a ledger"):
                ledger.spend(small)
    path.write_bytes(whole)
    for flipped in list(flips(beside))[::3]:
        counter.write_bytes(flipped)
        with pytest.raises((FormatError, BudgetExceeded)):
            ledger.spend(small)
    counter.write_bytes(beside)
    assert ledger.total == Fraction(1.1)


def test_every_truncation_is_refused(small: Survey, path: Path) -> None:
    ledger = Ledger(path)
    ledger.spend(small)
    whole = path.read_bytes()
    for length in range(len(whole)):
        with pytest.raises(ValueError):
            ledger_file._parse(whole[:length])
    path.write_bytes(whole[:-1])
    with pytest.raises(FormatError, match="not a ledger"):
        ledger.spend(small)


KEY = "ab" * 32
BODY: dict[str, Any] = {
    "format": "hdr4me-ledger",
    "version": 2,
    "identity": "0" * 32,
    "counter": 1,
    "spent": {KEY: {"20000": "1"}},
    "rows": {},
    "secret": "",
}


def signed(body: dict[str, Any]) -> str:
    """A ledger's text with the checksum that belongs to it."""
    checksum = hashlib.sha256(json.dumps(body, indent=1).encode()).hexdigest()
    return json.dumps({**body, "checksum": checksum}, indent=1) + "\n"


def test_the_unmodified_text_is_a_ledger() -> None:
    assert ledger_file._parse(signed(BODY).encode()).total() == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"format": "hdr4me-ledger"}',
        '{"format": "hdr4me-ledger", "version": 2, "spent": {}}',
        '{"format": "hdr4me-ledger", "version": ' + "1" * 10_000 + "}",
        *(signed({**BODY, "version": version}) for version in (1, 3, True, 2.0, "2")),
        *(signed({**BODY, "format": other}) for other in ("hdr4me", None)),
        *(
            signed({**BODY, "spent": {KEY: {"20000": amount}}})
            for amount in ("-1", "1/0", "nan", "2/2", "01", " 1", "1.0", 0, None)
        ),
        *(signed({**BODY, "spent": {KEY: {day: "1"}}}) for day in ("-1", "01", "x", "20000000")),
        *(signed({**BODY, "spent": spent}) for spent in ({"a": {"20000": "1"}}, [], {KEY: "1"}, {KEY: []})),
        *(signed({**BODY, "rows": rows}) for rows in ({KEY: ["x"]}, {KEY: "0" * 32}, [], {"a": []})),
        *(signed({**BODY, "counter": counter}) for counter in (0, -1, True, 1.0, "1", 10**15)),
        *(signed({**BODY, "identity": identity}) for identity in ("", "0" * 31, 5)),
        *(signed({**BODY, "secret": secret}) for secret in ("1", 0, None, False, [])),
        signed({**BODY, "extra": 1}),
        signed({key: value for key, value in BODY.items() if key != "rows"}),
        signed(BODY).replace('"counter": 1,', '"counter": 1,\n "counter": 1,'),
        signed(BODY).replace('"1"', '"2"'),
        signed(BODY)[:-1],
        json.dumps(json.loads(signed(BODY))),  # not as the program wrote it
        "\ufeff" + signed(BODY),
    ],
)
def test_a_malformed_ledger_is_refused(mixed: Survey, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="not a ledger"):
        Client(mixed, Ledger(path)).report({})
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("amount", ["1e30000000", "1" * 100_000, "1/" + "7" * 100_000])
def test_a_huge_number_is_refused_before_any_arithmetic(path: Path, amount: str) -> None:
    """Converting it took 168 seconds; now its syntax is checked first."""
    path.write_text(signed({**BODY, "spent": {KEY: {"20000": amount}}}))
    with pytest.raises(FormatError, match=r"amount \(a fraction of at most 400 digits\) is malformed"):
        Ledger(path).book()


def test_a_large_or_irregular_file_is_refused(small: Survey, path: Path, monkeypatch: Any) -> None:
    path.write_bytes(b" " * (ledger_file.MAX_BYTES + 1))
    with pytest.raises(FormatError, match="more than"):
        Ledger(path).spend(small)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FormatError, match="not a regular file"):
        Ledger(path).spend(small)
    path.unlink()
    monkeypatch.setattr("hdr4me.client.ledger_file.MAX_BYTES", 100)
    with pytest.raises(BudgetExceeded, match="full"):
        Ledger(path).spend(small)
    assert not path.exists()


# -- old copies ---------------------------------------------------------------------------------------------------


def test_an_older_copy_is_detected(small: Survey, path: Path) -> None:
    ledger = Ledger(path, reports_per_survey=5)
    ledger.spend(small)
    shutil.copy(path, path.with_name("backup.json"))
    ledger.spend(small)
    shutil.copy(path.with_name("backup.json"), path)
    with pytest.raises(FormatError, match=r"older copy .write 1; its counter is 2"):
        ledger.spend(small)
    with pytest.raises(FormatError, match="older copy"):
        _ = ledger.total


def test_a_missing_ledger_is_not_replaced_by_an_empty_one(small: Survey, path: Path) -> None:
    ledger = Ledger(path)
    ledger.spend(small)
    path.unlink()
    with pytest.raises(FormatError, match="is missing, but its counter is"):
        ledger.spend(small)
    ledger_file.beside(path, "counter").unlink()
    ledger.spend(small)  # the user removed all files


def test_a_missing_or_foreign_counter_is_detected(small: Survey, path: Path) -> None:
    ledger, counter = Ledger(path, reports_per_survey=5), ledger_file.beside(path, "counter")
    ledger.spend(small)
    kept = counter.read_bytes()
    counter.unlink()
    with pytest.raises(FormatError, match=r"the counter .* is missing"):
        ledger.spend(small)
    counter.write_text(f"hdr4me-ledger-counter {'0' * 32} 1\n")
    with pytest.raises(FormatError, match="two ledgers"):
        ledger.spend(small)
    counter.write_bytes(b"")
    with pytest.raises(FormatError, match="not the counter"):
        ledger.spend(small)
    counter.write_bytes(kept)
    ledger.spend(small)


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_failed_write_releases_no_report_and_damages_nothing(
    small: Survey, path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """The disk is full at the first, second or third write: no report is released, and the ledger works later."""
    real, calls = ledger_file.write_text, []  # type: ignore[attr-defined]

    def full(*arguments: Any, **options: Any) -> None:
        calls.append(arguments)
        if len(calls) == fails_at + 1:
            raise OSError(28, "No space left on device")
        real(*arguments, **options)

    monkeypatch.setattr(ledger_file, "write_text", full)
    client = Client(small, Ledger(path, reports_per_survey=2))
    with pytest.raises(OSError, match="No space"):
        client.report({})
    charged = client.ledger.total  # type: ignore[union-attr]
    assert charged == (0 if fails_at < 2 else Fraction(1.1))
    client.report({})
    assert Ledger(path).total == charged + Fraction(1.1)


FULL = """
import resource, signal, sys
from hdr4me.client import Client, Ledger
from hdr4me.survey import Survey
survey = Survey.load(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    Client(survey, Ledger(sys.argv[1], reports_per_survey=9)).report({})
except OSError as error:
    print("refused", error.errno)
else:
    print("released")
"""


@pytest.mark.parametrize("size", [0, 30, 100])
def test_a_file_size_limit_of_the_system(small: Survey, path: Path, size: int) -> None:
    """The system refuses to write: no report, no leftover file, and the ledger is unchanged."""
    survey = path.with_name("survey.json")
    small.save(survey)
    Ledger(path).spend(small)
    before = path.read_bytes()
    command = [sys.executable, "-c", FULL, str(path), str(survey), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "refused 27\n"
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*.part"))
    assert Ledger(path).total == Fraction(1.1)


# -- several processes --------------------------------------------------------------------------------------------

SPEND = """
import sys
from hdr4me.client import Client, Ledger
from hdr4me.errors import BudgetExceeded
from hdr4me.survey import Survey
ledger = Ledger(sys.argv[1], reports_per_survey=int(sys.argv[3]), limit=None, timeout=300)
client = Client(Survey.load(sys.argv[2]), ledger)
try:
    while True:
        client.report({})
        print("released", flush=True)
except BudgetExceeded:
    pass
"""


def test_two_processes_never_spend_more_than_allowed(small: Survey, path: Path) -> None:
    document = path.with_name("survey.json")
    small.save(document)
    command = [sys.executable, "-c", SPEND, str(path), str(document), "31"]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    released = [worker.communicate()[0].count("released") for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sum(released) == 31
    assert Ledger(path).spent(small) == 31 * Fraction(1.1)


def test_a_killed_process_never_releases_more_than_was_charged(small: Survey, path: Path) -> None:
    """SIGKILL five times while spending: the ledger stays valid and contains a charge for every released report."""
    document = path.with_name("survey.json")
    small.save(document)
    command = [sys.executable, "-c", SPEND, str(path), str(document), "1000000"]
    released = 0
    for pause in (0.0, 0.003, 0.007, 0.013, 0.029):
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        worker.stdout.readline()
        released += 1
        time.sleep(pause)
        os.kill(worker.pid, signal.SIGKILL)
        released += worker.communicate()[0].count("released\n")
        spent = Ledger(path).spent(small) / Fraction(1.1)
        assert released <= spent <= released + 5  # each kill loses at most one charge
    Ledger(path, reports_per_survey=10**6, limit=None).spend(small)
    assert not list(path.parent.glob(".*.part"))


def test_a_reader_needs_no_lock(small: Survey, path: Path, tmp_path: Path) -> None:
    """A thread reads thirty ledgers while they are created and written, and never gets an error."""
    found: list[Fraction] = []
    wrong: list[Exception] = []
    current, stop = [path], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            try:
                found.append(Ledger(current[0]).total)
            except Exception as error:
                wrong.append(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(30):
            current[0] = tmp_path / f"{number}.json"
            ledger = Ledger(current[0], reports_per_survey=3)
            for _ in range(3):
                ledger.spend(small)
    finally:
        stop.set()
        watcher.join()
    assert wrong == []
    assert {total / Fraction(1.1) for total in found} <= {0, 1, 2, 3}


def test_a_link_to_the_ledger_is_the_ledger(mixed: Survey, path: Path) -> None:
    """A link and its target share one lock."""
    link = path.with_name("link.json")
    link.symlink_to(path)
    first, second = Ledger(path), Ledger(link)
    assert first.path == second.path
    first.spend(mixed)
    with pytest.raises(BudgetExceeded):
        second.spend(mixed)


# -- parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_limit_is_positive(path: Path, limit: Any) -> None:
    with pytest.raises(InvalidInput, match="limit = "):
        Ledger(path, limit=limit)


@pytest.mark.parametrize("reports", [0, 1.5, True])
def test_reports_per_survey_is_a_positive_integer(path: Path, reports: Any) -> None:
    with pytest.raises(InvalidInput, match="reports_per_survey = "):
        Ledger(path, reports_per_survey=reports)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", 1e9])
def test_a_time_out_is_a_number_of_seconds(path: Path, timeout: Any) -> None:
    with pytest.raises(InvalidInput, match="timeout = "):
        Ledger(path, timeout=timeout)


def test_a_missing_folder_is_named(mixed: Survey, path: Path) -> None:
    with pytest.raises(InvalidInput, match="its folder does not exist"):
        Ledger(path.parent / "gone" / "ledger.json").spend(mixed)
