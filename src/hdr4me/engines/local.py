"""The engine of this machine: it streams records to reports and reports to a tally, on all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines.protocol import FilePath, Progress, check_survey, paths_of
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io import OnRejected, Quarantine, refuse, write_reports
from hdr4me.io.arrow import as_batch, schema_of
from hdr4me.io.columns import Source, check_matrix, data_quality, from_batch, from_matrix
from hdr4me.io.files import files_of, read_blocks
from hdr4me.io.quality import DataQuality, OnQuality, check_quality, load_quality, save_quality
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts, Tally

T = TypeVar("T")


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Local:
    """Perturb and tally on this machine, with memory that does not grow with the number of users.

    >>> import pyarrow as pa
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi")
    >>> engine = Local(threads=1)
    >>> [block.shape for block in engine.reports(pa.table({"age": [31, 45, 77]}), survey)]
    [(3, 3)]
    """

    threads: int = field(default_factory=_n_cores)

    def __post_init__(self) -> None:
        if not isinstance(self.threads, int) or self.threads < 1:
            raise InvalidInput(f"threads = {self.threads!r} must be a positive integer")

    def reports(
        self, records: Any, survey: Survey, *, on_quality: OnQuality = check_quality
    ) -> Iterator[NDArray[np.uint8]]:
        """Reports of records, as blocks of uint8 [n, report_size], randomized with the operating system's generator.

        Records are files (a path, several, or `RecordFiles`), an Arrow table or batch, a frame (pandas, polars), or a
        matrix [n, columns] of numbers (`Schema.columns`) in which a categorical dimension holds category indices.
        `on_quality` receives the data-quality report before the last block; by default it refuses unusable columns.
        """
        check_survey(survey)
        return self._reports(records, survey, on_quality)

    def _reports(self, records: Any, survey: Survey, on_quality: OnQuality) -> Iterator[NDArray[np.uint8]]:
        total, waiting = DataQuality.empty(survey), None
        for source in self._sources(records, survey):
            total += data_quality(source, survey)
            if waiting is not None:
                yield self._block(waiting, survey)
            waiting = source
        on_quality(total)
        if waiting is not None:
            yield self._block(waiting, survey)

    def perturb(
        self,
        records: Any,
        survey: Survey,
        target: FilePath,
        *,
        progress: Progress | None = None,
        on_quality: OnQuality = check_quality,
    ) -> int:
        """Write the reports of records to a file in the format of its suffix; returns the number of reports.

        The file is written atomically. The data-quality report is stored next to it (`hdr4me.io.quality`).
        """
        check_survey(survey)
        total = DataQuality.empty(survey)
        with write_reports(target, survey) as writer:
            for source in self._sources(records, survey):
                total += data_quality(source, survey)
                writer.write(self._block(source, survey))
                if progress is not None:
                    progress(source.n)
            if not total.n_records:
                raise FormatError("there are no records")
            on_quality(total)
        save_quality(total, survey, target)
        return total.n_records

    def table(self, records: Any, survey: Survey, *, on_quality: OnQuality = check_quality) -> pa.Table:
        """The reports of records as an Arrow table with one column, `report`.

        Its metadata holds the survey's fingerprint. `polars.from_arrow(table)` and `table.to_pandas()` convert it.
        """
        blocks, schema = self.reports(records, survey, on_quality=on_quality), schema_of(survey)
        return pa.Table.from_batches([as_batch(block, schema, survey) for block in blocks], schema)

    def data_quality(self, records: Any, survey: Survey) -> DataQuality:
        """The data-quality report of records, without creating reports."""
        check_survey(survey)
        total = DataQuality.empty(survey)
        for source in self._sources(records, survey):
            total += data_quality(source, survey)
        return total

    def tally(
        self,
        reports: FilePath | Sequence[FilePath],
        survey: Survey,
        *,
        quarantine: FilePath | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Tally:
        """The tally of files or folders of reports (see `hdr4me.engines.Engine.tally`)."""
        check_survey(survey)
        paths = [file for source in paths_of(reports) for file in files_of(source)]
        with nullcontext() if strict or quarantine is None else Quarantine(quarantine) as handler:
            tally = self._tally_files(paths, survey, refuse if strict else handler, progress)
        tally.data_quality = load_quality(dict.fromkeys([*map(Path, paths_of(reports)), *paths]), survey)
        return tally

    def pair_counts(
        self, reports: FilePath | Sequence[FilePath], survey: Survey, pairs: Sequence[tuple[str, str]]
    ) -> PairCounts:
        """Joint counts of two answers of one report, from files or folders of reports."""
        check_survey(survey)
        counts = PairCounts(survey, pairs)
        for file in (file for source in paths_of(reports) for file in files_of(source)):
            counts.add_file(file)
        return counts

    # -- implementation ----------------------------------------------------------------------------------------------

    def _tally_files(
        self, paths: Sequence[FilePath], survey: Survey, handler: OnRejected | None, progress: Progress | None
    ) -> Tally:
        """Tally several files in parallel; handlers are called by one thread at a time."""
        lock = threading.Lock()

        def locked(call: Callable[[Any], None], value: Any) -> None:
            with lock:
                call(value)

        on_rejected = None if handler is None else partial(locked, handler)

        def one(path: FilePath) -> Tally:
            tally = Tally(survey)
            blocks = read_blocks(path, survey)
            # Rejected reports come with their block, so that one thread calls the handlers. With one thread, nothing
            # changes cores.
            for block in prefetched(blocks) if self.threads > 1 else blocks:
                tally.add_read(block, on_rejected=on_rejected, where=str(path))
                if progress is not None:
                    locked(progress, len(block.rows))
            return tally

        workers = min(self.threads, len(paths))
        if workers <= 1:
            return sum((one(path) for path in paths), start=Tally(survey))
        with ThreadPoolExecutor(workers) as pool:
            return sum(pool.map(one, paths), start=Tally(survey))

    def _sources(self, records: Any, survey: Survey) -> Iterator[Source]:
        from hdr4me.io.reading import batch_rows, record_batches

        if isinstance(records, np.ndarray):
            values, rows = check_matrix(records, survey), batch_rows(survey)
            for start in range(0, len(values), rows):
                yield from_matrix(values[start : start + rows], survey)
        else:
            for batch in prefetched(record_batches(records, survey)):
                yield from_batch(batch, survey)

    def _block(self, source: Source, survey: Survey) -> NDArray[np.uint8]:
        """The reports of a source; a plain matrix whose columns are all sent has its own kernel."""
        from hdr4me.engines.general import perturb_source, plan_of
        from hdr4me.kernels.exact.perturb import perturb_matrix
        from hdr4me.kernels.machine.intrinsics import WIDTH

        values, schema = source.owners[0], survey.schema
        plain = (
            isinstance(values, np.ndarray)
            and survey.byte_wise
            and survey.sampled == len(schema) >= WIDTH
            and not any(dimension.categories for dimension in schema)
            and len(schema.columns) == len(schema)
            and values.dtype in (np.float64, np.float32)
            and values.flags.c_contiguous
        )
        if plain:
            return perturb_matrix(values, plan_of(survey), threads=self.threads)
        return perturb_source(source, survey, threads=self.threads)


@contextmanager
def open_local(master: str | None = None) -> Iterator[Local]:
    """The local engine, which has no master."""
    if master is not None:
        raise InvalidInput.of("master", master, "omitted, because the local engine has no master")
    yield Local()


def prefetched(items: Iterable[T]) -> Iterator[T]:
    """The same items, each prefetched in another thread while the previous item is used."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, iterator, end)
        while (item := waiting.result()) is not end:
            waiting = pool.submit(next, iterator, end)
            yield item  # type: ignore[misc]
