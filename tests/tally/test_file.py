"""A tally's file: self-contained, checked to the last byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import _checksum, dumps, loads


@pytest.fixture(scope="session")
def tally(mixed: Survey, some_reports: np.ndarray) -> Tally:
    return Tally(mixed).add_block(some_reports).add_block(np.full((3, 10), 255, np.uint8))


def changed(tally: Tally, change: dict[str, Any], counts: np.ndarray | None = None) -> bytes:
    """The file with other contents and a checksum that fits them."""
    first, _, data = dumps(tally).partition(b"\n")
    data = data if counts is None else counts.astype("<i8").tobytes()
    header = {**json.loads(first), **change}
    header["checksum"] = _checksum(header, data)
    return json.dumps(header).encode() + b"\n" + data


def test_round_trip_with_and_without_the_survey(mixed: Survey, tally: Tally, tmp_path) -> None:
    tally.save(tmp_path / "t")
    assert Tally.load(tmp_path / "t") == tally == Tally.load(tmp_path / "t", mixed)
    assert dumps(Tally.load(tmp_path / "t")) == (tmp_path / "t").read_bytes()
    assert Tally.load(tmp_path / "t").rejected == {"unknown dimension": 3}


def test_the_empty_tally_too(mixed: Survey) -> None:
    assert loads(dumps(Tally(mixed))) == Tally(mixed)


def test_another_survey_names_both_and_the_file(mixed: Survey, other: Survey, tally: Tally, tmp_path) -> None:
    tally.save(tmp_path / "mine.tally")
    with pytest.raises(FingerprintMismatch, match=r"mine\.tally") as caught:
        Tally.load(tmp_path / "mine.tally", other)
    assert {caught.value.expected, caught.value.found} == {mixed.fingerprint, other.fingerprint}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "not a tally"),
        ({"version": 2}, "version 2"),
        ({"version": True}, "version True"),
        ({"extra": 1}, "fields"),
        ({"document": 3}, "survey is missing"),
        ({"document": "{}"}, "not a survey"),
        ({"survey": "ab"}, "belongs to survey ab"),
        ({"n_counts": 3}, "bytes of counts"),
        ({"n_reports": 999}, "do not add up"),
        ({"n_reports": -1}, "n_reports"),
        ({"n_reports": 1000.0}, "n_reports"),
        ({"rejected": []}, "rejected"),
        ({"rejected": {"boredom": 1}}, "known reasons"),
        ({"rejected": {"missing": -1}}, "positive"),
        ({"n_reports": 2**60}, "canonical"),
    ],
)
def test_wrong_headers(tally: Tally, change: dict[str, Any], message: str) -> None:
    def load() -> None:
        loads(changed(tally, change))

    with pytest.raises(FormatError, match=message):
        load()


def test_counts_that_do_not_add_up(tally: Tally) -> None:
    for index, by in [(0, 1), (0, -(10**6)), (10, 1), (14, 2**40)]:
        counts = tally.counts.copy()
        counts[index] += by
        with pytest.raises(FormatError, match="do not add up"):
            loads(changed(tally, {}, counts))
    counts = (
        tally.counts.copy()
    )  # one answer moved to another dimension's cell: more than the users could give
    counts[:3], counts[3:5] = [1000, 1, 0], [int(counts[:5].sum()) - 1001, 0]
    with pytest.raises(FormatError, match="do not add up"):
        loads(changed(tally, {}, counts))
    with pytest.raises(FormatError, match="bytes of counts"):
        loads(changed(tally, {}, tally.counts[:-1]))


@given(st.data())
def test_any_mutation_is_noticed(tally: Tally, data: st.DataObject) -> None:
    content = bytearray(dumps(tally))
    at = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    if kind == "flip":
        content[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del content[at:]
    else:
        content[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    try:
        found = loads(bytes(content))
    except FormatError:
        return
    assert found == tally  # white space between the header's fields says nothing


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[" * 100_000 + b"\n", b"\xff\n"])
def test_not_a_tally(content: bytes, tmp_path) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FormatError, match="not a tally"):
        Tally.load(tmp_path / "x")


def test_a_full_disk_leaves_no_file(tally: Tally, tmp_path, monkeypatch) -> None:
    import os

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        tally.save(tmp_path / "t")
    assert not list(tmp_path.iterdir())


def test_rejected_counts_beyond_what_a_file_can_hold(mixed: Survey, tmp_path: Path) -> None:
    """Two tallies that could each be saved: so can their sum, in any order of adding."""
    tallies = [Tally(mixed) for _ in range(3)]
    for tally, number in zip(tallies, (2**53, 2**53 - 1, 5), strict=True):
        tally._rejected["missing"] = number
    a, b, c = tallies
    total = a + b + c
    assert total == a + (b + c) == c + b + a
    total.save(tmp_path / "t")
    assert Tally.load(tmp_path / "t") == total
    assert total.rejected == {"missing": 2**53}
