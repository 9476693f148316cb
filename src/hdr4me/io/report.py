"""One report: what a user sends, in binary and as JSON, and the checks that it must pass; standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from hdr4me.errors import FingerprintMismatch, FormatError, printable
from hdr4me.survey import Survey
from hdr4me.survey.canonical import no_twins


class Reason(IntEnum):
    """Why a report is not counted; the numbers are those of the counting kernel, 0 being a good report."""

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
    """A report that is not counted: why, where it stood, and what it was."""

    reason: Reason
    where: str
    content: str

    def __str__(self) -> str:
        shown = self.content if len(self.content) <= 80 else self.content[:77] + "..."
        return printable(f"{self.where}: {self.reason.text}: {shown}")


OnRejected = Callable[[Rejected], None]


def refuse(rejected: Rejected) -> None:
    """The strict handler: the first bad report is an error."""
    raise FormatError(str(rejected))


@dataclass(frozen=True)
class Report:
    """m answers, each (question, field, ...), in increasing order of question, and the survey they answer.

    >>> Report("ab12", ((0, 7), (3, 1))).answers
    ((0, 7), (3, 1))
    """

    survey: str
    answers: tuple[tuple[int, ...], ...]

    def to_bytes(self, survey: Survey) -> bytes:
        r"""The binary form on the wire: m slots of two bytes for the question, little end first, and the fields.

        >>> from hdr4me.survey import Numeric, Schema
        >>> Report("ab12", ((0, 1),)).to_bytes(Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi"))
        b'\x00\x00\x01'
        """
        return pack(self.answers, survey, padded=False)

    def to_json(self) -> str:
        """The JSON form, on one line.

        >>> Report("ab12", ((0, 7),)).to_json()
        '{"format":"hdr4me-report","version":1,"survey":"ab12","answers":[[0,7]]}'
        """
        return encode(self)


def fault(answers: Any, survey: Survey) -> Reason | None:
    """What is wrong with these answers to this survey, or None: the reference for every other validator."""
    if not isinstance(answers, list | tuple) or not all(
        isinstance(answer, list | tuple) for answer in answers
    ):
        return Reason.MALFORMED
    if not all(type(number) is int for answer in answers for number in answer):
        return Reason.MALFORMED
    if len(answers) != survey.n_sampled:
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
    """Valid answers in binary: for each two bytes of the question's number and its fields, little end first.

    In memory every slot has the size of the widest and the rest is zero; on the wire (`padded` False) nothing is
    padded.
    """
    size = survey.slot_size if padded else 0
    slots = []
    for question, *numbers in answers:
        fields = survey.questions[question].channel.fields
        codes = b"".join(x.to_bytes(field.size, "little") for x, field in zip(numbers, fields, strict=True))
        slots.append((question.to_bytes(2, "little") + codes).ljust(size, b"\0"))
    return b"".join(slots)


def unpack(data: bytes, survey: Survey) -> tuple[tuple[int, ...], ...]:
    """The answers in `report_size` bytes of memory; raises FormatError if anything about them is wrong."""
    if len(data) != survey.report_size:
        raise FormatError(f"a report of {len(data)} bytes: this survey's have {survey.report_size}")
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


def encode(report: Report) -> str:
    """A report on one line."""
    document = {"format": FORMAT, "version": VERSION, "survey": report.survey, "answers": report.answers}
    return json.dumps(document, separators=(",", ":"))


def prefix_of(survey: str) -> str:
    """How every line that `encode` writes for this survey begins."""
    return encode(Report(survey, ())).removesuffix("]}")


def inspect(text: str | bytes, survey: Survey) -> Report | Reason:
    """The report in `text`, or why it is none; never raises because of what is in it."""
    try:
        document: Any = json.loads(text, object_pairs_hook=no_twins)
    except (ValueError, RecursionError):
        return Reason.MALFORMED
    return understood(document, survey)


def understood(document: Any, survey: Survey) -> Report | Reason:
    """The report in a parsed JSON document, or why it is none."""
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
    """The report in `text`; raises FormatError, or FingerprintMismatch for another survey's."""
    found = inspect(text, survey)
    if isinstance(found, Report):
        return found
    if found is Reason.FOREIGN:
        raise FingerprintMismatch("the report", survey.fingerprint, survey_of(text))
    raise FormatError(f"not a valid report: {found.text}")


def survey_of(text: str | bytes) -> str:
    """The fingerprint that a report names, as far as it can be one."""
    found = json.loads(text)["survey"]
    return found[:64] if isinstance(found, str) else f"of type {type(found).__name__}"
