"""What every engine offers: records become reports, and reports a tally."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from hdr4me.errors import InvalidInput
from hdr4me.io.columns import DataQuality, OnQuality, judge
from hdr4me.registry import Registry
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from hdr4me.tally import Tally

FilePath = str | os.PathLike[str]
Progress = Callable[[int], None]  # called with the number of records or reports done since the last call


class Engine(Protocol):
    """Where the work is done. Every engine gives the same counts for the same reports.

    An engine of another package has these three methods and registers how it is opened in `ENGINES`; the command line
    then knows it as `--engine NAME`, and `hdr4me.checks.check_engine` says whether it keeps the contract.
    """

    def perturb(
        self,
        records: Any,
        survey: Survey,
        target: FilePath,
        *,
        progress: Progress | None = None,
        on_quality: OnQuality = judge,
    ) -> int:
        """Write the reports of records to `target`, whole or not at all; returns how many there are."""

    def data_quality(self, records: Any, survey: Survey) -> DataQuality:
        """What `perturb` would find in the records, without making a report."""

    def tally(
        self,
        reports: Any,
        survey: Survey,
        *,
        quarantine: FilePath | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Tally:
        """Count files of reports, or folders of them; a bad report is left out and counted by its reason."""


# How an engine is opened: with the master's address if one is given; closed when the context ends.
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
    """Every engine's methods take the data first and the survey second: the wrong way round is named."""
    if not isinstance(survey, Survey):
        raise InvalidInput(f"survey = {survey!r} must be a Survey")
