"""hdr4me rounds and refine: the trend over a series of rounds, and the survey that follows a pilot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import CONFIDENCE, JSON, OUTPUT, File
from hdr4me.cli.output import print_json, print_note, print_table, with_digits_of, working
from hdr4me.errors import InvalidInput
from hdr4me.pages.html import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hdr4me.survey import Survey

_COLUMNS = ["dimension", "low", "high", "next_low", "next_high", "range_kept", "weight"]
_NOISE = {"memoized": "assuming memoized responses", "fresh": "assuming fresh noise"}


def rounds(
    tallies: Annotated[list[Path], Argument(help="One tally per round, in order of time.")],
    noise: Annotated[
        str, Option(help="memoized (a device repeats its responses) or fresh (new noise in each round).")
    ] = "memoized",
    row_budget: Annotated[
        int | None,
        Option(
            help="With memoized noise: number of values of a question that a device answers with new noise; default: "
            "the survey's, or 1.",
            min=1,
        ),
    ] = None,
    confidence: CONFIDENCE = 0.95,
    output: Annotated[
        File, Option("--output", "-o", metavar="<file>", help="Write the figures (.png, .svg, .pdf).")
    ] = None,
    json: JSON = False,
) -> None:
    """Compare the rounds of a repeated collection: average, last change and trend, with confidence intervals.

    Fresh noise is independent between rounds and averages out. Memoized responses repeat their noise for as long as a
    value does not change, so their intervals are conservative. The row budget is the number of values of a question
    that a device answers with new noise. After that it repeats stored responses, and intervals allow for any change.

    Example: hdr4me rounds week-1.tally week-2.tally week-3.tally --noise memoized --output trend.svg
    """
    import numpy as np
    from scipy.special import ndtri

    from hdr4me.accounting.rounds import ROW_BUDGET, average, difference, slope, stale_note
    from hdr4me.statistics.rounds import stale_slack
    from hdr4me.tally import Tally

    opt.check("--noise", repr(noise), noise in ("memoized", "fresh"), "memoized or fresh")
    opt.check("--confidence", confidence, 0 < confidence < 1, "a number between 0 and 1, such as 0.95")
    if len(tallies) < 2:
        raise InvalidInput("a trend needs at least two tallies: use hdr4me estimate for one")
    (png,) = opt.outputs_of([output] if output else [], ".png")
    opt.check_outputs([png], tallies)
    opt.check_twice(tallies)
    loaded = [Tally.load(path) for path in tallies]
    for path, tally in zip(tallies, loaded, strict=True):
        if tally.survey.series != loaded[0].survey.series:
            raise InvalidInput(f"{path} and {tallies[0]} have different surveys and cannot be compared")
        tally.round_number = 1  # `stale_slack` allows for stale responses
    row_budget = row_budget or loaded[0].survey.row_budget or ROW_BUDGET
    answers = [tally.estimate() for tally in loaded]
    tables = [answer.table() for answer in answers]
    x, s = (
        np.array([[row[key] for row in t] for t in tables], float) for key in ("estimate", "standard_error")
    )
    memoized, z, last = noise == "memoized", float(ndtri((1 + confidence) / 2)), len(x) - 1
    stale = stale_slack(answers, row_budget if memoized else len(x))
    parts = {
        "average": average(x, s, memoized=memoized, stale=stale),
        "change": difference(x, s, last - 1, last, memoized=memoized, stale=stale),
        "trend": slope(x, s, memoized=memoized, stale=stale),
    }
    heads = ["dimension", "category", "last round", "average", "last change", "trend per round"]
    rows: list[dict[str, Any]] = []
    shown: list[list[object]] = []
    for i, named in enumerate(tables[-1]):
        row: dict[str, Any] = {key: named[key] for key in ("dimension", "category", "statistic")}
        row |= {"rounds": x[:, i].tolist(), "standard_errors": s[:, i].tolist()}
        line: list[object] = [named["dimension"], named["category"] or ""]
        line.append(with_digits_of(row["standard_errors"][-1], row["rounds"][-1]))
        for name, part in parts.items():
            value, reach = float(part.estimate[i]), float((z * part.standard_error + part.slack)[i])
            row[name] = {"estimate": value, "lower": value - reach, "upper": value + reach}
            possible = part.weight / 2 * _width(loaded[0].survey, named)
            line.append(_with_margin(value, reach) if reach < possible else "")
        rows.append(row)
        shown.append(line)
    if png is not None:
        made = provenance(None, loaded[0].survey.epsilon, confidence)
        opt.write_picture(png, _draw(rows, x, z * s + stale, memoized), made)
    notes = [
        f"round {k}: {name}: {remark}"
        for k, tally in enumerate(loaded, 1)
        for name, remark in tally.remarks.items()
    ]
    if json:
        users = [tally.n_reports for tally in loaded]
        note = {"note": stale_note(row_budget)} if stale.any() else {}
        print_json(
            {
                "noise": noise,
                "confidence": confidence,
                "users": users,
                **note,
                "data_quality": notes,
                "rows": rows,
            }
        )
        return
    # With two rounds the trend is the change.
    used = [j for j in range(len(heads) - (last == 1)) if any(line[j] != "" for line in shown)]
    print_table(
        f"{len(x)} rounds, {_NOISE[noise]}; the margins of error (±) have {100 * confidence:g} % confidence",
        [heads[j] for j in used],
        [[line[j] for j in used] for line in shown],
    )
    for remark in notes:
        print_note(remark)
    if stale.any():
        print_note(
            f"{stale_note(row_budget)} If devices draw new noise in each round, give --noise fresh; if their "
            "row budget is larger, give --row-budget."
        )
    elif any("" in line[2:] for line in shown):
        print_note("A cell is empty if its interval contains every possible value: more reports are needed.")
    elif memoized:
        print_note(
            "Memoized responses repeat their noise, which does not average out: the intervals are conservative."
        )


def _with_margin(value: float, margin: float) -> str:
    """A value with its margin of error.

    >>> _with_margin(45.3817, 0.984)
    '45.38 ± 0.98'
    """
    return f"{with_digits_of(margin, value):,} ± {with_digits_of(margin, margin):,}"


def _width(survey: Survey, row: dict[str, Any]) -> float:
    """The width of the range of a row."""
    return 2 * survey.schema[row["dimension"]].half_range if row["statistic"] == "mean" else 1.0


def _draw(rows: list[dict[str, Any]], x: Any, reach: Any, memoized: bool) -> Figure:
    """The estimates of each row over time, with their intervals."""
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
    figure.supxlabel(f"round ({_NOISE['memoized' if memoized else 'fresh']})", fontsize=9)
    return figure


def refine(
    pilot: Annotated[list[Path], Argument(help="Tallies of the first round.")],
    output: OUTPUT,
    users: Annotated[int | None, Option(help="Users of the next round; default: 4 times the pilot.")] = None,
    json: JSON = False,
) -> None:
    """Create the survey of a second round, with ranges narrowed to most values of a pilot: less noise, same ε.

    Questions with more noise are asked more often. Only users who did not answer the pilot answer the second round. If
    ranges are narrowed, values outside them are clamped, and a part of the users, often most (the control group),
    answers the pilot's survey to correct for that. Combine all with
    hdr4me estimate pilot.tally --later-round next.tally --later-round control.tally, and --same-population if users
    were assigned to the rounds at random.

    Example: hdr4me refine day1.tally -o round2.json
    """
    from hdr4me.statistics import refine as next_survey

    opt.check_outputs([output], pilot)
    opt.check_twice(pilot)
    tally = opt.load_sum(pilot)
    with opt.named_options(), working("designing"):
        survey, control, narrower = next_survey(tally, users=users)
    opt.save_survey(survey, output)
    rows: list[list[Any]] = []
    for before, after in zip(tally.survey.schema, survey.schema, strict=True):
        if before.is_category:
            ranges: tuple[float | None, ...] = (None,) * 5
        else:
            (low, high), (next_low, next_high) = before.bounds, after.bounds
            ranges = (low, high, next_low, next_high, (next_high - next_low) / (high - low))
        rows.append([before.name, *ranges, survey.questions[survey.question_of(before.name)].weight])
    if json:
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        gains = {key: own.gain for key, own in narrower.items()}
        print_json({"survey": survey.fingerprint, "control": control, "narrower_by": gains, "rows": found})
    else:
        total = sum(question.weight for question in survey.questions)
        shown = [
            [
                name,
                *("" if low is None else f"{low:g} to {high:g}" for low, high in pairs),
                f"{100 * survey.sampled * weight / total:.1f} %",
            ]
            for name, pairs, weight in ((row[0], (row[1:3], row[3:5]), row[6]) for row in rows)
        ]
        print_table(
            f"Questions of a second round, after a pilot of {tally.n_reports:,} reports",
            ["dimension", "range", "next range", "share of users asked"],
            shown,
        )
        if narrower:
            gain = max(own.gain for own in narrower.values())
            print_note(
                f"Give this survey to a random {100 * (1 - control):.0f} % of the new users and the pilot survey to "
                f"the other {100 * control:.0f} % (control group). Intervals become at most "
                f"{100 * (1 - 1 / gain):.0f} % narrower than without a narrower range. Values outside the next range "
                "are clamped; the control group corrects for that."
            )
        else:
            print_note(
                "No range is narrowed, because that would not make intervals narrower. Only the mechanisms and the "
                "shares of users asked may differ from the pilot."
            )
