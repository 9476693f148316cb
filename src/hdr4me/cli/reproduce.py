"""hdr4me reproduce: the paper's evaluation, run again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.paper.methods import Reading
    from hdr4me.paper.results import Results
    from hdr4me.paper.studies import Own, Scale


_OPTIONS = options("scale", "reading", "normalise", "data", "users", "dims", "epsilon", "mechanism")


def reproduce(
    target: Annotated[
        str, Argument(help="all, case-study, fig2, fig3, table2, fig4, fig5, theory or own.")
    ] = "all",
    scale: Annotated[
        str, Option(help="quick (small sizes, and verdicts for these alone) or full (the paper's own).")
    ] = "quick",
    output: Annotated[Path, Option("--output", "-o", help="The folder of the report.")] = Path(
        "reproduction"
    ),
    workers: Annotated[int, Option(help="Processes; 0 is one for each core.")] = 0,
    seed: Annotated[int, Option(help="The same seed gives the same numbers, on any machine's workers.")] = 1,
    cov19: Annotated[
        Path | None,
        Option(
            help="An embeddings file (CSV or CSV.gz, an id and numbers) for COV-19's place; else a stand-in."
        ),
    ] = None,
    data: Annotated[
        str | None,
        Option(
            help="Own study: a CSV, TSV or Parquet file, or gaussian, poisson, uniform, cov19 (stand-in)."
        ),
    ] = None,
    users: Annotated[int | None, Option(help="Own study: how many users; without it, all rows.")] = None,
    dims: Annotated[
        list[int] | None, Option(help="Own study: how many dimensions; may be given more than once.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, Option(help="Own study: a budget; may be given more than once.")
    ] = None,
    mechanism: Annotated[
        list[str] | None, Option(help="Own study: a mechanism; may be given more than once.")
    ] = None,
    normalise: Annotated[
        str, Option(help="How data come into [-1, 1]: auto, fixed (one range, clipped) or min-max.")
    ] = "auto",
    reading: Annotated[
        str | None, Option(help="How λ* is read in the figures, such as z2-noise-bias.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print claims and numbers as JSON.")] = False,
) -> None:
    """Run the paper's case study and section VI again: figures, tables, claims, errata, in one report.

    An interrupted run goes on where it stopped: finished cells are kept in the output folder.

    With --data, --users, --dims, --epsilon or --mechanism it is a study of your own: the same simulation, prediction,
    methods and figure on your terms, and the paper's claims are left alone.

    Example: hdr4me reproduce all --scale quick --output reproduction

    Example: hdr4me reproduce --data mine.csv --epsilon 1 --epsilon 4 --mechanism hybrid
    """
    from hdr4me.pages.machine import machine
    from hdr4me.paper.case_study import TABLE_COLUMNS, table2
    from hdr4me.paper.claims import CLAIMS, judge
    from hdr4me.paper.datasets import check_normalisation
    from hdr4me.paper.methods import DEFAULT, reading_named
    from hdr4me.paper.publish import as_first_run, publish
    from hdr4me.paper.report import About, lead_of, own_lead, own_table
    from hdr4me.paper.results import gather
    from hdr4me.paper.runner import Settings, finished_cells, run_cells
    from hdr4me.paper.studies import cells_for, own_cells, scale_named

    mine = target == "own" or any(given is not None for given in (data, users, dims, epsilon, mechanism))
    path = None
    with named_options(_OPTIONS):
        if mine and target not in ("all", "own"):
            raise InvalidInput.of(
                "target", target, "with --data, --users, --dims, --epsilon or --mechanism leave it out"
            )
        if mine:
            own, path, note = _own(data, users, dims, epsilon, mechanism, scale_named(scale))
            cells = own_cells(own, scale_named(scale))
            if note:
                print_note(note)
            target = "own"
        else:
            cells = cells_for(target, scale_named(scale))
        chosen = DEFAULT if reading is None else reading_named(reading)
        normalisation = check_normalisation(normalise)
    if workers < 0:
        raise InvalidInput(f"--workers {workers} is not allowed: an integer >= 0")
    if seed < 0:
        raise InvalidInput(f"--seed {seed} is not allowed: an integer >= 0")
    if cov19 is not None and not cov19.is_file():
        raise InvalidInput(f"--cov19 {cov19} is not allowed: there is no such file")
    files_used = (None if file is None else str(file.resolve()) for file in (cov19, path))
    settings = Settings(seed, normalisation, *files_used)
    workers = workers or os.cpu_count() or 1

    start = time.perf_counter()
    kept = finished_cells(cells, settings, output / "work")
    try:
        with progress(f"reproduce {target}", sum(cell.cost for cell in cells) or None) as advance:
            finished = run_cells(cells, settings, output / "work", workers=workers, advance=advance)
    except KeyboardInterrupt:
        print_note(f"finished cells are kept in {output / 'work'}: the same command goes on from there")
        raise
    results = gather(finished)
    verdicts = judge(CLAIMS, results, chosen)
    about = About(
        command=_command(
            target,
            scale=scale,
            seed=seed,
            cov19=cov19 and cov19.name,
            normalise=None if normalise == "auto" else normalise,
            reading=reading,
            data=path.name if path is not None else data,
            users=users,
            dims=dims,
            epsilon=epsilon,
            mechanism=mechanism,
        ),
        scale=scale,
        seed=seed,
        reading=chosen,
        workers=workers,
        machine=machine(),
        seconds=round(time.perf_counter() - start, 1),
        processor_seconds=round(sum(result.seconds for result in finished), 1),
        kept=kept,
    )
    if cells and kept == len(cells):
        about = as_first_run(about, output)
    files = publish(results, verdicts, about, output)
    if json:
        print_json(
            {
                "command": about.command,
                "reading": chosen.name,
                "seconds": about.seconds,
                "claims": [vars(verdict) for verdict in verdicts],
                **_shown(results, chosen),
                "files": files,
            }
        )
        return
    if target in ("case-study", "table2", "fig3"):
        print_table("Section IV-C, the paper beside ours", TABLE_COLUMNS[:4], [row[:4] for row in table2()])
    if mine:
        columns, own_rows = own_table(results, chosen)
        print_table(own_lead(results), columns, own_rows)
    if verdicts:
        rows = [[v.name, v.verdict, v.support] for v in verdicts]
        print_table(lead_of(verdicts), ["claim", "verdict", "readings"], rows)
    print_note(f"wrote {output / 'report.html'} and {len(files) - 1} more files in {about.seconds:.0f} s")


def _shown(results: Results, reading: Reading) -> dict[str, object]:
    """For JSON: the cells of a study of one's own, or the case study's numbers."""
    from hdr4me.paper.case_study import TABLE_COLUMNS, table2
    from hdr4me.paper.report import own_table

    if results.has("own"):
        columns, rows = own_table(results, reading)
        return {"cells": [dict(zip(columns, row, strict=True)) for row in rows]}
    return {"case_study": [dict(zip(TABLE_COLUMNS, row, strict=True)) for row in table2()]}


def _command(target: str, **given: Any) -> str:
    """The command that makes the same numbers, without this machine's paths."""
    parts = ["hdr4me", "reproduce", target]
    for name, value in given.items():
        for item in value if isinstance(value, list) else [] if value is None else [value]:
            parts += [f"--{name}", f"{item:g}" if isinstance(item, float) else str(item)]
    return " ".join(parts)


def _own(
    data: str | None,
    users: int | None,
    dims: list[int] | None,
    epsilon: list[float] | None,
    mechanism: list[str] | None,
    scale: Scale,
) -> tuple[Own, Path | None, str]:
    """The study that the options describe, the file it reads, and a note on columns that are left out."""
    from hdr4me.paper.cells import MECHANISMS
    from hdr4me.paper.datasets import describe
    from hdr4me.paper.studies import BUDGETS, DATASETS, Own

    budgets, names = tuple(epsilon or BUDGETS["laplace"]), tuple(mechanism or MECHANISMS)
    name = data or "uniform"
    if name in DATASETS:
        n, d = DATASETS[name]
        sizes = tuple(dims or (scale.dims(d),))
        return Own(name, scale.users(n) if users is None else users, sizes, budgets, names), None, ""
    path = Path(name)
    found = describe(path)
    if users is not None and users > found.n_rows:
        raise InvalidInput.of("users", users, f"at most {found.n_rows}, the rows of {path.name}")
    others = ", ".join(found.left_out)
    note = f"{path.name}: left out, because not of numbers: {others}" if others else ""
    sizes = tuple(dims or (len(found.columns),))
    return Own("data", found.n_rows if users is None else users, sizes, budgets, names), path, note
