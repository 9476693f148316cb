"""hdr4me audit: is this survey as private as it says?"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from hdr4me.cli.output import print_json, print_table
from hdr4me.errors import InvalidInput


def audit(
    survey: Annotated[Path, typer.Argument(help="A survey's document.")],
    draws: Annotated[
        int, typer.Option(help="Reports that the attack draws for each of its two values.")
    ] = 1_000_000,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Prove every table private in integers, and attack the sampler that would use it.

    The loss is an exact fraction, compared with a rational number below e^epsilon. The attack gives a lower bound of
    epsilon from sampled reports alone. Exit code 1 if anything exceeds what the survey declares.

    Example: hdr4me audit survey.json
    """
    from hdr4me.survey import Survey

    if not 1000 <= draws <= 20_000_000:
        raise InvalidInput(f"--draws {draws} is not allowed: 1000 to 20,000,000")
    document = Survey.load(survey)
    from hdr4me.auditing.auditor import audit as run

    found = run(document, n_draws=draws)
    if json:
        print_json(
            {
                "survey": document.fingerprint,
                "passed": found.passed,
                "epsilon": found.epsilon_declared,
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
                        "passed": f.passed,
                    }
                    for f in found.findings
                ],
            }
        )
    else:
        print_table(
            f"Audit of survey {document.fingerprint[:12]}",
            [
                "table",
                "for",
                "dimensions",
                "worst ratio",
                "epsilon proven",
                "declared",
                "attack finds ≥",
                "verdict",
            ],
            [
                [
                    f.mechanism,
                    f.kind,
                    f.n_dims,
                    str(f.loss),
                    f"{f.epsilon_proven:.9g}",
                    f"{f.epsilon_declared:.9g}",
                    f"{f.epsilon_attacked:.4f}",
                    "passes" if f.passed else "FAILS",
                ]
                for f in found.findings
            ],
        )
        typer.echo(
            f"A whole report ({found.n_sampled} answers): ratio at most {_short(found.loss)}, "
            f"epsilon {found.epsilon_proven:.9g} of {found.epsilon_declared:g} declared: "
            + ("passes" if found.passed else "FAILS")
        )
    if not found.passed:
        raise typer.Exit(1)


def _short(loss: Fraction) -> str:
    text = str(loss)
    return text if len(text) <= 60 else f"{float(loss):.12g} (a fraction of {len(text)} digits)"
