"""hdr4me explain: what a survey means for the people behind the data."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from hdr4me.atomic import write_text
from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON, SURVEY, File
from hdr4me.cli.output import print_json, print_note


def explain(
    survey: SURVEY,
    audience: Annotated[str, Option(help="user, or dpo: with the data-protection officer's annex.")] = "user",
    output: Annotated[File, Option("--output", "-o", help="Where to write it: .md or .html.")] = None,
    json: JSON = False,
) -> None:
    """Write in plain words what is asked, what leaves the device and what anybody could learn from it.

    The page is made from the survey's document alone: questions, an example report, epsilon as odds, repetition, the
    proof.

    Example: hdr4me explain survey.json --audience dpo --output privacy.html
    """
    from hdr4me.explanation import explain as write
    from hdr4me.explanation.odds import guess, whole_loss
    from hdr4me.survey import Survey

    opt.check_outputs([output], [survey])
    suffix = "" if output is None else output.suffix.lower()
    opt.check("--output", output, output is None or suffix in (".md", ".html"), "a .md or .html file")
    document = Survey.load(survey)
    with opt.named_options():
        page = write(document, audience)
    if output is not None:
        write_text(output, page.html() if suffix == ".html" else page.markdown())
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
