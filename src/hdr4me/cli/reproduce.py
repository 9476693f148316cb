"""hdr4me reproduce and study: the experiments of the paper, and the same simulation of other data."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON, File, Texts
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.paper.report import About
    from hdr4me.paper.studies import Own, Results, Scale


# The options that decide the numbers.
_GIVEN = (
    "scale", "seed", "cov19", "normalize", "lambda_choice", "users", "dims", "epsilon", "mechanism", "sampled",
    "repeats",
)  # fmt: skip


WORKERS = Annotated[int, Option(help="Number of processes; 0: one per core.")]
SEED = Annotated[int, Option(help="The same seed gives the same numbers, for any --workers.")]
FOLDER = Annotated[Path, Option("--output", "-o", metavar="<folder>", help="Folder of the report.")]
NORMALIZE = Annotated[str, Option(help="Scale data to [-1, 1]: auto, fixed or min-max.")]
LAMBDA = Annotated[
    str | None,
    Option(
        help="Choice of the weight λ*: z{1,2,3,joint}-{noise,deviation}-{bias,domain,plug-in}; default: z1-noise-bias."
    ),
]


def reproduce(
    context: Context,
    target: Annotated[str, Argument(help="all, case-study, fig2 … fig5, table2 or theory.")] = "all",
    scale: Annotated[str, Option(help="quick (small sizes) or full (the sizes of the paper).")] = "quick",
    output: FOLDER = Path("reproduction"),
    workers: WORKERS = 0,
    seed: SEED = 1,
    cov19: Annotated[File, Option(help="A file of embeddings for COV-19; default: synthetic data.")] = None,
    normalize: NORMALIZE = "auto",
    lambda_choice: LAMBDA = None,
    json: JSON = False,
) -> None:
    """Reproduce the case study and section VI of the paper: figures, tables, claims and errata, in one report.

    The paper is "Utility Analysis and Enhancement of LDP Mechanisms in High-Dimensional Space" (Duan, Ye and Hu, ICDE
    2022). An interrupted run continues where it stopped. For the same simulation of your own data and sizes, use
    hdr4me study.

    Example: hdr4me reproduce all --scale quick --output reproduction
    """
    from hdr4me.paper.case_study import TABLE_COLUMNS, table2
    from hdr4me.paper.studies import cells_for, scale_named

    with opt.named_options():
        cells = cells_for(target, scale_named(scale))
    opt.check("--cov19", cov19, cov19 is None or cov19.is_file(), "there is no such file")
    given = context.params | {"cov19": cov19 and cov19.name}
    about, _, verdicts, files = _run("reproduce", given, [target], cells, cov19=cov19)
    rows = table2()
    if json:
        case_study = [dict(zip(TABLE_COLUMNS, row, strict=True)) for row in rows]
        print_json({**_document(about, verdicts), "case_study": case_study, "files": files})
        return
    if target in ("case-study", "table2", "fig3"):
        print_table(
            "Table II and the other numbers of section IV-C: printed and recomputed",
            TABLE_COLUMNS[:4],
            [row[:4] for row in rows],
        )
        print_note(
            "right: the value rounded to the printed digits; rounded: less than one unit of the last digit away, or "
            "zeros appended; wrong: further away."
        )
    if verdicts:
        from hdr4me.paper.report import lead_of

        judged = [[v.name, v.verdict, v.support] for v in verdicts]
        print_table(lead_of(verdicts), ["claim", "verdict", "holds for choices of λ*"], judged)
    _say(output, files)


def study(
    context: Context,
    data: Annotated[
        str, Argument(help="A file with columns of numbers, or gaussian, poisson, uniform or cov19.")
    ] = "uniform",
    users: Annotated[int | None, Option(help="Number of users; default: all rows.")] = None,
    dims: Annotated[
        list[int] | None,
        Option(help="Number of dimensions (repeatable); default: all, or a fifth of the paper's."),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        Option(help="Privacy budget ε of one report (repeatable); default: 0.1, 0.2, 0.4 … 3.2."),
    ] = None,
    mechanism: Annotated[
        Texts, Option(help="A mechanism (repeatable); default: laplace, piecewise, square_wave.")
    ] = None,
    sampled: Annotated[
        list[int] | None, Option(help="Number of dimensions that each person reports (repeatable).")
    ] = None,
    repeats: Annotated[int | None, Option(help="Number of simulated collections; default: 12.")] = None,
    output: FOLDER = Path("study"),
    workers: WORKERS = 0,
    normalize: NORMALIZE = "auto",
    json: JSON = False,
) -> None:
    """Run the paper's simulation on your own data: predicted and simulated error of the means, re-calibrated or not.

    The data are used as they are, so use public or synthetic data only.

    Example: hdr4me study public.csv --epsilon 1 --epsilon 4 --mechanism hybrid --output study
    """
    from hdr4me.paper.studies import own_cells, scale_named, study_rows

    with opt.named_options(data="DATA"):
        own, path = _own(context.params, scale_named("quick"))
        cells = own_cells(own)
    given = context.params | {"data": data if path is None else path.name}
    about, results, verdicts, files = _run("study", given, [given["data"]], cells, data=path)
    if json:
        found = study_rows(results.of("own"), about.lambda_choice)
        print_json({**_document(about, verdicts), "cells": found, "files": files})
        return
    from hdr4me.paper.report import own_table

    first = results.of("own")[0]
    lead = f"{first.title}, {first.cell.users:,} users: mean squared errors on the scale [-1, 1]"
    print_table(lead, *own_table(results, about.lambda_choice))
    print_note(
        "predicted: theory for unbiased estimates; naive: simulated unbiased estimates; l1, l2: re-calibrated as in "
        "the paper (HDR4ME); auto: the method with the smallest estimated error; clip: clipped to [-1, 1]; zeros: all "
        "estimates zero; oracle: a lower bound, computed from the true means."
    )
    _say(output, files)


def _document(about: About, verdicts: Sequence[Any]) -> dict[str, Any]:
    """What both commands print as JSON."""
    named = {"command": about.command, "lambda_choice": about.lambda_choice.name, "seconds": about.seconds}
    return {**named, "claims": [vars(verdict) for verdict in verdicts]}


def _say(output: Path, files: Sequence[str]) -> None:
    print_note(f"wrote {output / 'report.html'} and {len(files) - 1} more files to the same folder")


def _run(
    command: str,
    given: Mapping[str, Any],
    arguments: list[str],
    cells: Sequence[Any],
    *,
    cov19: Path | None = None,
    data: Path | None = None,
) -> tuple[About, Results, list[Any], list[str]]:
    """Simulate the cells, judge the claims and write the report: its settings, results, verdicts and files."""
    from hdr4me.pages.text import machine
    from hdr4me.paper.claims import CLAIMS, judge
    from hdr4me.paper.datasets import check_normalization
    from hdr4me.paper.methods import DEFAULT, lambda_choice_named
    from hdr4me.paper.report import About, as_first_run, publish
    from hdr4me.paper.runner import Settings, finished_cells, run_cells
    from hdr4me.paper.studies import gather

    seed, workers, output = given.get("seed", 1), given["workers"], given["output"]
    choice = given.get("lambda_choice")
    with opt.named_options():
        chosen = DEFAULT if choice is None else lambda_choice_named(choice)
        way = check_normalization(given["normalize"])
    opt.check("--workers", workers, workers >= 0, "a non-negative integer")
    opt.check("--seed", seed, seed >= 0, "a non-negative integer")
    files_used = (None if file is None else os.path.realpath(file) for file in (cov19, data))
    settings = Settings(seed, way, *files_used)
    workers = workers or os.cpu_count() or 1
    work = output / "work"
    start = time.perf_counter()
    kept = finished_cells(cells, settings, work)
    try:
        with progress(" ".join([command, *arguments]), sum(cell.cost for cell in cells) or None) as advance:
            finished = run_cells(cells, settings, work, workers=workers, advance=advance)
    except KeyboardInterrupt:
        print_note(f"finished settings are kept in {work}: run the same command to continue")
        raise
    results = gather(finished)
    verdicts = judge(CLAIMS, results, chosen)
    about = About(
        command=_command(command, arguments, given),
        scale=given.get("scale", "quick"),
        seed=seed,
        lambda_choice=chosen,
        workers=workers,
        machine=machine(),
        seconds=round(time.perf_counter() - start, 1),
        processor_seconds=round(sum(result.seconds for result in finished), 1),
        kept=kept,
    )
    if cells and kept == len(cells):
        about = as_first_run(about, output)
    return about, results, verdicts, publish(results, verdicts, about, output)


def _command(command: str, arguments: list[str], given: Mapping[str, Any]) -> str:
    """The command that reproduces the numbers, without local paths."""
    parts = ["hdr4me", command, *arguments]
    for name in _GIVEN:
        value = None if (name, given.get(name)) == ("normalize", "auto") else given.get(name)
        for item in value if isinstance(value, list | tuple) else [] if value is None else [value]:
            parts += [f"--{name.replace('_', '-')}", f"{item:g}" if isinstance(item, float) else str(item)]
    return " ".join(parts)


def _own(given: Mapping[str, Any], scale: Scale) -> tuple[Own, Path | None]:
    """The study that the options describe, and its data file."""
    users, dims = given["users"], given["dims"]
    from hdr4me.paper.cells import MECHANISMS
    from hdr4me.paper.datasets import describe
    from hdr4me.paper.studies import BUDGETS, DATASETS, Own

    rest = (
        tuple(given["epsilon"] or BUDGETS["laplace"]),
        tuple(given["mechanism"] or MECHANISMS),
        scale.repeats if given["repeats"] is None else given["repeats"],
        tuple(given["sampled"] or ()),
    )
    name = given["data"]
    if name in DATASETS:
        n, d = DATASETS[name]
        n = scale.users(n) if users is None else users
        return Own(name, n, tuple(dims or (scale.dims(d),)), *rest), None
    path = Path(name)
    found = describe(path)
    if users is not None and users > found.n_rows:
        raise InvalidInput.of("users", users, f"at most {found.n_rows}, the rows of {path.name}")
    if found.left_out:
        print_note(
            f"{path.name}: these columns are not numeric and are not used: {', '.join(found.left_out)}"
        )
    sizes = tuple(dims or (len(found.columns),))
    return Own("data", found.n_rows if users is None else users, sizes, *rest), path
