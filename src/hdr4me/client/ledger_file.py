"""The ledger's file, version 2: strict, checked to the last bit, with a counter beside it; standard library only.

A file is read by parsing it, writing what was understood, and comparing byte for byte: whatever the parser would
forgive (a repeated field, another spelling of a number, a flipped bit) is a difference, and a difference is an error.
The SHA-256 in the file's last field covers all the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from hdr4me.atomic import write_text
from hdr4me.errors import BudgetExceeded, FormatError

FORMAT, VERSION = "hdr4me-ledger", 2
MAX_BYTES = 4 << 20  # a larger file is not a ledger; one that would become larger accepts no more entries
_LOOKS = 3
_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MARK = re.compile(r"[0-9a-f]{32}", re.ASCII)
_DAY = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)
_AMOUNT = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?", re.ASCII)
_COUNTER = re.compile(rf"{FORMAT}-counter ([0-9a-f]{{32}}) (0|[1-9][0-9]{{0,14}})\n", re.ASCII)


@dataclass(frozen=True)
class Book:
    """What a ledger's file says: ε by series and day, the rows paid for, and how often the file was written."""

    identity: str = ""
    counter: int = 0
    spent: Mapping[str, Mapping[int, Fraction]] = field(
        default_factory=dict
    )  # by series and day since 1970 (UTC)
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # marks by series, in order of payment
    secret: str = ""  # the mark of the device's secret

    def amount(self, series: str, since: int | None = None) -> Fraction:
        """What was spent on a series from day `since` on; without `since`, ever."""
        # A day in the future (the clock was set back) counts: in doubt, it is spent.
        days = self.spent.get(series, {}).items()
        return sum((amount for day, amount in days if since is None or day >= since), Fraction(0))

    def total(self, since: int | None = None) -> Fraction:
        """What was spent on all series."""
        return sum((self.amount(series, since) for series in self.spent), Fraction(0))

    def text(self) -> str:
        """The file's content."""
        body = {
            "format": FORMAT,
            "version": VERSION,
            "identity": self.identity,
            "counter": self.counter,
            "spent": {
                key: {str(day): str(amount) for day, amount in sorted(self.spent[key].items())}
                for key in sorted(self.spent)
            },
            "rows": {key: list(self.rows[key]) for key in sorted(self.rows)},
            "secret": self.secret,
        }
        checksum = hashlib.sha256(json.dumps(body, indent=1).encode("ascii")).hexdigest()
        return json.dumps({**body, "checksum": checksum}, indent=1) + "\n"


def beside(path: Path, suffix: str) -> Path:
    """The file `suffix` ("lock", "counter", "secret") that belongs to the ledger at `path`."""
    return path.with_name(f"{path.name}.{suffix}")


def read(path: Path) -> Book:
    """The ledger at `path`, or FormatError if there is any doubt about it; no file and no counter: an empty one.

    Without the lock a ledger may be read while it is being made, so a doubt is looked at again before it is an error.
    """
    for _ in range(_LOOKS - 1):
        with suppress(FormatError):
            return _read(path)
    return _read(path)


def _read(path: Path) -> Book:
    # The counter first: it is written last, so a ledger read after it is never older, whoever writes meanwhile.
    identity, counter = _read_counter(path)
    data = bounded(path, MAX_BYTES)
    if data is None:
        if counter:
            raise _doubt(
                f"{path} is gone but its counter says that it was written {counter} time(s)",
                "put it back, or remove its counter too to begin anew",
            )
        return Book(identity)
    try:
        book = _parse(data)
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError) as error:
        raise _doubt(f"{path} is not a ledger", str(error).replace("\n", " ")[:200]) from error
    if not identity:
        raise _doubt(
            f"{path} has lost its counter {beside(path, 'counter').name} and may be an old copy",
            "put the counter back, or remove all of the ledger's files to begin anew",
        )
    if book.identity != identity:
        raise _doubt(f"{path} and its counter belong to two ledgers", "put back the right one")
    if book.counter < counter:
        written = f"written {book.counter} time(s), its counter says {counter}"
        raise _doubt(f"{path} is an older copy ({written})", "put back the newest")
    return book


def _doubt(what: str, remedy: str) -> FormatError:
    return FormatError(f"{what}, so nothing is spent: {remedy}")


def write(path: Path, book: Book) -> None:
    """Replace the ledger, then its counter; the caller holds the lock and releases nothing before both are there.

    If the process ends in between, the ledger is ahead of its counter: what it says is spent was never released.
    """
    text = book.text()
    if len(text) > MAX_BYTES:
        raise BudgetExceeded(f"{path} is full ({MAX_BYTES:,} bytes), so nothing is spent")
    # Remove what a killed process left of a write: the lock is held, so nobody is writing.
    left_over = re.compile(re.escape(f".{path.name[:200]}.") + r"((counter|secret)\.)?[0-9a-f]{12}\.part")
    for file in path.parent.iterdir():
        if left_over.fullmatch(file.name):
            with suppress(OSError):
                file.unlink()
    beginning, counter = f"{FORMAT}-counter {book.identity}", beside(path, "counter")
    if not counter.exists():
        write_text(counter, f"{beginning} 0\n", mode=0o600)  # a ledger without a counter would be refused
    write_text(path, text, mode=0o600)
    write_text(counter, f"{beginning} {book.counter}\n", mode=0o600)


def bounded(path: Path, limit: int) -> bytes | None:
    """The bytes of a regular file of at most `limit` bytes, or None if there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _doubt(f"{path} is not a ledger's file", "it is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise _doubt(f"{path} is not a ledger's file", f"it has more than {limit:,} bytes")
    return data


def _read_counter(ledger: Path) -> tuple[str, int]:
    path = beside(ledger, "counter")
    data = bounded(path, 200)
    if data is None:
        return "", 0
    match = _COUNTER.fullmatch(data.decode("latin-1"))
    if match is None:
        raise _doubt(f"{path} is not the counter of {ledger.name}", "put it back")
    return match[1], int(match[2])


def _parse(data: bytes) -> Book:
    document = json.loads(data.decode("ascii"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("its format is another")
    if document.get("version") != VERSION:
        raise ValueError(f"its version is {document.get('version')!r:.20}, and this program reads {VERSION}")
    book = Book(
        identity=_matched(_MARK, document["identity"]),
        counter=document["counter"],
        spent={
            _matched(_KEY, key): {
                int(_matched(_DAY, day)): Fraction(_matched(_AMOUNT, x)) for day, x in days.items()
            }
            for key, days in document["spent"].items()
        },
        rows={
            _matched(_KEY, key): tuple(_matched(_MARK, mark) for mark in marks)
            for key, marks in document["rows"].items()
        },
        secret="" if document["secret"] == "" else _matched(_MARK, document["secret"]),
    )
    if type(book.counter) is not int or not 1 <= book.counter < 10**15:
        raise ValueError("its counter is not a positive integer")
    if book.text().encode("ascii") != data:
        raise ValueError("its checksum does not match: it was changed or damaged")
    return book


def _matched(pattern: re.Pattern[str], text: Any) -> str:
    # The form is checked before any arithmetic: "1e30000000" would be a number of thirty million digits.
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise ValueError("a name, day, mark or amount (a fraction of at most 400 digits) is not of its form")
    return text
