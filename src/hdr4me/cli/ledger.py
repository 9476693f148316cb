"""hdr4me ledger: the privacy budget that a device has spent."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON
from hdr4me.cli.output import print_json, print_note, print_table
from hdr4me.errors import InvalidInput

ledger = typer.Typer(
    help="Show the privacy budget spent by a device.", no_args_is_help=True, rich_markup_mode=None
)


@ledger.command(cls=opt.Command)
def show(
    path: Annotated[Path, Argument(help="The ledger file.")],
    limit: Annotated[float, Option(help="The device's limit on its total ε, as set in its client.")] = 16.0,
    every: Annotated[
        str | None, Option(metavar="<time>", help="The budget renews after this time: week, 30d, 1y.")
    ] = None,
    json: JSON = False,
) -> None:
    """Show the budget spent on each series (surveys with the same questions), and what is left.

    The command verifies that the file is intact and is not an older copy. It does not change the file.

    Example: hdr4me ledger show ledger.json --every week
    """
    from hdr4me.client import Ledger
    from hdr4me.client.ledger import _today

    if not path.exists() and not path.with_name(path.name + ".counter").exists():
        raise InvalidInput(
            f"{path} does not exist: hd.Client(survey, hd.Ledger(path)) creates it with its first report"
        )
    with opt.named_options():
        opened = Ledger(path, limit=limit, every=every)
    book, days = opened.book(), opened.every
    since = None if days is None else _today() - days + 1
    rows: list[dict[str, Any]] = [
        {
            "series": key,
            "spent": float(book.amount(key)),
            "counts_now": float(book.amount(key, since)),
            "first": _date(min(spent)),
            "last": _date(max(spent)),
            "memoized_responses": len(book.rows.get(key, ())),
        }
        for key, spent in sorted(book.spent.items())
        if spent
    ]
    total, now = float(book.total()), book.total(since)
    left = float(max(Fraction(limit) - now, Fraction(0)))
    if json:
        document = {"ledger": str(path), "written": book.counter, "total": total, "counts_now": float(now)}
        document |= {"limit": limit, "left": left, "every_days": days, "secret": bool(book.secret)}
        print_json({**document, "series": rows})
        return
    any_days = "" if days is None else f" in the last {days} days"
    print_table(
        f"Spent: ε = {total:g} in total; ε = {float(now):g} of the limit of {limit:g} is used{any_days}",
        ["series", "spent ε", "counts towards the limit", "first day", "last day", "memoized responses"],
        [[row["series"][:12], *list(row.values())[1:]] for row in rows],
    )
    print_note(f"ε = {left:g} left; the checksum of the file is valid")


def _date(day: int) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
    except OverflowError:
        return f"day {day}"
