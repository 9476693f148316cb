"""The ledger's file format, version 2, with a counter in a second file; standard library only.

Reading parses the file, serializes the result and compares it with the file byte for byte. Therefore a difference that
a parser would tolerate (a repeated field, another spelling of a number) is an error. The SHA-256 in the last field
covers all other fields.
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
MAX_BYTES = 4 << 20  # a larger file is not a ledger, and a ledger does not grow beyond this size
_ATTEMPTS = 3
_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MARK = re.compile(r"[0-9a-f]{32}", re.ASCII)
_DAY = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)
_AMOUNT = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?", re.ASCII)
_COUNTER = re.compile(rf"{FORMAT}-counter ([0-9a-f]{{32}}) (0|[1-9][0-9]{{0,14}})\n", re.ASCII)


@dataclass(frozen=True)
class Book:
    """The content of a ledger: ε by series and day, the rows paid for, and how often the file was written."""

    identity: str = ""
    counter: int = 0
    # By series and day since 1970 (UTC).
    spent: Mapping[str, Mapping[int, Fraction]] = field(default_factory=dict)
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # marks by series, in order of payment
    secret: str = ""  # the mark of the device's secret

    def amount(self, series: str, since: int | None = None) -> Fraction:
        """The ε spent on a series from day `since` on, or on all days."""
        # A charge with a day in the future counts: the clock may have been set back.
        days = self.spent.get(series, {}).items()
        return sum((amount for day, amount in days if since is None or day >= since), Fraction(0))

    def total(self, since: int | None = None) -> Fraction:
        """The ε spent on all series."""
        return sum((self.amount(series, since) for series in self.spent), Fraction(0))

    def text(self) -> str:
        """Serialize the ledger."""
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
    """Return the path of the file `suffix` ("lock", "counter", "secret") that belongs to the ledger at `path`."""
    return path.with_name(f"{path.name}.{suffix}")


def read(path: Path) -> Book:
    """Read the ledger at `path`; it is empty if neither the file nor its counter exists.

    Raises FormatError if the file is damaged or is an older copy. A reader without the lock may see a ledger that is
    just being created, so a failed read is repeated before it is an error.
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(FormatError):
            return _read(path)
    return _read(path)


def _read(path: Path) -> Book:
    # The counter is written last, so it is read first: a ledger that is read later is never older than its counter.
    identity, counter = _read_counter(path)
    data = bounded(path, MAX_BYTES)
    if data is None:
        if counter:
            raise _unusable(
                f"{path} is missing, but its counter is {counter}",
                "restore the file, or remove the counter to start an empty ledger",
            )
        return Book(identity)
    try:
        book = _parse(data)
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError) as error:
        raise _unusable(f"{path} is not a ledger", str(error).replace("\n", " ")[:200]) from error
    if not identity:
        raise _unusable(
            f"the counter {beside(path, 'counter').name} is missing, so {path} may be an old copy",
            "restore the counter, or remove all files of the ledger to start an empty one",
        )
    if book.identity != identity:
        raise _unusable(f"{path} and its counter belong to two ledgers", "restore the right files")
    if book.counter < counter:
        written = f"write {book.counter}; its counter is {counter}"
        raise _unusable(f"{path} is an older copy ({written})", "restore the newest copy")
    return book


def _unusable(what: str, remedy: str) -> FormatError:
    return FormatError(f"{what}, so nothing is spent: {remedy}")


def write(path: Path, book: Book, reserve: int = 0) -> None:
    """Replace the ledger, then its counter; the caller holds the lock and releases the report after both writes.

    If the process ends between the two writes, the ledger is ahead of its counter, and its last charge was never used.
    The write succeeds or fails as that of a ledger of `reserve` bytes, if it is shorter.
    """
    text = book.text()
    if max(len(text), reserve) > MAX_BYTES:
        raise BudgetExceeded(f"{path} is full ({MAX_BYTES:,} bytes), so nothing is spent")
    # Remove temporary files of killed processes; no process is writing, because the lock is held.
    leftover = re.compile(re.escape(f".{path.name[:200]}.") + r"((counter|secret)\.)?[0-9a-f]{12}\.part")
    for file in path.parent.iterdir():
        if leftover.fullmatch(file.name):
            with suppress(OSError):
                file.unlink()
    beginning, counter = f"{FORMAT}-counter {book.identity}", beside(path, "counter")
    if not counter.exists():
        write_text(counter, f"{beginning} 0\n", mode=0o600)  # reading refuses a ledger without a counter
    write_text(path, text, mode=0o600, reserve=reserve)
    write_text(counter, f"{beginning} {book.counter}\n", mode=0o600)


def bounded(path: Path, limit: int) -> bytes | None:
    """Read a regular file of at most `limit` bytes; None if it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _unusable(f"{path} is not a file of a ledger", "it is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise _unusable(f"{path} is not a file of a ledger", f"it has more than {limit:,} bytes")
    return data


def _read_counter(ledger: Path) -> tuple[str, int]:
    path = beside(ledger, "counter")
    data = bounded(path, 200)
    if data is None:
        return "", 0
    match = _COUNTER.fullmatch(data.decode("latin-1"))
    if match is None:
        raise _unusable(f"{path} is not the counter of {ledger.name}", "restore the counter")
    return match[1], int(match[2])


def _parse(data: bytes) -> Book:
    document = json.loads(data.decode("ascii"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    if document.get("version") != VERSION:
        raise ValueError(
            f"its version is {document.get('version')!r:.20}, and this program supports version {VERSION}"
        )
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
        raise ValueError("its checksum does not match, so it was changed or damaged")
    return book


def _matched(pattern: re.Pattern[str], text: Any) -> str:
    # The syntax is checked before any arithmetic: "1e30000000" would be a number of thirty million digits.
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise ValueError("a name, day, mark or amount (a fraction of at most 400 digits) is malformed")
    return text
