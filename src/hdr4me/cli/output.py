"""What commands print: tables, notes, JSON and progress.

`printable` escapes control characters in names from files, which could otherwise control a terminal.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import Any

from hdr4me.errors import printable
from hdr4me.pages.text import pluralize

_NAME = 16  # a name in the first column is folded only if it is longer than this
_WORD = 40  # a longer word may be broken to fit into a column
_EDGES = 2  # columns of the edges of a table, which rich does not count
_MEASURED = 1000  # rows whose words are measured
_NOTES = 2  # without --verbose, a command prints at most this many notes
PATIENCE = 2.0  # seconds after which a `Watch` shows the current step


def as_json(value: Any) -> Any:
    """`value` with arrays, tuples and fractions converted to JSON types; nan and infinities become null."""
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


def _width(stream: Any) -> int | None:
    """The columns of a terminal; None for a pipe or a file, where lines are not wrapped."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _wrapped(text: str, width: int | None) -> str:
    """`text` with lines that fit a terminal; a word is never broken."""
    if width is None:
        return text
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def print_text(text: str) -> None:
    """Print sentences on standard output, one paragraph for each line of `text`."""
    for line in text.splitlines():
        print(_wrapped(printable(line), _width(sys.stdout)))


def print_note(text: str) -> None:
    """Print one note on standard error."""
    print(_wrapped(printable(text), _width(sys.stderr)), file=sys.stderr)


def print_notes(notes: Sequence[str], verbose: bool, most: int = _NOTES) -> None:
    """Print at most `most` lines of notes, the most important first; all of them if `verbose`."""
    shown = list(notes if verbose else notes[:most])
    if len(shown) < len(notes):
        shown[-1] += f" ({pluralize(len(notes) - len(shown), 'more note')}: --verbose)"
    for note in shown:
        print_note(note)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on standard output; texts are aligned left, numbers right.

    Numbers have three significant digits; an estimate has those of its standard error (`with_digits_of`). If the table
    is too wide, texts and headings are wrapped between words. Words and numbers are not broken.
    """
    from rich.console import Console

    width = _width(sys.stdout) or 120
    for gap in (2, 1, 0):
        table = _table(columns, rows, gap)
        least = sum((column.min_width or 1) + gap + 1 for column in table.columns) + 1
        if least + _EDGES <= width:
            break
    # Lines that are longer than the terminal are better than truncated numbers.
    console = Console(width=max(width - _EDGES, least), highlight=False)
    console.print(printable(title), style="italic", markup=False)
    console.print(table, crop=False)


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]], gap: int) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0))
    for index, column in enumerate(columns):
        texts = all(isinstance(row[index], str | None) for row in rows)
        side: Any = "left" if index == 0 or texts else "right"
        words = (word for row in rows[:_MEASURED] for word in _cell(row[index]).split())
        least = min(_WORD if index else _NAME, max(map(len, words), default=0))
        least = max(least, *map(len, printable(column).split() or [""]), 1)  # no word is broken
        table.add_column(Text(printable(column)), justify=side, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*(Text(_cell(item)) for item in row))
    return table


def _cell(item: object) -> str:
    if isinstance(item, float):
        if item != item:
            return ""
        return f"{item:,.0f}" if 999.5 <= abs(item) < 1e9 else f"{item:.3g}"
    if isinstance(item, Decimal):
        return f"{item:,f}"
    if isinstance(item, int) and not isinstance(item, bool):
        return f"{item:,}"
    return "" if item is None else printable(str(item))


def probability(p: float) -> float | str:
    """The cell of a predicted probability, which is never rounded to 0 or 1."""
    if p < 0.001:
        return "< 0.001"
    return "> 0.999" if p > 0.999 else p


def with_digits_of(error: float | None, value: float | None) -> Decimal | float | None:
    """An estimate rounded to two significant digits of its standard error; `value` itself if the error is unknown.

    >>> with_digits_of(0.36703, 13.8692), with_digits_of(0.00647, 0.1), with_digits_of(None, 13.8692)
    (Decimal('13.87'), Decimal('0.1000'), 13.8692)
    """
    if value is None or error is None or not (math.isfinite(value) and 1e-9 < error < math.inf):
        return value
    return Decimal(f"{value:.{max(0, 1 - math.floor(math.log10(error)))}f}") + 0  # no minus before a zero


def _bar(label: str, total: int | None, *columns: Any) -> tuple[Any, Any]:
    """A progress bar on standard error, and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=sys.stderr))
    return bar, bar.add_task(label, total=total)


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if standard error is a terminal; the yielded function advances it."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.progress import MofNCompleteColumn

    bar, task = _bar(label, total, MofNCompleteColumn())
    with bar:
        yield lambda count: bar.advance(task, count)


class Watch:
    """Shows the current step on standard error once it has taken `PATIENCE` seconds; on a terminal only."""

    def __init__(self) -> None:
        self._update: Callable[[int, int], None] | None = None

    def update(self, now: int, of: int) -> None:
        """Report that `now` of `of` units of work are done, so that the bar shows the time left."""
        if self._update is not None:
            self._update(now, of)

    @contextmanager
    def __call__(self, label: str) -> Iterator[None]:
        """Show `label` while the block runs; blocks do not nest."""
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
            timer.join()  # the bar may be starting at this moment
            if bar.live.is_started:
                bar.stop()


def working(label: str) -> AbstractContextManager[None]:
    """A `Watch` for work whose steps cannot be counted."""
    return Watch()(label)
