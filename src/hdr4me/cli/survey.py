"""hdr4me survey and explain: create a survey from a schema or a file of records, show it, explain it."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from hdr4me.atomic import write_text
from hdr4me.cli import options as opt
from hdr4me.cli.options import EPSILON, JSON, SAMPLED, SURVEY, VERBOSE, File, Read, Texts
from hdr4me.cli.output import print_json, print_note, print_notes, print_table, working
from hdr4me.errors import InvalidInput, PrivacyWarning
from hdr4me.pages.text import first_of, pluralize, shortened

if TYPE_CHECKING:
    from hdr4me.channels import Channel
    from hdr4me.io import RecordFiles
    from hdr4me.survey import Schema, Survey

_SUMMARY = ("fingerprint", "name", "epsilon", "epsilon_per_answer", "memoized_epsilon", "sampled")


@opt.reads_records
def survey(
    context: typer.Context,
    source: Annotated[
        Path, Argument(help="A schema (.json, .toml), a file of records, or a survey to show.")
    ],
    output: Annotated[
        File, Option("--output", "-o", help="Write the survey (.json), or only its schema (.toml).")
    ] = None,
    epsilon: EPSILON = 1.0,
    sampled: SAMPLED = 1,
    mechanism: Annotated[str, Option(help="Mechanism for numbers: optimal, duchi, piecewise …")] = "optimal",
    purpose: Annotated[
        str | None, Option(help="Choose the mechanism for numbers by purpose: mean, distribution or both.")
    ] = None,
    categorical: Annotated[str, Option(help="Mechanism for categories: auto, grr, subset, oue …")] = "auto",
    memoized_epsilon: Annotated[
        float | None,
        Option(
            help="Budget of all reports of an unchanged record together, larger than --epsilon (memoized responses in "
            "two stages, as in RAPPOR)."
        ),
    ] = None,
    row_budget: Annotated[
        int | None,
        Option(
            help="With memoized responses: number of values of a question that a device answers with new noise.",
            min=1,
        ),
    ] = None,
    pair_questions: Annotated[
        Texts,
        Option("--pair-question", metavar="<a,b>", help="Ask two numbers as one question (repeatable)."),
    ] = None,
    block_questions: Annotated[
        Texts,
        Option(
            "--block-question",
            metavar="<a,b,x*>",
            help="Ask several numbers as one question, by the halves of their ranges (repeatable).",
        ),
    ] = None,
    tables: Annotated[
        Texts,
        Option(
            metavar="<pairs or a,b>",
            help="Ask combinations for tables: one-way, pairs, triples, or names such as a,b (repeatable).",
        ),
    ] = None,
    name: Annotated[str, Option(help="The name of the survey.")] = "",
    ranges: Annotated[
        Texts,
        Option("--range", metavar="<column=low:high>", help="The range of a number or date (repeatable)."),
    ] = None,
    categories: Annotated[
        Texts,
        Option(
            "--categories",
            metavar="<column=a,b,c>",
            help="The categories, or @FILE with one per line; of a date: weekday, month or hour (repeatable).",
        ),
    ] = None,
    defaults: Annotated[
        Texts,
        Option(
            "--default", metavar="<column=value>", help="The value that replaces a missing one (repeatable)."
        ),
    ] = None,
    optional: Annotated[
        Texts,
        Option("--optional", metavar="<column>", help="A column whose values may be missing (repeatable)."),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace a file that contains another survey.")] = False,
    json: JSON = False,
    verbose: VERBOSE = False,
    *,
    read: Read,
) -> None:
    """Create a survey from a schema, prove that it satisfies ε-LDP, and write it to a file.

    You declare ranges and categories; they are never estimated from private data. For a file of records, give them as
    options: only columns with a range or categories become questions. Names may be patterns: --range 'p*=0:1'. A survey
    file as SOURCE is shown.

    Example: hdr4me survey schema.toml --epsilon 2 --sampled 3 --output survey.json
    """
    from hdr4me.survey import Schema, Survey

    opt.check_outputs([output], [source])
    opt.outputs_of([output] if output else [], ".json", ".toml")
    given = {"--range": ranges, "--categories": categories, "--default": defaults, "--optional": optional}
    if _is_records(source):
        schema, declared = _from_records(read([source]), given)
    elif opt.is_survey(source):
        for parameter in context.command.params:
            key, given_by = str(parameter.name), context.get_parameter_source(str(parameter.name))
            if (
                key not in ("source", "json", "verbose")
                and given_by is not None
                and given_by.name != "DEFAULT"
            ):
                raise InvalidInput(
                    f"{parameter.opts[0]} {context.params[key]} does not apply: {source} is a survey, and is only shown"
                )
        _show(Survey.load(source), json, verbose)
        return
    else:
        schema = Schema.load(source)
        if wrong := [option for option, items in given.items() if items]:
            raise InvalidInput(
                f"{' and '.join(wrong)} needs a file of records: change the schema {source} instead"
            )
        text = source.read_text("utf-8")
        document = tomllib.loads(text) if source.suffix.lower() == ".toml" else loads(text)
        declared = {item["name"] for item in document["dimensions"] if {"default", "optional"} & set(item)}
    if tables:
        from hdr4me.contingency.schema import SIZES, table_schema

        with opt.named_options():
            wanted = [text if text in SIZES else opt.names_of(text, schema.names) for text in tables]
            schema = table_schema(schema, wanted)
    notes = _missing(schema, declared, from_records=_is_records(source))
    if output is not None and output.suffix.lower() == ".toml":
        from hdr4me.io.draft import schema_toml

        write_text(output, schema_toml(schema))
        print_notes(notes, verbose)
        print_note(
            f"wrote the schema {output}; create the survey with: hdr4me survey {output} --output survey.json"
        )
        return
    if memoized_epsilon is not None and (
        purpose is not None or (mechanism, categorical) != ("optimal", "auto")
    ):
        raise InvalidInput(
            "--memoized-epsilon chooses the mechanisms: omit --mechanism, --categorical and --purpose"
        )
    numeric = [x.name for x in schema if x.is_number]
    with opt.named_options(), working("designing"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        made = Survey(
            schema,
            epsilon=epsilon,
            mechanism=mechanism,
            sampled=sampled,
            categorical=categorical,
            name=name,
            purpose=purpose,
            memoized_epsilon=memoized_epsilon,
            row_budget=row_budget,
            pair_questions=[opt.pair_of("--pair-question", text) for text in pair_questions or []],
            block_questions=[opt.names_of(text, numeric) for text in block_questions or []],
        )
    for warning in caught:
        print_note(f"warning: {warning.message}")
    if output is not None:
        opt.save_survey(made, output, force=force)
    _show(made, json, verbose, notes)


def explain(
    survey: SURVEY,
    audience: Annotated[
        str, Option(help="user, or dpo (adds an annex for the data-protection officer).")
    ] = "user",
    output: Annotated[
        File, Option("--output", "-o", help="Write the text to this .md or .html file.")
    ] = None,
    json: JSON = False,
) -> None:
    """Explain a survey in plain words: the questions, what leaves the device, and what others can learn from it.

    The text is generated from the survey file: questions, an example report, ε as odds, repeated reports, the proof.

    Example: hdr4me explain survey.json --audience dpo --output privacy.html
    """
    from hdr4me.explanation import explain as write
    from hdr4me.explanation.odds import guess, report_ratio
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
        ratio = report_ratio(document)
        about = {"survey": document.fingerprint, "audience": audience, "epsilon": document.epsilon}
        about |= {"memoized_epsilon": document.memoized_epsilon, "likelihood_ratio": str(ratio)}
        print_json({**about, "guess_of_one_half_becomes": guess(0.5, ratio), "markdown": page.markdown()})
    elif output is None:
        typer.echo(page.markdown(), nl=False)


def _is_records(source: Path) -> bool:
    """Whether a file (or folder, or pattern) contains records, not a schema or a survey."""
    suffix = source.suffix.lower()
    if suffix == ".toml" or not source.is_file():
        return suffix not in (".toml", ".json")
    with source.open("rb") as file:
        start = file.read(1 << 16).lstrip()
    if start.startswith(b"{") and b'"dimensions"' in start:
        return False
    if suffix != ".json" or start.startswith(b"["):
        return True
    try:  # JSON lines have one object a line
        return isinstance(loads(start.split(b"\n")[0]), dict)
    except ValueError:
        return False


def _from_records(files: RecordFiles, given: Mapping[str, Texts]) -> tuple[Schema, set[str]]:
    """The schema of the columns that the options name, and the columns whose missing values are declared."""
    from hdr4me.io.infer import infer_schema

    texts = _by_column("--range", given["--range"], "column=low:high")
    ranges = {column: _range(column, text) for column, text in texts.items()}
    texts = _by_column("--categories", given["--categories"], "column=a,b,c")
    lists = {column: _listed(column, text) for column, text in texts.items()}
    defaults = _by_column("--default", given["--default"], "column=value")
    optional = given["--optional"] or []
    try:
        with opt.named_options():
            schema = infer_schema(
                files,
                ranges=ranges,
                categories=lists,
                columns=[*ranges, *lists] or None,
                defaults=defaults,
                optional=optional,
            )
    except InvalidInput as refusal:
        if ranges or lists:
            raise
        found, _, rest = str(refusal).partition("; give each")
        if "first line" in rest:
            found += " (the first line may be a record: add a line with the names of the columns)"
        raise InvalidInput(
            f"{found}. Declare them with --range column=low:high and --categories column=a,b,c (or column=@FILE with "
            "one category per line); the other columns are then left out"
        ) from None
    patterns = [*defaults, *optional]
    return schema, {x for x in schema.names if any(x == p or fnmatchcase(x, p) for p in patterns)}


def _listed(column: str, text: str) -> list[str] | str | Path:
    """Categories separated by commas, a part of the calendar, or the file after an @."""
    from hdr4me.survey.times import PARTS

    if text in PARTS:
        return text
    if not text.startswith("@") or "," in text:
        return [part.strip() for part in text.split(",")]
    opt.check("--categories", f"{column}={text}", Path(text[1:]).is_file(), f"there is no file {text[1:]}")
    return Path(text[1:])


def _range(column: str, text: str) -> tuple[float, float] | tuple[str, str]:
    """Two numbers, dates or times of one form: the colon in the middle separates them."""
    from hdr4me.survey.times import Moment

    parts = text.split(":")
    low, high = ":".join(parts[: len(parts) // 2]), ":".join(parts[len(parts) // 2 :])
    if len(parts) % 2 == 0 and Moment.of(low) is not None and Moment.of(high) is not None:
        return low, high
    try:
        numbers = float(low), float(high)
    except ValueError:
        raise InvalidInput(
            f"--range {column}={text} is not allowed: write {column}=low:high, with two numbers, or two dates or "
            "times such as 2013-01-31 or 17:30"
        ) from None
    opt.check("--range", f"{column}={text}", numbers[0] < numbers[1], "low:high with low below high")
    return numbers


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


def _missing(schema: Schema, declared: set[str], *, from_records: bool) -> list[str]:
    """A note on the dimensions that refuse missing values."""
    strict = [x.name for x in schema if not x.replaces and x.columns == (x.name,) and x.name not in declared]
    if not strict:
        return []
    how = "use --default or --optional" if from_records else "add default or optional to the schema"
    return [f"Missing values of {shortened(strict)} are refused; to accept them, {how}."]


def _row(made: Survey, channel: Channel) -> dict[str, object]:
    """The printed properties of a channel; `why` states the reason if `auto` chose it for categories."""
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
        "channel": type(channel).__name__,
        "kind": channel.kind,
        "dimensions": len(dimensions),
        "inputs": size if size < 1 << 53 else f"2^{size.bit_length() - 1}",
        "counters": channel.n_counters,
        "bytes": channel.wire_size,
        "epsilon": epsilon,
        "why": why,
    }


def _show(made: Survey, json: bool, verbose: bool, notes: Sequence[str] = ()) -> None:
    channels = [_row(made, channel) for channel in made.channels]
    if json:
        about = {key: getattr(made, key) for key in _SUMMARY}
        about |= {"dims": len(made.schema), "questions": len(made.questions)}
        print_json({**about, "report_bytes": made.report_size, "channels": channels})
        print_notes(notes, verbose)
        return
    names = [
        [
            shortened([made.schema.names[j] for j in q.dimensions])
            for q in made.questions
            if q.channel is channel
        ]
        for channel in made.channels
    ]
    keys = ("mechanism", "epsilon", *(("bytes", "channel", "inputs", "counters") if verbose else ()))
    print_table(
        f"Survey {made.fingerprint[:12]}: each person answers {made.sampled} of "
        f"{pluralize(len(made.questions), 'question')}; a report has ε = {made.epsilon:g} (proven) and "
        f"{pluralize(made.report_size, 'byte')}",
        ["questions", *("ε per answer" if key == "epsilon" else key for key in keys)],
        [
            [", ".join(first_of(group)), *(channel[key] for key in keys)]
            for group, channel in zip(names, channels, strict=True)
        ],
    )
    spent = f"Each report spends ε = {made.epsilon:g}; the ε of several reports of one person add up."
    if made.memoized_epsilon > made.epsilon:
        spent = (
            f"One report spends ε = {made.epsilon:g}, and all reports of an unchanged record together spend "
            f"ε = {made.memoized_epsilon:g}."
        )
    notes = [*notes, spent]
    if made.row_budget is not None:
        notes.append(
            f"Row budget {made.row_budget}: after round {made.row_budget}, memoized responses may be stale and "
            "estimates have no interval."
        )
    if verbose and made.sampled == 1:
        notes.append(
            f"If devices memoize their responses, each new value costs another ε = {made.memoized_epsilon:g}."
        )
    if verbose:
        notes += [
            f"{channel['mechanism']} for {channel['inputs']:,} categories: {channel['why']}"
            for channel in channels
            if channel["why"]
        ]
    print_notes(notes, verbose)
