"""What commands print: tables, JSON and progress; `printable` keeps others' names from controlling a terminal."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from hdr4me.errors import printable

_NAME = 16  # names in a first column are folded only beyond this
PATIENCE = 2.0  # seconds after which a `Watch` says what is being done


def as_json(value: Any) -> Any:
    """`value` with arrays, tuples and fractions turned into what JSON has; nan and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    text = json.dumps(as_json(value), indent=2, ensure_ascii=False)
    if not text.isascii() or "\x7f" in text:  # JSON itself escapes the other control characters of ASCII
        text = "".join(c if c == "\n" or printable(c) == c else json.dumps(c)[1:-1] for c in text)
    sys.stdout.write(text + "\n")


def print_note(text: str) -> None:
    """A line for a person, on standard error."""
    print(printable(text), file=sys.stderr)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on standard output; the first column is text, the others are aligned right.

    Where it is too wide, texts are folded and headings broken between words; numbers stay whole.
    """
    from rich.console import Console
    from rich.measure import Measurement

    width = Console().width if sys.stdout.isatty() else 120
    endless = Console(width=10_000)
    foldable = max(0, max((len(str(row[0])) for row in rows), default=0) - _NAME)
    for gap in (2, 1, 0):
        table = _table(columns, rows, gap, keep_names=not foldable)
        least = Measurement.get(endless, endless.options, table).minimum - foldable
        if least <= width:
            break
    # Lines that are too long for the terminal are better than numbers cut off.
    console = Console(width=max(width, least), highlight=False)
    console.print(printable(title), style="italic", markup=False)
    console.print(table)


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]], gap: int, *, keep_names: bool) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0))
    for index, column in enumerate(columns):
        texts = any(isinstance(row[index], str) for row in rows)
        whole = " " not in column and (keep_names if index == 0 else not texts)
        side: Any = "left" if index == 0 else "right"
        table.add_column(Text(printable(column)), justify=side, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(Text(_cell(item)) for item in row))
    return table


def _cell(item: object) -> str:
    if isinstance(item, float):
        return f"{item:.5g}"
    return "" if item is None else printable(str(item))


def _bar(label: str, total: int | None, *columns: Any) -> tuple[Any, Any]:
    """A progress bar on standard error, and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=sys.stderr))
    return bar, bar.add_task(label, total=total)


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar with the time left, if standard error is a terminal; the yielded function advances it."""
    if not sys.stderr.isatty():  # nobody is watching: a log needs no bars
        yield lambda count: None
        return
    from rich.progress import MofNCompleteColumn

    bar, task = _bar(label, total, MofNCompleteColumn())
    with bar:
        yield lambda count: bar.advance(task, count)


class Watch:
    """Says on standard error what is being done, once that has taken `PATIENCE` seconds; on a terminal only."""

    def __init__(self) -> None:
        self._update: Callable[[int, int], None] | None = None

    def told(self, now: int, of: int) -> None:
        """So much of so much is done: where a computation calls this, its bar has an end and the time left."""
        if self._update is not None:
            self._update(now, of)

    @contextmanager
    def __call__(self, label: str) -> Iterator[None]:
        """Watch what is done inside; one thing at a time."""
        if not sys.stderr.isatty():
            yield
            return
        from rich.progress import TimeElapsedColumn

        bar, task = _bar(label, None, TimeElapsedColumn())
        timer = threading.Timer(PATIENCE, bar.start)
        timer.daemon = True
        self._update = lambda now, of: bar.update(task, completed=now, total=of)
        timer.start()
        try:
            yield
        finally:
            self._update = None
            timer.cancel()
            timer.join()  # the bar may be starting just now
            if bar.live.is_started:
                bar.stop()


def working(label: str) -> AbstractContextManager[None]:
    """The same for work whose steps cannot be counted."""
    return Watch()(label)
