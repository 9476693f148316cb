"""The loader of the CORD-19 embeddings file."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from hdr4me.errors import FormatError
from hdr4me.paper.datasets import load_cov19


@pytest.fixture
def vectors():
    return np.random.default_rng(1).normal(size=(20, 6)).astype(np.float32)


def _lines(vectors):
    return "".join(f"id{i}," + ",".join(map(repr, row.tolist())) + "\n" for i, row in enumerate(vectors))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("heading", ["", "cord_uid,a,b,c,d,e,f\n"])
def test_plain_and_packed_with_and_without_a_heading(tmp_path, vectors, packed, heading):
    path = tmp_path / "embeddings"  # the first bytes determine the format, not the name
    text = (heading + _lines(vectors)).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if packed else text)
    load_cov19(path, 100, 10, tmp_path / "rows")
    assert np.array_equal(np.fromfile(tmp_path / "rows", dtype=np.float32).reshape(20, 6), vectors)


def test_the_first_users_and_dimensions_are_taken(tmp_path, vectors):
    path = tmp_path / "e.csv"
    path.write_text(_lines(vectors))
    data = load_cov19(path, 10, 4, tmp_path / "rows", "min-max")
    assert (data.users, data.dims, data.stand_in, data.title) == (10, 4, False, path.name)
    column = vectors[:10, 2]
    expected = 2 * (column - column.min()) / (column.max() - column.min()) - 1
    assert np.allclose(data.column(2), expected, atol=1e-6)


def test_a_short_file_gives_what_it_has(tmp_path, vectors):
    path = tmp_path / "e.csv"
    path.write_text(_lines(vectors))
    data = load_cov19(path, 150_000, 750, tmp_path / "rows", "fixed")
    assert (data.users, data.dims) == (20, 6)
    assert np.allclose(data.column(5), vectors[:, 5] / 10, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,1,2\nb,1\n", "Row #2: Expected 3 columns, got 2"),
        ("a,1,2\nb,1,x\n", "Row #2: .* invalid value 'x'"),
        ("a,1,2\nb,1,nan\n", "vector 2: every number must be finite"),
        ("a\n", "line 1: an id and at least one number"),
        ("a,1,2\n", "at least two vectors are needed, found 1"),
        ("id,a\n", "at least two vectors are needed, found 0"),
        ("", "is empty"),
    ],
)
def test_errors_name_the_line(tmp_path, text, message):
    path = tmp_path / "e.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        load_cov19(path, 10, 10, tmp_path / "rows")


def test_a_truncated_gzip_is_a_plain_error(tmp_path, vectors):
    path = tmp_path / "e.csv.gz"
    path.write_bytes(gzip.compress(_lines(vectors).encode())[:-20])
    with pytest.raises(FormatError, match=r"e\.csv\.gz: not a readable CSV"):
        load_cov19(path, 100, 10, tmp_path / "rows")


def test_bytes_that_are_no_text_are_a_plain_error(tmp_path):
    path = tmp_path / "e.csv"
    path.write_bytes(b"a,1,2\n\xff\xfe\n")
    with pytest.raises(FormatError, match="not a readable CSV"):
        load_cov19(path, 100, 10, tmp_path / "rows")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FormatError, match="not a readable CSV"):
        load_cov19(tmp_path / "none.csv", 10, 10, tmp_path / "rows")
