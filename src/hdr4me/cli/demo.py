"""hdr4me demo: a complete collection on simulated users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import EPSILON, JSON, VERBOSE
from hdr4me.cli.output import print_json, print_note, print_table, progress

if TYPE_CHECKING:
    from hdr4me.collector.stores.protocol import Store

_MOST = 10_000_000  # users
_COLUMNS = ("dimension", "category", "true", "estimate", "lower", "upper", "answers")
_SHOWN = ("age", "height_cm", "weight_kg", "sleep_hours", "heart_rate_08", "steps_08", "smoker", "commute")


def demo(
    output: Annotated[
        Path, Option("--output", "-o", metavar="<folder>", help="Folder for the files.")
    ] = Path("demo"),
    users: Annotated[int, Option(help="Number of simulated users.")] = 100_000,
    epsilon: EPSILON = 2.0,
    serve: Annotated[
        bool, Option("--serve", help="Start a collector with a web form for answering.")
    ] = False,
    port: Annotated[int, Option(help="With --serve: the port; 0 for any free port.")] = 8000,
    json: JSON = False,
    verbose: VERBOSE = False,
) -> None:
    """Run a complete collection on 100,000 simulated users and 64 dimensions, and write a page with the results.

    Example: hdr4me demo --output demo
    """
    from hdr4me.demo import run_demo

    opt.check("--users", users, 1000 <= users <= _MOST, f"an integer from 1,000 to {_MOST:,}")
    if serve:
        _serve(output, epsilon, port)
        return
    with opt.named_options():
        made = run_demo(
            output,
            users=users,
            epsilon=epsilon,
            seed=1,
            say=print_note if verbose else _silent,
            progress=progress,
        )
    if json:
        print_json({"coverage": made.coverage, "advice": made.advice, "rows": made.rows})
    else:
        rows = made.rows if verbose else [row for row in made.rows if row["dimension"] in _SHOWN]
        more = "" if verbose else f"; {len(rows)} of {len(made.rows)} rows (all: --verbose)"
        title = (
            f"True values and estimates with 95 % intervals: {users:,} users who each answer 1 of "
            f"{len(made.survey.schema)} questions, ε = {epsilon:g}{more}"
        )
        print_table(title, _COLUMNS, [[row[column] for column in _COLUMNS] for row in rows])
        if verbose:
            print_note(made.advice)
    print_note(f"{100 * made.coverage:.1f} % of the intervals contain the true value (nominal: 95 %).")
    print_note(
        f"wrote {output / 'report.html'} (open it in a browser), and the survey, records, reports and tally beside it"
    )


def _silent(step: str) -> None:
    """Steps are shown with --verbose."""


def _serve(output: Path, epsilon: float, port: int) -> None:
    """Start a collector for the demonstration's survey, with the reports of an earlier run if there are any."""
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
            print_note(f"the round contains {n:,} reports of simulated users")

    settings = Settings(database=str(output / "collector.db"), min_reports=20)
    start(settings, survey, host="127.0.0.1", port=port, open_uploads=True, page="/answer", prepare=fill)
