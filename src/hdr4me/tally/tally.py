"""The tally: integer counts, so that the result does not depend on the order of reports, files and machines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import write_bytes
from hdr4me.errors import FingerprintMismatch, InvalidInput
from hdr4me.io.blocks import Block
from hdr4me.io.files import read_blocks
from hdr4me.io.quality import DataQuality, load_quality, save_quality
from hdr4me.io.report import OnRejected, Reason, Rejected, Report, fault, pack
from hdr4me.kernels.exact.count import OK, count_reports
from hdr4me.survey import Survey
from hdr4me.survey.category_file import loaded
from hdr4me.survey.layout import Layout
from hdr4me.survey.survey import questions_html

if TYPE_CHECKING:
    from hdr4me.statistics import Answer

Numbers = NDArray[np.int64]
_LARGEST = 2**53  # the largest integer that every JSON parser keeps exactly


class Tally:
    """The counters of each question. `+` is exact, associative and commutative; an empty tally is its identity.

    Invalid reports are not counted. `rejected` is their number by reason, and each is passed to `on_rejected`:
    `hdr4me.io.refuse` raises an error at the first one, and a `hdr4me.io.Quarantine` writes them to a file.

    >>> from hdr4me.client import Client
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi")
    >>> one = Tally(survey).add(Client(survey).report({"age": 31}) for _ in range(100))
    >>> (one + one).n_reports, one + Tally(survey) == one
    (200, True)

    `round_number` is the number of the round, from 1, in a repeated collection with memoized responses: answers of
    rounds after the survey's row budget say that they may be stale.
    """

    def __init__(self, survey: Survey) -> None:
        if not isinstance(survey, Survey):
            raise InvalidInput(f"survey = {survey!r} must be a Survey")
        self.survey = survey
        self.layout = Layout.of(survey)
        self.counts: Numbers = np.zeros(self.layout.size, np.int64)
        self.n_reports = 0
        self._rejected: Counter[str] = Counter()
        self.data_quality: DataQuality | None = None
        self.round_number: int | None = None

    # -- adding ------------------------------------------------------------------------------------------------

    def add(self, reports: Iterable[Report], *, on_rejected: OnRejected | None = None) -> Tally:
        """Count reports one by one, and return self."""
        if not isinstance(reports, Iterable):
            raise InvalidInput(
                f"reports of type {type(reports).__name__}: expected an iterable of reports, such as a list"
            )
        rows: list[bytes] = []
        for number, report in enumerate(reports, start=1):
            if not isinstance(report, Report):
                raise InvalidInput(f"report {number} is a {type(report).__name__}, not a Report")
            foreign = report.survey != self.survey.fingerprint
            reason = Reason.FOREIGN if foreign else fault(report.answers, self.survey)
            if reason is None:
                rows.append(pack(report.answers, self.survey))
            else:
                self.reject(Rejected(reason, f"report {number}", str(report)), on_rejected)
            if len(rows) == 4096:
                self.add_block(self._block(rows))
                rows = []
        return self.add_block(self._block(rows))

    def _block(self, rows: list[bytes]) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), self.survey.report_size)

    def add_block(
        self,
        reports: NDArray[np.uint8],
        *,
        on_rejected: OnRejected | None = None,
        where: str = "block",
        numbers: Sequence[int] | NDArray[np.integer[Any]] | None = None,
        threads: int = 1,
    ) -> Tally:
        """Count a block of binary reports, uint8 of shape (n, report_size), after a check of every byte.

        Parameters
        ----------
        reports
            One row of bytes for each report.
        on_rejected
            Called with a `Rejected` (reason, where, content) for each rejected report.
        where, numbers
            The name of the block and the number of each row, for messages; rows are counted from 1 unless given.
        threads
            The number of threads.
        """
        survey, layout = self.survey, self.layout
        check_block(reports, survey)
        self._check_room(len(reports))
        if survey.byte_wise:
            status = count_reports(
                reports,
                survey.sampled,
                survey.slot_size,
                layout.entries,
                layout.cells,
                layout.offsets[:-1],
                self.counts,
                threads=threads,
            )
        else:
            status = count_any(reports, survey, layout, self.counts)
        bad = np.flatnonzero(status != OK)
        self.n_reports += len(reports) - len(bad)
        if on_rejected is None:
            self._rejected.update(Reason(code).text for code in status[bad].tolist())
        else:
            for row in bad.tolist():
                position = f"{where}, row {row + 1 if numbers is None else numbers[row]}"
                content = reports[row].tobytes().hex()
                self.reject(Rejected(Reason(int(status[row])), position, content), on_rejected)
        return self

    def add_file(
        self, path: str | os.PathLike[str], *, on_rejected: OnRejected | None = None, threads: int = 1
    ) -> Tally:
        """Count a file of reports in any format, in blocks.

        Parameters
        ----------
        path
            A Parquet, Arrow or JSON lines file of reports.
        on_rejected, threads
            As for `add_block`.
        """
        for block in read_blocks(path, self.survey):
            self.add_read(block, on_rejected=on_rejected, where=str(path), threads=threads)
        return self

    def add_read(
        self, block: Block, *, on_rejected: OnRejected | None = None, where: str = "block", threads: int = 1
    ) -> Tally:
        """Count a block from a file reader, together with the reports that the reader rejected.

        Parameters
        ----------
        block
            Reports, and the reports that the reader rejected.
        on_rejected, where, threads
            As for `add_block`; `where` is the name of the file.
        """
        for rejected in block.rejected:
            self.reject(rejected, on_rejected)
        return self.add_block(
            block.rows, on_rejected=on_rejected, where=where, numbers=block.numbers, threads=threads
        )

    def reject(self, rejected: Rejected, on_rejected: OnRejected | None = None) -> None:
        """Count a rejected report and pass it to `on_rejected`."""
        self._rejected[rejected.reason.text] += 1
        if on_rejected is not None:
            on_rejected(rejected)

    @property
    def rejected(self) -> dict[str, int]:
        """The number of rejected reports by reason."""
        return dict(sorted(self._rejected.items()))

    # -- merging -----------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if other.survey != self.survey:
            raise FingerprintMismatch("the other tally", self.survey.fingerprint, other.survey.fingerprint)
        self._check_room(other.n_reports)
        total = Tally(self.survey)
        total.counts += self.counts + other.counts
        total.n_reports = self.n_reports + other.n_reports
        both = self._rejected + other._rejected
        # Unlike reports, rejected ones have no upper limit, because anyone can send them. The count saturates at the
        # largest number that a file can hold, so the result does not depend on the order and can be saved.
        total._rejected = Counter({reason: min(number, _LARGEST) for reason, number in both.items()})
        known = [tally.data_quality for tally in (self, other) if tally.data_quality is not None]
        total.data_quality = sum(known[1:], known[0]) if known else None
        return total

    def __radd__(self, other: object) -> Tally:
        if other == 0:  # so that sum() works
            return self + Tally(self.survey)
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and self.survey == other.survey
            and self.n_reports == other.n_reports
            and self._rejected == other._rejected
            and bool(np.array_equal(self.counts, other.counts))
        )

    __hash__ = None  # type: ignore[assignment]  # it changes as reports are added

    def __repr__(self) -> str:
        bad = sum(self._rejected.values())
        return f"<Tally of survey {self.survey.fingerprint[:12]}: {self.n_reports} reports, {bad} rejected>"

    def _repr_html_(self) -> str:
        def row(q: int) -> tuple[Any, ...]:
            return self.survey.questions[q].channel.mechanism, self.n_answers(q)

        return questions_html(self.survey, repr(self)[1:-1], ("mechanism", "answers"), row)

    def _check_room(self, more: int) -> None:
        if self.n_reports + more > _LARGEST:
            raise InvalidInput(f"{self.n_reports} + {more} reports are more than {_LARGEST}")

    def n_answers(self, question: int) -> int:
        """The number of reports that answered a question."""
        channel = self.survey.questions[question].channel
        return int(self.layout.of_question(self.counts, question).sum()) // channel.per_report

    # -- files and answers -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally with its survey and a checksum, atomically."""
        from hdr4me.tally.file import dumps

        write_bytes(path, dumps(self))
        save_quality(self.data_quality, self.survey, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], survey: Survey | None = None) -> Tally:
        """Read a tally from a file; if it belongs to another survey than `survey`, raise FingerprintMismatch."""
        from hdr4me.tally.file import loads

        tally = loaded(path, lambda content: loads(content, survey))
        tally.data_quality = load_quality([path], tally.survey)
        return tally

    @property
    def remarks(self) -> dict[str, str]:
        """Remarks on the data quality of dimensions, which answers show next to their rows."""
        return {} if self.data_quality is None else self.data_quality.remarks()

    def estimate(self) -> Answer:
        """Means, shares and frequencies with standard errors."""
        from hdr4me.statistics import estimate

        return estimate(self)

    def ask(self, statistic: str, dimensions: str | Sequence[str] | None = None, **options: Any) -> Answer:
        """One statistic of one, some or all dimensions: see `hdr4me.ask`.

        Parameters
        ----------
        statistic
            Its name, such as "quantile".
        dimensions
            A name, several names, or None for every dimension that the statistic supports.
        options
            Options of the statistic, such as `p` for quantiles.
        """
        from hdr4me.statistics import ask

        return ask(self, statistic, dimensions, **options)

    def priors(self) -> dict[str, Any]:
        """A prior for `plan` from the estimates of each dimension: see `hdr4me.statistics.rounds.priors`."""
        from hdr4me.statistics.rounds import priors

        return priors(self)


