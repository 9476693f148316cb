"""hdr4me tables: contingency tables, associations and synthetic records from a tally of joint questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from hdr4me.atomic import replacing, write_text
from hdr4me.cli import options as opt
from hdr4me.cli.options import CONFIDENCE, JSON, ROUND_NUMBER, File, Texts
from hdr4me.cli.output import print_json, print_note, print_table, with_digits_of, working
from hdr4me.pages import html as pages
from hdr4me.pages.answer import as_csv
from hdr4me.pages.html import provenance

if TYPE_CHECKING:
    from hdr4me.contingency import Contingency

_SYNTHETIC = (
    "Synthetic records preserve the fitted tables, but no association between attributes that are asked apart, or that "
    "is weaker than the noise."
)

_DIRECT = "Intervals are those of the direct estimates, extended to the fitted share: the fit does not shorten them."


def tables(
    tallies: Annotated[list[Path], Argument(help="One or more tallies of a survey with joint questions.")],
    table: Annotated[
        Texts, Option(metavar="<a,b>", help="Print the table of these attributes (repeatable).")
    ] = None,
    confidence: CONFIDENCE = 0.95,
    round_number: ROUND_NUMBER = None,
    synthetic: Annotated[
        File, Option(help="Write synthetic records to this file (.parquet or .csv).")
    ] = None,
    rows: Annotated[int, Option(help="Number of synthetic records.")] = 10_000,
    outputs: Annotated[
        opt.Files, opt.written("a page (.html), figures (.png, .svg, .pdf) or the cells (.csv)")
    ] = None,
    json: JSON = False,
) -> None:
    """Estimate tables of several attributes, their associations, and synthetic records, from joint questions.

    All tables are marginals of one joint distribution, which is fitted to all answers, so they agree with each other.
    Create the survey with: hdr4me survey schema.toml --tables pairs. Without joint questions, the tables assume
    independence.

    Example: hdr4me tables week.tally --table sex,income --output tables.html --synthetic people.parquet
    """
    from hdr4me.contingency import tables as fitted_tables
    from hdr4me.contingency.tables import INDEPENDENT

    opt.check("--confidence", confidence, 0 < confidence < 1, "a number between 0 and 1, such as 0.95")
    html, png, csv = opt.outputs_of(outputs, ".html", ".png", ".csv")
    opt.check_outputs([synthetic, html, png, csv], tallies)
    loaded = opt.load_sum(tallies)
    loaded.round_number = round_number
    with opt.named_options(n="--rows", names="--table"), working("fitting the joint distribution"):
        found = fitted_tables(loaded)
        names = [opt.names_of(text, list(found.attributes)) for text in table or []]
        if found.independent and not names:
            names = [[name] for name in found.attributes]
        chosen = [found.table(*own, confidence=confidence) for own in names]
        associations = [] if found.independent else found.associations(confidence=confidence)
        people = found.sample(rows, 1) if synthetic is not None else None
    survey = loaded.survey
    made = provenance(survey.fingerprint, survey.epsilon, confidence)
    if people is not None and synthetic is not None:
        _write(people, synthetic)
    drawn = chosen or [found.table(*list(found.attributes)[:1], confidence=confidence)]
    if not chosen and associations:
        drawn = [found.table(associations[0]["first"], associations[0]["second"], confidence=confidence)]
    title = survey.name or "Tables"
    notes = [f"{question}: {note}" for question, note in found.notes.items()]
    opt.write_results(
        html, png, made, lambda: _page(title, associations, drawn, notes), lambda: drawn[0].plot()
    )
    if csv is not None:
        cells = [row | {"table": " × ".join(one.names)} for one in drawn for row in one.rows()]
        heads = list(
            dict.fromkeys(
                ["table", *(name for one in drawn for name in one.names), "share", "lower", "upper"]
            )
        )
        write_text(csv, as_csv(cells, heads, made))
        print_note(f"wrote {csv}")
    if json:
        listed = [
            {"attributes": x.names, "measured": x.measured, "note": x.note, "cells": x.rows()} for x in chosen
        ]
        about = {"reports": loaded.n_reports, "independent": found.independent}
        print_json({**made, **about, "associations": associations, "tables": listed, "notes": found.notes})
        return
    percent = f"{100 * confidence:g} %"
    if not chosen:
        shown = [
            [round(cell, 9) if isinstance(cell, float) else cell for cell in row.values()]
            for row in associations[:20]
        ]
        print_table(f"Association of attributes (Cramér's V), {percent} confidence intervals",
                    ["first", "second", "Cramér's V", "lower", "upper"], shown)  # fmt: skip
        if any(row["cramers_v"] < 1e-9 for row in associations[:20]):
            print_note("Cramér's V is 0 where the association is smaller than the noise.")
    for one in chosen:
        shown, heads, title = [], ["share"], f"Shares of {' × '.join(one.names)}"
        if any(row["lower"] is not None for row in one.rows()):
            heads, title = ["share", "lower", "upper"], f"{title}, {percent} confidence intervals"
        for row in one.rows():
            error = None if row["lower"] is None else (row["upper"] - row["lower"]) / 4
            shown.append(
                [*(row[key] for key in one.names), *(with_digits_of(error, row[key]) for key in heads)]
            )
        print_table(title, [*one.names, *heads], shown)
    if any(one.measured for one in chosen):
        print_note(_DIRECT)
    for note in dict.fromkeys([INDEPENDENT] * found.independent + [x.note for x in chosen if x.note]):
        print_note(note)
    for note in notes:
        print_note(note)
    if people is not None:
        print_note(_SYNTHETIC)
        print_note(f"wrote {rows:,} synthetic records to {synthetic}")


def _write(people: Any, path: Path) -> None:
    """Write synthetic records in the format of the suffix."""
    import pyarrow.csv as text
    import pyarrow.parquet as pq

    opt.check(
        "--synthetic", path, path.suffix in (".parquet", ".csv"), "a file that ends in .parquet or .csv"
    )
    with replacing(path) as temporary:
        (pq.write_table if path.suffix == ".parquet" else text.write_csv)(people, temporary)


def _page(
    title: str, associations: list[dict[str, Any]], drawn: list[Contingency], notes: Sequence[str]
) -> str:
    """Notes, associations, and each table with a heat map."""
    heads = ["first", "second", "Cramér's V", "lower", "upper"]
    cells = pages.table(heads, [list(x.values()) for x in associations])
    parts = list(map(pages.paragraph, notes))
    if associations:
        parts.append(pages.section("Associations (Cramér's V)", cells))
    for one in drawn:
        name = " × ".join(one.names)
        cells = pages.table(
            [*one.names, "share", "lower", "upper"], [list(row.values()) for row in one.rows()]
        )
        picture = [pages.figure(one.plot(), name)] if len(one.names) == 2 else []
        why = [pages.paragraph(one.note)] if one.note else []
        parts.append(pages.section(name, *picture, *why, cells))
    return pages.page(
        title, f"Tables of several attributes, fitted to the answers of all questions. {_DIRECT}", *parts
    )
