"""What a second round would bring: the rows that `hdr4me plan --rounds 2` adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.cli.output import print_note, print_table
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.planner import Plan

__all__ = ["second_round", "show_second"]


def second_round(found: Plan) -> list[dict[str, Any]]:
    """For each kind of number: what two rounds would bring over one (see `hdr4me.statistics.foretell`)."""
    from hdr4me.statistics.foretell import foretell_rounds

    best = found.best
    rows = []
    for group in best.workload.groups:
        if group.is_number:
            gain = foretell_rounds(group.prior, round(best.reports_per_dimension), best.epsilon_per_value)
            rows.append(
                {
                    "dimensions": group.count,
                    "values": "uniform" if group.prior.uniform else "as expected",
                    "reports": round(best.reports_per_dimension),
                    "gain": gain.gain,
                    "low": gain.low,
                    "high": gain.high,
                    "standard_error": gain.one,
                    "standard_error_of_two": gain.two,
                }
            )
    if not rows:
        raise InvalidInput("--rounds 2 concerns numbers, whose ranges a second round narrows: there are none")
    return rows


def show_second(rows: list[dict[str, Any]]) -> None:
    """The table of that, and a word where nothing is to be gained."""
    if not rows:
        return
    print_table(
        "A pilot of a fifth of the users, then a second round on narrower ranges (hdr4me refine)",
        [
            "dimensions",
            "values",
            "reports each",
            "s.e. one round",
            "s.e. two rounds",
            "MSE less by",
            "width kept",
        ],
        [
            [
                row["dimensions"],
                row["values"],
                row["reports"],
                row["standard_error"],
                row["standard_error_of_two"],
                row["gain"],
                (row["high"] - row["low"]) / 2,
            ]
            for row in rows
        ],
    )
    if all(row["values"] == "uniform" for row in rows):
        print_note("values that fill their range gain nothing: tell what you expect with --prior values.csv")
