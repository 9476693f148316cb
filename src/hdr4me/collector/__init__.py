"""The collector: takes reports over HTTP, keeps them in SQL, and answers. The only room that knows either."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hdr4me.collector.store import Store

__all__ = ["open_store"]


def open_store(where: str | os.PathLike[str]) -> Store:
    """The store at a path (SQLite; made if it is not there) or at a URL `postgresql://…`.

    Raises
    ------
    StoreBusy
        Another process has the SQLite file open.
    StoreUnavailable
        The database does not answer.
    SchemaTooNew
        The store was written by a newer version of this program.
    FormatError
        The file is not a store.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(Path(folder, "reports.db"))
    ...     store.rounds(), store.schema_version
    ...     store.close()
    ([], 1)
    """
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from hdr4me.collector.postgres import PostgresStore

        return PostgresStore(where)
    from hdr4me.collector.sqlite import SqliteStore

    return SqliteStore(where)
