"""The formats of an upload: one JSON report, JSON lines, or an Arrow stream; each is parsed into a checked `Batch`."""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.channel import AnswerFormat
from hdr4me.collector.batch import Batch, Mask
from hdr4me.collector.errors import Refusal
from hdr4me.errors import FormatError
from hdr4me.io import arrow
from hdr4me.io.blocks import to_wire
from hdr4me.io.lines import _parsed, _shape, longest_line, parse_line
from hdr4me.io.report import Reason, Report, pack, parse_document, prefix_of
from hdr4me.kernels.exact.count import count_reports
from hdr4me.kernels.exact.ids import warm
from hdr4me.survey import Survey
from hdr4me.survey.canonical import no_duplicates
from hdr4me.survey.layout import Layout
from hdr4me.tally.tally import count_any

BAD_ID = "not an id of 32 hexadecimal digits"
_HEAD, _MIDDLE = b'{"id":"', b'","report":'
_ANSWERS = msgspec.json.Decoder(list[Annotated[list[int], msgspec.Meta(min_length=1)]])

Bytes = NDArray[np.uint8]
_Question = tuple[bytes, list[tuple[int, int]], Callable[[Sequence[int]], bool] | None]


def id_of(text: bytes) -> bytes | None:
    """The 16 bytes of an id written as 32 hexadecimal digits, quoted or not; None if it is not an id."""
    digits = text.strip().removeprefix(b'"').removesuffix(b'"')
    if len(digits) != 32:
        return None
    try:
        return binascii.unhexlify(digits)
    except binascii.Error:
        return None