def check_block(reports: NDArray[np.uint8], survey: Survey) -> None:
    """Raise InvalidInput if a block of binary reports does not have the width of the survey."""
    if reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != survey.report_size:
        raise InvalidInput(f"reports {reports.dtype}{reports.shape}: expected uint8(n, {survey.report_size})")


def count_any(
    reports: NDArray[np.uint8], survey: Survey, layout: Layout, counts: Numbers
) -> NDArray[np.uint8]:
    """Add every valid report to `counts`; the result is the status of each row, 0 or the `Reason` of its rejection.

    It handles every channel; surveys whose answers are single bytes use the compiled kernel instead.
    """
    n, m, size = len(reports), survey.sampled, survey.slot_size
    slots = reports.reshape(n, m, size)
    asked = slots[:, :, 0].astype(np.int64) | slots[:, :, 1].astype(np.int64) << 8
    status = np.zeros(n, np.uint8)
    status[(asked[:, 1:] <= asked[:, :-1]).any(axis=1)] = Reason.ORDER
    status[(asked >= len(survey.questions)).any(axis=1)] = Reason.DIMENSION
    found: list[tuple[int, Numbers, Numbers]] = []
    order = np.argsort(asked, axis=None, kind="stable")
    bounds = np.searchsorted(asked.ravel()[order], np.arange(len(survey.questions) + 1))
    for q in np.flatnonzero(np.diff(bounds)).tolist():
        users, positions = np.divmod(order[bounds[q] : bounds[q + 1]], m)
        channel = survey.questions[q].channel
        used = 2 + channel.wire_size
        part = slots[users, positions]
        outputs = channel.response.from_bytes(part[:, 2:used])
        _mark(status, users[part[:, used:].any(axis=1)], Reason.PADDING)
        _mark(status, users[~channel.response.valid(outputs)], Reason.CODE)
        found.append((q, users, outputs))
    for q, users, outputs in found:
        own = layout.of_question(counts, q)
        survey.questions[q].channel.response.count(outputs, status[users] == 0, own)
    return status


def _mark(status: NDArray[np.uint8], rows: Numbers, reason: Reason) -> None:
    """Set the reason of reports that have none yet."""
    status[rows] = np.where(status[rows] == 0, reason, status[rows])
