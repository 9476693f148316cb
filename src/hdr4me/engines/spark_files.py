"""Files as work for executors: what there is, and into how many pieces it is cut."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hdr4me.engines.spark_counts import Split
from hdr4me.errors import FormatError, InvalidInput

__all__ = ["plan_splits", "record_format"]

_SMALLEST, _LARGEST = 1 << 22, 1 << 27
"""A piece is at least 4 MiB, so that opening a file is worth it, and at most 128 MiB, so that a retry is cheap."""

_RECORDS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


def plan_splits(paths: Iterable[str | os.PathLike[str]], parallelism: int) -> list[Split]:
    """Ranges of bytes that together are all the files: about four for each core of the cluster.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.parquet").write_bytes(bytes(10 << 20))
    ...     [(split.start >> 20, split.stop >> 20) for split in plan_splits([folder], 2)]
    [(0, 4), (4, 8), (8, 12)]
    """
    files = [(file, file.stat().st_size) for path in paths for file in _files(path)]
    target = sum(size for _, size in files) // (4 * parallelism)
    step = min(max(target, _SMALLEST), _LARGEST)
    return [
        Split(str(file), start, start + step)
        for file, size in files
        for start in range(0, max(size, 1), step)
    ]


def record_format(path: str) -> str:
    """Spark's name of a file's format, by its suffix; what has none is Spark's default, Parquet.

    >>> record_format("s3://bucket/people.csv"), record_format("people")
    ('csv', 'parquet')
    """
    suffix = Path(urlsplit(path).path if "://" in path else path).suffix.lower()
    return _RECORDS.get(suffix, "parquet")


def _files(path: str | os.PathLike[str]) -> Iterator[Path]:
    text = os.fspath(path)
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    elif "://" in text:
        raise InvalidInput(
            f"{text} is not a path that executors can open: read it with Spark and give the DataFrame, "
            "as in engine.tally(session.read.parquet(path), survey)"
        )
    found = Path(text).absolute()
    if not found.is_dir():
        yield found
        return
    # As Spark does: what starts with a dot or an underscore is not data.
    inside = sorted(
        x
        for x in found.rglob("*")
        if x.is_file() and not x.relative_to(found).as_posix().startswith((".", "_"))
    )
    inside = [x for x in inside if not x.name.startswith((".", "_"))]
    if not inside:
        raise FormatError(f"{text} is a folder without files")
    yield from inside
