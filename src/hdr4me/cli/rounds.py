"""hdr4me rounds and refine: the tallies of a series become a trend, and a pilot the survey of the next round."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON, OUTPUT, PNG
from hdr4me.cli.output import print_json, print_note, print_table, working
from hdr4me.errors import InvalidInput
from hdr4me.pages.html import stamp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = ["dimension", "low", "high", "next low", "next high", "width", "weight"]


def rounds(
    tallies: Annotated[list[Path], Argument(help="One tally for each round, in order of time.")],
    noise: Annotated[str, Option(help="memoized (the same noise in each round) or fresh.")] = "memoized",
    confidence: Annotated[float, Option(help="Confidence of the intervals.")] = 0.95,
    png: PNG = None,
    json: JSON = False,
) -> None:
    """Compare and combine the rounds of a series: average, last change and trend, with conservative errors.

    Permanent noise does not average out, and tallies do not show how much of it two rounds share: the errors printed
    then hold whatever changed. Fresh noise is independent, and averages.

    Example: hdr4me rounds week-1.tally week-2.tally week-3.tally --noise memoized --png trend.svg
    """
    import numpy as np
    from scipy.special import ndtri

    from hdr4me.accounting.rounds import average, difference, slope
    from hdr4me.tally import Tally

    opt.check("--noise", repr(noise), noise in ("memoized", "fresh"), "memoized or fresh")
    opt.check("--confidence", confidence, 0 < confidence < 1, "a number between 0 and 1")
    if len(tallies) < 2:
        raise InvalidInput("one round has no trend: give at least two tallies (hdr4me estimate is for one)")
    opt.check_outputs([], tallies, png=png)
    opt.check_twice(tallies)
    loaded = [Tally.load(path) for path in tallies]
    for path, tally in zip(tallies, loaded, strict=True):
        if tally.survey.series != loaded[0].survey.series:
            raise InvalidInput(f"{path} is of another series than {tallies[0]}: they are not comparable")
    tables = [tally.estimate().table() for tally in loaded]
    x, s = (
        np.array([[row[key] for row in t] for t in tables], float) for key in ("estimate", "standard_error")
    )
    memoized, z, last = noise == "memoized", float(ndtri((1 + confidence) / 2)), len(x) - 1
    parts = {
        "average": average(x, s, permanent=memoized),
        "change": difference(x, s, last - 1, last, permanent=memoized),
        "trend": slope(x, s, permanent=memoized),
    }
    rows: list[dict[str, Any]] = []
    shown: list[list[object]] = []
    for i, named in enumerate(tables[-1]):
        row: dict[str, Any] = {key: named[key] for key in ("dimension", "category", "statistic")}
        row |= {"rounds": x[:, i].tolist(), "standard_errors": s[:, i].tolist()}
        line = [named["dimension"], named["category"] or "", row["rounds"][-1]]
        for name, part in parts.items():
            value, reach = float(part.estimate[i]), z * float(part.standard_error[i])
            row[name] = {"estimate": value, "lower": value - reach, "upper": value + reach}
            line += [value, reach]
        rows.append(row)
        shown.append(line)
    if png is not None:
        made = stamp(None, loaded[0].survey.epsilon, confidence)
        opt.write_picture(png, _draw(rows, x, z * s, memoized), made)
    if json:
        users = [tally.n_reports for tally in loaded]
        print_json({"noise": noise, "confidence": confidence, "users": users, "rows": rows})
        return
    print_table(
        f"{len(x)} rounds, {100 * confidence:g} % intervals, {noise} noise",
        ["dimension", "category", "last round", "average", "±", "last change", "±", "trend a round", "±"],
        shown,
    )
    if memoized:
        print_note("permanent noise does not average out: the errors are upper bounds, whatever changed")


def _draw(rows: list[dict[str, Any]], x: Any, reach: Any, memoized: bool) -> Figure:
    """Each row's rounds with their intervals; with permanent answers the intervals move together."""
    from matplotlib.figure import Figure

    shown = rows[:24]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.4 * lines), layout="constrained")
    t = range(1, len(x) + 1)
    for i, row in enumerate(shown):
        axes = figure.add_subplot(lines, columns, i + 1)
        axes.fill_between(t, x[:, i] - reach[:, i], x[:, i] + reach[:, i], alpha=0.25, linewidth=0)
        axes.plot(t, x[:, i], marker="o", markersize=3)
        axes.set_title(": ".join(filter(None, (row["dimension"], row["category"]))), fontsize=9)
        axes.set_xticks(list(t) if len(x) <= 12 else [1, len(x)])
        axes.tick_params(labelsize=7)
    noise = "the same noise in every round" if memoized else "new noise in every round"
    figure.supxlabel(f"round ({noise})", fontsize=9)
    return figure


def refine(
    pilot: Annotated[list[Path], Argument(help="One or more tallies of the first round.")],
    output: OUTPUT,
    users: Annotated[int | None, Option(help="Users of the next round (default: 4 x the pilot's).")] = None,
    mechanism: Annotated[str, Option(help="For numbers; designed: for the pilot's values.")] = "designed",
    name: Annotated[str, Option(help="A name for the next survey.")] = "",
    equal_weights: Annotated[
        bool, Option("--equal-weights", help="Draw all questions equally often.")
    ] = False,
    json: JSON = False,
) -> None:
    """Narrow each number's range to where the pilot found the values: less noise for the same budget.

    Other users answer the next round; `hdr4me estimate pilot.tally --later-round next.tally` combines both.

    Example: hdr4me refine day1.tally -o round2.json
    """
    from hdr4me.statistics import refine as next_survey

    opt.check_outputs([output], pilot)
    opt.check_twice(pilot)
    tally = opt.load_sum(pilot)
    with opt.named_options(), working("designing"):
        survey = next_survey(tally, users=users, mechanism=mechanism, weigh=not equal_weights, name=name)
    survey.save(output)
    rows: list[list[object]] = []
    for before, after in zip(tally.survey.schema, survey.schema, strict=True):
        if before.is_category:
            ranges: tuple[float | None, ...] = (None,) * 5
        else:
            (low, high), (next_low, next_high) = before.bounds, after.bounds
            ranges = (low, high, next_low, next_high, (next_high - next_low) / (high - low))
        rows.append([before.name, *ranges, survey.questions[survey.question_of(before.name)].weight])
    if json:
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        print_json({"survey": survey.fingerprint, "rows": found})
    else:
        print_table(f"{tally.n_reports:,} reports of the pilot", _COLUMNS, rows)
    print_note(f"wrote {output}")
