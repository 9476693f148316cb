"""hdr4me refine: from a pilot's tally the survey of the next round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import print_json, print_note, print_table, working
from hdr4me.cli.paths import check_outputs, check_twice
from hdr4me.cli.tally import load_sum


def refine(
    pilot: Annotated[list[Path], Argument(help="One or more tallies of the first round.")],
    output: Annotated[Path, Option("--output", "-o", help="Where to write the next survey.")],
    users: Annotated[
        int | None, Option(help="Users of the next round (four times the pilot's unless given).")
    ] = None,
    mechanism: Annotated[
        str, Option(help="How numbers are randomised next; designed: for the pilot's values.")
    ] = "designed",
    name: Annotated[str, Option(help="A name for the next survey.")] = "",
    even: Annotated[bool, Option("--even", help="Draw all questions equally often.")] = False,
    json: Annotated[bool, Option("--json", help="Print the ranges as JSON.")] = False,
) -> None:
    """Narrow each number's range to where the pilot found the values: less noise for the same budget.

    Other users answer the next round; `hdr4me estimate pilot.tally --round next.tally` combines both.

    Example: hdr4me refine day1.tally -o round2.json
    """
    from hdr4me.statistics import refine as next_survey

    check_outputs([output], pilot)
    check_twice(pilot)
    tally = load_sum(pilot)
    with (
        named_options(options("users", "mechanism", "name")),
        working("designing"),
    ):
        survey = next_survey(tally, users=users, mechanism=mechanism, weigh=not even, name=name)
    survey.save(output)
    rows = []
    for before, after in zip(tally.survey.schema, survey.schema, strict=True):
        question = survey.questions[survey.question_of(before.name)]
        if before.reads != "category":
            share = (after.bounds[1] - after.bounds[0]) / (before.bounds[1] - before.bounds[0])
            rows.append([before.name, *before.bounds, *after.bounds, share, question.weight])
        else:
            rows.append([before.name, None, None, None, None, None, question.weight])
    columns = ["dimension", "low", "high", "next low", "next high", "width", "weight"]
    if json:
        print_json(
            {"survey": survey.fingerprint, "rows": [dict(zip(columns, row, strict=True)) for row in rows]}
        )
    else:
        print_table(f"{tally.n_reports:,} reports of the pilot", columns, rows)
    print_note(f"wrote {output}")
