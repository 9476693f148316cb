"""The protocol of engines, which turn records into reports and reports into a tally."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from hdr4me.errors import InvalidInput
from hdr4me.io.quality import DataQuality, OnQuality, check_quality
from hdr4me.registry import Registry
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from hdr4me.tally import Tally

FilePath = str | os.PathLike[str]
Progress = Callable[[int], None]  # called with the number of records or reports done since the last call


class Engine(Protocol):
    """An engine. Every engine gives the same counts for the same reports.

    An engine of another package implements these three methods and registers a function that opens it in `ENGINES`. The
    command line then supports it as `--engine NAME`. `hdr4me.checks.check_engine` tests its contract.
    """

    def perturb(
        self,
        records: Any,
        survey: Survey,
        target: FilePath,
        *,
        progress: Progress | None = None,
        on_quality: OnQuality = check_quality,
    ) -> int:
        """Write the reports of records to `target` atomically; returns the number of reports."""

    def data_quality(self, records: Any, survey: Survey) -> DataQuality:
        """The data-quality report of records, without creating reports."""

    def tally(
        self,
        reports: Any,
        survey: Survey,
        *,
        quarantine: FilePath | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Tally:
        """Count files or folders of reports; bad reports are excluded and counted by reason."""


# Functions that open an engine, with the address of the master if given; the context closes it.
Open = Callable[[str | None], AbstractContextManager[Engine]]

ENGINES: Registry[Open] = Registry(
    "engine",
    "engines",
    {"local": "hdr4me.engines.local:open_local", "spark": "hdr4me.engines.spark_session:open_spark"},
)


def paths_of(reports: FilePath | Sequence[FilePath]) -> list[FilePath]:
    """One path or several, as a list."""
    return [reports] if isinstance(reports, str | os.PathLike) else list(reports)


def check_survey(survey: object) -> None:
    """Raise an error unless `survey` is a Survey: all methods of engines accept the data first."""
    if not isinstance(survey, Survey):
        raise InvalidInput(f"survey = {survey!r} must be a Survey")
