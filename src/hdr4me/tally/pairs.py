"""Joint counts of two answers in the same report; integers that add exactly, computed from files of reports."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import write_bytes
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.io.files import read_blocks
from hdr4me.survey import Survey
from hdr4me.survey.category_file import loaded
from hdr4me.survey.layout import Layout
from hdr4me.tally.tally import check_block, count_any

Numbers = NDArray[np.int64]
FORMAT, VERSION = "hdr4me-pairs", 1
MAX_COUNTERS = 1 << 24  # of one pair


class PairCounts:
    """The number of reports that raise each pair of counters of two questions.

    Covariances, correlations and means by group are estimated from these counts: see `hdr4me.ask` with `pair_counts`.
    They are computed from files of reports, during the tally or at any later time. `+` is exact, associative and
    commutative. Reports that a tally rejects are not counted.

    >>> from hdr4me.client import Client
    >>> from hdr4me.io.report import pack
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), mechanism="duchi", sampled=2)
    >>> client = Client(survey)
    >>> rows = [pack(client.report({"a": 1, "b": 1}).answers, survey) for _ in range(100)]
    >>> block = np.frombuffer(b"".join(rows), np.uint8).reshape(100, -1)
    >>> counts = PairCounts(survey, [("a", "b")]).add_block(block)
    >>> counts.n_answers("a", "b"), (counts + counts).n_answers("a", "b")
    (100, 200)
    """

    def __init__(self, survey: Survey, pairs: Sequence[tuple[str, str]]) -> None:
        if not isinstance(survey, Survey):
            raise InvalidInput.of("survey", survey, "a Survey")
        self.survey = survey
        self.counts: dict[tuple[int, int], Numbers] = {}
        if not pairs:
            raise InvalidInput.of("pairs", list(pairs), "at least one pair of names")
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2:
                raise InvalidInput.of("pairs", pair, "pairs of names of dimensions")
            key = self._questions(*pair)
            sizes = [survey.questions[q].channel.n_counters + 1 for q in key]
            if sizes[0] * sizes[1] > MAX_COUNTERS:
                counters = f"{sizes[0]} × {sizes[1]} counters"
                raise InvalidInput(f"a pair of questions with {counters}: at most {MAX_COUNTERS} are allowed")
            self.counts[key] = np.zeros(sizes, np.int64)

    def _questions(self, first: str, second: str) -> tuple[int, int]:
        """The positions of the two questions, in the order of the survey."""
        a, b = sorted(self.survey.question_of(name) for name in (first, second))
        if a == b:
            raise InvalidInput(
                f"{first!r} and {second!r} are asked in one question: the tally is enough, without pair counts"
            )
        if self.survey.sampled < 2:
            raise InvalidInput(
                f"no report answers both {first!r} and {second!r}, because each person answers one question. Create "
                "the survey with sampled=2 or more (--sampled 2), ask both as a pair "
                "(pair_questions=, --pair-question), or add their product to the schema (hdr4me.Product)"
            )
        return a, b

    # -- adding ----------------------------------------------------------------------------------------------------

    def add_block(self, reports: NDArray[np.uint8]) -> PairCounts:
        """Count a block of binary reports, uint8 of shape (n, report_size), and return self."""
        survey = self.survey
        check_block(reports, survey)
        layout = Layout.of(survey)
        status = count_any(reports, survey, layout, np.zeros(layout.size, np.int64))
        slots = reports[status == 0].reshape(-1, survey.sampled, survey.slot_size)
        questions = slots[:, :, 0].astype(np.int64) | slots[:, :, 1].astype(np.int64) << 8
        for (first, second), counts in self.counts.items():
            both = np.flatnonzero((questions == first).any(axis=1) & (questions == second).any(axis=1))
            if both.size:
                at = [self._counters(slots[both], questions[both] == q, q) for q in (first, second)]
                index = at[0][:, :, None] * counts.shape[1] + at[1][:, None, :]
                counts += np.bincount(index.ravel(), minlength=counts.size).reshape(counts.shape)
        return self

    def _counters(self, slots: NDArray[np.uint8], here: NDArray[np.bool_], q: int) -> Numbers:
        """The counters that each report raises for question q, and a last one that every report raises."""
        channel = self.survey.questions[q].channel
        data = slots[here][:, 2 : 2 + channel.wire_size]
        at = channel.response.counters(channel.response.from_bytes(data))
        return np.concatenate([at, np.full((len(at), 1), channel.n_counters)], axis=1)

    def add_file(self, path: str | os.PathLike[str]) -> PairCounts:
        """Count a file of reports in any format, in blocks."""
        for block in read_blocks(path, self.survey):
            if len(block.rows):
                self.add_block(block.rows)
        return self

    def of(self, first: str, second: str) -> Numbers:
        """The counts of a pair, (counters of `first` + 1) × (of `second` + 1); the last of each count all reports."""
        key = self._questions(first, second)
        if key not in self.counts:
            both = f"{first!r} and {second!r}"
            raise InvalidInput(
                f"{both} were not counted together: count the reports again with this pair (--count-pair)"
            )
        counts = self.counts[key]
        return counts if self.survey.question_of(first) == key[0] else counts.T

    def holds(self, first: str, second: str) -> bool:
        """Whether two dimensions were counted together."""
        return self._questions(first, second) in self.counts

    def n_answers(self, first: str, second: str) -> int:
        """The number of reports that answered both."""
        return int(self.of(first, second)[-1, -1])

    # -- merging and files -----------------------------------------------------------------------------------------

    def __add__(self, other: object) -> PairCounts:
        if not isinstance(other, PairCounts):
            return NotImplemented
        if other.survey != self.survey:
            raise FingerprintMismatch("the other counts", self.survey.fingerprint, other.survey.fingerprint)
        if set(other.counts) != set(self.counts):
            raise InvalidInput(
                "the two objects count different pairs and cannot be added: count the same pairs in every file"
            )
        total = PairCounts.__new__(PairCounts)
        total.survey = self.survey
        total.counts = {key: counts + other.counts[key] for key, counts in self.counts.items()}
        return total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PairCounts) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # it changes as reports are added

    def to_bytes(self) -> bytes:
        """One line of JSON, then the counts as little-endian 64-bit integers; equal counts give equal bytes."""
        keys = sorted(self.counts)
        data = b"".join(self.counts[key].astype("<i8").tobytes() for key in keys)
        header = {
            "format": FORMAT,
            "version": VERSION,
            "document": self.survey.to_json(),
            "pairs": [list(key) for key in keys],
            "checksum": hashlib.sha256(data).hexdigest(),
        }
        return json.dumps(header, sort_keys=True, separators=(",", ":")).encode() + b"\n" + data

    @classmethod
    def from_bytes(cls, content: bytes) -> PairCounts:
        """Parse the bytes that `to_bytes` wrote, with all checks."""
        first, _, data = content.partition(b"\n")
        try:
            header: Any = json.loads(first)
        except (ValueError, RecursionError) as error:
            raise FormatError("not a file of pair counts, or damaged: its first line is not JSON") from error
        if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("version") != VERSION:
            raise FormatError(f"not a file of pair counts of version {VERSION}")
        if header.get("checksum") != hashlib.sha256(data).hexdigest():
            raise FormatError("the pair counts' checksum does not match: the file was truncated or changed")
        survey = Survey.from_json(str(header.get("document")))
        try:
            firsts = [[survey.questions[q].dimensions[0] for q in key] for key in header["pairs"]]
            names = [(survey.schema.names[a], survey.schema.names[b]) for a, b in firsts]
            found = cls(survey, names)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FormatError("not a file of pair counts: its pairs do not belong to its survey") from error
        if len(data) != 8 * sum(counts.size for counts in found.counts.values()):
            raise FormatError("the pair counts do not fit their survey")
        at = 0
        for counts in found.counts.values():
            counts[:] = np.frombuffer(data, "<i8", counts.size, at).reshape(counts.shape)
            at += counts.nbytes
            if counts.min() < 0 or counts.max() > counts[-1, -1]:
                raise FormatError("the pair counts do not add up")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts with their survey and a checksum, atomically."""
        write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PairCounts:
        """Read a file of pair counts."""
        return loaded(path, cls.from_bytes)