@dataclass(frozen=True)
class Forms:
    """Parses the uploads of one round."""

    round: int
    survey: Survey
    most: int = 10_000  # reports in a request

    @cached_property
    def _prefix(self) -> bytes:
        return prefix_of(self.survey.fingerprint).encode()

    @cached_property
    def _questions(self) -> list[_Question]:
        """For each question its wire number, the bound and size of each field, and a further check if there is one."""
        found: list[_Question] = []
        for number, question in enumerate(self.survey.questions):
            channel = question.channel
            fields = [(field.bound, field.size) for field in channel.fields]
            bounds_suffice = type(channel).is_output is AnswerFormat.is_output
            found.append(
                (number.to_bytes(2, "little"), fields, None if bounds_suffice else channel.is_output)
            )
        return found

    @cached_property
    def longest(self) -> int:
        """The length of the longest JSON of a report."""
        return longest_line(self.survey)

    def warm(self) -> None:
        """Compile the kernels for uploads of this survey, so that the first upload does not wait."""
        self.lines(_HEAD + b"0" * 32 + _MIDDLE + self._prefix + b"]}}", 0)
        rows = np.zeros((self.most, self.survey.report_size), np.uint8)  # many rows have their own kernel
        self._status(rows)
        warm()

    def one(self, body: bytes, source: int, id: bytes) -> Batch:
        """One report as JSON, under the id of the request, which is written as text."""
        found_id, data = id_of(id), self._canonical(body)
        if found_id is None:
            raise Refusal(400, f"the Idempotency-Key is {BAD_ID}: generate 16 random bytes with the report")
        if data is None:
            found = parse_line(body, self.survey)
            if not isinstance(found, Report):
                reason = Reason.MALFORMED if found is None else found
                return Batch(self.round, source, b"", b"", None, [(1, reason.text)])
            data = pack(found.answers, self.survey, padded=False)
        return Batch(self.round, source, found_id, data)

    def _canonical(self, body: bytes) -> bytes | None:
        """The wire bytes of a valid report as the clients of this package write it; None for the general parser."""
        prefix = self._prefix
        if not body.startswith(prefix) or not body.endswith(b"]}"):
            return None
        try:
            answers = _ANSWERS.decode(body[len(prefix) - 1 : -1])
        except (msgspec.MsgspecError, RecursionError):
            return None
        if len(answers) != self.survey.sampled:
            return None
        parts, previous, questions = [], -1, self._questions
        for question, *numbers in answers:
            if not previous < question < len(questions):
                return None
            head, fields, is_output = questions[question]
            if len(numbers) != len(fields):
                return None
            parts.append(head)
            for number, (bound, size) in zip(numbers, fields, strict=True):
                if not 0 <= number < bound:
                    return None
                parts.append(number.to_bytes(size, "little"))
            if is_output is not None and not is_output(numbers):
                return None
            previous = question
        return b"".join(parts)

    def lines(self, body: bytes, source: int) -> Batch:
        """Lines `{"id": "32 hexadecimal digits", "report": {...}}`; blank lines are skipped."""
        lines = body.split(b"\n") if body.count(b"\n") <= self.most else []
        if not lines or (len(lines) > self.most and lines[self.most :] != [b""]):
            raise Refusal(413, f"more than {self.most} lines: send fewer in a request")
        ids, rows, good = self._quick(lines)
        rejected: list[tuple[int, str]] = []
        for i in np.flatnonzero(~good).tolist():
            found = self._slow(lines[i])
            if isinstance(found, tuple):
                ids[i] = np.frombuffer(found[0], np.uint8)
                rows[i] = np.frombuffer(pack(found[1].answers, self.survey), np.uint8)
                good[i] = True
            elif found is not None:
                rejected.append((i + 1, found))
        return self.batch(source, ids[good], rows[good], rejected)

    def _quick(self, lines: Sequence[bytes]) -> tuple[Bytes, Bytes, Mask]:
        """Ids, rows, and which lines the compiled parser could read: those in the canonical form."""
        n = len(lines)
        ids = np.zeros((n, 16), np.uint8)
        rows = np.zeros((n, self.survey.report_size), np.uint8)
        good = np.zeros(n, bool)
        plain = [
            i
            for i, line in enumerate(lines)
            if line[:7] == _HEAD and line[39:50] == _MIDDLE and line[-1:] == b"}" and len(line) > 50
        ]
        try:
            digits = binascii.unhexlify(b"".join([lines[i][7:39] for i in plain]))
        except binascii.Error:
            plain = []
        shape = _shape(self.survey)
        if shape is None or not plain:
            return ids, rows, good
        text = b"\n".join([lines[i][50:-1] for i in plain]) + b"\n"
        _, found, parsed = _parsed(text, len(text), self.survey, shape)
        ids[plain] = np.frombuffer(digits, np.uint8).reshape(-1, 16)
        rows[plain] = parsed
        good[plain] = found
        return ids, rows, good

    def _slow(self, line: bytes) -> tuple[bytes, Report] | str | None:
        """The id and the report on a line, the reason why there is none, or None for a blank line."""
        content = line.strip(b" \t\r")
        if not content:
            return None
        document: Any = None
        if len(content) <= self.longest + 256:
            with suppress(ValueError, RecursionError):
                document = json.loads(content.decode("utf-8"), object_pairs_hook=no_duplicates)
        if not isinstance(document, dict) or set(document) != {"id", "report"}:
            return Reason.MALFORMED.text
        text = document["id"]
        id = id_of(text.encode("utf-8", "replace")) if isinstance(text, str) else None
        if id is None:
            return BAD_ID
        found = parse_document(document["report"], self.survey)
        return (id, found) if isinstance(found, Report) else found.text

    def arrow(self, body: bytes, source: int) -> Batch:
        """An Arrow IPC stream with the columns `id` and `report`."""
        try:
            found = arrow.loads(body, self.survey, self.most)
        except FormatError as error:
            raise Refusal(413 if "fewer" in str(error) else 422, str(error)) from None
        reasons = np.where(found.reasons == 0, self._status(found.rows), found.reasons)
        rejected = [
            (row + 1, BAD_ID if reasons[row] == arrow.NO_ID else Reason(int(reasons[row])).text)
            for row in np.flatnonzero(reasons).tolist()
        ]
        good = reasons == 0
        return self.batch(source, found.ids[good], found.rows[good], rejected)

    def _status(self, rows: Bytes) -> Bytes:
        """0 for each valid report, or the reason why it is rejected: by the code that counts reports."""
        survey, layout = self.survey, Layout.of(self.survey)
        counts = np.zeros(layout.size, np.int64)
        if not survey.byte_wise:
            return count_any(rows, survey, layout, counts)
        slots = (survey.sampled, survey.slot_size, layout.entries, layout.cells, layout.offsets[:-1])
        return np.asarray(count_reports(np.ascontiguousarray(rows), *slots, counts))

    def batch(self, source: int, ids: Bytes, rows: Bytes, rejected: list[tuple[int, str]]) -> Batch:
        """Rows [n, report_size] and their ids as a batch."""
        data, offsets = to_wire(np.ascontiguousarray(rows), self.survey)
        sizes = None if self.survey.fixed_size else np.diff(offsets).tolist()
        return Batch(self.round, source, ids.tobytes(), data.tobytes(), sizes, rejected)
