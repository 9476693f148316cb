"""The SQL statements that both stores run alike; `?` stands for a value in both dialects."""

from __future__ import annotations

from hdr4me.collector.blocks import COLUMNS

__all__ = [
    "ADD_ROUND",
    "ADD_SURVEY",
    "BLOCK_COLUMNS",
    "CLOSE_ROUND",
    "SEAL_ROUND",
    "SURVEY_DOCUMENT",
    "TALLY_CONTENT",
    "for_postgres",
]

BLOCK_COLUMNS = ", ".join(COLUMNS)
"""The columns of the table of blocks, in the order of `Block.row`."""

ADD_SURVEY = "insert into surveys values (?, ?) on conflict do nothing"
"""Values: fingerprint, document."""

SURVEY_DOCUMENT = "select document from surveys where fingerprint = ?"

ADD_ROUND = "insert into rounds values (?, ?, 'open', ?, null)"
"""Values: number, fingerprint, day of opening."""

CLOSE_ROUND = "update rounds set state = 'closed', closed = ? where number = ?"
SEAL_ROUND = "update rounds set state = 'sealed' where number = ?"

TALLY_CONTENT = "select content from tallies where round = ? and kind = ?"


def for_postgres(sql: str) -> str:
    """A statement in the dialect of PostgreSQL's driver.

    >>> for_postgres(SEAL_ROUND)
    "update rounds set state = 'sealed' where number = %s"
    """
    return sql.replace("?", "%s")
