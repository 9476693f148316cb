"""hdr4me survey and explain: write a survey from a schema or a file of records, show it, or say what it means."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from hdr4me.atomic import write_text
from hdr4me.cli import options as opt
from hdr4me.cli.options import DELIMITER, ENCODING, JSON, SURVEY, File, Texts
from hdr4me.cli.output import print_json, print_note, print_table, working
from hdr4me.errors import InvalidInput
from hdr4me.pages.counted import counted

if TYPE_CHECKING:
    from hdr4me.channels import Channel
    from hdr4me.survey import Schema, Survey

_SUMMARY = ("fingerprint", "name", "epsilon", "epsilon_per_answer", "memoized_epsilon", "sampled")
_LARGE = 10.0  # above this budget of one report a note says what it means
_SHOWN = 5  # for so many dimensions a note says what a missing value becomes


def survey(
    context: typer.Context,
    source: Annotated[Path, Argument(help="A schema (.json, .toml), records, or a survey to show.")],
    output: Annotated[File, Option("--output", "-o", help="Where to write the survey.")] = None,
    epsilon: Annotated[float, Option(help="Total privacy budget of one report.")] = 1.0,
    sampled: Annotated[int, Option(help="How many dimensions each report has (m).")] = 1,
    mechanism: Annotated[str, Option(help="For numbers: optimal, duchi, piecewise …")] = "optimal",
    purpose: Annotated[str | None, Option(help="Not --mechanism: mean, distribution or both.")] = None,
    categorical: Annotated[str, Option(help="For categories: auto, grr, subset, oue …")] = "auto",
    memoized_epsilon: Annotated[
        float | None, Option(help="Budget of all permanent answers to a record.")
    ] = None,
    pair_question: Annotated[
        Texts, Option(metavar="<a,b>", help="Ask two numbers as one question (repeat).")
    ] = None,
    block_question: Annotated[
        Texts, Option(metavar="<a,b,x*>", help="Ask signs of numbers as one question (repeat).")
    ] = None,
    name: Annotated[str, Option(help="A name, kept in the document.")] = "",
    ranges: Annotated[Texts, Option("--range", metavar="<column=low:high>", help="A range.")] = None,
    categories: Annotated[Texts, Option("--categories", metavar="<column=a,b,c>", help="Categories.")] = None,
    defaults: Annotated[Texts, Option("--default", metavar="<column=value>", help="A default.")] = None,
    optional: Annotated[Texts, Option("--optional", metavar="<column>", help="May be missing.")] = None,
    products: Annotated[Texts, Option("--product", metavar="<a,b>", help="A product.")] = None,
    encoding: ENCODING = None,
    delimiter: DELIMITER = None,
    schema_only: Annotated[bool, Option("--schema-only", help="Write the schema, and no survey.")] = False,
    force: Annotated[bool, Option("--force", help="Replace a file that holds another survey.")] = False,
    json: JSON = False,
) -> None:
    """Design a survey from a schema: pick the tables, prove them private, write the document.

    Ranges and categories are never estimated from the private data: for a file of records you give them, and only the
    columns that you give them for are asked; names may be patterns, such as --range 'p*=0:1'. A --default replaces
    missing values, with --optional missing is an answer. Each --pair-question is asked together under the whole
    budget, and a --product gives a covariance. All of these can be repeated.

    Example: hdr4me survey schema.toml --epsilon 2 --sampled 3 --output survey.json
    """
    from hdr4me.survey import Product, Schema, Survey

    opt.check_outputs([output], [source])
    given = {"--range": ranges, "--categories": categories, "--default": defaults, "--optional": optional}
    if _is_records(source):
        schema, declared = _from_records(source, given, encoding, delimiter)
    elif _is_survey(source):
        for key, value in context.params.items():
            if key not in ("source", "json") and context.get_parameter_source(key).name != "DEFAULT":  # type: ignore[union-attr]
                raise InvalidInput(
                    f"--{key} = {value} does not apply: {source} is a survey, and is only shown"
                )
        _show(Survey.load(source), json)
        return
    else:
        wrong = [option for option, items in given.items() if items]
        if wrong:
            raise InvalidInput(f"{' and '.join(wrong)} go with a file of records: {source} is a schema")
        schema = Schema.load(source)
        text = source.read_text("utf-8")
        document = tomllib.loads(text) if source.suffix.lower() == ".toml" else loads(text)
        declared = {item["name"] for item in document["dimensions"] if {"default", "optional"} & set(item)}
    if products:
        both = [opt.pair_of("--product", text) for text in products]
        schema = Schema([*schema, *(Product(f"{a} × {b}", (a, b)) for a, b in both)])
    _say_missing(schema, declared)
    if schema_only:
        text = dumps(schema.to_dict(), indent=2, ensure_ascii=False) + "\n"
        if output is None:
            typer.echo(text, nl=False)
        else:
            write_text(output, text)
            print_note(f"wrote {output}")
        return
    numeric = [x.name for x in schema if x.is_number]
    with opt.named_options(), working("designing"):
        made = Survey(
            schema,
            epsilon=epsilon,
            mechanism=mechanism,
            sampled=sampled,
            categorical=categorical,
            name=name,
            purpose=purpose,
            memoized_epsilon=memoized_epsilon,
            pairs=[opt.pair_of("--pair-question", text) for text in pair_question or []],
            blocks=[opt.names_of(text, numeric) for text in block_question or []],
        )
    if epsilon > _LARGE:
        odds = math.exp(min(epsilon, 700.0))
        times = f"{odds:,.0f}" if odds < 1e9 else f"{odds:.0e}"
        print_note(
            f"warning: epsilon = {epsilon:g} for one report: it may change the odds of a record by a factor of {times}"
        )
    if output is not None:
        if not force and output.is_file() and _is_survey(output) and Survey.load(output) != made:
            raise InvalidInput(
                f"{output} holds another survey, which the reports collected under it need: choose another name, or "
                "--force to replace it"
            )
        made.save(output)
        print_note(f"wrote {output}")
    _show(made, json)


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
        about = {"survey": document.fingerprint, "audience": audience, "epsilon": document.epsilon}
        about |= {"memoized_epsilon": document.memoized_epsilon, "loss": str(loss)}
        print_json({**about, "guess_of_one_half_becomes": guess(0.5, loss), "markdown": page.markdown()})
    elif output is None:
        typer.echo(page.markdown(), nl=False)


def _is_survey(path: Path) -> bool:
    with path.open("rb") as file:
        return b'"hdr4me-survey"' in file.read(256)


def _is_records(source: Path) -> bool:
    """Whether a file (or folder, or pattern) holds records rather than a schema or a survey."""
    suffix = source.suffix.lower()
    if suffix == ".toml" or not source.is_file():
        return suffix not in (".toml", ".json")
    with source.open("rb") as file:
        start = file.read(1 << 16).lstrip()
    if start.startswith(b"{") and b'"dimensions"' in start:
        return False
    if suffix != ".json":
        return True
    try:  # JSON lines have one object a line
        return isinstance(loads(start.split(b"\n")[0]), dict)
    except ValueError:
        return False


def _from_records(
    source: Path, given: Mapping[str, Texts], encoding: str | None, delimiter: str | None
) -> tuple[Schema, set[str]]:
    """The schema of the columns that the options name, and those for which a missing value was declared."""
    from hdr4me.io.infer import infer_schema

    ranges: dict[str, tuple[float, float]] = {}
    for column, text in _by_column("--range", given["--range"], "column=low:high").items():
        low, _, high = text.partition(":")
        try:
            ranges[column] = float(low), float(high)
        except ValueError:
            raise InvalidInput(f"--range {column}={text} is not allowed: write {column}=low:high") from None
    texts = _by_column("--categories", given["--categories"], "column=a,b,c")
    lists = {column: [part.strip() for part in text.split(",")] for column, text in texts.items()}
    defaults = _by_column("--default", given["--default"], "column=value")
    optional = given["--optional"] or []
    try:
        with opt.named_options():
            schema = infer_schema(
                source,
                ranges=ranges,
                categories=lists,
                columns=[*ranges, *lists] or None,
                defaults=defaults,
                optional=optional,
                encoding=encoding,
                delimiter=delimiter,
            )
    except InvalidInput as refusal:
        if ranges or lists:
            raise
        how = "--range column=low:high, --categories column=a,b,c: columns that are not named are left alone"
        raise InvalidInput(f"{refusal} ({how})") from None
    patterns = [*defaults, *optional]
    return schema, {x for x in schema.names if any(x == p or fnmatchcase(x, p) for p in patterns)}


def _by_column(option: str, items: Sequence[str] | None, form: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items or ():
        column, _, text = item.partition("=")
        if not (column and text):
            raise InvalidInput(f"{option} {item!r} is not allowed: write {form}")
        if column in found:
            raise InvalidInput(f"{option} is given twice for {column!r}")
        found[column] = text
    return found


def _say_missing(schema: Schema, declared: set[str]) -> None:
    """What a missing value becomes, where nobody said."""
    from hdr4me.survey import Categorical, Numeric

    silent = [
        f"{x.name!r} will count as " + (f"{x.default:g}" if isinstance(x, Numeric) else repr(x.default))
        for x in schema
        if isinstance(x, Numeric | Categorical) and not x.optional and x.name not in declared
    ]
    if silent:
        more, shown = len(silent) - _SHOWN, silent[:_SHOWN]
        shown += [f"likewise for {counted(more, 'more dimension')}"] if more > 0 else []
        print_note(f"note: a missing value of {', '.join(shown)}: declare a default, or optional")


def _row(made: Survey, channel: Channel) -> dict[str, object]:
    """What is shown of a channel; `why` where `auto` chooses it for categories."""
    from hdr4me.mechanisms.categorical import categorical_choice, categorical_reason

    dimensions = [
        made.schema.dimensions[j] for q in made.questions if q.channel is channel for j in q.dimensions
    ]
    epsilon, size, why = channel.epsilon, channel.n_inputs, None
    if all(x.is_category for x in dimensions) and len(channel.inputs) == 1:
        chosen = categorical_choice(epsilon, size) == channel.mechanism
        why = categorical_reason(epsilon, size) if chosen else None
    return {
        "mechanism": channel.mechanism,
        "kind": channel.kind,
        "dimensions": len(dimensions),
        "inputs": size if size < 1 << 53 else f"2^{size.bit_length() - 1}",
        "counters": channel.n_counters,
        "bytes": channel.wire_size,
        "epsilon": epsilon,
        "why": why,
    }


def _show(made: Survey, json: bool) -> None:
    channels = [_row(made, channel) for channel in made.channels]
    if json:
        about = {key: getattr(made, key) for key in _SUMMARY}
        about |= {"dims": len(made.schema), "n_questions": len(made.questions)}
        print_json({**about, "report_bytes": made.report_size, "channels": channels})
        return
    print_table(
        f"Survey {made.fingerprint[:12]}: {counted(len(made.schema), 'dimension')}, {made.sampled} in each report, "
        f"epsilon = {made.epsilon:g}, {counted(made.report_size, 'byte')} a report",
        ["mechanism", "channel", "dimensions", "inputs", "counters", "bytes", "epsilon of an answer"],
        [list(channel.values())[:-1] for channel in channels],
    )
    for channel in channels:
        if channel["why"]:
            print_note(f"{channel['mechanism']} for {channel['inputs']:,} categories: {channel['why']}")
    print_note(
        f"each report costs a user up to epsilon = {made.epsilon:g}, and fresh reports add up; permanent answers cost "
        f"{made.memoized_epsilon / made.sampled:g} for each new value"
    )
