"""The ledger: a small file that records how much of the budget is spent; standard library only."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from hdr4me.atomic import write_bytes
from hdr4me.client.ledger_file import Book, beside, bounded, read, write
from hdr4me.client.lock import locked
from hdr4me.client.prf import SECRET_BYTES, secret_mark
from hdr4me.errors import BudgetExceeded, FormatError, InvalidInput
from hdr4me.survey import Survey

# At least what one charge adds to the file: a series, a day and a fraction of at most 801 digits.
_ENTRY_BYTES = 1200
_MARK_BYTES = 40  # at least what one mark adds to the file
DEFAULT_LIMIT = 16.0  # the default limit of the sum of ε over all series
_DAYS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365, "d": 1, "w": 7, "m": 30, "y": 365}
_PERIODS = "an integer number of days from 1 to 36500, or text such as day, week, month, quarter, year, 30d, 2w, 6m, 1y"
T = TypeVar("T")
Choose = Callable[[bytes, Sequence[str], int], tuple[T, Sequence[str]]]


class Ledger:
    """The ε spent on each series of surveys and in total, stored as exact fractions in a JSON file.

    A ledger that cannot be read, or that is an older copy, raises an error; it is never silently replaced by an empty
    one. A charge is on the disk before the report is released.

    Parameters
    ----------
    path : path
        The ledger's file. The lock, the counter and the device's secret are files in the same folder, with `.lock`,
        `.counter` and `.secret` appended to its name.
    limit : float or None
        The limit of the sum of ε over all series; None means no limit.
    reports_per_survey : int
        How many times a survey's ε may be spent on one series. A renamed survey belongs to the same series.
    every : int, str or None
        The period after which the budget renews: a number of days, or text such as "week" or "30d". Both limits then
        hold for any period of that length (in UTC days), and for no longer period. None: the budget never renews.
    timeout : float
        How many seconds to wait while another process uses the ledger.

    Examples
    --------
    >>> import tempfile
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=0.5, mechanism="duchi")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder, "ledger.json"), limit=1.0)
    ...     ledger.spend(survey)
    ...     ledger.total, ledger.spent(survey), ledger.left(survey)
    (Fraction(1, 2), Fraction(1, 2), Fraction(0, 1))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limit: float | None = DEFAULT_LIMIT,
        reports_per_survey: int = 1,
        every: int | str | None = None,
        timeout: float = 10.0,
    ) -> None:
        if limit is not None and not (_is_number(limit) and 0 < limit < float("inf")):
            raise InvalidInput.of("limit", limit, "a positive, finite number, or None for no limit")
        if type(reports_per_survey) is not int or reports_per_survey < 1:
            raise InvalidInput.of("reports_per_survey", reports_per_survey, "a positive integer")
        if not _is_number(timeout) or not 0 <= timeout <= 86_400:
            raise InvalidInput.of("timeout", timeout, "a number of seconds from 0 to 86400")
        # The resolved path: one file has one lock, whatever link or working directory is used to open it.
        self.path = Path(os.path.realpath(path))
        self.limit = None if limit is None else Fraction(limit)
        self.reports_per_survey = reports_per_survey
        self.every = None if every is None else days(every)
        self.timeout = float(timeout)

    def __repr__(self) -> str:
        limit = "no limit" if self.limit is None else f"limit {float(self.limit):g}"
        renewed = "" if self.every is None else f", renewed every {self.every} day{'s' * (self.every != 1)}"
        return f"<Ledger {self.path}: {limit}{renewed}>"

    # -- what is spent -----------------------------------------------------------------------------------------

    @property
    def total(self) -> Fraction:
        """The sum of all charges."""
        return self.book().total()

    def spent(self, survey: Survey) -> Fraction:
        """The sum of all charges to this survey's series."""
        return self.book().amount(survey.series)

    def left(self, survey: Survey) -> Fraction:
        """The remaining ε for this survey's series today; it may be less than the cost of one report."""
        return self._left(self.book(), survey, survey.epsilon)

    def book(self) -> Book:
        """The content of the file."""
        return read(self.path)

    def _since(self) -> int | None:
        """The first day of the current period; None if the budget does not renew."""
        return None if self.every is None else _today() - self.every + 1

    def _left(self, book: Book, survey: Survey, epsilon: float) -> Fraction:
        since = self._since()
        left = self.reports_per_survey * Fraction(epsilon) - book.amount(survey.series, since)
        if self.limit is not None:
            left = min(left, self.limit - book.total(since))
        return max(left, Fraction(0))

    # -- spending ----------------------------------------------------------------------------------------------

    def spend(self, survey: Survey) -> None:
        """Charge one report's ε, or raise BudgetExceeded and write nothing."""
        with self._locked():
            book = self.book()
            self._check(book, survey, survey.epsilon)
            write(self.path, _charged(book, survey, Fraction(survey.epsilon)))

    def claim(self, survey: Survey, choose: Choose[T]) -> T:
        """Charge memoized_epsilon/m for each new row of a memoized response, and return the answers of `choose`.

        `choose` receives the device's secret, the marks that are paid for in order of payment, and the number of
        further marks that the budget allows. It returns the answers, which are released after the charge is stored, and
        the new marks. The first claim of a series charges all m questions or raises BudgetExceeded, whatever the
        record. Later claims never raise BudgetExceeded. The ledger stays locked during the call.

        Every claim writes the ledger in the same way before the answers are released, also if no row is new: otherwise
        an error on a full disk, or the time of the write, would reveal that the value changed.
        """
        memoized = survey.memoized_epsilon
        cost = Fraction(memoized) / survey.sampled
        with self._locked():
            book = self.book()
            known = book.rows.get(survey.series, ())
            if not known:
                self._check(book, survey, memoized)
            secret = self._secret(book)
            affordable = int(self._left(book, survey, memoized) / cost)
            answers, new = choose(secret, known, affordable)
            if len(new) > affordable:
                raise BudgetExceeded(f"{len(new)} new rows were claimed, but {self.path} allows {affordable}")
            rows = {**book.rows, survey.series: (*known, *new)}
            charged = replace(_charged(book, survey, len(new) * cost), rows=rows, secret=secret_mark(secret))
            reserve = len(book.text()) + _ENTRY_BYTES + survey.sampled * _MARK_BYTES
            write(self.path, charged if new or not book.counter else book, reserve)
        return answers

    def _check(self, book: Book, survey: Survey, epsilon: float) -> None:
        cost, since = Fraction(epsilon), self._since()
        when = "" if self.every is None else f" in {self.every} day{'s' * (self.every != 1)}"
        spent = book.amount(survey.series, since)
        if spent + cost > self.reports_per_survey * cost:
            raise BudgetExceeded(
                f"epsilon = {float(spent):g} has been spent{when} on this survey or on one that differs only in name, "
                f"and the ledger allows reports_per_survey = {self.reports_per_survey}: "
                f"survey {survey.fingerprint}, ledger {self.path}"
            )
        total = book.total(since) + cost
        if self.limit is not None and total > self.limit:
            raise BudgetExceeded(
                f"another epsilon = {float(cost):g} would raise the total to {float(total):g}, "
                f"above the limit of {float(self.limit):g}{when} in {self.path}"
            )

    def _secret(self, book: Book) -> bytes:
        """The device's secret: 32 bytes of the system's randomness, created on first use."""
        path = beside(self.path, "secret")
        secret = bounded(path, SECRET_BYTES)
        if secret is None and not book.secret:
            secret = secrets.token_bytes(SECRET_BYTES)
            write_bytes(path, secret, mode=0o600)
        why = f"not the secret of {self.path.name}, so no report is made: restore the secret"
        if secret is None:
            why = "missing, so no report is made: new noise would cost more budget; restore the secret"
        elif len(secret) == SECRET_BYTES and book.secret in ("", secret_mark(secret)):
            return secret
        raise FormatError(f"{path} is {why}")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self.path.parent.is_dir():
            raise InvalidInput(f"the ledger {self.path} cannot be written: its folder does not exist")
        # A separate lock file: each write replaces the ledger, and a lock on the replaced file would have no effect.
        with locked(beside(self.path, "lock"), self.timeout):
            yield


def _charged(book: Book, survey: Survey, cost: Fraction) -> Book:
    entry = dict(book.spent.get(survey.series, {}))
    entry[_today()] = entry.get(_today(), Fraction(0)) + cost
    identity, spent = book.identity or secrets.token_hex(16), {**book.spent, survey.series: entry}
    return replace(book, identity=identity, counter=book.counter + 1, spent=spent)


def _today() -> int:
    return int(time.time() // 86_400)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def days(length: Any) -> int:
    """Convert a length of time to days: an integer, "week", "30d", "2 weeks"; a month has 30 days, a year 365."""
    found = 0
    if type(length) is int:
        found = length
    elif isinstance(length, str):
        match = re.fullmatch(r"(\d{1,5})?\s*([a-z]+?)s?", length.strip().lower(), re.ASCII)
        if match and match[2] in _DAYS:
            found = int(match[1] or 1) * _DAYS[match[2]]
    if not 1 <= found <= 36_500:
        raise InvalidInput.of("every", length, _PERIODS)
    return found
