"""The part of hdr4me audit that looks at counts: alarms, and what false reports could do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from hdr4me.atomic import write_text
from hdr4me.cli.option_names import named_options
from hdr4me.cli.output import print_json, print_note, print_table, working
from hdr4me.cli.pictures import save_picture
from hdr4me.pages.counted import counted
from hdr4me.pages.stamp import on_page, stamp

__all__ = ["audit_tally", "harm_table"]

_SHOWN = 20


def audit_tally(
    survey: Any,
    path: Path,
    reports: Sequence[Path],
    level: float,
    look: int,
    json: bool,
    *,
    html: Path | None = None,
    png: Path | None = None,
) -> bool:
    """Print what a look at a tally finds; True if there was no alarm.

    Parameters
    ----------
    survey, path, reports
        The survey, its tally's file, and files of its reports to look for copies in.
    level, look
        The probability of any false alarm over all looks, and the number of this look.
    json
        Whether to print JSON.
    html, png
        Where a page and a picture go; None for neither.
    """
    from hdr4me.accounting.harm import harm
    from hdr4me.auditing import watch
    from hdr4me.auditing.alarms import most_copies
    from hdr4me.cli.audit_page import draw_harm, tally_page
    from hdr4me.tally import Tally

    tally = Tally.load(path, survey)
    with named_options({"level": "--level", "look": "--look"}), working("looking at the counts"):
        copies = most_copies(survey, reports) if reports else None
        found = watch(tally, level=level, look=look, copies=copies)
    limits = [item.to_dict() for item in harm(survey)]
    made = stamp(survey.fingerprint, survey.epsilon, level)
    if html is not None:
        write_text(html, on_page(tally_page(found, limits), made))
        print_note(f"wrote {html}")
    if png is not None:
        save_picture(draw_harm(limits), png, made)
        print_note(f"wrote {png}")
    if json:
        print_json({**made, **found.to_dict(), "harm": limits})
    else:
        typer.echo(str(found))
        harm_table(limits)
        typer.echo(
            "Not to be found this way: false reports that imitate an honest population with other values, and "
            "all that a two-cell table receives. The limits above hold for them too."
        )
    return not found.alarms


def harm_table(limits: Sequence[dict[str, Any]]) -> None:
    """How far false reports move each answer at most."""
    share = limits[0]["share"] if limits else 0.01
    print_table(
        f"If {100 * share:g} % of the reports are false, an answer moves by at most (own units)",
        ["dimension", "spread over all questions", "all aimed at this one"],
        [[item["dimension"], item["shift"], item["shift_aimed"]] for item in limits[:_SHOWN]],
    )
    if len(limits) > _SHOWN:
        typer.echo(f"… and {counted(len(limits) - _SHOWN, 'more dimension')}")
