"""hdr4me survey: write a survey down, or show one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdr4me.cli.option_names import named_options
from hdr4me.cli.output import print_json, print_note, print_table
from hdr4me.cli.paths import check_outputs
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.survey import Survey

_DATA = (".parquet", ".csv", ".arrow", ".feather")
_OPTIONS = {
    "n_sampled": "--sampled",
    "epsilon": "--epsilon",
    "mechanism": "--mechanism",
    "categorical": "--categorical",
}


def survey(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            help="A schema (.json, .toml), a data file (.parquet, .arrow, .csv), or a survey to show."
        ),
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write the survey.")] = None,
    epsilon: Annotated[float, typer.Option(help="Total privacy budget of one user.")] = 1.0,
    sampled: Annotated[int, typer.Option(help="How many dimensions each user reports (m).")] = 1,
    mechanism: Annotated[
        str, typer.Option(help="For numeric dimensions: optimal, piecewise, duchi, ...")
    ] = "optimal",
    categorical: Annotated[str, typer.Option(help="For categories: auto, grr, oue or histogram.")] = "auto",
    name: Annotated[str, typer.Option(help="A name, kept in the document.")] = "",
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="<column=low:high>", help="For a data file (repeat)."),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option("--categories", metavar="<column=a,b,c>", help="For a data file (repeat)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that holds another survey.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Design a survey from a schema: pick the tables, prove them private, write the document.

    Ranges and categories are never read off the private data: for a data file you give them, and only the columns
    that you give them for are asked.

    Example: hdr4me survey schema.toml --epsilon 2 --sampled 3 --output survey.json
    """
    from hdr4me.survey import Schema, Survey

    check_outputs([output], [source])
    if source.suffix in _DATA:
        numeric = {
            column: _range(column, text) for column, text in _pairs("--range", ranges, "column=low:high")
        }
        lists = {
            column: text.split(",") for column, text in _pairs("--categories", categories, "column=a,b,c")
        }
        named = [*numeric, *lists] or None
        schema = Schema.infer(source, ranges=numeric, categories=lists, columns=named)
    elif _is_survey(source):
        for name, kind in context.params.items():
            if name not in ("source", "json") and context.get_parameter_source(name).name != "DEFAULT":  # type: ignore[union-attr]
                raise InvalidInput(
                    f"--{name} = {kind} does not apply: {source} is a survey, and is only shown"
                )
        _show(Survey.load(source), json)
        return
    else:
        schema = Schema.load(source)
    if source.suffix not in _DATA and (ranges or categories):
        raise InvalidInput(f"--range and --categories go with a data file: {source} is a schema")
    with named_options(_OPTIONS):
        made = Survey(
            schema,
            epsilon=epsilon,
            mechanism=mechanism,
            n_sampled=sampled,
            categorical=categorical,
            name=name,
        )
    if output is not None:
        if not force and output.is_file() and _is_survey(output) and Survey.load(output) != made:
            raise InvalidInput(
                f"{output} holds another survey, which the reports collected under it need: "
                "choose another name, or --force to replace it"
            )
        made.save(output)
        print_note(f"wrote {output}")
    _show(made, json)


def _is_survey(path: Path) -> bool:
    with path.open("rb") as file:
        return b'"hdr4me-survey"' in file.read(256)


def _pairs(option: str, items: list[str] | None, form: str) -> list[tuple[str, str]]:
    pairs = [item.partition("=") for item in items or []]
    for (column, equals, text), item in zip(pairs, items or [], strict=True):
        if not (column and equals and text):
            raise InvalidInput(f"{option} {item!r} is not allowed: write {form}")
    return [(column, text) for column, _, text in pairs]


def _range(column: str, text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise InvalidInput(f"--range {column}={text} is not allowed: write {column}=low:high") from None


def _show(made: Survey, json: bool) -> None:
    channels = [
        {
            "mechanism": channel.mechanism,
            "kind": channel.kind,
            "dimensions": sum(len(q.dimensions) for q in made.questions if q.channel is channel),
            "inputs": channel.n_inputs,
            "counters": channel.n_counters,
            "bytes": channel.wire_size,
            "epsilon": channel.epsilon,
        }
        for channel in made.channels
    ]
    summary = {
        "fingerprint": made.fingerprint,
        "name": made.name,
        "epsilon": made.epsilon,
        "epsilon_per_answer": made.epsilon_per_answer,
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
        f"Survey {made.fingerprint[:12]}: {len(made.schema)} dimensions, {made.n_sampled} sent by each user, "
        f"epsilon = {made.epsilon:g}, {made.report_size} bytes a report",
        ["mechanism", "channel", "dimensions", "inputs", "counters", "bytes", "epsilon of an answer"],
        [list(channel.values()) for channel in channels],
    )
