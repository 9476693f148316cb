"""Reports as JSON lines, to and from blocks; a bad line is rejected and the rest goes on.

One rule says what a line is, for files and for the text columns of Spark. Lines end with a line feed. Blanks around a
line and a byte order mark at its start do not count; a line of nothing else is passed over. What is left may have
`longest_line` bytes and must be one report in UTF-8.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.reports.blocks import MOST_REJECTED, Block
from hdr4me.reports.json import encode, inspect, survey_of
from hdr4me.reports.report import Reason, Rejected, Report, pack, unpack
from hdr4me.survey import Survey

__all__ = ["LineSink", "line_sink", "longest_line", "read_lines", "shown", "understand"]

_BLANKS = b" \t\r\n\v\f"
_MARK = b"\xef\xbb\xbf"


def longest_line(survey: Survey) -> int:
    """No report's line is longer: a question takes 6 characters at most, a field its digits, each with its comma.

    Lines beyond it are rejected without being held in memory. White space that other writers put in is allowed for
    by a factor of two.
    """
    widest = max(sum(1 + len(str(field.bound)) for field in channel.fields) for channel in survey.channels)
    return 2 * (256 + survey.n_sampled * (10 + widest))


def understand(line: bytes, survey: Survey) -> Report | Reason | None:
    """What a line is: a report, the reason why it is none, or None for a blank line.

    Of a line longer than any report its first `longest_line` + 4 bytes after the leading blanks are enough.
    """
    content = _content(line)
    if not content:
        return None
    if len(content) > longest_line(survey) or content[:1] != b"{":
        return Reason.MALFORMED
    try:
        return inspect(content.decode("utf-8"), survey)
    except UnicodeDecodeError:
        return Reason.MALFORMED


def shown(line: bytes, survey: Survey) -> str:
    """What a quarantine keeps of a line."""
    return _content(line)[: longest_line(survey)].decode("utf-8", errors="replace")


def _content(line: bytes) -> bytes:
    return line.strip(_BLANKS).removeprefix(_MARK)


def read_lines(path: str | os.PathLike[str], survey: Survey, block_rows: int) -> Iterator[Block]:
    """Blocks of the valid reports; a file without one, or with another survey's only, is an error."""
    rows: list[bytes] = []
    numbers: list[int] = []
    bad: list[Rejected] = []
    n_good = n_other = 0
    foreign: str | None = None
    name = str(path)
    with Path(path).open("rb") as file:
        for number, line in enumerate(_lines(file, longest_line(survey) + len(_MARK) + 1), start=1):
            found = understand(line, survey)
            if isinstance(found, Report):
                rows.append(pack(found.answers, survey))
                numbers.append(number)
                n_good += 1
            elif found is not None:
                bad.append(Rejected(found, f"{name}, line {number}", shown(line, survey)))
                if found is Reason.FOREIGN:
                    foreign = foreign or survey_of(bad[-1].content)
                else:
                    n_other += 1
            if len(rows) == block_rows or len(bad) == MOST_REJECTED:
                yield _block(rows, numbers, bad, survey)
                rows, numbers, bad = [], [], []
    if rows or bad:
        yield _block(rows, numbers, bad, survey)
    if n_good:
        return
    if foreign is None and not n_other:
        raise FormatError(f"{path} is empty")
    if foreign is not None and not n_other:
        raise FingerprintMismatch(str(path), survey.fingerprint, foreign)
    raise FormatError(f"{path} is not a file of reports: none of its {n_other} lines is one")


def _lines(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Each line without its leading blanks; of a longer one its first `most` bytes, which do not end in a blank."""
    while piece := file.readline(most):
        line = piece.lstrip(_BLANKS)
        while len(piece) == most and not piece.endswith(b"\n"):
            piece = file.readline(most)
            more = piece if line else piece.lstrip(_BLANKS)
            room = most - len(line)
            line += more[:room]
            if more[room:].strip(_BLANKS):
                line = line[:-1] + b"."  # so that no blanks before it make the line look short
        yield line


def _block(rows: list[bytes], numbers: list[int], bad: list[Rejected], survey: Survey) -> Block:
    packed = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), survey.report_size)
    return Block(packed, numbers, bad)


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
