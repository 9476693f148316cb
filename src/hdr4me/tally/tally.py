"""The tally: integers, so that adding is exact and the order of reports, files and machines leaves no trace."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, InvalidInput
from hdr4me.io.blocks import Block
from hdr4me.io.files import read_blocks
from hdr4me.io.report import OnRejected, Reason, Rejected, Report, fault, pack
from hdr4me.kernels.exact.count import OK, count_reports
from hdr4me.survey import Survey
from hdr4me.survey.layout import Layout
from hdr4me.tally.counting import count_any

if TYPE_CHECKING:
    from hdr4me.statistics import Answer


_SHOWN = 20
_LARGEST = 2**53  # beyond it JSON readers round, and int64 counts are far from full


class Tally:
    """The counters of each question; empty, it is the identity of `+`.

    `+` is exact, associative and commutative. A bad report is not counted: `rejected` says how many there were, for
    which reason, and each is handed to `on_rejected` (`hdr4me.io.refuse` stops at the first, a
    `hdr4me.io.Quarantine` writes them to a file).

    >>> from hdr4me.client import Client
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi")
    >>> one = Tally(survey).add(Client(survey).report({"age": 31}) for _ in range(100))
    >>> (one + one).n_reports, one + Tally(survey) == one
    (200, True)
    """

    def __init__(self, survey: Survey) -> None:
        if not isinstance(survey, Survey):
            raise InvalidInput(f"survey = {survey!r} must be a Survey")
        self.survey = survey
        self.layout = Layout.of(survey)
        self.counts: NDArray[np.int64] = np.zeros(self.layout.size, np.int64)
        self.n_reports = 0
        self._rejected: Counter[str] = Counter()

    # -- adding ------------------------------------------------------------------------------------------------

    def add(self, reports: Iterable[Report], *, on_rejected: OnRejected | None = None) -> Tally:
        """Count reports, one by one; returns the tally itself."""
        if not isinstance(reports, Iterable):
            raise InvalidInput(
                f"reports of type {type(reports).__name__}: expected many, such as a list of one"
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
                self._add_rows(rows)
                rows = []
        self._add_rows(rows)
        return self

    def _add_rows(self, rows: list[bytes]) -> None:
        flat = np.frombuffer(b"".join(rows), np.uint8)
        self.add_block(flat.reshape(len(rows), self.survey.report_size))

    def add_block(
        self,
        reports: NDArray[np.uint8],
        *,
        on_rejected: OnRejected | None = None,
        where: str = "block",
        first_row: int = 0,
        numbers: Sequence[int] | NDArray[np.integer[Any]] | None = None,
        threads: int = 1,
    ) -> Tally:
        """Count a block of binary reports, uint8 of shape (n, report_size), checking every byte.

        `where` and `first_row`, or `numbers` (each report's row number), only say where a rejected report stood.

        Parameters
        ----------
        reports
            One row of bytes for each report.
        on_rejected
            Called with a `Rejected` (reason, where, content) for each report that is left out.
        where, first_row, numbers
            The block's name, the number of its first row, or the number of each row, for messages.
        threads
            How many threads count.
        """
        survey, layout = self.survey, self.layout
        if reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != survey.report_size:
            raise InvalidInput(
                f"reports {reports.dtype}{reports.shape}: expected uint8(n, {survey.report_size})"
            )
        self._check_room(len(reports))
        if survey.byte_wise:
            status = count_reports(
                reports,
                survey.n_sampled,
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
                place = f"{where}, row {first_row + row + 1 if numbers is None else numbers[row]}"
                self.reject(
                    Rejected(Reason(int(status[row])), place, reports[row].tobytes().hex()), on_rejected
                )
        return self

    def add_file(
        self, path: str | os.PathLike[str], *, on_rejected: OnRejected | None = None, threads: int = 1
    ) -> Tally:
        """Count a file of reports, of any format, in blocks.

        Parameters
        ----------
        path
            A Parquet, Arrow or JSON lines file of reports.
        on_rejected
            Called with a `Rejected` (reason, where, content) for each report that is left out.
        threads
            How many threads count.

        Examples
        --------
        >>> import hdr4me as hd
        >>> schema = hd.Schema([hd.Numeric("age", 0, 120), hd.Categorical("smoker", ["no", "yes"])])
        >>> survey = hd.Survey(schema, epsilon=2.0)
        >>> import tempfile
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/reports.parquet"
        ...     _ = hd.engines.Local().perturb(np.array([[31.0, 0.0], [44.0, 1.0]]), survey, path)
        ...     hd.Tally(survey).add_file(path).n_reports
        2
        """
        for block in read_blocks(path, self.survey):
            self.add_read(block, on_rejected=on_rejected, where=str(path), threads=threads)
        return self

    def add_read(
        self, block: Block, *, on_rejected: OnRejected | None = None, where: str = "block", threads: int = 1
    ) -> Tally:
        """Count a block as a reader of files gives it, with what the reader rejected.

        Parameters
        ----------
        block
            Reports, and what the reader rejected.
        on_rejected
            Called with a `Rejected` (reason, where, content) for each report that is left out.
        where
            The name of the file, for messages.
        threads
            How many threads count.
        """
        for rejected in block.rejected:
            self.reject(rejected, on_rejected)
        return self.add_block(
            block.rows, on_rejected=on_rejected, where=where, numbers=block.numbers, threads=threads
        )

    def reject(self, rejected: Rejected, on_rejected: OnRejected | None = None) -> None:
        """Count a bad report and hand it on."""
        self._rejected[rejected.reason.text] += 1
        if on_rejected is not None:
            on_rejected(rejected)

    @property
    def rejected(self) -> dict[str, int]:
        """How many reports were not counted, by reason."""
        return dict(sorted(self._rejected.items()))

    # -- merging -----------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if other.survey != self.survey:
            raise FingerprintMismatch("the other tally", self.survey.fingerprint, other.survey.fingerprint)
        self._check_room(other.n_reports)
        total = Tally(self.survey)
        np.add(self.counts, other.counts, out=total.counts)
        total.n_reports = self.n_reports + other.n_reports
        both = self._rejected + other._rejected
        # Unlike reports, rejected ones have no upper limit: anybody can send them. At the largest number that a file
        # can hold the count stays where it is, in any order of adding, and the tally can still be saved.
        total._rejected = Counter({reason: min(number, _LARGEST) for reason, number in both.items()})
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
        from hdr4me.pages import html

        questions, names = self.survey.questions[:_SHOWN], self.survey.schema.names
        rows = []
        for q, question in enumerate(questions):
            total = int(self.layout.of_question(self.counts, q).sum())
            asked = ", ".join(names[j] for j in question.dimensions)
            rows.append((asked, question.channel.mechanism, total // question.channel.per_report))
        rest = len(self.survey.questions) - len(rows)
        more = html.paragraph(f"… and {rest:,} more questions") if rest else ""
        return (
            html.paragraph(repr(self)[1:-1]) + html.table(("question", "mechanism", "answers"), rows) + more
        )

    def _check_room(self, more: int) -> None:
        if self.n_reports + more > _LARGEST:
            raise InvalidInput(f"{self.n_reports} + {more} reports are more than {_LARGEST}")

    def n_answers(self, question: int) -> int:
        """How many reports answered a question."""
        channel = self.survey.questions[question].channel
        return int(self.layout.of_question(self.counts, question).sum()) // channel.per_report

    # -- files and answers -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally with its survey and a checksum, atomically."""
        from hdr4me.tally.file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], survey: Survey | None = None) -> Tally:
        """Read a tally; with `survey`, one of another survey is an error that names both.

        >>> import hdr4me as hd
        >>> schema = hd.Schema([hd.Numeric("age", 0, 120), hd.Categorical("smoker", ["no", "yes"])])
        >>> survey = hd.Survey(schema, epsilon=2.0)
        >>> tally = hd.Tally(survey).add(hd.Client(survey).report({"age": 31}) for _ in range(20))
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tally.save(f"{folder}/day.tally")
        ...     hd.Tally.load(f"{folder}/day.tally").n_reports
        20
        """
        from hdr4me.tally.file import load

        return load(path, survey)

    def estimate(self) -> Answer:
        """Means, shares and frequencies with their standard errors."""
        from hdr4me.statistics import estimate

        return estimate(self)

    def ask(self, statistic: str, dimensions: str | Sequence[str] | None = None, **options: Any) -> Answer:
        """One statistic of one, some or all dimensions: see `hdr4me.ask`.

        Parameters
        ----------
        statistic
            Its name, such as "quantile".
        dimensions
            A name, several names, or None for every dimension that the statistic serves.
        options
            What the statistic itself takes, such as `p` for quantiles.

        Examples
        --------
        >>> from hdr4me.survey import Numeric, Schema
        >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi")
        >>> Tally(survey).ask("mean", "age").status
        ('no reports',)
        """
        from hdr4me.statistics import ask

        return ask(self, statistic, dimensions, **options)

    def priors(self) -> dict[str, Any]:
        """A prior for `plan` from what was found about each dimension: see `hdr4me.statistics.rounds.priors`."""
        from hdr4me.statistics.rounds import priors

        return priors(self)
