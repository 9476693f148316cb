"""What every part of the PostgreSQL store needs: the link to the database, known surveys, and the damage found."""

from __future__ import annotations

from dataclasses import dataclass, field

from hdr4me.collector.damage import DamageLog
from hdr4me.collector.postgres_link import Connection, Link
from hdr4me.collector.rounds import find_survey
from hdr4me.collector.statements import SURVEY_DOCUMENT, for_postgres
from hdr4me.survey import Survey

__all__ = ["PostgresHandle"]


@dataclass(frozen=True)
class PostgresHandle:
    """A store in PostgreSQL that is open in this process; any thread may use it.

    Parameters
    ----------
    link
        The way to the database.
    fold_at
        So many reports wait before their counts are merged into the stored tally.
    damage
        What was found damaged, by this process.
    surveys
        Surveys that were read before, by fingerprint.
    """

    link: Link
    fold_at: int
    damage: DamageLog
    surveys: dict[str, Survey] = field(default_factory=dict)

    def survey(self, connection: Connection, fingerprint: str) -> Survey:
        """The survey with a fingerprint."""
        return find_survey(
            self.surveys,
            fingerprint,
            lambda: connection.execute(for_postgres(SURVEY_DOCUMENT), (fingerprint,)).fetchone(),
        )
