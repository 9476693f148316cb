"""Reports as JSON lines, to and from blocks; a bad line is rejected and the other lines are read.

Lines end with a line feed. White space around a line and a byte order mark at its start are ignored, and so are blank
lines. The rest of a line must be one report in UTF-8 of at most `longest_line` bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.io.blocks import MOST_REJECTED, Block, Bytes, questions_of
from hdr4me.io.report import Reason, Rejected, Report, inspect, pack, prefix_of, survey_of, unpack
from hdr4me.kernels.exact.lines import format_lines, parse_lines
from hdr4me.survey import Survey

_BLANKS = b" \t\r\n\v\f"
_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 22
_SHORTEST = len("[0]]}\n")  # the smallest number of bytes of a line after its prefix


def longest_line(survey: Survey) -> int:
    """An upper bound on the length of a line: at most 6 characters for a question, and the digits of each field.

    A factor of two allows for white space. Longer lines are rejected without being held in memory.
    """
    widest = max(sum(1 + len(str(field.bound)) for field in channel.fields) for channel in survey.channels)
    return 2 * (256 + survey.sampled * (10 + widest))


def parse_line(line: bytes, survey: Survey) -> Report | Reason | None:
    """The report in a line, the reason why it is not a report, or None for a blank line.

    For a line that is too long, its first `longest_line` + 4 bytes after the leading white space suffice.
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


def excerpt(line: bytes, survey: Survey) -> str:
    """The part of a line that a quarantine keeps."""
    return _content(line)[: longest_line(survey)].decode("utf-8", errors="replace")


def _content(line: bytes) -> bytes:
    return line.strip(_BLANKS).removeprefix(_MARK)


def read_lines(path: str | os.PathLike[str], survey: Survey, block_rows: int) -> Iterator[Block]:
    """Blocks of the valid reports; a file without reports, or with those of another survey only, is an error."""
    seen = _Seen(str(path), survey)
    with Path(path).open("rb") as file:
        for chunk in _chunks(file, survey):
            yield from seen.blocks(*chunk, block_rows)
    if seen.n_good:
        return
    if seen.foreign is None and not seen.n_other:
        raise FormatError(f"{path} is empty")
    if seen.foreign is not None and not seen.n_other:
        raise FingerprintMismatch(str(path), survey.fingerprint, seen.foreign)
    raise FormatError(f"{path} is not a file of reports: none of its {seen.n_other} lines is a report")


class _Seen:
    """The lines of a file that were read so far."""

    def __init__(self, name: str, survey: Survey) -> None:
        self.name, self.survey = name, survey
        self.n_lines = self.n_good = self.n_other = 0
        self.foreign: str | None = None

    def blocks(
        self, line_at: Callable[[int], bytes], good: NDArray[np.bool_], rows: Bytes, block_rows: int
    ) -> Iterator[Block]:
        """The reports of some lines; those that the kernel did not parse are parsed one by one."""
        chosen = good.copy()
        others = () if good.all() else np.flatnonzero(~good).tolist()
        bad: list[Rejected] = []
        first = 0
        for i in others:
            line = line_at(i)
            found = parse_line(line, self.survey)
            if isinstance(found, Report):
                rows[i] = np.frombuffer(pack(found.answers, self.survey), np.uint8)
                chosen[i] = True
            elif found is not None:
                bad.append(self._rejected(found, line, self.n_lines + i + 1))
            if len(bad) == MOST_REJECTED:
                yield self._block(chosen, rows, first, i + 1, bad)
                first, bad = i + 1, []
        for start in range(first, len(good), block_rows):
            stop = min(start + block_rows, len(good))
            yield self._block(chosen, rows, start, stop, bad)
            bad = []
        if bad:
            yield self._block(chosen, rows, 0, 0, bad)
        self.n_lines += len(good)

    def _rejected(self, reason: Reason, line: bytes, number: int) -> Rejected:
        content = excerpt(line, self.survey)
        if reason is Reason.FOREIGN:
            self.foreign = self.foreign or survey_of(content)
        else:
            self.n_other += 1
        return Rejected(reason, f"{self.name}, line {number}", content)

    def _block(
        self, chosen: NDArray[np.bool_], rows: Bytes, start: int, stop: int, bad: list[Rejected]
    ) -> Block:
        first = self.n_lines + 1
        if chosen[start:stop].all():
            self.n_good += stop - start
            return Block(rows[start:stop], range(first + start, first + stop), bad)
        there = start + np.flatnonzero(chosen[start:stop])
        self.n_good += there.size
        return Block(rows[there], first + there, bad)


_Chunk = tuple[Callable[[int], bytes], NDArray[np.bool_], Bytes]


