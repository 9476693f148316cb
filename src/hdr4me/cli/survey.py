"""hdr4me survey: write a survey down, or show one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from hdr4me.atomic import write_text
from hdr4me.cli.option_names import named_options, options, pair_of
from hdr4me.cli.output import print_json, print_note, print_table, working
from hdr4me.cli.paths import check_outputs
from hdr4me.cli.perturb import DELIMITER, ENCODING
from hdr4me.cli.survey_source import declared_names, from_records, is_records, say_missing
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.registry import built_in
from hdr4me.pages.counted import counted

if TYPE_CHECKING:
    from hdr4me.channels import Channel
    from hdr4me.survey import Schema, Survey

_PLENTY = 10.0
"""Above this budget of one report a note says what it means."""
_OPTIONS = options(
    "epsilon",
    "mechanism",
    "purpose",
    "categorical",
    "lasting",
    n_sampled="--sampled",
    pairs="--pair",
    blocks="--block",
)


def survey(
    context: typer.Context,
    source: Annotated[
        Path,
        Argument(
            help="A schema (.json, .toml), a file of records (Parquet, Arrow, CSV, JSON lines), or a survey to show."
        ),
    ],
    output: Annotated[Path | None, Option("--output", "-o", help="Where to write the survey.")] = None,
    epsilon: Annotated[float, Option(help="Total privacy budget of one report.")] = 1.0,
    sampled: Annotated[int, Option(help="How many dimensions each report has (m).")] = 1,
    mechanism: Annotated[
        str, Option(help=f"For numbers: one of {', '.join(built_in())}, or a registered name.")
    ] = "optimal",
    purpose: Annotated[
        str | None, Option(help="Instead of --mechanism: mean, distribution (quantiles too) or both.")
    ] = None,
    categorical: Annotated[
        str, Option(help="For categories: auto, grr, subset, projective, oue or histogram.")
    ] = "auto",
    lasting: Annotated[
        float | None,
        Option(help="Budget of all permanent answers to an unchanged record: answers of two stages."),
    ] = None,
    pair: Annotated[
        list[str] | None,
        Option(metavar="<a,b>", help="Two numbers asked together under the whole budget (repeat)."),
    ] = None,
    block: Annotated[
        list[str] | None,
        Option(
            metavar="<columns>",
            help="Numbers asked together as signs (repeat; a,b,c or a pattern such as x*).",
        ),
    ] = None,
    name: Annotated[str, Option(help="A name, kept in the document.")] = "",
    ranges: Annotated[
        list[str] | None,
        Option(
            "--range", metavar="<column=low:high>", help="For records (repeat; p*=0:1 for all columns in p)."
        ),
    ] = None,
    categories: Annotated[
        list[str] | None,
        Option("--categories", metavar="<column=a,b,c>", help="For records (repeat; patterns too)."),
    ] = None,
    defaults: Annotated[
        list[str] | None,
        Option("--default", metavar="<column=value>", help="What stands for a missing value (repeat)."),
    ] = None,
    optional: Annotated[
        list[str] | None,
        Option("--optional", metavar="<column>", help="Missing is an answer of its own (repeat)."),
    ] = None,
    products: Annotated[
        list[str] | None,
        Option(
            "--product",
            metavar="<a,b>",
            help="Also ask for the product of two numbers: their covariance (repeat).",
        ),
    ] = None,
    encoding: ENCODING = None,
    delimiter: DELIMITER = None,
    schema_only: Annotated[
        bool, Option("--schema-only", help="Write the schema that is used, to edit it, and no survey.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace a file that holds another survey.")] = False,
    json: Annotated[bool, Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Design a survey from a schema: pick the tables, prove them private, write the document.

    Ranges and categories are never read off the private data: for a file of records you give them, and only the
    columns that you give them for are asked.

    Example: hdr4me survey schema.toml --epsilon 2 --sampled 3 --output survey.json
    """
    from hdr4me.survey import Schema, Survey

    check_outputs([output], [source])
    given = {"--range": ranges, "--categories": categories, "--default": defaults, "--optional": optional}
    if is_records(source):
        schema, declared = from_records(source, given, encoding, delimiter)
    elif _is_survey(source):
        for name, kind in context.params.items():
            if name not in ("source", "json") and context.get_parameter_source(name).name != "DEFAULT":  # type: ignore[union-attr]
                raise InvalidInput(
                    f"--{name} = {kind} does not apply: {source} is a survey, and is only shown"
                )
        _show(Survey.load(source), json)
        return
    else:
        wrong = [option for option, items in given.items() if items]
        if wrong:
            raise InvalidInput(f"{' and '.join(wrong)} go with a file of records: {source} is a schema")
        schema, declared = Schema.load(source), declared_names(source)
    schema = _with_products(schema, products or [])
    say_missing(schema, declared)
    if schema_only:
        _write_schema(schema, output)
        return
    with named_options(_OPTIONS), working("designing"):
        made = Survey(
            schema,
            epsilon=epsilon,
            mechanism=mechanism,
            n_sampled=sampled,
            categorical=categorical,
            name=name,
            purpose=purpose,
            lasting=lasting,
            pairs=[pair_of("--pair", text) for text in pair or []],
            blocks=[_columns(schema, text) for text in block or []],
        )
    if epsilon > _PLENTY:
        print_note(f"warning: {meaning_of(epsilon)}")
    if output is not None:
        if not force and output.is_file() and _is_survey(output) and Survey.load(output) != made:
            raise InvalidInput(
                f"{output} holds another survey, which the reports collected under it need: choose another name, or "
                "--force to replace it"
            )
        made.save(output)
        print_note(f"wrote {output}")
    _show(made, json)


