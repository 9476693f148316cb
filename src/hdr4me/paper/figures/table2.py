"""Table II and the other printed numbers of section IV-C, the paper's beside ours."""

from __future__ import annotations

from hdr4me.paper.case_study import case_study

__all__ = ["COLUMNS", "table2"]

COLUMNS = ("quantity", "paper", "ours", "verdict on the paper's digits", "note")


def table2() -> list[list[object]]:
    """One row per printed number.

    >>> table2()[0][:3]
    ['Piecewise: variance', '533.210', '533.21035']
    """
    return [
        [line.quantity, line.printed, f"{line.value:.8g}", line.verdict, line.note or None]
        for line in case_study()
    ]
