"""hdr4me compare: mechanisms beside one another on public data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import HTML, JSON, PNG, SCHEMA, Texts
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.cli.perturb import show_account
from hdr4me.pages.counted import counted
from hdr4me.pages.html import stamp


def compare(
    data: Annotated[Path, Argument(help="Public or synthetic data: CSV, Parquet or JSON lines.")],
    epsilon: Annotated[str, Option(help="Budgets of a report, separated by commas.")] = "0.5,1,2,4",
    mechanism: Annotated[Texts, Option(metavar="<str>", help="Only these mechanisms (repeat).")] = None,
    statistic: Annotated[str, Option(help="Of numbers: mean, median or variance.")] = "mean",
    column: Annotated[Texts, Option(metavar="<str>", help="Only these columns (repeat).")] = None,
    schema: SCHEMA = None,
    sampled: Annotated[int, Option(help="How many questions each user answers (m).")] = 1,
    users: Annotated[int | None, Option(help="How many users to draw; the rows unless given.")] = None,
    repeats: Annotated[int, Option(help="Simulated collections for each line.")] = 20,
    raw: Annotated[bool, Option("--raw", help="Without re-calibration, which is slow.")] = False,
    seed: Annotated[int, Option(help="The same seed gives the same numbers.")] = 0,
    html: HTML = None,
    png: PNG = None,
    json: JSON = False,
) -> None:
    """Predicted and simulated error of each mechanism and budget on THESE data, before and after re-calibration.

    It uses true values, and takes ranges and categories from them: use it for public or synthetic data only. With a
    schema, optional numbers, selections and vectors are compared too. Each table says on which scale its errors are.
    Mechanisms: optimal, duchi …, pair and agreement for numbers, grr, subset … for categories, optional, codebook
    (vectors), privset (selections).

    Example: hdr4me compare people.csv --epsilon 0.5,1,2,4 --html compare.html
    """
    from hdr4me.comparison import compare as run
    from hdr4me.comparison.measure import LEVEL
    from hdr4me.comparison.page import COLUMNS, cells, titled

    opt.check_outputs([html, png], [data, schema])
    opt.check_picture("--png", png)
    known = opt.load_schema(schema)
    print_note("this reads true values: for public or synthetic data only")
    with opt.named_options(data="DATA"), progress("simulated collections", None) as done:
        found = run(
            data,
            epsilon=opt.numbers("--epsilon", epsilon),
            mechanisms=mechanism,
            statistic=statistic,
            schema=known,
            columns=column,
            n_sampled=sampled,
            n_users=users,
            repeats=repeats,
            recalibrate=not raw,
            seed=seed,
            progress=done,
        )
    cleaned = found.account.notes()
    for note in found.notes:
        print_note(f"{'warning' if note in cleaned else 'note'}: {note}")
    made = stamp(None, sorted({row.epsilon for row in found.rows}), LEVEL)
    opt.write_results(html, png, made, found.html, found.plot)
    if json:
        shown = {key: value for key, value in vars(found).items() if key not in ("rows", "account")}
        account = found.account.rows()
        print_json({"data": data.name, **made, **shown, "account": account, "rows": found.table()})
        return
    if found.account.counts[:, 1:].any():
        show_account(found.account)
    for title, rows in titled(found).items():
        line = f"{title}: {found.n_users:,} users, {counted(repeats, 'collection')} each; errors: {rows[0].scale}"
        print_table(line, list(COLUMNS), [cells(row) for row in rows])
