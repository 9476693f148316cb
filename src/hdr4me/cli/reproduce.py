"""hdr4me reproduce: the experiments of the paper."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON, File, Texts
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.paper.studies import Own, Scale


# The options that decide the numbers.
_GIVEN = (
    "scale", "seed", "cov19", "normalize", "lambda_choice", "data", "users", "dims", "epsilon", "mechanism",
    "sampled", "repeats",
)  # fmt: skip


def reproduce(
    context: Context,
    target: Annotated[str, Argument(help="all, case-study, fig2 … fig5, table2, theory or own.")] = "all",
    scale: Annotated[str, Option(help="quick (small sizes) or full (the sizes of the paper).")] = "quick",
    output: Annotated[
        Path, Option("--output", "-o", metavar="<folder>", help="Folder of the report.")
    ] = Path("reproduction"),
    workers: Annotated[int, Option(help="Number of processes; 0: one per core.")] = 0,
    seed: Annotated[int, Option(help="The same seed gives the same numbers, for any --workers.")] = 1,
    cov19: Annotated[File, Option(help="A file of embeddings for COV-19; default: synthetic data.")] = None,
    data: Annotated[
        str | None,
        Option(metavar="<file or name>", help="Custom study: a file, or gaussian, poisson, uniform …"),
    ] = None,
    users: Annotated[int | None, Option(help="Custom study: number of users; default: all rows.")] = None,
    dims: Annotated[list[int] | None, Option(help="Custom study: number of dimensions (repeatable).")] = None,
    epsilon: Annotated[list[float] | None, Option(help="Custom study: a budget ε (repeatable).")] = None,
    mechanism: Annotated[Texts, Option(help="Custom study: a mechanism (repeatable).")] = None,
    sampled: Annotated[
        list[int] | None, Option(help="Custom study: number of reported dimensions (repeatable).")
    ] = None,
    repeats: Annotated[int | None, Option(help="Custom study: collections per cell.")] = None,
    normalize: Annotated[str, Option(help="Scale data to [-1, 1]: auto, fixed or min-max.")] = "auto",
    lambda_choice: Annotated[
        str | None, Option(help="The figures' choice of λ*, such as z2-noise-bias.")
    ] = None,
    json: JSON = False,
) -> None:
    """Reproduce the case study and section VI of the paper: figures, tables, claims and errata, in one report.

    An interrupted run continues where it stopped. With an option of a custom study, the same
    simulation runs on your own data and sizes, without the claims of the paper.

    Example: hdr4me reproduce all --scale quick --output reproduction
    """
    from hdr4me.pages.counted import machine
    from hdr4me.paper.case_study import TABLE_COLUMNS, table2
    from hdr4me.paper.claims import CLAIMS, judge
    from hdr4me.paper.datasets import check_normalization
    from hdr4me.paper.methods import DEFAULT, lambda_choice_named
    from hdr4me.paper.report import About, as_first_run, lead_of, own_lead, own_table, publish
    from hdr4me.paper.runner import Settings, finished_cells, run_cells
    from hdr4me.paper.studies import cells_for, gather, own_cells, scale_named, study_rows

    mine = target == "own" or any(
        given is not None for given in (data, users, dims, epsilon, mechanism, sampled, repeats)
    )
    path = None
    with opt.named_options():
        size = scale_named(scale)
        if mine:
            allowed = "omit it with --data, --users, --dims, --epsilon, --mechanism, --sampled or --repeats"
            opt.check("target =", repr(target), target in ("all", "own"), allowed)
            target = "own"
            own, path = _own(context.params, size)
            cells: list[Any] = [*own_cells(own)]
        else:
            cells = cells_for(target, size)
        chosen = DEFAULT if lambda_choice is None else lambda_choice_named(lambda_choice)
        way = check_normalization(normalize)
    opt.check("--workers", workers, workers >= 0, "a non-negative integer")
    opt.check("--seed", seed, seed >= 0, "a non-negative integer")
    opt.check("--cov19", cov19, cov19 is None or cov19.is_file(), "there is no such file")
    files_used = (None if file is None else os.path.realpath(file) for file in (cov19, path))
    settings = Settings(seed, way, *files_used)
    workers = workers or os.cpu_count() or 1
    work = output / "work"
    start = time.perf_counter()
    kept = finished_cells(cells, settings, work)
    try:
        with progress(f"reproduce {target}", sum(cell.cost for cell in cells) or None) as advance:
            finished = run_cells(cells, settings, work, workers=workers, advance=advance)
    except KeyboardInterrupt:
        print_note(f"finished cells are kept in {work}: run the same command to continue")
        raise
    results = gather(finished)
    verdicts = judge(CLAIMS, results, chosen)
    given = context.params | {"cov19": cov19 and cov19.name, "data": data if path is None else path.name}
    given["normalize"] = None if normalize == "auto" else normalize
    about = About(
        command=_command(target, given),
        scale=scale,
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
    files = publish(results, verdicts, about, output)
    columns, rows = own_table(results, chosen) if mine else (TABLE_COLUMNS, table2())
    if json:
        document = {"command": about.command, "lambda_choice": chosen.name, "seconds": about.seconds}
        numbers = [dict(zip(columns, row, strict=True)) for row in rows]
        shown = {"cells": study_rows(results.of("own"), chosen)} if mine else {"case_study": numbers}
        print_json({**document, "claims": [vars(verdict) for verdict in verdicts], **shown, "files": files})
        return
    if target in ("case-study", "table2", "fig3"):
        print_table("Section IV-C, printed and recomputed", columns[:4], [row[:4] for row in rows])
    if mine:
        print_table(own_lead(results), columns, rows)
    if verdicts:
        judged = [[v.name, v.verdict, v.support] for v in verdicts]
        print_table(lead_of(verdicts), ["claim", "verdict", "holds for choices of λ*"], judged)
    print_note(f"wrote {output / 'report.html'} and {len(files) - 1} more files in {about.seconds:.0f} s")


def _command(target: str, given: dict[str, Any]) -> str:
    """The command that reproduces the numbers, without local paths."""
    parts = ["hdr4me", "reproduce", target]
    for name in _GIVEN:
        value = given[name]
        for item in value if isinstance(value, list | tuple) else [] if value is None else [value]:
            parts += [f"--{name.replace('_', '-')}", f"{item:g}" if isinstance(item, float) else str(item)]
    return " ".join(parts)


def _own(given: dict[str, Any], scale: Scale) -> tuple[Own, Path | None]:
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
    name = given["data"] or "uniform"
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
