"""The two locks of a round in PostgreSQL, both held until the transaction ends.

The lock of the state is shared by writers and held alone by whoever closes or seals the round. The lock of the counts
is held by whoever changes the stored tally. Whoever takes both takes the state first.
"""

from __future__ import annotations

from hdr4me.collector.postgres_link import Connection

__all__ = ["hold_counts", "hold_state", "share_state"]

_STATE, _COUNTS = 0x6844, 0x6845


def hold_state(connection: Connection, round: int) -> None:
    """Wait until the writers of a round have ended; new ones wait."""
    connection.execute("select pg_advisory_xact_lock(%s, %s)", (_STATE, round))


def share_state(connection: Connection, round: int) -> None:
    """Keep a round in its state."""
    connection.execute("select pg_advisory_xact_lock_shared(%s, %s)", (_STATE, round))


def hold_counts(connection: Connection, round: int) -> None:
    """Be the only one who changes the stored tally of a round."""
    connection.execute("select pg_advisory_xact_lock(%s, %s)", (_COUNTS, round))