def _chunks(file: BufferedReader, survey: Survey) -> Iterator[_Chunk]:
    """The lines of a file in chunks: a function for a line, whether the kernel parsed each line, and its rows.

    All chunks share one buffer, so that the lines of a chunk are valid until the next chunk is read.
    """
    shape = _shape(survey)
    room = min(_CHUNK, os.fstat(file.fileno()).st_size or _CHUNK)  # not more than the size of a small file
    memory = np.empty(0 if shape is None else room, np.uint8).data
    carried = 0  # bytes of an incomplete line at the beginning of the buffer
    while shape is not None and (more := file.readinto(memory[carried:])):
        end = _after_last_feed(memory[: carried + more])
        if not end and carried + more == len(memory):  # a line is longer than a chunk: continue line by line
            carried = len(memory)
            break
        if end:
            yield _parsed(memory, end, survey, shape)
        carried += more - end
        memory[:carried] = memory[end : end + carried]
    if carried:
        file.seek(-carried, os.SEEK_CUR)
    lines = _lines(file, longest_line(survey) + len(_MARK) + 1)
    while some := list(islice(lines, MOST_REJECTED)):
        some_rows = np.zeros((len(some), survey.report_size), np.uint8)
        yield some.__getitem__, np.zeros(len(some), bool), some_rows


def _after_last_feed(text: memoryview) -> int:
    """The end of the last complete line of a text, or 0; searches the last part first, because lines are short."""
    for most in (1 << 12, len(text)):
        first = max(0, len(text) - most)
        if found := bytes(text[first:]).rfind(b"\n") + 1:
            return first + found
    return 0


def _parsed(
    text: bytes | memoryview, end: int, survey: Survey, shape: tuple[NDArray[np.int64], ...]
) -> _Chunk:
    """The lines of text[:end], which ends in a line feed; only lines that are not parsed can be requested."""
    data = np.frombuffer(text, np.uint8, end)
    data.flags.writeable = False  # all arrays have one type, so that one compiled kernel accepts them
    prefix = _prefix(survey.fingerprint)
    room = end // (prefix.size + _SHORTEST) + 1  # sufficient unless some lines are not reports
    for most in (room, None):
        size = int(np.count_nonzero(data == ord("\n"))) if most is None else most
        places, good = np.empty((size, 2), np.int32), np.empty(size, bool)
        rows = np.zeros((size, survey.report_size), np.uint8)
        n = parse_lines(data, prefix, survey.sampled, survey.slot_size, *shape, places, rows, good)
        if n >= 0:
            break
    places, good, rows = places[:n], good[:n], rows[:n]
    if not good.all():
        rows[~good] = 0
    return lambda i: bytes(text[slice(*places[i].tolist())]), good, rows


@lru_cache(maxsize=16)
def _prefix(fingerprint: str) -> Bytes:
    return np.frombuffer(prefix_of(fingerprint).encode(), np.uint8)


@lru_cache(maxsize=16)
def _shape(survey: Survey) -> tuple[NDArray[np.int64], ...] | None:
    """Fields, bytes, bounds and order of each question's answers for the kernel; None if it does not support them."""
    found = []
    for question in survey.questions:
        channel = question.channel
        alike = len(set(channel.fields)) == 1 and channel.fields[0].bound <= 1 << 32
        in_order = channel.response.in_order
        if not alike or in_order is None:
            return None
        found.append((len(channel.fields), channel.fields[0].size, channel.fields[0].bound, int(in_order)))
    return tuple(np.array(column, np.int64) for column in zip(*found, strict=True))


def _lines(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Each line without leading white space, truncated to `most` bytes that do not end in white space."""
    while piece := file.readline(most):
        line = piece.lstrip(_BLANKS)
        while len(piece) == most and not piece.endswith(b"\n"):
            piece = file.readline(most)
            more = piece if line else piece.lstrip(_BLANKS)
            room = most - len(line)
            line += more[:room]
            if more[room:].strip(_BLANKS):
                line = line[:-1] + b"."  # trailing white space must not make a truncated line appear short
        yield line


def write_lines(file: IO[bytes], block: Bytes, survey: Survey) -> None:
    """Append one line for each report of a block."""
    shape = _shape(survey)
    slots = block.reshape(len(block), survey.sampled, survey.slot_size)
    known = (questions_of(slots) < len(survey.questions)).all()  # otherwise `unpack` raises the error
    if shape is None or not known:
        reports = (Report(survey.fingerprint, unpack(row.tobytes(), survey)) for row in block)
        file.write("".join(report.to_json() + "\n" for report in reports).encode())
        return
    prefix, longest = _prefix(survey.fingerprint), longest_line(survey)
    rows = max(1, _CHUNK // longest)
    for start in range(0, len(block), rows):
        part = np.ascontiguousarray(block[start : start + rows])
        out = np.empty(len(part) * longest, np.uint8)
        size = format_lines(part, prefix, survey.sampled, survey.slot_size, *shape[:2], out)
        file.write(out[:size].data)


@contextmanager
def lines_sink(path: Path, survey: Survey) -> Iterator[Callable[[Bytes], None]]:
    """Write blocks to a file of JSON lines."""
    with path.open("wb") as file:
        yield lambda block: write_lines(file, block, survey)
