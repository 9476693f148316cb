"""Shared by commands: options, their names in messages, parsing, engines, and writing of results."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option
from typer.core import TyperCommand

from hdr4me.atomic import replacing, write_text
from hdr4me.cli.output import print_note, progress
from hdr4me.errors import InvalidInput, MissingDependency
from hdr4me.pages.html import in_words, on_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hdr4me.engines import Engine
    from hdr4me.io import RecordFiles
    from hdr4me.survey import Schema, Survey
    from hdr4me.tally import Tally

_READING = "Options for reading data files"
_PLACEHOLDER = re.compile(r"<(?:list\[)?(str|int|float|path|Path)(?: range)?\]?>$")
_DEFAULT = re.compile(r"; default: (.*)\.$")
_WORDS = {"str": "<name>", "int": "<integer>", "float": "<number>", "path": "<file>", "Path": "<file>"}


class Command(TyperCommand):
    """A command whose help shows what to write (a file, a number), not the Python type."""

    def records(self, context: Any) -> list[tuple[str, str, str]]:
        """For each argument and option: the section of the help, its name with a placeholder, its help."""
        found = []
        for parameter in self.get_params(context):
            name, text = parameter.get_help_record(context) or ("", "")
            is_option = parameter.param_type_name == "option"
            name = (
                _PLACEHOLDER.sub(lambda match: _WORDS[match[1]], name)
                if is_option
                else name.split()[0].upper()
            )
            text = text.replace("[x>=1]", "[at least 1]")
            section = _READING if text in _READER.values() else "Options" if is_option else "Arguments"
            found.append((section, name, _DEFAULT.sub(r".  [default: \1]", text)))
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the usage line; arguments are in capitals, as in messages."""
        return [piece.strip("{}").replace("}", "").upper() for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options, and the options for files of records."""
        for title in ("Arguments", "Options", _READING):
            records = [(name, text) for section, name, text in self.records(ctx) if section == title]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


File = Path | None
Files = list[Path] | None
Texts = list[str] | None


def written(what: str) -> Any:
    """The option for the files that a command writes, one for each form of its results."""
    return Option("--output", "-o", metavar="<file>", help=f"Write {what} (repeatable).")


SURVEY = Annotated[Path, Argument(help="The survey file.")]
OUTPUT = Annotated[Path, Option("--output", "-o", help="The file to write.")]
JSON = Annotated[bool, Option("--json", help="Print the result as JSON.")]
VERBOSE = Annotated[bool, Option("--verbose", "-v", help="Also print details and all notes.")]
RESULTS = Annotated[Files, written("the results: a page (.html) or figures (.png, .svg, .pdf)")]
SCHEMA = Annotated[File, Option(help="A schema (.json, .toml) with ranges and categories.")]
SAMPLED = Annotated[int, Option(help="Number of questions that each person answers.")]
EPSILON = Annotated[float, Option(help="Privacy budget ε of one report.")]
CONFIDENCE = Annotated[float, Option(help="Confidence level of the intervals.")]
ROUND_NUMBER = Annotated[
    int | None,
    Option(help="With memoized responses: the number of this round; late rounds get no interval.", min=1),
]
QUANTILES = Annotated[str | None, Option(metavar="<p,…>", help="Quantiles, such as 0.5,0.9.")]
ENGINE = Annotated[str, Option("--engine", help="local, spark, or the name of a registered engine.")]
MASTER = Annotated[
    str | None,
    Option("--master", metavar="<URL>", help="For spark: the URL of the master, such as local[2]."),
]
UNUSABLE = Annotated[
    bool,
    Option(
        "--allow-unusable",
        help="Accept columns with missing values but no default, or with more than 5 % unusable values.",
    ),
]

# How files of records are read: the options of every command with a parameter `read` (see `reads_records`).
_READER = {
    "encoding": "Encoding of text files; default: UTF-8.",
    "delimiter": "Separator of CSV fields (tab for tabs); default: detected.",
    "decimal": "Decimal separator of numbers; default: a point.",
    "thousands": "Thousands separator of numbers; default: none.",
    "date_format": "Form of dates and times, such as %d.%m.%Y (several: | between them); default: ISO 8601.",
    "sheet": "The sheet of an Excel file; default: the first.",
}

# Options for Python parameters that have another name; the others have the option's own name (`_option_names`).
_ALIASES = {
    "p": "--quantiles", "edges": "--histogram", "bins": "--histogram", "t": "--values",
    "method": "--recalibrate", "kind": "--interval", "target": "TARGET", "allow_origins": "--allow-origin",
}  # fmt: skip
# The metadata field of the provenance.
_DESCRIPTION = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}


@cache
def _option_names() -> dict[str, str]:
    """The option of each parameter of any command."""
    from typer.main import get_command

    from hdr4me.cli.app import app

    def walk(command: Any) -> Iterator[tuple[str, str]]:
        yield from ((x.name, x.opts[0]) for x in command.params if x.param_type_name == "option")
        for part in getattr(command, "commands", {}).values():
            yield from walk(part)

    return {**dict(walk(get_command(app))), **_ALIASES}


@contextmanager
def named_options(**others: str) -> Iterator[None]:
    """Inside the block, `InvalidInput` names options instead of Python parameters."""
    try:
        yield
    except InvalidInput as refusal:
        renamed = refusal.renamed(_option_names() | others)
        raise InvalidInput(_for_command_line(str(renamed))) from None


def _for_command_line(message: str) -> str:
    """A message with options instead of Python parameters, also where it gives both.

    >>> _for_command_line("use sampled=2 (--sampled 2), a pair (pair_questions=, --pair-question), or option 'prior'")
    'use --sampled 2, a pair (--pair-question), or --prior'
    >>> _for_command_line("p is for statistic = 'quantile'; 'n = 3' is not a parameter")
    "p is for --statistic quantile; 'n = 3' is not a parameter"
    >>> _for_command_line("memoized_epsilon chooses the mechanisms, such as 'optimal_mean'")
    "--memoized-epsilon chooses the mechanisms, such as 'optimal_mean'"
    """
    names = _option_names()
    message = re.sub(r"\b(\w+)=(\w+)((?: or more)?) \(--\1 \2\)", r"--\1 \2\3", message)
    message = re.sub(r"\b\w+=True \((--[\w-]+)\)", r"\1", message)
    message = re.sub(r"\([\w.]+=?, (--[\w-]+)\)", r"(\1)", message)
    message = re.sub(r"\boption '(\w+)'", r"--\1", message).replace("method '", "--recalibrate '")

    def option(found: re.Match[str]) -> str:
        return f"{names[found[1]]} {found[2]}" if found[1] in names else found[0]

    message = re.sub(r"(?<![-\w'])([a-z_]+) = '?([\w.+-]+)'?", option, message)
    return re.sub(r"(?<![-\w'./])[a-z]+(?:_[a-z]+)+\b", lambda found: names.get(found[0], found[0]), message)


Read = Callable[[Sequence[str | Path]], "RecordFiles"]


def reads_records(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for files of records to a command, in place of its parameter `read`.

    The command calls `read(paths)`, which returns the files with these options.
    """

    def with_options(**given: Any) -> None:
        options = {name: given.pop(name) for name in _READER}
        command(**given, read=lambda paths: _record_files(paths, options))

    own = [x for name, x in signature(command, eval_str=True).parameters.items() if name != "read"]
    added = [
        Parameter(
            name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, Option(help=text)]
        )
        for name, text in _READER.items()
    ]
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    with_options.__signature__ = Signature([*own, *added])  # type: ignore[attr-defined]
    with_options.__annotations__ = {x.name: x.annotation for x in (*own, *added)}
    return with_options


