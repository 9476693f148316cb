"""hdr4me explain: what a survey means for the people behind the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from hdr4me.atomic import write_text
from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import print_json, print_note
from hdr4me.cli.paths import check_outputs
from hdr4me.errors import InvalidInput


def explain(
    survey: Annotated[Path, Argument(help="A survey's document.")],
    audience: Annotated[
        str,
        Option(help="user: the people who answer. dpo: with the annex for a data-protection officer."),
    ] = "user",
    output: Annotated[
        Path | None, Option("--output", "-o", help="Where to write it: a .md or .html file.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print the page and its numbers as JSON.")] = False,
) -> None:
    """Write in plain words what is asked, what leaves the device and what anybody could learn from it.

    The page is made from the survey's document alone: questions, an example report, epsilon as odds, repetition, the
    proof.

    Example: hdr4me explain survey.json --audience dpo --output privacy.html
    """
    from hdr4me.explanation import explain as write
    from hdr4me.explanation.odds import guess, whole_loss
    from hdr4me.survey import Survey

    check_outputs([output], [survey])
    if output is not None and output.suffix.lower() not in (".md", ".html"):
        raise InvalidInput(f"--output {output} is not allowed: a .md or .html file")
    document = Survey.load(survey)
    with named_options(options("audience")):
        page = write(document, audience)
    if output is not None:
        write_text(output, page.html() if output.suffix.lower() == ".html" else page.markdown())
        print_note(f"wrote {output}")
    if json:
        loss = whole_loss(document)
        print_json(
            {
                "survey": document.fingerprint,
                "audience": audience,
                "epsilon": document.epsilon,
                "lasting_epsilon": document.lasting_epsilon,
                "loss": str(loss),
                "guess_of_one_half_becomes": guess(0.5, loss),
                "markdown": page.markdown(),
            }
        )
    elif output is None:
        typer.echo(page.markdown(), nl=False)
