"""One report: what a user sends, and the only reading of it that is accepted; standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from hdr4me.errors import FormatError, printable
from hdr4me.survey import Survey

__all__ = ["OnRejected", "Reason", "Rejected", "Report", "fault", "pack", "refuse", "unpack"]


class Reason(IntEnum):
    """Why a report is not counted; the numbers are those of the counting kernel, 0 being a good report."""

    DIMENSION = 1
    ORDER = 2
    CODE = 3
    PADDING = 4
    SIZE = 5
    MALFORMED = 6
    VERSION = 7
    FOREIGN = 8
    MISSING = 9

    @property
    def text(self) -> str:
        """The reason in words, as it is counted and shown."""
        return _TEXTS[self]


_TEXTS = {
    Reason.DIMENSION: "unknown dimension",
    Reason.ORDER: "dimensions not distinct and increasing",
    Reason.CODE: "code out of support",
    Reason.PADDING: "trailing bytes",
    Reason.SIZE: "wrong number of answers or codes",
    Reason.MALFORMED: "not a report",
    Reason.VERSION: "unknown version",
    Reason.FOREIGN: "another survey",
    Reason.MISSING: "missing",
}


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
    """m answers, each (dimension, code, ...), in increasing order of dimension, and the survey they answer.

    >>> Report("ab12", ((0, 7), (3, 1))).answers
    ((0, 7), (3, 1))
    """

    survey: str
    answers: tuple[tuple[int, ...], ...]

    def to_bytes(self, survey: Survey) -> bytes:
        """The fixed-size binary form: m slots of two bytes of dimension, little end first, and the codes."""
        return pack(self.answers, survey)

    def to_json(self) -> str:
        """The JSON form, on one line."""
        from hdr4me.reports.json import encode

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
        dimension, *codes = answer
        if not 0 <= dimension < len(survey.schema):
            return Reason.DIMENSION
        if dimension <= previous:
            return Reason.ORDER
        previous = dimension
        if len(codes) != survey.n_codes(dimension):
            return Reason.SIZE
        n_cells = survey.randomizer(dimension).n_cells
        if not all(0 <= code < n_cells for code in codes):
            return Reason.CODE
    return None


def pack(answers: Iterable[tuple[int, ...]], survey: Survey) -> bytes:
    """Valid answers as `report_size` bytes; codes that a dimension does not use are zero."""
    slots = (
        dimension.to_bytes(2, "little") + bytes(codes).ljust(survey.code_width, b"\0")
        for dimension, *codes in answers
    )
    return b"".join(slots)


def unpack(data: bytes, survey: Survey) -> tuple[tuple[int, ...], ...]:
    """The answers in `report_size` bytes; raises FormatError if anything about them is wrong."""
    if len(data) != survey.report_size:
        raise FormatError(f"a report of {len(data)} bytes: this survey's have {survey.report_size}")
    answers = []
    for start in range(0, len(data), survey.slot_size):
        slot = data[start : start + survey.slot_size]
        dimension = int.from_bytes(slot[:2], "little")
        if dimension >= len(survey.schema):
            raise FormatError(f"a report with {Reason.DIMENSION.text} {dimension}")
        used = 2 + survey.n_codes(dimension)
        if any(slot[used:]):
            raise FormatError(f"a report with {Reason.PADDING.text}")
        answers.append((dimension, *slot[2:used]))
    if reason := fault(answers, survey):
        raise FormatError(f"a report with {reason.text}")
    return tuple(answers)
