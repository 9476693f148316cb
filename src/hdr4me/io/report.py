"""One report in binary and JSON, its validation, and the quarantine of bad reports; standard library only."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import IO, Any

from hdr4me.atomic import replacing
from hdr4me.errors import FingerprintMismatch, FormatError, printable
from hdr4me.survey import Survey
from hdr4me.survey.canonical import no_duplicates


class Reason(IntEnum):
    """The reason why a report is rejected; the codes are those of the counting kernel, where 0 is a valid report."""

    DIMENSION = 1, "unknown dimension"
    ORDER = 2, "dimensions not distinct and increasing"
    CODE = 3, "code out of support"
    PADDING = 4, "trailing bytes"
    SIZE = 5, "wrong number of answers or codes"
    MALFORMED = 6, "not a report"
    VERSION = 7, "unknown version"
    FOREIGN = 8, "another survey"
    MISSING = 9, "missing"

    text: str

    def __new__(cls, value: int, text: str = "") -> Reason:
        reason = int.__new__(cls, value)
        reason._value_, reason.text = value, text
        return reason


@dataclass(frozen=True)
class Rejected:
    """A rejected report: the reason, its location, and its content."""

    reason: Reason
    where: str
    content: str

    def __str__(self) -> str:
        """The sentence of an error: without the content if that is not a report, since it may be a record."""
        if self.reason is Reason.MALFORMED:
            return printable(f"{self.where}: {self.reason.text}")
        excerpt = self.content if len(self.content) <= 80 else self.content[:77] + "..."
        return printable(f"{self.where}: {self.reason.text}: {excerpt}")


OnRejected = Callable[[Rejected], None]


def refuse(rejected: Rejected) -> None:
    """The strict handler: raise an error for the first bad report."""
    raise FormatError(str(rejected))


@dataclass(frozen=True)
class Report:
    """m answers, each (question, field, ...), in increasing order of question, and the survey's fingerprint.

    >>> Report("ab12", ((0, 7), (3, 1))).answers
    ((0, 7), (3, 1))
    """

    survey: str
    answers: tuple[tuple[int, ...], ...]

    def to_bytes(self, survey: Survey) -> bytes:
        r"""The binary format on the wire: m slots of two little-endian bytes for the question, and the fields.

        >>> from hdr4me.survey import Numeric, Schema
        >>> Report("ab12", ((0, 1),)).to_bytes(Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi"))
        b'\x00\x00\x01'
        """
        return pack(self.answers, survey, padded=False)

    def to_json(self) -> str:
        """The JSON format, on one line.

        >>> Report("ab12", ((0, 7),)).to_json()
        '{"format":"hdr4me-report","version":1,"survey":"ab12","answers":[[0,7]]}'
        """
        document = {"format": FORMAT, "version": VERSION, "survey": self.survey, "answers": self.answers}
        return json.dumps(document, separators=(",", ":"))


def fault(answers: Any, survey: Survey) -> Reason | None:
    """The reason why these answers are invalid, or None; the reference for all other validators."""
    lists = (list, tuple)
    if not isinstance(answers, lists):
        return Reason.MALFORMED
    for answer in answers:
        if not isinstance(answer, lists) or not {int}.issuperset(map(type, answer)):
            return Reason.MALFORMED
    if len(answers) != survey.sampled:
        return Reason.SIZE
    previous = -1
    for answer in answers:
        if not answer:
            return Reason.SIZE
        question, *fields = answer
        if not 0 <= question < len(survey.questions):
            return Reason.DIMENSION
        if question <= previous:
            return Reason.ORDER
        previous = question
        channel = survey.questions[question].channel
        if len(fields) != len(channel.fields):
            return Reason.SIZE
        if not channel.is_output(fields):
            return Reason.CODE
    return None


def pack(answers: Iterable[tuple[int, ...]], survey: Survey, *, padded: bool = True) -> bytes:
    """Valid answers in binary: for each, two bytes for the question and its fields, little-endian."""
    size = survey.slot_size if padded else 0
    slots = []
    for question, *numbers in answers:
        slot = question.to_bytes(2, "little")
        for number, field in zip(numbers, survey.questions[question].channel.fields, strict=True):
            slot += number.to_bytes(field.size, "little")
        slots.append(slot.ljust(size, b"\0"))
    return b"".join(slots)


def unpack(data: bytes, survey: Survey) -> tuple[tuple[int, ...], ...]:
    """The answers in a padded report of `report_size` bytes; FormatError if it is invalid."""
    if len(data) != survey.report_size:
        raise FormatError(f"a report of {len(data)} bytes; reports of this survey have {survey.report_size}")
    answers = []
    for start in range(0, len(data), survey.slot_size):
        slot = data[start : start + survey.slot_size]
        question = int.from_bytes(slot[:2], "little")
        if question >= len(survey.questions):
            raise FormatError(f"a report with {Reason.DIMENSION.text} {question}")
        at, numbers = 2, []
        for field in survey.questions[question].channel.fields:
            numbers.append(int.from_bytes(slot[at : at + field.size], "little"))
            at += field.size
        if any(slot[at:]):
            raise FormatError(f"a report with {Reason.PADDING.text}")
        answers.append((question, *numbers))
    if reason := fault(answers, survey):
        raise FormatError(f"a report with {reason.text}")
    return tuple(answers)


# -- JSON ------------------------------------------------------------------------------------------------------

FORMAT, VERSION = "hdr4me-report", 1
_FIELDS = {"format", "version", "survey", "answers"}


def prefix_of(survey: str) -> str:
    """The first characters of the JSON format of every report of this survey."""
    return Report(survey, ()).to_json().removesuffix("]}")


def inspect(text: str | bytes, survey: Survey) -> Report | Reason:
    """The report in `text`, or the reason why it is invalid; never raises an exception."""
    try:
        document: Any = json.loads(text, object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError):
        return Reason.MALFORMED
    return parse_document(document, survey)


def parse_document(document: Any, survey: Survey) -> Report | Reason:
    """The report in a parsed JSON document, or the reason why it is invalid."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return Reason.MALFORMED
    if type(document.get("version")) is not int or document["version"] != VERSION:
        return Reason.VERSION
    if set(document) != _FIELDS:
        return Reason.MALFORMED
    if document["survey"] != survey.fingerprint:
        return Reason.FOREIGN
    reason = fault(document["answers"], survey)
    return reason or Report(survey.fingerprint, tuple(map(tuple, document["answers"])))


def decode(text: str | bytes, survey: Survey) -> Report:
    """The report in `text`; FormatError if it is invalid, FingerprintMismatch if it is of another survey."""
    found = inspect(text, survey)
    if isinstance(found, Report):
        return found
    if found is Reason.FOREIGN:
        raise FingerprintMismatch("the report", survey.fingerprint, survey_of(text))
    raise FormatError(f"not a valid report: {found.text}")


def survey_of(text: str | bytes) -> str:
    """The fingerprint in a report, if it can be one."""
    found = json.loads(text)["survey"]
    return found[:64] if isinstance(found, str) else f"of type {type(found).__name__}"


# The largest size of a quarantine; further bad reports are only counted.
QUARANTINE_BYTES = 1 << 26


class Quarantine(AbstractContextManager["Quarantine"]):
    """A handler that writes rejected reports to `path`; if there are none, no file is created.

    Beyond `limit_bytes`, reports are only counted, in `left_out` and in one line per reason at the end of the file.
    """

    def __init__(self, path: str | os.PathLike[str], *, limit_bytes: int = QUARANTINE_BYTES) -> None:
        self.path = path
        self.n_written = 0
        self.left_out: Counter[str] = Counter()
        self._room = limit_bytes
        self._stack = ExitStack()
        self._file: IO[str] | None = None

    def __call__(self, rejected: Rejected) -> None:
        """Write a rejected report, or count it if the limit is reached."""
        line = _line(rejected.reason.text, rejected.where, rejected.content) if self._room >= 0 else ""
        self._room -= len(line)
        if self._room < 0:
            self.left_out[rejected.reason.text] += 1
            return
        self._open().write(line)
        self.n_written += 1

    def _open(self) -> IO[str]:
        if self._file is None:
            temporary = self._stack.enter_context(replacing(self.path))
            self._file = self._stack.enter_context(temporary.open("w", encoding="utf-8"))
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.left_out:
            self._open().writelines(_line(*line) for line in left_out_lines(self.left_out))
        self._stack.__exit__(kind, error, trace)
        self._file = None


def left_out_lines(left_out: Counter[str]) -> list[tuple[str, str, str]]:
    """Reason, location and content of one line per reason for the reports beyond a quarantine's limit."""
    place = "beyond the quarantine's limit"
    return [(reason, place, f"{n} reports") for reason, n in sorted(left_out.items())]


def _line(reason: str, where: str, content: str) -> str:
    return json.dumps({"reason": reason, "where": where, "content": content}) + "\n"
