"""Damaged files of records: read with the right meaning or refused in one plain line, never a traceback."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.errors import HDR4MEError
from hdr4me.io import RecordFiles, data_quality, record_batches
from hdr4me.io.columns import from_batch
from hdr4me.survey import Categorical, Numeric, Schema, Survey

SURVEY = Survey(
    Schema([Numeric("age", 0, 120), Categorical("town", ["Köln", "Bath", ""], default="Bath")]),
    mechanism="duchi",
)
TEXT = 'name,age,town\n"a ""b""",31,Köln\nx,,Bath\n"two\nlines",7.5e1,"Ely, North"\nz,NA,\n' * 3
LINES = '{"age": 31, "town": "Köln"}\n\n{"age": "7", "town": null, "x": [1, {"y": 2}]}\n{}\n' * 3
PIECES = [
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"{",
    b"}",
    b"[",
    b";",
    b"\t",
    b"1e999",
]


def mutant(content: bytes, rng: np.random.Generator) -> bytes:
    """A few bits, bytes or pieces changed, put in, doubled or cut off."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(data) + 1))
        kind = int(rng.integers(0, 5))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            data[at:at] = PIECES[int(rng.integers(0, len(PIECES)))]
        elif kind == 2:
            del data[at : at + int(rng.integers(1, 20))]
        elif kind == 3:
            data[at:at] = data[: int(rng.integers(0, 40))]
        elif len(data) > 1:
            del data[max(1, at) :]
    return bytes(data)


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"age": [31.0, None] * 20, "town": ["Köln", None] * 20}), sink)
    return sink.getvalue().to_pybytes()


def arrow() -> bytes:
    table = pa.table({"age": [31.0, None] * 20, "town": ["Köln", None] * 20})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


SEEDS = {
    "r.csv": TEXT.encode(),
    "u.csv": TEXT.encode("utf-16"),
    "r.csv.gz": gzip.compress(TEXT.encode(), mtime=0),
    "r.jsonl": LINES.encode(),
    "r.parquet": parquet(),
    "r.arrow": arrow(),
}


@pytest.mark.parametrize("name", SEEDS)
def test_mutants(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    path = tmp_path / name
    stated: list[str] = []
    for i in range(120):
        path.write_bytes(mutant(SEEDS[name], rng))
        files = RecordFiles(path, encoding="latin-1" if i % 10 == 0 and name != "u.csv" else None)
        try:
            for batch in record_batches(files, SURVEY):
                found = data_quality(from_batch(batch, SURVEY), SURVEY)
                assert (found.counts >= 0).all()
                assert (found.counts[:, 1:].sum(axis=1) <= batch.num_rows).all()
        except HDR4MEError as error:
            stated.append(str(error))
    assert not any("\n" in message or "Ely, North" in message for message in stated)
