"""The --engine option: this machine or Spark, behind the same two verbs, with progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from hdr4me.cli.output import progress
from hdr4me.errors import FormatError, InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hdr4me.records import Account, RecordFiles
    from hdr4me.records.account import OnAccount
    from hdr4me.survey import Survey
    from hdr4me.tally import Tally

__all__ = ["ENGINE", "MASTER", "Worker", "open_engine"]

ENGINE = Annotated[str, typer.Option("--engine", help="Where the work is done: local or spark.")]
MASTER = Annotated[
    str | None, typer.Option("--master", help="For spark: the master's URL, such as local[2].")
]


class Worker(Protocol):
    """What a command asks of an engine."""

    def perturb(self, survey: Survey, records: RecordFiles, output: Path, on_account: OnAccount) -> int:
        """Write the reports of files of records; how many there are."""

    def account(self, survey: Survey, records: RecordFiles) -> Account:
        """What is in the records, without making a report."""

    def tally(self, survey: Survey, reports: Sequence[Path], quarantine: Path | None, strict: bool) -> Tally:
        """Count files of reports; bad ones go to the quarantine, or the first one is an error."""


@contextmanager
def open_engine(engine: str, master: str | None) -> Iterator[Worker]:
    """The engine called `engine`, closed afterwards."""
    if engine not in ("local", "spark"):
        raise InvalidInput(f"--engine {engine!r} is not known: use local or spark")
    if engine == "local":
        if master is not None:
            raise InvalidInput(f"--master {master!r} goes with --engine spark")
        yield _Local()
        return
    from hdr4me.engines import open_session

    session = open_session(master)
    try:
        yield _Spark(session)
    finally:
        session.stop()


class _Local:
    def perturb(self, survey: Survey, records: RecordFiles, output: Path, on_account: OnAccount) -> int:
        from hdr4me.engines import Local, count_records

        sizes = [count_records(path) for path in records.files()]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        with progress("perturbing", total) as advance:
            return Local().perturb(records, survey, output, progress=advance, on_account=on_account)

    def account(self, survey: Survey, records: RecordFiles) -> Account:
        from hdr4me.engines import Local

        return Local().account(records, survey)

    def tally(self, survey: Survey, reports: Sequence[Path], quarantine: Path | None, strict: bool) -> Tally:
        from hdr4me.engines import Local, count_records
        from hdr4me.reports import Quarantine, refuse

        reports = _files(reports)
        sizes = [count_records(path) for path in reports]
        with ExitStack() as stack:
            handler = None
            if strict:
                handler = refuse
            elif quarantine is not None:
                handler = stack.enter_context(Quarantine(quarantine))
            total = None if None in sizes else sum(size or 0 for size in sizes)
            advance = stack.enter_context(progress("tallying", total))
            return Local().tally(reports, survey, on_rejected=handler, progress=advance)


class _Spark:
    def __init__(self, session: SparkSession) -> None:
        from hdr4me.engines import spark

        self._engine = spark(session)

    def perturb(self, survey: Survey, records: RecordFiles, output: Path, on_account: OnAccount) -> int:
        return self._engine.perturb(records, survey, output, on_account=on_account)

    def account(self, survey: Survey, records: RecordFiles) -> Account:
        return self._engine.account(records, survey)

    def tally(self, survey: Survey, reports: Sequence[Path], quarantine: Path | None, strict: bool) -> Tally:
        counted = self._engine.tally(list(reports), survey, quarantine=quarantine)
        if strict and counted.rejected:
            reason, number = next(iter(counted.rejected.items()))
            raise FormatError(f"{number} bad reports: {reason}")
        return counted


def _files(paths: Sequence[Path]) -> list[Path]:
    """The paths, each folder (as Spark writes them) replaced by its files of reports."""
    from hdr4me.reports.files import SUFFIXES

    found: list[Path] = []
    for path in paths:
        inside = (
            [part for part in sorted(path.iterdir()) if part.suffix in SUFFIXES] if path.is_dir() else [path]
        )
        if not inside:
            raise FormatError(f"{path} is a folder without files of reports ({', '.join(SUFFIXES)})")
        found += inside
    return found
