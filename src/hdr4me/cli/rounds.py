"""hdr4me rounds: the tallies of a series, one for each round, become a trend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from hdr4me.cli.output import print_json, print_note, print_table
from hdr4me.cli.paths import check_outputs, check_picture, check_twice
from hdr4me.errors import InvalidInput

_ANSWERS = ("permanent", "fresh")

Name = tuple[str, str | None, str]
"""A row's dimension, category and statistic."""


def rounds(
    tallies: Annotated[list[Path], Argument(help="One tally for each round, in order of time.")],
    answers: Annotated[
        str,
        Option(
            help="permanent: the same users, whose answers are remembered. fresh: new noise, or other users, each time."
        ),
    ] = "permanent",
    level: Annotated[float, Option(help="Confidence of the intervals.")] = 0.95,
    picture: Annotated[Path | None, Option(help="Draw the trends (.png, .svg, .pdf).")] = None,
    json: Annotated[bool, Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Compare and combine the rounds of a series: average, last change and trend, with honest errors.

    Permanent noise does not average out: ten rounds of permanent answers are no more exact than one, and tallies do not
    show how much of the noise two rounds share. The errors printed then hold whatever changed. Fresh noise is
    independent, and averages.

    Example: hdr4me rounds week-1.tally week-2.tally week-3.tally --answers permanent --picture trend.svg
    """
    from hdr4me.accounting.rounds import average, difference, slope

    if answers not in _ANSWERS:
        raise InvalidInput(f"--answers {answers!r} is not allowed: {' or '.join(_ANSWERS)}")
    if not 0 < level < 1:
        raise InvalidInput(f"--level {level} is not allowed: a number between 0 and 1")
    if len(tallies) < 2:
        raise InvalidInput("one round has no trend: give at least two tallies (hdr4me estimate is for one)")
    check_outputs([picture], tallies)
    check_picture("--picture", picture)
    check_twice(tallies)
    names, x, s, users = _read(tallies)
    permanent = answers == "permanent"
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    last = len(x) - 1
    parts = {
        "average": average(x, s, permanent=permanent),
        "change": difference(x, s, last - 1, last, permanent=permanent),
        "trend": slope(x, s, permanent=permanent),
    }
    rows: list[dict[str, Any]] = []
    for i, (dimension, category, statistic) in enumerate(names):
        row: dict[str, Any] = {"dimension": dimension, "category": category, "statistic": statistic}
        row |= {"rounds": [float(v) for v in x[:, i]], "standard_errors": [float(v) for v in s[:, i]]}
        for name, part in parts.items():
            reach = z * float(part.standard_error[i])
            value = float(part.estimate[i])
            row[name] = {"estimate": value, "lower": value - reach, "upper": value + reach}
        rows.append(row)
    if picture is not None:
        _draw(picture, names, x, z * s, permanent)
        print_note(f"wrote {picture}")
    if json:
        print_json({"answers": answers, "level": level, "users": users, "rows": rows})
        return
    print_table(
        f"{len(x)} rounds, {100 * level:g} % intervals, {answers} answers",
        ["dimension", "category", "last round", "average", "±", "last change", "±", "trend a round", "±"],
        [
            [
                row["dimension"],
                row["category"] or "",
                row["rounds"][-1],
                *(v for p in parts for v in _reach(row[p])),
            ]
            for row in rows
        ],
    )
    if permanent:
        print_note(
            "permanent noise does not average out: the errors hold whatever changed, and are the largest there can be"
        )


def _reach(part: dict[str, float]) -> tuple[float, float]:
    return part["estimate"], part["upper"] - part["estimate"]


def _read(paths: list[Path]) -> tuple[list[Name], Any, Any, list[int]]:
    """Names of the rows, estimates and standard errors of shape (rounds, rows), reports in each round."""
    import numpy as np

    from hdr4me.tally import Tally

    names: list[Name] = []
    series, values, errors, users = "", [], [], []
    for path in paths:
        tally = Tally.load(path)
        if series and tally.survey.series != series:
            raise InvalidInput(
                f"{path} is of another series than {paths[0]}: only rounds of one series are comparable"
            )
        series = tally.survey.series
        table = tally.estimate().table()
        names = [(row["dimension"], row["category"], row["statistic"]) for row in table]
        values.append([_number(row["estimate"]) for row in table])
        errors.append([_number(row["standard_error"]) for row in table])
        users.append(tally.n_reports)
    return names, np.array(values), np.array(errors), users


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _draw(path: Path, names: list[Name], x: Any, reach: Any, permanent: bool) -> None:
    """Each row's rounds with their intervals; with permanent answers the intervals move together."""
    from matplotlib.figure import Figure

    from hdr4me.atomic import replacing

    shown = names[:24]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.4 * lines), layout="constrained")
    t = range(1, len(x) + 1)
    for i, (dimension, category, _) in enumerate(shown):
        axes = figure.add_subplot(lines, columns, i + 1)
        low, high = x[:, i] - reach[:, i], x[:, i] + reach[:, i]
        axes.fill_between(t, low, high, alpha=0.25, linewidth=0)
        axes.plot(t, x[:, i], marker="o", markersize=3)
        axes.set_title(dimension if category is None else f"{dimension}: {category}", fontsize=9)
        axes.set_xticks(list(t) if len(x) <= 12 else [1, len(x)])
        axes.tick_params(labelsize=7)
    noise = "the same noise in every round" if permanent else "new noise in every round"
    figure.supxlabel(f"round ({noise})", fontsize=9)
    kind = path.suffix.lower().lstrip(".")
    metadata = {"Date": None} if kind == "svg" else {}
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
