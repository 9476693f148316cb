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

from hdr4me.channels import Channel, KSubset, Table, UnaryEncoding
from hdr4me.channels.subset import Subset
from hdr4me.io.report import pack, unpack
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey

# A busy machine is no failure: examples have no deadline.
settings.register_profile("hdr4me", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hdr4me")

ONE = 1 << 32


def coin() -> Table:
    """Two levels, two cells: only a mean comes through."""
    rows = ((3 * ONE // 4, ONE // 4), (ONE // 4, 3 * ONE // 4))
    return Table("coin", 1.1, {"value": (-2.0, 2.0)}, rows)


def three() -> Table:
    """Five levels, three cells: (w₊ − w₋) carries the value and (w₊ + w₋) its square."""
    rows = []
    for i in range(5):
        quarters, signed = (i - 2) ** 2, i - 2
        total, tilt = ONE // 2 + quarters * (ONE // 32), signed * (ONE // 8)
        rows.append(((total - tilt) // 2, ONE - total, (total + tilt) // 2))
    return Table("three", 0.85, {"value": (-4.0, 0.0, 4.0)}, tuple(rows))


def choice(v: int) -> KSubset:
    """Generalized randomized response with q = 1/(2v)."""
    return KSubset("choice", 3.0, Subset(v, 1), ONE - (v - 1) * (ONE // (2 * v)))


def bits(v: int = 3) -> UnaryEncoding:
    """Unary encoding: a present entry is a fair coin, an absent one is reported once in four times."""
    return UnaryEncoding("bits", 1.1, v, (-1.0, 3.0), ((3 * ONE // 4, ONE // 4), (ONE // 2, ONE // 2)))


@pytest.fixture(scope="session")
def mixed() -> Survey:
    """All three kinds of table; two of the four dimensions are sent."""
    return make_mixed()


def make_mixed(sampled: int = 2, name: str = "") -> Survey:
    schema = Schema(
        [
            Numeric("age", 0, 120, default=40),
            Numeric("debt", -1000, 0, default=-500),
            Categorical("colour", ["red", "green", "blue", "grey"], default="grey"),
            Categorical("pet", ["none", "cat", "dog"], default="none"),
        ]
    )
    questions = [Question((j,), channel) for j, channel in enumerate((three(), coin(), choice(4), bits()))]
    return Survey.from_questions(schema, epsilon=12.0, sampled=sampled, questions=questions, name=name)


@pytest.fixture(scope="session")
def other() -> Survey:
    """The same questions under another name: another survey."""
    return make_mixed(name="other")


@pytest.fixture(scope="session")
def all_sent() -> Survey:
    """Every user answers every question."""
    return make_mixed(sampled=4)


@pytest.fixture(scope="session")
def even(mixed: Survey) -> Survey:
    """The questions that are answered in one byte: all reports have one size on the wire too."""
    questions = [Question((j,), mixed.questions[j].channel) for j in range(3)]
    return Survey.from_questions(
        Schema(mixed.schema.dimensions[:3]), epsilon=12.0, sampled=2, questions=questions
    )


@pytest.fixture(scope="session")
def wire() -> Callable[[np.ndarray, Survey], list[bytes]]:
    """wire(rows, survey): valid reports as they travel, without padding."""
    return lambda rows, survey: [pack(unpack(row.tobytes(), survey), survey, padded=False) for row in rows]


def codes(channel: Channel, flat: np.ndarray, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One code for each value: on [-1, 1], or the number of a row, by the survey's own integers."""
    rows = channel.rows
    assert rows is not None
    if isinstance(channel, Table):
        place = np.rint((values + 1) / 2 * ((len(rows) - 1) << 16)).astype(np.int64)
    else:
        place = values.astype(np.int64) << 16
    row = (place >> 16) + (rng.integers(0, 1 << 16, place.shape, dtype=np.uint16) < (place & 0xFFFF))
    word = rng.integers(0, ONE, place.shape, dtype=np.uint32) + (row << 32)
    return (np.searchsorted(flat, word, side="right") - row * len(rows[0])).astype(np.uint8)


def cumulative(channel: Channel) -> np.ndarray:
    """The rows' running sums end to end, row i raised by i·2^32: one search finds the cell of any row."""
    weights = np.array(channel.rows, np.int64)
    return (np.cumsum(weights, axis=1) + (np.arange(len(weights))[:, None] << 32)).ravel()


Values = Callable[[int, np.ndarray], np.ndarray]
Simulate = Callable[[Survey, int, Values, np.random.Generator], np.ndarray]


@pytest.fixture(scope="session")
def simulate() -> Simulate:
    """reports = simulate(survey, n, value_of, rng); value_of(j, users) is on [-1, 1], or a category's number."""
    return _simulate


def _simulate(survey: Survey, n: int, value_of: Values, rng: np.random.Generator) -> np.ndarray:
    assert survey.byte_wise
    d, m, size = len(survey.schema), survey.sampled, survey.slot_size
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
    sums = {id(channel): cumulative(channel) for channel in survey.channels}
    for j, question in enumerate(survey.questions):
        users, slots = np.divmod(order[ends[j] : ends[j + 1]], m)
        channel, values = question.channel, value_of(j, users)
        if isinstance(channel, UnaryEncoding):
            values = values[:, None] == np.arange(channel.size)
            reports[users, slots, 2 : 2 + channel.size] = codes(channel, sums[id(channel)], values, rng)
        else:
            reports[users, slots, 2] = codes(channel, sums[id(channel)], values, rng)
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


# -- surveys of hand-written channels for records and engines ----------------------------------------------------


def steep_coin(bias: int = 3) -> Table:
    """Two levels, two cells, at ratio `bias`: Duchi's shape."""
    small = ONE // (1 + bias)
    big = ONE - small
    c = ONE / (big - small)
    return Table("coin", 2.0, {"value": (-c, c)}, ((big, small), (small, big)))


def response(v: int) -> KSubset:
    """Generalized randomized response on v categories."""
    return KSubset("grr", 3.0, Subset(v, 1), ONE - (v - 1) * (ONE // (v + 3)))


def flipped(v: int) -> UnaryEncoding:
    """One code per category: an entry is kept or flipped."""
    small, half = ONE // 4, ONE // 2
    p, q = half / ONE, small / ONE
    return UnaryEncoding(
        "bits", 3.0, v, (-q / (p - q), (1 - q) / (p - q)), ((ONE - small, small), (half, half))
    )


@pytest.fixture
def numeric_survey() -> Survey:
    """Six numbers, two sent by each user."""
    schema = Schema(Numeric(f"x{j}", -j - 1, 2 * j + 3, default=j / 2) for j in range(6))
    shared = steep_coin()
    questions = [Question((j,), shared) for j in range(6)]
    return Survey.from_questions(schema, epsilon=4.0, sampled=2, questions=questions)


@pytest.fixture
def mixed_survey() -> Survey:
    """A number, a category and one of entries; all are sent."""
    schema = Schema(
        [
            Numeric("age", 0, 120, default=30),
            Categorical("colour", ["red", "green", "blue"], default="green"),
            Categorical("rooms", [1, 2, 3, 4], default=2),
        ]
    )
    questions = [Question((j,), channel) for j, channel in enumerate((steep_coin(), response(3), flipped(4)))]
    return Survey.from_questions(schema, epsilon=9.0, sampled=3, questions=questions)


@pytest.fixture(scope="session")
def alias_weights() -> Callable[[Any, int], Any]:
    """The weights int64 [L, 2^bits] that packed alias entries stand for, added up unit by unit."""

    def weights_of(entries: Any, bits: int) -> Any:
        weights = np.zeros(entries.shape, np.int64)
        for row, packed in zip(weights, entries.astype(np.int64), strict=True):
            threshold, other = packed >> bits, packed & ((1 << bits) - 1)
            row += threshold
            np.add.at(row, other, (1 << (32 - bits)) - threshold)
        return weights

    return weights_of