def _record_files(paths: Sequence[str | Path], options: Mapping[str, str | None]) -> RecordFiles:
    from hdr4me.io import RecordFiles

    with named_options():
        files = RecordFiles(paths, **options)
    check_twice([Path(path) for path in paths if str(path) != "-"])
    return files


@contextmanager
def needs_collector() -> Iterator[None]:
    """Inside the block, a missing package is an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("hdr4me"):
            raise
        raise MissingDependency(f"{error.name} is not installed: pip install 'hdr4me[collector]'") from None


def check(option: str, value: object, valid: bool, allowed: str) -> None:
    """Raise `InvalidInput` if the value of an option is not valid."""
    if not valid:
        shown = f"{value:.15g}" if isinstance(value, float) else value
        raise InvalidInput(f"{option} {shown} is not allowed: {allowed}")


def numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas.

    >>> numbers("--quantiles", "0.5, 0.9")
    [0.5, 0.9]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} {text!r} is not allowed: numbers separated by commas") from None


def pair_of(option: str, text: str) -> tuple[str, str]:
    """Two names separated by a comma.

    >>> pair_of("--correlation", "age, income")
    ('age', 'income')
    """
    names = [name.strip() for name in text.split(",")]
    check(
        option,
        repr(text),
        len(set(names)) == len(names) == 2 and all(names),
        "two names separated by a comma",
    )
    return names[0], names[1]


def names_of(text: str, known: Sequence[str]) -> list[str]:
    """Names separated by commas; a pattern is replaced by all known names that match it.

    >>> names_of("age, x*", ["x1", "age", "x2"])
    ['age', 'x1', 'x2']
    """
    found: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        found += [part] if part in known else [name for name in known if fnmatchcase(name, part)] or [part]
    return list(dict.fromkeys(found))


def load_schema(path: Path | None) -> Schema | None:
    """Load a schema file, if one is given."""
    from hdr4me.survey import Schema

    return None if path is None else Schema.load(path)


def outputs_of(given: Sequence[Path] | None, *formats: str) -> list[File]:
    """The output of each format, by its suffix; `.png` also means the other formats of figures.

    >>> outputs_of([Path("plan.svg")], ".html", ".png")
    [None, PosixPath('plan.svg')]
    """
    found: dict[str, Path] = {}
    known = [suffix for form in formats for suffix in (_DESCRIPTION if form == ".png" else (form,))]
    for path in given or ():
        suffix = ".csv" if str(path) == "-" else path.suffix.lower()
        check("--output", path, suffix in known, f"its name must end in {', '.join(known)}")
        form = ".png" if suffix in _DESCRIPTION else suffix
        check("--output", path, form not in found, f"{found.get(form)} has the same format")
        found[form] = path
    return [found.get(form) for form in formats]


def check_outputs(outputs: Sequence[File], inputs: Sequence[File] = ()) -> None:
    """Check that each output can be written, and differs from inputs and other outputs."""
    taken = {os.path.realpath(path): "an input" for path in inputs if path is not None}
    for path in filter(None, outputs):
        try:
            str(path).encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput(f"{path} cannot be written: its name is not UTF-8") from None
        if not path.parent.is_dir():
            raise InvalidInput(f"{path} cannot be written: there is no folder {path.parent}")
        if path.is_dir():
            raise InvalidInput(f"{path} cannot be written: it is a directory")
        if os.path.realpath(path) in taken:
            raise InvalidInput(f"{path} cannot be written: it is also {taken[os.path.realpath(path)]}")
        taken[os.path.realpath(path)] = "another output"


def is_survey(path: Path) -> bool:
    """Whether a file begins like a survey document."""
    with path.open("rb") as file:
        return b'"hdr4me-survey"' in file.read(256)


def save_survey(survey: Survey, path: Path, *, force: bool | None = None) -> None:
    """Write a survey; a file that contains another survey is replaced only with `force`, the option --force."""
    if not force and path.is_file() and is_survey(path) and type(survey).load(path) != survey:
        instead = "remove the file" if force is None else "replace it with --force"
        raise InvalidInput(
            f"{path} contains another survey, which is needed to count its reports: choose another name, or {instead}"
        )
    survey.save(path)
    print_note(f"wrote {path}")


def check_twice(paths: Sequence[Path]) -> None:
    """Print a note if a file is given twice: its reports are then counted twice."""
    resolved = [os.path.realpath(path) for path in paths]
    for path in sorted({path for path in resolved if resolved.count(path) > 1}):
        print_note(f"warning: {Path(path).name} is given more than once and is counted each time")


def write_picture(path: Path, figure: Figure, made: Mapping[str, Any]) -> None:
    """Write a figure with its provenance."""
    kind = path.suffix.lower()
    metadata = {_DESCRIPTION[kind]: in_words(made)} | ({"Date": None} if kind == ".svg" else {})
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind[1:], dpi=150, metadata=metadata)
    print_note(f"wrote {path}")


def write_results(
    html: File, png: File, made: Mapping[str, Any], page: Callable[[], str], draw: Callable[[], Figure]
) -> None:
    """Write the requested page and figure, each with its provenance."""
    if html is not None:
        write_text(html, on_page(page(), made))
        print_note(f"wrote {html}")
    if png is not None:
        write_picture(png, draw(), made)


@contextmanager
def open_engine(engine: str, master: str | None) -> Iterator[Engine]:
    """Open the engine with this name, and close it afterwards."""
    from hdr4me.engines import ENGINES

    with named_options():
        opened = ENGINES[engine](master)
        worker = opened.__enter__()
    try:
        yield worker
    finally:
        opened.__exit__(None, None, None)


def total_of(files: Iterable[Path | str]) -> int | None:
    """The number of records in files; None if a file does not state its number."""
    from hdr4me.io import count_records

    sizes = [count_records(file) for file in files]
    return None if None in sizes else sum(size or 0 for size in sizes)


def tally_files(worker: Engine, survey: Survey, reports: Sequence[Path], quarantine: Path | None) -> Tally:
    """Count files of reports with a progress bar; print how many bad reports exceed the quarantine's limit."""
    from hdr4me.io.files import files_of
    from hdr4me.io.report import QUARANTINE_BYTES

    with progress("tallying", total_of(file for path in reports for file in files_of(path))) as advance:
        found = worker.tally(list(reports), survey, quarantine=quarantine, progress=advance)
    if quarantine is not None and found.rejected and quarantine.is_file():
        with quarantine.open("rb") as file:
            kept = sum(b"beyond the quarantine's limit" not in line for line in file)
        if left := sum(found.rejected.values()) - kept:
            limit = f"its limit of {QUARANTINE_BYTES >> 20} MiB"
            print_note(
                f"{quarantine} reached {limit}: it contains {kept:,} reports; {left:,} more are only counted"
            )
    return found


def load_sum(paths: Sequence[Path]) -> Tally:
    """The sum of tallies in files, all of the same survey."""
    from hdr4me.tally import Tally

    total = Tally.load(paths[0])
    for path in paths[1:]:
        total = total + Tally.load(path, total.survey)
    return total
