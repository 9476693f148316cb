"""hdr4me refine: from a pilot's tally the survey of the next round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hdr4me.cli.options import JSON, OUTPUT, check_outputs, check_twice, load_sum, named_options
from hdr4me.cli.output import print_json, print_note, print_table, working

_COLUMNS = ["dimension", "low", "high", "next low", "next high", "width", "weight"]


def refine(
    pilot: Annotated[list[Path], Argument(help="One or more tallies of the first round.")],
    output: OUTPUT,
    users: Annotated[int | None, Option(help="Users of the next round (default: 4 x the pilot's).")] = None,
    mechanism: Annotated[str, Option(help="For numbers; designed: for the pilot's values.")] = "designed",
    name: Annotated[str, Option(help="A name for the next survey.")] = "",
    even: Annotated[bool, Option("--even", help="Draw all questions equally often.")] = False,
    json: JSON = False,
) -> None:
    """Narrow each number's range to where the pilot found the values: less noise for the same budget.

    Other users answer the next round; `hdr4me estimate pilot.tally --round next.tally` combines both.

    Example: hdr4me refine day1.tally -o round2.json
    """
    from hdr4me.statistics import refine as next_survey

    check_outputs([output], pilot)
    check_twice(pilot)
    tally = load_sum(pilot)
    with named_options(), working("designing"):
        survey = next_survey(tally, users=users, mechanism=mechanism, weigh=not even, name=name)
    survey.save(output)
    rows: list[list[object]] = []
    for before, after in zip(tally.survey.schema, survey.schema, strict=True):
        if before.is_category:
            ranges: tuple[float | None, ...] = (None,) * 5
        else:
            (low, high), (next_low, next_high) = before.bounds, after.bounds
            ranges = (low, high, next_low, next_high, (next_high - next_low) / (high - low))
        rows.append([before.name, *ranges, survey.questions[survey.question_of(before.name)].weight])
    if json:
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        print_json({"survey": survey.fingerprint, "rows": found})
    else:
        print_table(f"{tally.n_reports:,} reports of the pilot", _COLUMNS, rows)
    print_note(f"wrote {output}")
