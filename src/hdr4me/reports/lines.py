"""Reports as JSON lines, to and from blocks; a bad line is rejected and the rest goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.reports.json import encode, inspect, survey_of
from hdr4me.reports.report import OnRejected, Reason, Rejected, Report, pack, unpack
from hdr4me.survey import Survey

__all__ = ["LineSink", "line_sink", "longest_line", "read_lines"]


def longest_line(survey: Survey) -> int:
    """No report's line is longer: a question takes 6 characters at most, a field its digits, each with its comma.

    Lines beyond it are rejected without being held in memory. White space that other writers put in is allowed for
    by a factor of two.
    """
    widest = max(sum(1 + len(str(field.bound)) for field in channel.fields) for channel in survey.channels)
    return 2 * (256 + survey.n_sampled * (10 + widest))


def read_lines(
    path: str | os.PathLike[str], survey: Survey, on_rejected: OnRejected, block_rows: int
) -> Iterator[NDArray[np.uint8]]:
    """Blocks of the valid reports; a file without one, or with another survey's only, is an error."""
    limit = longest_line(survey)
    rows: list[bytes] = []
    n_good = n_other = 0
    foreign: str | None = None
    with Path(path).open("rb") as file:
        for number, line in enumerate(_lines(file, limit), start=1):
            found = inspect(line, survey) if len(line) <= limit else Reason.MALFORMED
            if isinstance(found, Report):
                rows.append(pack(found.answers, survey))
                n_good += 1
            else:
                if found is Reason.FOREIGN:
                    foreign = foreign or survey_of(line)
                else:
                    n_other += 1
                content = line[:limit].decode("utf-8", errors="replace").rstrip("\r\n")
                on_rejected(Rejected(found, f"{path}, line {number}", content))
            if len(rows) == block_rows:
                yield _block(rows, survey)
                rows = []
    if foreign is None and not n_good + n_other:
        raise FormatError(f"{path} is empty")
    if foreign is not None and not n_good + n_other:
        raise FingerprintMismatch(str(path), survey.fingerprint, foreign)
    if not n_good:
        raise FormatError(f"{path} is not a file of reports: none of its {n_other} lines is one")
    if rows:
        yield _block(rows, survey)


def _lines(file: IO[bytes], limit: int) -> Iterator[bytes]:
    """Lines of at most limit + 1 bytes: of a longer one only its start is kept."""
    while line := file.readline(limit + 1):
        rest = line
        while len(rest) > limit and not rest.endswith(b"\n"):
            rest = file.readline(limit + 1)
        if line.strip():
            yield line


def _block(rows: list[bytes], survey: Survey) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), survey.report_size)


class LineSink:
    """An open file of JSON lines that takes blocks of reports."""

    def __init__(self, file: IO[bytes], survey: Survey) -> None:
        self._file = file
        self._survey = survey

    def write(self, block: NDArray[np.uint8]) -> None:
        """Append one line for each row."""
        survey = self._survey
        lines = (encode(Report(survey.fingerprint, unpack(row.tobytes(), survey))) for row in block)
        self._file.write("".join(line + "\n" for line in lines).encode())


@contextmanager
def line_sink(path: Path, survey: Survey) -> Iterator[LineSink]:
    with path.open("wb") as file:
        yield LineSink(file, survey)
