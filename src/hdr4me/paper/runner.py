"""Runs the cells on several workers and keeps finished cells, so that an interrupted run can continue."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from hdr4me.atomic import write_text
from hdr4me.errors import FormatError
from hdr4me.paper import datasets
from hdr4me.paper.cells import Cell, CellResult, Outcome, run_cell
from hdr4me.paper.studies import AnyCell, AnyResult
from hdr4me.paper.theory import CltCell, CltResult, TheoryCell, TheoryResult, run_clt, run_theory

# Increased when a change of the simulation alters or adds numbers, so that older finished cells are not used.
STREAMS = 3


@dataclass(frozen=True)
class Settings:
    """The settings that the numbers of a cell depend on."""

    seed: int = 1
    normalize: str = "auto"
    cov19: str | None = None
    data: str | None = None

    def file_of(self, dataset: str) -> Path | None:
        """The file of a data set, if it has one."""
        name = {"cov19": self.cov19, "data": self.data}.get(dataset)
        return None if name is None else Path(name)

    def source_of(self, cell: AnyCell) -> list[Any]:
        """The settings that the cell depends on, as JSON."""
        file = self.file_of(cell.dataset) if isinstance(cell, Cell) else None
        mark = file and [file.name, file.stat().st_size, int(file.stat().st_mtime)]
        return [self.seed, self.normalize, mark]


def run_cells(
    cells: Sequence[AnyCell],
    settings: Settings,
    work: Path,
    *,
    workers: int = 1,
    advance: Callable[[int], None] = lambda cost: None,
) -> list[AnyResult]:
    """The results of `cells` in their order; finished cells are stored in `work` and read from there the next time.

    Each cell has its own random streams, so the number of workers does not change the numbers. `advance` is called with
    the cost of each finished cell.
    """
    work.mkdir(parents=True, exist_ok=True)
    waiting = [cell for cell in cells if _read(cell, settings, work) is None]
    advance(sum(cell.cost for cell in cells if cell not in waiting))
    waiting.sort(key=lambda cell: cell.cost, reverse=True)
    if workers == 1:
        for cell in waiting:
            _finish(cell, settings, work)
            advance(cell.cost)
    elif waiting:
        _run_in_pool(waiting, settings, work, workers, advance)
    # Data sets (half a gigabyte) are generated again when needed; the other files are left by interrupted runs.
    for path in work.glob("*.f32"):
        path.with_suffix(".json").unlink(missing_ok=True)
    for pattern in ("*.f32", "*.rows", ".*.part"):
        for path in work.glob(pattern):
            path.unlink()
    found = [result for cell in cells if (result := _read(cell, settings, work)) is not None]
    if len(found) < len(cells):
        raise FormatError(f"a finished setting in {work.name} cannot be read back: is the disk full?")
    return found


def finished_cells(cells: Sequence[AnyCell], settings: Settings, work: Path) -> int:
    """How many of `cells` an earlier run stored in `work`."""
    return sum(_read(cell, settings, work) is not None for cell in cells)


def _run_in_pool(
    waiting: list[AnyCell], settings: Settings, work: Path, workers: int, advance: Callable[[int], None]
) -> None:
    """Prepare the data sets in parallel with the cells that need none, then run the other cells."""
    context = multiprocessing.get_context("spawn")
    needy = [cell for cell in waiting if isinstance(cell, Cell)]
    with ProcessPoolExecutor(min(workers, len(waiting)), context, _end_quietly) as pool:

        def submit(cells: Sequence[AnyCell]) -> dict[Future[None], AnyCell]:
            return {pool.submit(_finish, cell, settings, work): cell for cell in cells}

        with _uninterrupted():
            first = {_data_key(cell, settings): cell for cell in needy}
            data = [pool.submit(_prepare, cell, settings, work) for cell in first.values()]
            running = submit([cell for cell in waiting if cell not in needy])
        try:
            for prepared in data:
                prepared.result()
            running |= submit(needy)
            for future in as_completed(running):
                future.result()
                advance(running[future].cost)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C inside, also in the processes that are started: an import would print a traceback."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_quietly() -> None:
    """In a worker: Ctrl-C ends the process without output; the parent process prints the message."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([STREAMS, *parts], sort_keys=True).encode()).hexdigest()[:16]


def _data_key(cell: Cell, settings: Settings) -> str:
    """The name of the stored data set; Figure 5 uses the same columns as COV-19 in Figure 4."""
    return f"{cell.dataset}-{_digest(cell.dataset, cell.users, _columns(cell), settings.source_of(cell))}"


def _columns(cell: Cell) -> int:
    """How many columns are generated: 750 for COV-19 at full size, also if a cell uses fewer."""
    if cell.dataset == "data":
        return 0  # All columns of the file: the cell chooses from them.
    if cell.dataset != "cov19" or cell.figure == "own":
        return cell.dims
    return round(750 * math.sqrt(cell.users / 150_000))


def _place(cell: AnyCell, settings: Settings, work: Path) -> Path:
    return work / f"{cell.key}-{_digest(asdict(cell), settings.source_of(cell))}.json"


def _prepare(cell: Cell, settings: Settings, work: Path) -> str:
    """Write the data set of the cell to disk if it is not there, and return its key."""
    key = _data_key(cell, settings)
    path, rows = work / f"{key}.f32", work / f"{key}.rows"
    if not datasets.is_stored(path):
        n, d, way = cell.users, _columns(cell), settings.normalize
        file = settings.file_of(cell.dataset)
        if file is None:
            data = datasets.synthetic(cell.dataset, n, d, settings.seed, way)
        elif cell.dataset == "cov19":
            data = datasets.load_cov19(file, n, d, rows, way)
        else:
            data = datasets.load_own(file, n, way)
        datasets.store(data, path)
        rows.unlink(missing_ok=True)
    return key


_opened = lru_cache(maxsize=8)(datasets.open_stored)


def _finish(cell: AnyCell, settings: Settings, work: Path) -> None:
    """Run one cell and store its result."""
    result: AnyResult
    if isinstance(cell, CltCell):
        result = run_clt(cell, settings.seed)
    elif isinstance(cell, TheoryCell):
        result = run_theory(cell, settings.seed)
    else:
        data = _opened(work / f"{_prepare(cell, settings, work)}.f32")
        dimensions = np.arange(data.dims)
        if cell.dims != data.dims or cell.figure == "fig5":
            dimensions = datasets.chosen_dimensions(data.dims, cell.dims, settings.seed)
        result = run_cell(replace(cell, users=data.users), data, dimensions, settings.seed)
    write_text(_place(cell, settings, work), json.dumps(asdict(result)))


def _read(cell: AnyCell, settings: Settings, work: Path) -> AnyResult | None:
    """The stored result of the cell, or None if there is no usable one."""
    kinds: dict[type, Any] = {Cell: CellResult, CltCell: CltResult, TheoryCell: TheoryResult}
    try:
        document = json.loads(_place(cell, settings, work).read_text(encoding="utf-8"))
        found: Any = {
            name: tuple(item) if isinstance(item, list) else item for name, item in document.items()
        }
        if "outcomes" in found:
            found["outcomes"] = tuple(Outcome(**item) for item in found["outcomes"])
        result: AnyResult = kinds[type(cell)](**{**found, "cell": type(cell)(**found["cell"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return result if result.cell.key == cell.key and result.seed == settings.seed else None
