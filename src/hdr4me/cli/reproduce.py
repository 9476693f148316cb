"""hdr4me reproduce: the paper's evaluation, run again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from hdr4me.cli.option_names import named_options
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.errors import InvalidInput


def reproduce(
    target: Annotated[str, typer.Argument(help="all, case-study, fig2, fig3, table2, fig4 or fig5.")] = "all",
    scale: Annotated[
        str, typer.Option(help="quick (small sizes, and verdicts for these alone) or full (the paper's own).")
    ] = "quick",
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the report.")] = Path(
        "reproduction"
    ),
    workers: Annotated[int, typer.Option(help="Processes; 0 is one for each core.")] = 0,
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same numbers, on any machine's workers.")
    ] = 1,
    cov19: Annotated[
        Path | None, typer.Option(help="The CORD-19 embeddings file (CSV or CSV.gz); without it, a stand-in.")
    ] = None,
    normalise: Annotated[
        str, typer.Option(help="How data come into [-1, 1]: auto, fixed (one range, clipped) or min-max.")
    ] = "auto",
    reading: Annotated[
        str | None, typer.Option(help="How λ* is read in the figures, such as z2-noise-bias.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print claims and numbers as JSON.")] = False,
) -> None:
    """Run the paper's case study and section VI again: figures, tables, claims, errata, in one report.

    An interrupted run goes on where it stopped: finished cells are kept in the output folder.

    Example: hdr4me reproduce all --scale quick --output reproduction
    """
    from hdr4me.pages.machine import machine
    from hdr4me.paper.claims import CLAIMS, judge
    from hdr4me.paper.datasets import check_normalisation
    from hdr4me.paper.figures.table2 import COLUMNS, table2
    from hdr4me.paper.publish import as_first_run, publish
    from hdr4me.paper.readings import DEFAULT, reading_named
    from hdr4me.paper.report import About, lead_of
    from hdr4me.paper.results import gather
    from hdr4me.paper.runner import Settings, cost_of, finished_cells, run_cells
    from hdr4me.paper.studies import cells_for, scale_named

    with named_options({"scale": "--scale", "reading": "--reading", "normalise": "--normalise"}):
        cells = cells_for(target, scale_named(scale))
        chosen = DEFAULT if reading is None else reading_named(reading)
        normalisation = check_normalisation(normalise)
    if workers < 0:
        raise InvalidInput(f"--workers {workers} is not allowed: a whole number >= 0")
    if seed < 0:
        raise InvalidInput(f"--seed {seed} is not allowed: a whole number >= 0")
    if cov19 is not None and not cov19.is_file():
        raise InvalidInput(f"--cov19 {cov19} is not allowed: there is no such file")
    settings = Settings(seed, normalisation, None if cov19 is None else str(cov19.resolve()))
    workers = workers or os.cpu_count() or 1

    start = time.perf_counter()
    kept = finished_cells(cells, settings, output / "work")
    try:
        with progress(f"reproduce {target}", sum(map(cost_of, cells)) or None) as advance:
            finished = run_cells(cells, settings, output / "work", workers=workers, advance=advance)
    except KeyboardInterrupt:
        print_note(f"finished cells are kept in {output / 'work'}: the same command goes on from there")
        raise
    results = gather(finished)
    verdicts = judge(CLAIMS, results, chosen)
    about = About(
        command=_command(target, scale, seed, cov19, normalise, reading),
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
                "case_study": [dict(zip(COLUMNS, row, strict=True)) for row in table2()],
                "files": files,
            }
        )
        return
    if target in ("case-study", "table2", "fig3"):
        print_table("Section IV-C, the paper beside ours", COLUMNS[:4], [row[:4] for row in table2()])
    if verdicts:
        rows = [
            [v.name, v.verdict, f"{len(v.readings_for)} of {v.readings_all}" if v.readings_all else "–"]
            for v in verdicts
        ]
        print_table(lead_of(verdicts), ["claim", "verdict", "readings"], rows)
    print_note(f"wrote {output / 'report.html'} and {len(files) - 1} more files in {about.seconds:.0f} s")


def _command(
    target: str, scale: str, seed: int, cov19: Path | None, normalise: str, reading: str | None
) -> str:
    """The command that makes the same numbers, without this machine's paths."""
    parts = ["hdr4me", "reproduce", target, "--scale", scale, "--seed", str(seed)]
    if cov19 is not None:
        parts += ["--cov19", cov19.name]
    if normalise != "auto":
        parts += ["--normalise", normalise]
    if reading is not None:
        parts += ["--reading", reading]
    return " ".join(parts)
