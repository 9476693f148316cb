"""Binary files keep what they promise: a flipped bit never loses records in silence, and no file is without records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.engines import Local
from hdr4me.errors import FormatError, HDR4MEError, InvalidInput
from hdr4me.io import RecordFiles, record_batches
from hdr4me.io.reading import plan_parts, read_part
from hdr4me.survey import Categorical, Numeric, Schema, Survey

SURVEY = Survey(Schema([Numeric("x", 0, 1), Categorical("c", ["a", "b"])]), mechanism="duchi")
N = 300


def table(n: int = N) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({"x": rng.random(n), "c": np.where(rng.random(n) < 0.5, "a", "b")})


def test_a_bit_that_lost_every_record(tmp_path: Path) -> None:
    """A bit of byte 5 made 300 records none, with exit code 0."""
    survey = Survey(Schema([Numeric("x", 0, 1)]), mechanism="duchi")
    path, stated = tmp_path / "r.parquet", []
    pq.write_table(table().select(["x"]), path)
    content = path.read_bytes()
    for place in range(4 * 8, 7 * 8):
        broken = bytearray(content)
        broken[place // 8] ^= 1 << place % 8
        path.write_bytes(broken)
        try:
            assert Local(1).perturb(path, survey, tmp_path / "out.parquet") == N
        except FormatError as error:
            stated.append(str(error))
    assert any("is damaged: it has 0 rows, but its footer claims 300" in message for message in stated)


def test_a_footer_that_contradicts_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(table(), path, row_group_size=100)
    whole = plan_parts(RecordFiles(path), 1)
    assert [part.row_groups for part in whole] == [(0,), (1,), (2,)]
    content = path.read_bytes()
    rows = content.rindex(b"\xd8\x04")  # 300 as the footer writes it
    path.write_bytes(content[:rows] + b"\xd6\x04" + content[rows + 2 :])
    with pytest.raises(FormatError, match="its footer claims 299 rows, its row groups 300"):
        list(record_batches(path, SURVEY))
    (part,) = plan_parts(RecordFiles(path), 1)
    assert part.row_groups is None
    path.write_bytes(content[:-20])
    (part,) = plan_parts(RecordFiles(path), 1)
    with pytest.raises(FormatError, match="is not a complete Parquet file"):
        list(read_part(part, SURVEY.schema, 1000))
    with pytest.raises(InvalidInput, match="save the records to a file"):
        plan_parts(RecordFiles("-"), 1)


def test_no_flipped_bit_changes_the_number_of_records(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(table(), path, compression="none", use_dictionary=False, row_group_size=100)
    content = path.read_bytes()
    rng = np.random.default_rng(4)
    for place in rng.choice(len(content) * 8, 400, replace=False).tolist():
        broken = bytearray(content)
        broken[place // 8] ^= 1 << (place % 8)
        path.write_bytes(broken)
        try:
            n = sum(batch.num_rows for batch in record_batches(path, SURVEY))
        except HDR4MEError:
            continue
        assert n == N, place


def test_files_without_records_are_errors(tmp_path: Path) -> None:
    empty = table().slice(0, 0)
    pq.write_table(empty, tmp_path / "e.parquet")
    for batches in ([], empty.to_batches(), [pa.RecordBatch.from_pylist([], schema=empty.schema)]):
        with (
            pa.OSFile(str(tmp_path / "e.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, empty.schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        with pytest.raises(FormatError, match=r"e\.arrow contains no records"):
            list(record_batches(tmp_path / "e.arrow", SURVEY))
    with pytest.raises(FormatError, match=r"e\.parquet contains no records"):
        list(record_batches(tmp_path / "e.parquet", SURVEY))
    with pytest.raises(FormatError, match="there are no records"):
        Local(1).perturb(empty, SURVEY, tmp_path / "out.parquet")
    with pytest.raises(FormatError, match="there are no records"):
        Local(1).perturb(np.zeros((0, 2)), SURVEY, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_parts_of_files_add_up_to_the_file(tmp_path: Path) -> None:
    """Executors that read parts of a file get the records of the local engine."""
    pq.write_table(table(1000), tmp_path / "a.parquet", row_group_size=64)
    (tmp_path / "b.csv").write_text("x,c\n" + "0.5,a\n" * 10)
    files = RecordFiles(tmp_path)
    for step in (1, 3000, 1 << 30):
        parts = plan_parts(files, step)
        assert len(parts) == {1: 17, 1 << 30: 2}.get(step, len(parts))
        assert sum(batch.num_rows for part in parts for batch in read_part(part, SURVEY.schema, 1000)) == 1010
