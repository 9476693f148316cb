"""Excel files as rows; needs the extra `excel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hdr4me.errors import FormatError, MissingDependency, suggestion
from hdr4me.io.text import is_header, without_duplicates

MAGIC = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # .xlsx, .xlsb and .ods are ZIP files; .xls is a compound file


def read_sheet(path: str, sheet: str | None, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The records of a sheet, the first one unless given; its first row has the names of the columns.

    `names` are columns that must be there. Blank cells are None, and blank rows are left out.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook, ZipError
    except ModuleNotFoundError:
        raise MissingDependency(
            f"{path} is an Excel file: reading it needs python-calamine (pip install 'hdr4me[excel]')"
        ) from None
    try:
        book = CalamineWorkbook.from_path(path)
        if sheet is not None and sheet not in book.sheet_names:
            raise FormatError(f"{path} has no sheet {sheet!r}: its sheets are {_listed(book.sheet_names)}")
        rows = book.get_sheet_by_name(sheet or book.sheet_names[0]).to_python()
    except (CalamineError, ZipError):
        archive = "; if it is a ZIP archive, unpack it" if path.lower().endswith(".zip") else ""
        raise FormatError(f"{path} is not an Excel file, or is damaged or encrypted{archive}") from None
    header = without_duplicates([str(cell).strip() for cell in rows[0]]) if rows else []
    cells = [[None if cell == "" else cell for cell in row] for row in rows[1:]]
    if missing := [name for name in dict.fromkeys(names) if name not in header]:
        numbers = [name for name, *column in zip(header, *cells, strict=False) if _has_numbers(column)]
        known = is_header(header, numbers, names)
        hint = suggestion(missing[0], header) if known else ", which must have the names of the columns"
        sheets = f" (--sheet selects one of {_listed(book.sheet_names)})" if len(book.sheet_names) > 1 else ""
        raise FormatError(
            f"{path} has no column {_listed(missing)} in the first row of the sheet "
            f"{sheet or book.sheet_names[0]!r}{hint}{sheets}"
        )
    records = [dict(zip(header, row, strict=True)) for row in cells if any(x is not None for x in row)]
    if not records:
        raise FormatError(f"the sheet {sheet or book.sheet_names[0]!r} of {path} contains no records")
    return records


def _has_numbers(column: Sequence[Any]) -> bool:
    """Whether the cells of a column are numbers, Booleans, dates or times."""
    there = [cell for cell in column if cell is not None]
    return bool(there) and not any(isinstance(cell, str) for cell in there)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
