"""The collector: it receives reports over HTTP, stores them in SQL, and answers queries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hdr4me.collector.stores.protocol import Registry, Store

__all__ = ["open_registry", "open_store"]


def is_postgres(where: str | os.PathLike[str]) -> bool:
    """Whether a store is the URL of a PostgreSQL database, not the path of an SQLite file."""
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


def open_store(where: str | os.PathLike[str]) -> Store:
    """The store at a path (SQLite; created if it does not exist) or at a URL `postgresql://…`."""
    if is_postgres(where):
        from hdr4me.collector.stores.postgres.store import PostgresStore

        return PostgresStore(str(where))
    from hdr4me.collector.stores.sqlite.store import SqliteStore

    return SqliteStore(where)


def open_registry(where: str | os.PathLike[str]) -> Registry:
    """The tokens and the log of acts of a store, which may be open in a collector."""
    if is_postgres(where):
        return open_store(where)
    from hdr4me.collector.stores.sqlite.database import SqliteRegistry

    return SqliteRegistry(where)
