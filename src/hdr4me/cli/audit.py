"""hdr4me audit: is this survey as private as it says?"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from hdr4me.atomic import write_text
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.cli.paths import check_outputs
from hdr4me.cli.pictures import check_picture, save_picture
from hdr4me.errors import InvalidInput
from hdr4me.pages.counted import counted
from hdr4me.pages.stamp import on_page, stamp


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
        from hdr4me.cli.audit_tally import audit_tally

        if not audit_tally(document, tally, reports or [], level, look, json, html=html, png=png):
            raise typer.Exit(1)
        return
    from hdr4me.auditing.attacking import ALARM
    from hdr4me.auditing.auditor import COLUMNS
    from hdr4me.auditing.auditor import audit as run
    from hdr4me.cli.audit_page import audit_page, draw_audit

    with progress("attacking", draws * len(document.channels)) as advance:
        found = run(document, n_draws=draws, progress=advance)
    made = stamp(document.fingerprint, found.epsilon_declared, 1 - ALARM)
    if html is not None:
        write_text(html, on_page(audit_page(found), made))
        print_note(f"wrote {html}")
    if png is not None:
        save_picture(draw_audit(found), png, made)
        print_note(f"wrote {png}")
    if json:
        print_json(
            {
                **made,
                "passed": found.passed,
                "epsilon_proven": found.epsilon_proven,
                "loss": str(found.loss),
                "tables": [
                    {
                        "mechanism": f.mechanism,
                        "kind": f.kind,
                        "dimensions": f.n_dims,
                        "loss": str(f.loss),
                        "epsilon_proven": f.epsilon_proven,
                        "epsilon_declared": f.epsilon_declared,
                        "epsilon_attacked": f.epsilon_attacked,
                        "draws": f.n_draws,
                        "draws_asked": f.n_asked,
                        "passed": f.passed,
                    }
                    for f in found.findings
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
