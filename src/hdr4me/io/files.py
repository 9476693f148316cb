"""Files of reports in any format: read in blocks with bounded memory, written atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import replacing
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.arrow import binary_format
from hdr4me.io.blocks import Block
from hdr4me.io.report import OnRejected, refuse
from hdr4me.io.source import files_in
from hdr4me.survey import Survey

BLOCK_BYTES = 1 << 22  # the approximate size of a block

SUFFIXES = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "lines",
    ".json": "lines",
}


def _of(kind: str, name: str) -> Any:
    """A function of a format's module, which is imported on first use."""
    return getattr(import_module(f"hdr4me.io.{kind}"), name)


def read_reports(
    path: str | os.PathLike[str],
    survey: Survey,
    *,
    on_rejected: OnRejected = refuse,
    block_rows: int | None = None,
) -> Iterator[NDArray[np.uint8]]:
    """The reports in a file, as blocks of uint8 with shape (n, report_size).

    Parquet and Arrow are recognized by the first bytes of the file, JSON lines by the suffix of its name. A line that
    is not a report, or a null, is passed to `on_rejected`, which raises an error by default. The codes and dimensions
    in Parquet and Arrow files are checked when they are tallied.
    """
    blocks = read_blocks(path, survey, block_rows=block_rows)

    def rows() -> Iterator[NDArray[np.uint8]]:
        for block in blocks:
            for rejected in block.rejected:
                on_rejected(rejected)
            if len(block.rows):
                yield block.rows

    return rows()


def read_blocks(
    path: str | os.PathLike[str], survey: Survey, *, block_rows: int | None = None
) -> Iterator[Block]:
    """Blocks of about `BLOCK_BYTES`, with the row numbers of the reports and the rejected reports."""
    kind = _format(path)
    blocks: Iterator[Block] = _of(kind, f"read_{kind}")(path, survey, block_rows or block_rows_of(survey))
    return blocks


def block_rows_of(survey: Survey) -> int:
    """The number of reports in a block of about `BLOCK_BYTES`."""
    return max(1, BLOCK_BYTES // survey.report_size)


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """The files of reports at a path: the file itself, or all files in the folder and its subfolders."""
    return files_in(Path(path)) if Path(path).is_dir() else [Path(path)]


@contextmanager
def write_reports(path: str | os.PathLike[str], survey: Survey) -> Iterator[ReportWriter]:
    """A writer of reports in the format of the file's suffix; the file appears when the block ends without an error.

    >>> import tempfile
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reports.parquet")
    ...     with write_reports(path, survey) as writer:
    ...         writer.write(np.array([[0, 0, 1], [0, 0, 0]], np.uint8))
    ...     [block.tolist() for block in read_reports(path, survey)]
    [[[0, 0, 1], [0, 0, 0]]]
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(
            f"reports cannot be written to {path}: its suffix must be one of {', '.join(SUFFIXES)}"
        )
    kind = SUFFIXES[suffix]
    with replacing(path) as temporary, _of(kind, f"{kind}_sink")(temporary, survey) as sink:
        yield ReportWriter(sink, survey)


class ReportWriter:
    """The writer that `write_reports` gives; it refuses blocks of the wrong shape."""

    def __init__(self, sink: Callable[[NDArray[np.uint8]], None], survey: Survey) -> None:
        self._sink, self._size = sink, survey.report_size

    def write(self, block: NDArray[np.uint8]) -> None:
        """Append a block: uint8, shape (n, report_size)."""
        if block.dtype != np.uint8 or block.ndim != 2 or block.shape[1] != self._size:
            raise InvalidInput(f"a block of {block.dtype}{block.shape}, expected uint8(n, {self._size})")
        if len(block):
            self._sink(block)


def _format(path: str | os.PathLike[str]) -> str:
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise FormatError(f"{path} is not a regular file; save the reports to a file first")
    try:
        os.fspath(path).encode("utf-8")
    except UnicodeEncodeError:
        raise FormatError(f"{path!r} is not a UTF-8 file name; rename the file") from None
    found = binary_format(path)
    if found is None and Path(path).suffix.lower() not in SUFFIXES:
        raise FormatError(f"{path} is not a file of reports: its suffix must be one of {', '.join(SUFFIXES)}")
    return found or "lines"
