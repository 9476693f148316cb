"""Files as tasks: everything is read once, small files together, large ones in pieces."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hdr4me.engines.spark_perturb import record_format, record_tasks
from hdr4me.engines.spark_tally import plan_tasks
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io import RecordFiles

MIB = 1 << 20


def sparse(path: Path, size: int) -> Path:
    """A sparse file of any size."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.mark.parametrize("parallelism", [1, 2, 64])
@pytest.mark.parametrize("sizes", [[0], [1, 2, 3], [1000 * MIB], [5 * MIB] * 40, [300 * MIB, 1, 9 * MIB, 0]])
def test_every_byte_is_in_one_task(tmp_path: Path, sizes: list[int], parallelism: int) -> None:
    files = [sparse(tmp_path / f"{i:03d}", size) for i, size in enumerate(sizes)]
    tasks = plan_tasks(files, parallelism)
    splits = [split for task in tasks for split in task]
    for file, size in zip(files, sizes, strict=True):
        mine = [split for split in splits if split.path == str(file)]
        assert mine[0].start == 0
        assert mine[-1].stop == size
        assert all(a.stop == b.start for a, b in itertools.pairwise(mine))
    heaviest = max(sum(split.stop - split.start for split in task) for task in tasks)
    assert heaviest <= 1.5 * 128 * MIB + 1


def test_many_small_files_are_few_tasks(tmp_path: Path) -> None:
    files = [sparse(tmp_path / f"{i:03d}", MIB) for i in range(80)]
    assert len(plan_tasks(files, 64)) == 10


def test_a_folder_is_its_files_without_the_hidden_ones(tmp_path: Path) -> None:
    for name in ("b", "a", "_SUCCESS", ".a.crc", "sub/c", "_temporary/0/d", ".staging/e", "sub/_old/f"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (task,) = plan_tasks([tmp_path], 1)
    assert [Path(split.path).relative_to(tmp_path).as_posix() for split in task] == ["a", "b", "sub/c"]
    (task,) = plan_tasks([(tmp_path / "a").as_uri()], 1)
    assert task[0].path == str(tmp_path / "a")


def test_small_text_files_of_records_are_one_task(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("age\n31\n")
    (task,) = record_tasks(RecordFiles(tmp_path), 2)
    assert [Path(part.path).name for part in task] == ["a.csv", "b.csv", "c.csv"]


def test_unreadable_input_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="contains no files"):
        plan_tasks([tmp_path], 1)
    with pytest.raises(FileNotFoundError):
        plan_tasks([tmp_path / "nothing"], 1)
    with pytest.raises(InvalidInput, match="read it with Spark"):
        plan_tasks(["s3://bucket/reports"], 1)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a.parquet", "parquet"), ("hdfs://host/a.CSV", "csv"), ("a.jsonl", "json"), ("folder", "parquet")],
)
def test_formats_by_suffix(path: str, kind: str) -> None:
    assert record_format(path) == kind
