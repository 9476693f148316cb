"""What `hdr4me survey` is made from: a schema's file, or a file of records with ranges and categories as options."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from json import loads as from_json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import print_note
from hdr4me.errors import InvalidInput
from hdr4me.pages.counted import counted

if TYPE_CHECKING:
    from hdr4me.survey import Schema


_SHOWN = 5
"""For so many dimensions a note says what a missing value becomes; the others are only counted."""


def is_records(source: Path) -> bool:
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
        return isinstance(from_json(start.split(b"\n")[0]), dict)
    except ValueError:
        return False


def declared_names(source: Path) -> set[str]:
    """The dimensions of a schema's file that say what a missing value becomes."""
    text = source.read_text("utf-8")
    document = tomllib.loads(text) if source.suffix.lower() == ".toml" else from_json(text)
    return {item["name"] for item in document["dimensions"] if {"default", "optional"} & set(item)}


def from_records(
    source: Path, given: dict[str, list[str] | None], encoding: str | None, delimiter: str | None
) -> tuple[Schema, set[str]]:
    """The schema of the columns that the options name, and those for which a missing value was declared."""
    from hdr4me.io.infer import infer_schema

    ranges = {
        column: _range(column, text) for column, text in _pairs("--range", given, "column=low:high").items()
    }
    lists = {
        column: [part.strip() for part in text.split(",")]
        for column, text in _pairs("--categories", given, "column=a,b,c").items()
    }
    defaults = _pairs("--default", given, "column=value")
    optional = given["--optional"] or []
    with named_options(options("encoding", "delimiter")), _told_how(ranges, lists):
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
    patterns = [*defaults, *optional]
    return schema, {x for x in schema.names if any(x == p or fnmatchcase(x, p) for p in patterns)}


@contextmanager
def _told_how(*given: Mapping[str, Any]) -> Iterator[None]:
    """Where no column was named, a refusal says by which options columns are named."""
    try:
        yield
    except InvalidInput as refusal:
        if any(given):
            raise
        raise InvalidInput(
            f"{refusal} (--range column=low:high, --categories column=a,b,c: columns that are not named are left "
            "alone)"
        ) from None


def say_missing(schema: Schema, declared: set[str]) -> None:
    """What a missing value becomes, where nobody said."""
    from hdr4me.survey import Categorical, Numeric

    silent = [
        x
        for x in schema
        if isinstance(x, Numeric | Categorical) and not x.optional and x.name not in declared
    ]
    for dimension in silent[:_SHOWN]:
        value = f"{dimension.default:g}" if isinstance(dimension.default, float) else repr(dimension.default)
        print_note(
            f"note: a missing value of {dimension.name!r} will count as {value}: declare a default, or optional "
            "(--default, --optional, or in the schema)"
        )
    if len(silent) > _SHOWN:
        print_note(f"note: likewise for {counted(len(silent) - _SHOWN, 'more dimension')}")


def _pairs(option: str, given: dict[str, list[str] | None], form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in given[option] or []:
        column, equals, text = item.partition("=")
        if not (column and equals and text):
            raise InvalidInput(f"{option} {item!r} is not allowed: write {form}")
        if column in pairs:
            raise InvalidInput(f"{option} is given twice for {column!r}")
        pairs[column] = text
    return pairs


def _range(column: str, text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise InvalidInput(f"--range {column}={text} is not allowed: write {column}=low:high") from None