def _columns(schema: Schema, text: str) -> list[str]:
    """The numbers that names and patterns with commas between them stand for."""
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        exact = [name for name in schema.names if name == part]
        matched = exact or [x.name for x in schema if x.reads == "number" and fnmatchcase(x.name, part)]
        if not matched:
            raise InvalidInput.of("--block", part, f"a numeric dimension: {', '.join(schema.names[:5])} …")
        found += [name for name in matched if name not in found]
    return found


def meaning_of(epsilon: float) -> str:
    """What a large budget of one report means.

    >>> meaning_of(12.0)
    'epsilon = 12 for one report: whoever sees it may be 162,755 times as sure of a record as before; above 10 ...'
    """
    odds = math.exp(min(epsilon, 700.0))
    times = f"{odds:,.0f}" if odds < 1e9 else f"{odds:.0e}"
    return (
        f"epsilon = {epsilon:g} for one report: whoever sees it may be {times} times as sure of a record as before; "
        f"above {_PLENTY:g} a report hides little"
    )


def _with_products(schema: Schema, given: Sequence[str]) -> Schema:
    """The schema with a product of two numbers for each `--product a,b`."""
    from hdr4me.survey import Product
    from hdr4me.survey import Schema as Made

    pairs = [pair_of("--product", text) for text in given]
    return Made([*schema, *(Product(f"{a} × {b}", (a, b)) for a, b in pairs)]) if pairs else schema


def _write_schema(schema: Schema, output: Path | None) -> None:
    text = to_json(schema.to_dict(), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        print_note(f"wrote {output}")


def _is_survey(path: Path) -> bool:
    with path.open("rb") as file:
        return b'"hdr4me-survey"' in file.read(256)


def _why(channel: Channel) -> str | None:
    """Why `auto` chooses this channel for categories; None for any other channel."""
    from hdr4me.mechanisms.categorical import categorical_choice, categorical_reason

    takes = channel.takes
    if len(takes) != 1 or takes[0].reads != "category":
        return None
    chosen = categorical_choice(channel.epsilon, takes[0].size)
    return categorical_reason(channel.epsilon, takes[0].size) if chosen == channel.mechanism else None


def _show(made: Survey, json: bool) -> None:
    channels = [
        {
            "mechanism": channel.mechanism,
            "kind": channel.kind,
            "dimensions": sum(len(q.dimensions) for q in made.questions if q.channel is channel),
            "inputs": channel.n_inputs
            if channel.n_inputs < 1 << 53
            else f"2^{channel.n_inputs.bit_length() - 1}",
            "counters": channel.n_counters,
            "bytes": channel.wire_size,
            "epsilon": channel.epsilon,
            "why": _why(channel),
        }
        for channel in made.channels
    ]
    summary = {
        "fingerprint": made.fingerprint,
        "name": made.name,
        "epsilon": made.epsilon,
        "epsilon_per_answer": made.epsilon_per_answer,
        "lasting_epsilon": made.lasting_epsilon,
        "n_dims": len(made.schema),
        "n_questions": len(made.questions),
        "n_sampled": made.n_sampled,
        "report_bytes": made.report_size,
        "channels": channels,
    }
    if json:
        print_json(summary)
        return
    print_table(
        f"Survey {made.fingerprint[:12]}: {counted(len(made.schema), 'dimension')}, {made.n_sampled} in each report, "
        f"epsilon = {made.epsilon:g}, {counted(made.report_size, 'byte')} a report",
        ["mechanism", "channel", "dimensions", "inputs", "counters", "bytes", "epsilon of an answer"],
        [list(channel.values())[:-1] for channel in channels],
    )
    for channel in channels:
        if channel["why"]:
            print_note(f"{channel['mechanism']} for {channel['inputs']:,} categories: {channel['why']}")
    print_note(
        f"each report costs a user up to epsilon = {made.epsilon:g}, and fresh reports add up; permanent answers "
        f"cost {made.lasting_epsilon / made.n_sampled:g} for each value a question has for the first time ('hdr4me "
        "plan --every week --for 1y …' tells what that adds up to)"
    )
