"""Small surveys made by hand, and a fast simulation of their reports: no table here needs a mechanism."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from hdr4me.survey import Categorical, Numeric, Randomizer, Schema, Survey

# A busy machine is no failure: examples have no deadline.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

ONE = 1 << 32


def coin() -> Randomizer:
    """Two levels, two cells: only a mean comes through."""
    return Randomizer("coin", 1.1, "value", (-2.0, 2.0), ((3 * ONE // 4, ONE // 4), (ONE // 4, 3 * ONE // 4)))


def three() -> Randomizer:
    """Five levels, three cells: (w₊ − w₋) carries the value and (w₊ + w₋) its square."""
    rows = []
    for i in range(5):
        quarters, signed = (i - 2) ** 2, i - 2
        total, tilt = ONE // 2 + quarters * (ONE // 32), signed * (ONE // 8)
        rows.append(((total - tilt) // 2, ONE - total, (total + tilt) // 2))
    return Randomizer("three", 0.85, "value", (-4.0, 0.0, 4.0), tuple(rows))


def choice(v: int) -> Randomizer:
    """Generalised randomised response with q = 1/(2v)."""
    q = ONE // (2 * v)
    p = ONE - (v - 1) * q
    decode = ((ONE - q) / (p - q), -q / (p - q))
    rows = tuple(tuple(p if y == i else q for y in range(v)) for i in range(v))
    return Randomizer("choice", 3.0, "category", decode, rows)


def bits() -> Randomizer:
    """Unary encoding: a present entry is a fair coin, an absent one is reported once in four times."""
    return Randomizer("bits", 1.1, "entries", (-1.0, 3.0), ((3 * ONE // 4, ONE // 4), (ONE // 2, ONE // 2)))


@pytest.fixture(scope="session")
def mixed() -> Survey:
    """All three kinds of table; two of the four dimensions are sent."""
    return make_mixed()


def make_mixed(n_sampled: int = 2, name: str = "") -> Survey:
    schema = Schema(
        [
            Numeric("age", 0, 120, default=40),
            Numeric("debt", -1000, 0),
            Categorical("colour", ["red", "green", "blue", "grey"], default="grey"),
            Categorical("pet", ["none", "cat", "dog"]),
        ]
    )
    tables = (three(), coin(), choice(4), bits())
    return Survey.from_tables(
        schema, epsilon=12.0, n_sampled=n_sampled, randomizers=tables, assignment=(0, 1, 2, 3), name=name
    )


@pytest.fixture(scope="session")
def other() -> Survey:
    """The same questions under another name: another survey."""
    return make_mixed(name="other")


@pytest.fixture(scope="session")
def all_sent() -> Survey:
    """Every user answers every question."""
    return make_mixed(n_sampled=4)


def codes(table: Randomizer, flat: np.ndarray, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One code for each value: on [-1, 1], or the number of a row, by the survey's own integers."""
    if table.kind == "value":
        place = np.rint((values + 1) / 2 * ((table.n_levels - 1) << 16)).astype(np.int64)
    else:
        place = values.astype(np.int64) << 16
    row = (place >> 16) + (rng.integers(0, 1 << 16, place.shape, dtype=np.uint16) < (place & 0xFFFF))
    word = rng.integers(0, ONE, place.shape, dtype=np.uint32) + (row << 32)
    return (np.searchsorted(flat, word, side="right") - row * table.n_cells).astype(np.uint8)


def cumulative(table: Randomizer) -> np.ndarray:
    """The rows' running sums end to end, row i raised by i·2^32: one search finds the cell of any row."""
    return (np.cumsum(table.weights, axis=1) + (np.arange(table.n_levels)[:, None] << 32)).ravel()


Values = Callable[[int, np.ndarray], np.ndarray]
Simulate = Callable[[Survey, int, Values, np.random.Generator], np.ndarray]


@pytest.fixture(scope="session")
def simulate() -> Simulate:
    """reports = simulate(survey, n, value_of, rng); value_of(j, users) is on [-1, 1], or a category's number."""
    return _simulate


def _simulate(survey: Survey, n: int, value_of: Values, rng: np.random.Generator) -> np.ndarray:
    d, m, size = len(survey.schema), survey.n_sampled, survey.slot_size
    if m == 1:
        sampled = rng.integers(0, d, (n, 1))
    elif m == d:
        sampled = np.broadcast_to(np.arange(d), (n, d))
    else:
        sampled = np.sort(np.argsort(rng.random((n, d)), axis=1)[:, :m], axis=1)
    reports = np.zeros((n, m, size), np.uint8)
    reports[:, :, 0], reports[:, :, 1] = sampled & 0xFF, sampled >> 8
    order = np.argsort(sampled.astype(np.uint16), axis=None, kind="stable")  # sixteen bits: a radix sort
    ends = np.searchsorted(sampled.ravel()[order], np.arange(d + 1))
    sums = [cumulative(table) for table in survey.randomizers]
    for j in range(d):
        users, slots = np.divmod(order[ends[j] : ends[j + 1]], m)
        values, table, flat = value_of(j, users), survey.randomizer(j), sums[survey.assignment[j]]
        if table.kind == "entries":
            values = values[:, None] == np.arange(survey.n_codes(j))
            reports[users, slots, 2 : 2 + survey.n_codes(j)] = codes(table, flat, values, rng)
        else:
            reports[users, slots, 2] = codes(table, flat, values, rng)
    return reports.reshape(n, survey.report_size)


@pytest.fixture(scope="session")
def some_reports(mixed: Survey, simulate: Simulate) -> np.ndarray:
    """A thousand reports to the mixed survey."""
    rng = np.random.default_rng(20260101)
    values = (np.linspace(-1, 1, 1000), np.zeros(1000), np.arange(1000) % 4, np.arange(1000) % 3)
    return simulate(mixed, 1000, lambda j, users: values[j][users], rng)


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """One Spark on two cores of this machine for all tests of a process."""
    java_home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (java_home and Path(java_home, "bin", "java").exists())):
        pytest.skip("no Java on this machine: Spark needs Java 17 or later")
    from hdr4me.engines import open_session

    quick = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = open_session("local[2]", settings=quick)
    yield session
    session.stop()
