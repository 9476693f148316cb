"""Both kinds of store, empty: SQLite in a file, and a real PostgreSQL that starts in a second."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hdr4me.survey import Categorical, Numeric, Schema, Survey

psycopg = pytest.importorskip("psycopg")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of this session's own."""
    pytest.importorskip("psutil")  # comes with the server
    postgres_server = pytest.importorskip("postgres_server")

    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = postgres_server.make(Path(folder, "d"))
        yield server
        postgres_server.kill(server, signal.SIGQUIT)  # at once, without a last checkpoint: nothing is kept


@pytest.fixture
def emptied() -> Callable[[str], None]:
    """emptied(url): no table of the store is left there."""

    def empty(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("set client_min_messages = error")
            connection.execute("drop schema if exists hdr4me cascade")

    return empty


@pytest.fixture
def database(postgres: Any, emptied: Callable[[str], None]) -> str:
    """The URL of a database without tables of the store."""
    emptied(postgres.get_uri())
    return postgres.get_uri()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A place for a store, of each kind."""
    if request.param == "sqlite":
        return tmp_path / "reports.db"
    return request.getfixturevalue("database")


@pytest.fixture
def opened() -> Iterator[Callable[[Any], Any]]:
    """opened(where): the store there; all are closed in the end."""
    from hdr4me.collector import open_store

    made: list[Any] = []

    def open_one(where: Any) -> Any:
        made.append(open_store(where))
        return made[-1]

    yield open_one
    for store in made:
        store.close()


@pytest.fixture
def store(where: Any, opened: Callable[[Any], Any]) -> Any:
    """An empty store of each kind."""
    return opened(where)


@pytest.fixture(scope="session")
def small_survey() -> Survey:
    """Two dimensions, one is answered: reports of three bytes."""
    schema = Schema([Numeric("age", 0, 120), Categorical("pet", ["none", "cat"])])
    return Survey(schema, epsilon=2.0, mechanism="duchi", sampled=1)
