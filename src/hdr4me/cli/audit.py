"""hdr4me audit: is this survey as private as it says?"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import print_json, print_note, print_table, progress, working
from hdr4me.cli.paths import check_outputs, check_picture, write_results
from hdr4me.errors import InvalidInput
from hdr4me.pages.counted import counted
from hdr4me.pages.stamp import stamp

if TYPE_CHECKING:
    from hdr4me.survey import Survey

_FINDING = {
    "mechanism": "mechanism", "kind": "kind", "dimensions": "n_dims", "loss": "loss",
    "epsilon_proven": "epsilon_proven", "epsilon_declared": "epsilon_declared",
    "epsilon_attacked": "epsilon_attacked", "draws": "n_draws", "draws_asked": "n_asked", "passed": "passed",
}  # fmt: skip
"""The keys of a finding in JSON, and its attributes."""
_SHOWN = 20
"""Dimensions of which a table shows what false reports could do."""


def audit(
    survey: Annotated[Path, Argument(help="A survey's document.")],
    draws: Annotated[
        int, Option(help="Reports that the attack draws for each of its two values.")
    ] = 1_000_000,
    tally: Annotated[
        Path | None, Option(help="Look at this tally instead: can an honest population give it?")
    ] = None,
    reports: Annotated[
        list[Path] | None, Option(help="… and at these files of its reports, for copies (repeat).")
    ] = None,
    level: Annotated[float, Option(help="… probability of any false alarm over all looks, at most.")] = 0.001,
    look: Annotated[int, Option(help="… the number of this look at the collection.")] = 1,
    html: Annotated[Path | None, Option(help="Write a page with the picture.")] = None,
    png: Annotated[Path | None, Option(help="Write the picture (.png, .svg, .pdf).")] = None,
    json: Annotated[bool, Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Prove every table private in integers, and attack the sampler that would use it.

    The loss is an exact fraction, compared with a rational number below e^epsilon. The attack gives a lower bound of
    epsilon from sampled reports alone. Exit code 1 if anything exceeds what the survey declares.

    With --tally the counts are looked at: an alarm means that no honest population gives them, whatever its values.
    Exit code 1 if there is one.

    Example: hdr4me audit survey.json --html audit.html

    Example: hdr4me audit survey.json --tally day.tally --reports day.parquet
    """
    from hdr4me.survey import Survey

    if not 1000 <= draws <= 20_000_000:
        raise InvalidInput(f"--draws {draws} is not allowed: 1000 to 20,000,000")
    if reports and tally is None:
        raise InvalidInput("--reports goes with --tally: give both")
    check_picture("--png", png)
    check_outputs([html, png], [survey, tally, *(reports or [])])
    document = Survey.load(survey)
    if tally is not None:
        if not _audit_tally(document, tally, reports or [], level, look, html, png, json):
            raise typer.Exit(1)
        return
    from hdr4me.auditing.auditor import ALARM, COLUMNS
    from hdr4me.auditing.auditor import audit as run
    from hdr4me.cli.audit_page import audit_page, draw_audit

    with progress("attacking", draws * len(document.channels)) as advance:
        found = run(document, n_draws=draws, progress=advance)
    made = stamp(document.fingerprint, found.epsilon_declared, 1 - ALARM)
    write_results(html, png, made, lambda: audit_page(found), lambda: draw_audit(found))
    if json:
        print_json(
            {
                **made,
                "passed": found.passed,
                "epsilon_proven": found.epsilon_proven,
                "loss": str(found.loss),
                "tables": [
                    {key: getattr(finding, name) for key, name in _FINDING.items()}
                    for finding in found.findings
                ],
            }
        )
    else:
        print_table(
            f"Audit of survey {document.fingerprint[:12]}",
            [column.replace("ε", "epsilon") for column in COLUMNS],
            found.rows(),
        )
        for note in found.notes:
            print_note(f"note: {note}")
        typer.echo(
            f"A whole report ({counted(found.n_sampled, 'answer')}): ratio at most {_short(found.loss)}, epsilon "
            f"{found.epsilon_proven:.9g} of {found.epsilon_declared:g} declared: "
            + ("passes" if found.passed else "FAILS")
        )
    if not found.passed:
        raise typer.Exit(1)


def _short(loss: Fraction) -> str:
    text = str(loss)
    return text if len(text) <= 60 else f"{float(loss):.12g} (a fraction of {len(text)} digits)"


def _audit_tally(
    survey: Survey,
    path: Path,
    reports: Sequence[Path],
    level: float,
    look: int,
    html: Path | None,
    png: Path | None,
    json: bool,
) -> bool:
    """Print what a look at a tally finds; True if there was no alarm."""
    from hdr4me.accounting.harm import harm
    from hdr4me.auditing.alarms import most_copies, watch
    from hdr4me.cli.audit_page import draw_harm, tally_page
    from hdr4me.tally import Tally

    tally = Tally.load(path, survey)
    with named_options(options("level", "look")), working("looking at the counts"):
        copies = most_copies(survey, reports) if reports else None
        found = watch(tally, level=level, look=look, copies=copies)
    limits = [item.to_dict() for item in harm(survey)]
    made = stamp(survey.fingerprint, survey.epsilon, level)
    write_results(html, png, made, lambda: tally_page(found, limits), lambda: draw_harm(limits))
    if json:
        print_json({**made, **found.to_dict(), "harm": limits})
    else:
        typer.echo(str(found))
        harm_table(limits)
        typer.echo(
            "Not to be found this way: false reports that imitate an honest population with other values, and all "
            "that a two-cell table receives. The limits above hold for them too."
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
