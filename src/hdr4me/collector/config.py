"""The settings of a collector: what `hdr4me serve` was told."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hdr4me.collector.limits import Limits
from hdr4me.errors import InvalidInput

__all__ = ["Settings"]

_ORIGIN = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Settings:
    """Everything that a worker needs to know; it travels to worker processes.

    Parameters
    ----------
    database
        A path for SQLite, or `postgresql://…`.
    min_reports
        No answer is given from fewer valid reports, and answers are renewed in steps of at least as many.
    origins
        Origins (`https://example.org`) whose pages may call the collector.
    retain_days
        Days after closing until only the tally of a round is kept.
    open_upload
        Whether reports are taken without a token.
    tolerance
        The planned half-width of 95 % intervals, as a share of each dimension's range; None if none was planned.
    secret
        Signs sessions; the same in all workers.
    link_key, run_folder
        The dashboard link's key, and a folder of this run that all workers share.
    limits
        What a request may cost.
    """

    database: str
    min_reports: int = 100
    origins: tuple[str, ...] = ()
    retain_days: int = 7
    open_upload: bool = True
    tolerance: float | None = None
    secret: bytes = b""
    link_key: str = ""
    run_folder: str = ""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if type(self.min_reports) is not int or self.min_reports < 1:
            raise InvalidInput.of("min_reports", self.min_reports, "a whole number from 1")
        if type(self.retain_days) is not int or self.retain_days < 0:
            raise InvalidInput.of("retain_days", self.retain_days, "a whole number of days from 0")
        if self.tolerance is not None and not 0 < self.tolerance <= 1:
            raise InvalidInput.of("tolerance", self.tolerance, "a share of the range, above 0 and at most 1")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise InvalidInput.of(
                    "origins", origin, "a scheme, a host and perhaps a port, such as https://example.org"
                )

    @property
    def shelf(self) -> Path | None:
        """Where the shown answers are kept: beside the SQLite file, or for PostgreSQL in the folder of this run."""
        if not self.is_postgres:
            return Path(f"{self.database}.shown")
        return Path(self.run_folder, "shown") if self.run_folder else None

    @property
    def is_postgres(self) -> bool:
        """Whether the database is a PostgreSQL server."""
        return self.database.startswith(("postgresql://", "postgres://"))
