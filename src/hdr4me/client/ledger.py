"""The ledger: a small file that remembers how much of the budget is spent; standard library only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from hdr4me.atomic import write_text
from hdr4me.errors import BudgetExceeded, FormatError, InvalidInput
from hdr4me.survey import Survey

__all__ = ["Ledger"]

FORMAT, VERSION = "hdr4me-ledger", 1


class Ledger:
    """Spent ε for each survey and in total, kept as exact fractions in a JSON file.

    A survey may be answered `reports_per_survey` times (once, unless more is asked for); with `limit` the
    sum over all surveys may not exceed it either. A ledger that cannot be read refuses: it never starts anew.

    >>> import tempfile
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=0.5, mechanism="duchi")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder, "ledger.json"), limit=1.0)
    ...     ledger.spend(survey)
    ...     ledger.total, ledger.spent(survey)
    (Fraction(1, 2), Fraction(1, 2))
    """

    def __init__(
        self, path: str | os.PathLike[str], *, limit: float | None = None, reports_per_survey: int = 1
    ) -> None:
        if limit is not None and not (_is_number(limit) and 0 < limit < float("inf")):
            raise InvalidInput(f"limit = {limit!r} is not allowed: it must be positive and finite")
        if type(reports_per_survey) is not int or reports_per_survey < 1:
            raise InvalidInput(f"reports_per_survey = {reports_per_survey!r} must be a whole number from 1")
        # One file, one lock, by whatever name it is opened and wherever the process moves to.
        self.path = Path(os.path.realpath(path))
        self.limit = None if limit is None else Fraction(limit)
        self.reports_per_survey = reports_per_survey

    @property
    def total(self) -> Fraction:
        """All that is spent."""
        return sum(self._read().values(), Fraction(0))

    def spent(self, survey: Survey) -> Fraction:
        """What is spent on this survey."""
        return self._read().get(survey.fingerprint, Fraction(0))

    def spend(self, survey: Survey) -> None:
        """Write down one report's ε, or raise BudgetExceeded and write nothing."""
        cost = Fraction(survey.epsilon)
        with self._locked():
            spent = self._read()
            after = spent.get(survey.fingerprint, Fraction(0)) + cost
            if after > self.reports_per_survey * cost:
                raise BudgetExceeded(
                    f"survey {survey.fingerprint} has been answered {self.reports_per_survey} time(s) "
                    f"at epsilon = {survey.epsilon}: {self.path} allows no more"
                )
            total = sum(spent.values(), Fraction(0)) + cost
            if self.limit is not None and total > self.limit:
                raise BudgetExceeded(
                    f"epsilon = {survey.epsilon} more would make {float(total):g} in total, "
                    f"over the limit of {float(self.limit):g} in {self.path}"
                )
            self._write({**spent, survey.fingerprint: after})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # A lock file of its own: the ledger is replaced at each write, and a lock on the old file would not hold.
        import fcntl

        if not self.path.parent.is_dir():
            raise InvalidInput(f"the ledger {self.path} cannot be kept: its folder does not exist")
        with self.path.with_name(self.path.name + ".lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _read(self) -> dict[str, Fraction]:
        try:
            document: Any = json.loads(self.path.read_bytes())
            if document["format"] != FORMAT or document["version"] != VERSION:
                raise ValueError("format or version")
            spent = {str(survey): Fraction(str(amount)) for survey, amount in document["spent"].items()}
            if min(spent.values(), default=Fraction(0)) < 0:
                raise ValueError("negative amount")
            if sum(spent.values(), Fraction(0)) != Fraction(str(document["total"])):
                raise ValueError("the total is not the sum")
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError) as error:
            raise FormatError(f"{self.path} is not a ledger, so nothing is spent: {error}") from error
        return spent

    def _write(self, spent: dict[str, Fraction]) -> None:
        document = {
            "format": FORMAT,
            "version": VERSION,
            "spent": {survey: str(amount) for survey, amount in sorted(spent.items())},
            "total": str(sum(spent.values(), Fraction(0))),
        }
        write_text(self.path, json.dumps(document, indent=1) + "\n", mode=0o600)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)
