"""The --engine option: any registered engine, opened for one command, with progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import print_note, progress

if TYPE_CHECKING:
    from hdr4me.engines import Engine
    from hdr4me.survey import Survey
    from hdr4me.tally import Tally


ENGINE = Annotated[str, Option("--engine", help="Where the work is done: local, spark, or a registered one.")]
MASTER = Annotated[str | None, Option("--master", help="For spark: the master's URL, such as local[2].")]


@contextmanager
def open_engine(engine: str, master: str | None) -> Iterator[Engine]:
    """The engine called `engine`, closed afterwards."""
    from hdr4me.engines import ENGINES

    with named_options(options("engine", "master")):
        opened = ENGINES[engine](master)
        worker = opened.__enter__()
    try:
        yield worker
    finally:
        opened.__exit__(None, None, None)


def tally_files(
    worker: Engine, survey: Survey, reports: Sequence[Path], quarantine: Path | None, strict: bool
) -> Tally:
    """Count files of reports with a progress bar, and say what the quarantine had no room for."""
    from hdr4me.io import count_records
    from hdr4me.io.files import files_of

    sizes = [count_records(file) for path in reports for file in files_of(path)]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with progress("tallying", total) as advance:
        counted = worker.tally(list(reports), survey, quarantine=quarantine, strict=strict, progress=advance)
    _say_left_out(quarantine, sum(counted.rejected.values()))
    return counted


def _say_left_out(quarantine: Path | None, n_rejected: int) -> None:
    """A quarantine has a limit: bad reports beyond it are only counted."""
    from hdr4me.io.report import QUARANTINE_BYTES

    if not n_rejected or quarantine is None or not quarantine.is_file():
        return
    with quarantine.open("rb") as file:
        n_written = sum(b"beyond the quarantine's limit" not in line for line in file)
    if n_written < n_rejected:
        print_note(
            f"note: {quarantine} reached its limit of {QUARANTINE_BYTES >> 20} MiB: it holds {n_written:,} bad "
            f"reports, {n_rejected - n_written:,} more are only counted"
        )
