"""The settings of a collector: the options of `hdr4me serve`, and the limits of a request."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hdr4me.collector import is_postgres
from hdr4me.errors import InvalidInput

_ORIGIN = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Limits:
    """The limits of a collector; every number is a maximum unless stated otherwise."""

    report_bytes: int = 16 << 10  # of a request with one report; more if the reports of a survey are longer
    body_bytes: int = 8 << 20  # of any other request, as sent and after decompression
    reports: int = 10_000  # in one request
    header_bytes: int = 16 << 10  # of a request's first line and headers
    seconds: float = 10.0  # from the first byte of a request to its last
    idle_seconds: float = 60.0  # between two requests on one connection
    waiting_bytes: int = 128 << 20  # of requests that are being read, before 503 is answered
    waiting_reports: int = 1_000_000  # that wait to be written, before 503 is answered
    connections: int = 8_192  # before 503 is answered
    rate: float = 100_000.0  # reports per second for each upload token, over a minute
    deletions: float = 20.0  # of reports per second, over a minute
    free_bytes: int = 256 << 20  # minimum of free space for the store; below it 507 is answered

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if not value > 0 and name != "free_bytes":
                raise InvalidInput.of(name, value, "a positive number")


@dataclass(frozen=True)
class Settings:
    """The settings of one worker; they are passed to worker processes."""

    database: str  # a path for SQLite, or postgresql://…
    min_reports: int = 100  # no answer from fewer valid reports; also the smallest step between two answers
    allow_origins: tuple[str, ...] = ()  # origins (https://example.org) whose pages may call the collector
    retain_days: int = 7  # days after closing until only the tally of a round is kept
    tolerance: float | None = None  # the planned tolerance, as in `hd.plan`; by default that of the survey
    data_quality: tuple[str, ...] = ()  # data-quality reports of records that were sent in batches
    secret: bytes = b""  # signs sessions; the same in all workers
    link_key: str = ""  # the key of the dashboard's link
    run_folder: str = ""  # a folder of this run that all workers share
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if type(self.min_reports) is not int or self.min_reports < 1:
            raise InvalidInput.of("min_reports", self.min_reports, "a positive integer")
        if type(self.retain_days) is not int or self.retain_days < 0:
            raise InvalidInput.of("retain_days", self.retain_days, "a nonnegative number of days")
        if self.tolerance is not None and not 0 < self.tolerance <= 1:
            raise InvalidInput.of("tolerance", self.tolerance, "on the scale [-1, 1], above 0 and at most 1")
        for origin in self.allow_origins:
            if not _ORIGIN.fullmatch(origin):
                raise InvalidInput.of(
                    "allow_origins",
                    origin,
                    "a scheme, a host and optionally a port, such as https://example.org",
                )

    @property
    def snapshots(self) -> Path | None:
        """The folder of the shown answers: beside the SQLite file, or for PostgreSQL in the folder of this run."""
        if not is_postgres(self.database):
            return Path(f"{self.database}.shown")
        return Path(self.run_folder, "shown") if self.run_folder else None
