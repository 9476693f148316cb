"""hdr4me demo: a whole collection on a simulated panel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON
from hdr4me.cli.output import print_json, print_note, print_table, progress

if TYPE_CHECKING:
    from hdr4me.collector.stores.protocol import Store

_COLUMNS = ("dimension", "category", "true", "estimate", "lower", "upper", "answers")


def demo(
    output: Annotated[Path, Option("--output", "-o", help="Folder for the files.")] = Path("demo"),
    users: Annotated[int, Option(help="How many simulated users.")] = 100_000,
    epsilon: Annotated[float, Option(help="Total privacy budget of one user.")] = 2.0,
    seed: Annotated[int, Option(help="Seed of the simulated panel (the reports have no seed).")] = 1,
    serve: Annotated[bool, Option("--serve", help="Start a collector, with a page to answer on.")] = False,
    port: Annotated[int, Option(help="With --serve: the port; 0 for any free one.")] = 8000,
    json: JSON = False,
) -> None:
    """A whole collection: 100,000 users, 64 dimensions, survey → perturb → tally → estimate → a page to look at.

    Example: hdr4me demo --output demo
    """
    from hdr4me.demo import run_demo

    opt.check("--users", users, users >= 1000, "the demonstration needs at least 1000")
    opt.check("--seed", seed, seed >= 0, "an integer of at least 0")
    if serve:
        _serve(output, epsilon, port)
        return
    with opt.named_options():
        made = run_demo(output, users=users, epsilon=epsilon, seed=seed, say=print_note, progress=progress)
    if json:
        print_json({"coverage": made.coverage, "advice": made.advice, "rows": made.rows})
    else:
        title = f"{users:,} users, epsilon = {epsilon:g}: truth and private estimates with 95 % intervals"
        print_table(title, _COLUMNS, [[row[column] for column in _COLUMNS] for row in made.rows])
        print_note(made.advice)
    print_note(f"{made.coverage:.1%} of the 95 % intervals hold the truth. Now open {output / 'report.html'}")


def _serve(output: Path, epsilon: float, port: int) -> None:
    """Collect for the demonstration's survey; if the demonstration was run, its reports are there already."""
    from hdr4me.cli.collector import start
    from hdr4me.demo import panel_schema
    from hdr4me.survey import Survey

    with opt.needs_collector():
        from hdr4me.collector.config import Settings
        from hdr4me.collector.export import load_reports
    output.mkdir(parents=True, exist_ok=True)
    path, reports = output / "survey.json", output / "reports.parquet"
    if not path.exists():
        with opt.named_options():
            Survey(panel_schema(), epsilon=epsilon, name="fitness panel").save(path)
    survey = Survey.load(path)

    def fill(store: Store, number: int) -> None:
        if reports.exists():
            n = load_reports(store, number, reports, survey)
            print_note(f"{n:,} reports of the demonstration's simulated users are in the round already")

    settings = Settings(database=str(output / "collector.db"), min_reports=20)
    start(settings, survey, host="127.0.0.1", port=port, open_uploads=True, page="/answer", prepare=fill)
