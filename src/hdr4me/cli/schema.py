"""hdr4me schema: drafts of schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import File, Read
from hdr4me.cli.output import print_note

schema = typer.Typer(help="Draft a schema from public data.", no_args_is_help=True, rich_markup_mode=None)


@schema.callback()
def _group() -> None:
    """Draft a schema from public data."""


@schema.command(cls=opt.Command, short_help="Draft a schema from a public sample.")
@opt.reads_records
def draft(
    sample: Annotated[Path, Argument(help="A file of PUBLIC records: a sample or a codebook.")],
    output: Annotated[File, Option("--output", "-o", help="Write the draft to this .toml file.")] = None,
    *,
    read: Read,
) -> None:
    """Draft a schema from a public sample, as TOML with comments for editing.

    Do not use the private data: ranges and categories would publish its extreme and rarest values without noise.

    Example: hdr4me schema draft public.csv --output schema.toml
    """
    from hdr4me.atomic import write_text
    from hdr4me.io.draft import draft_schema

    text = draft_schema(read([sample]))
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        print_note(
            f"wrote {output}; edit it, then run: hdr4me survey {output} --epsilon 1 --output survey.json"
        )
