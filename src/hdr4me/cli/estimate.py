"""hdr4me estimate: a tally becomes means and frequencies with error bars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hdr4me.atomic import write_bytes, write_text
from hdr4me.cli.ask import more_answers, write_pictures
from hdr4me.cli.engine import ENGINE, MASTER, open_engine, tally_files
from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import Watch, print_json, print_note, print_table
from hdr4me.cli.paths import check_outputs, check_picture, check_twice
from hdr4me.cli.tally import load_sum, say_rejected
from hdr4me.errors import InvalidInput
from hdr4me.pages.stamp import stamp
from hdr4me.pages.tables import as_csv, as_parquet

if TYPE_CHECKING:
    from hdr4me.statistics import Answer
    from hdr4me.tally import Tally

COLUMNS = ("dimension", "category", "estimate", "standard_error", "lower", "upper", "answers", "status")


def estimate(
    source: Annotated[list[Path], Argument(help="One or more tallies; or with --survey, files of reports.")],
    survey: Annotated[Path | None, Option(help="The survey, when the sources are reports.")] = None,
    level: Annotated[float, Option(help="Confidence of the intervals.")] = 0.95,
    simultaneous: Annotated[
        bool, Option("--simultaneous", help="Intervals that hold for all rows at once.")
    ] = False,
    recalibrate: Annotated[
        str | None,
        Option(
            help="Re-calibrate by auto (does no harm; if no method is named), l1, l2, bayes, james_stein, "
            "sure, clip, zeros or none; norm_sub and base_cut for frequencies alone."
        ),
    ] = None,
    order: Annotated[
        list[str] | None,
        Option(
            help="With --recalibrate: numeric dimensions that are points of a curve, in order: names with commas "
            "between them, or a pattern like 'steps_*'. Once for each curve."
        ),
    ] = None,
    groups: Annotated[
        list[str] | None,
        Option(
            help="With --recalibrate: dimensions that belong together, like --order. Once for each group."
        ),
    ] = None,
    interval: Annotated[
        str,
        Option(
            help="With --recalibrate: honest (for each dimension; the one to print), average (over dimensions; "
            "shorter) or credible (under the fitted prior)."
        ),
    ] = "honest",
    quantiles: Annotated[
        str | None, Option(metavar="<p,…>", help="Also quantiles of numbers, such as 0.5,0.9.")
    ] = None,
    histogram: Annotated[
        list[str] | None,
        Option(
            metavar="<edges>",
            help="Also shares in so many equal bins, or between edges: income=0,1000,5000 (repeat).",
        ),
    ] = None,
    variance: Annotated[bool, Option("--variance", help="Also variances and standard deviations.")] = False,
    correlation: Annotated[
        list[str] | None, Option(metavar="<a,b>", help="Also the correlation of two numbers (repeat).")
    ] = None,
    by: Annotated[str | None, Option(help="Also means and shares in each group of this category.")] = None,
    pairs: Annotated[
        Path | None,
        Option(help="Pair counts for --correlation and --by, where the sources are tallies."),
    ] = None,
    short: Annotated[
        bool, Option("--short", help="Quantiles and shares: shorter intervals that assume no spikes.")
    ] = False,
    later: Annotated[
        list[Path] | None, Option("--round", help="A tally of a later round made by refine (repeat).")
    ] = None,
    html: Annotated[Path | None, Option(help="Write rows and pictures as a page.")] = None,
    png: Annotated[Path | None, Option(help="Write the pictures (.png, .svg, .pdf).")] = None,
    csv: Annotated[
        Path | None, Option(help="Write the rows as CSV to this file ('-': standard output).")
    ] = None,
    parquet: Annotated[Path | None, Option(help="Write the rows as a Parquet file.")] = None,
    every: Annotated[
        bool, Option("--all", help="Show every category, not only those that are surely the largest.")
    ] = False,
    engine: ENGINE = "local",
    master: MASTER = None,
    json: Annotated[bool, Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Calibrated means in your own units and frequencies, with standard errors and intervals.

    Estimates are never clipped: noise can carry them outside the range. To trade bias for noise, --recalibrate.

    Files carry the survey's fingerprint, epsilon, the level, the version and the date: CSV in the last columns of
    each row, Parquet in the metadata of its schema, JSON beside its rows, pages at their end.

    Example: hdr4me estimate week.tally --recalibrate auto --csv answer.csv

    Example: hdr4me estimate week.tally --quantiles 0.5,0.9 --histogram 20 --html report.html
    """
    to_stdout = str(csv) == "-"
    if to_stdout and json:
        raise InvalidInput("--csv - and --json both write to standard output: give one of them")
    if simultaneous and recalibrate is not None:
        raise InvalidInput(
            "--simultaneous and --recalibrate do not go together: re-calibrated intervals hold for each dimension, "
            "not for all at once"
        )
    if recalibrate is None and (order or groups or interval != "honest"):
        raise InvalidInput("--order, --groups and --interval go with --recalibrate: give it too")
    if later and (recalibrate is not None or quantiles or histogram or variance or correlation or by):
        raise InvalidInput("--round combines means, shares and frequencies: ask each round for anything else")
    check_picture("--png", png)
    check_outputs([None if to_stdout else csv, html, png, parquet], [*source, survey, pairs, *(later or [])])
    check_twice(source)
    watch = Watch()
    from hdr4me.statistics.largest import largest_rows

    tally = _tally(source, survey, engine, master, watch)
    if survey is not None:
        say_rejected(tally)
    with watch("estimating"):
        found = tally.estimate() if not later else _combined(tally, later)
    advice: list[str] = []
    told_of = found
    with named_options(options("level", "order", "groups", method="--recalibrate", kind="--interval")):
        if recalibrate is not None:
            given = {"order": order, "groups": groups}
            lists = {
                name: [_names(text, list(dict.fromkeys(found.means.dimensions))) for text in texts]
                for name, texts in given.items()
                if texts
            }
            with watch("re-calibrating"):
                told_of = found.recalibrate(recalibrate, **lists)
                rows, advice = told_of.table(level=level, kind=interval), list(told_of.advice)
        else:
            with watch("intervals"):
                rows = found.table(level, simultaneous=simultaneous)
        more = more_answers(
            tally,
            quantiles=quantiles,
            histogram=histogram or (),
            variance=variance,
            correlation=correlation or (),
            by=by,
            pairs=pairs,
            reports=source if survey is not None else (),
            watch=watch,
        )
        for answer in more:
            kind = ("short" if short else "honest") if answer.intervals is not None else None
            with watch(f"intervals: {answer.statistics[0]}" if len(answer) else "intervals"):
                rows += answer.table(level, simultaneous=simultaneous, kind=kind)
    # Beside means and frequencies, a column says which statistic a row is.
    several = more or not {row["statistic"] for row in rows} <= {"mean", "frequency"}
    title = f"{found.n_reports:,} reports, {100 * level:g} % intervals"
    made = stamp(tally.survey.fingerprint, tally.survey.epsilon, level)
    shown = rows
    left: list[str] = []
    if not every and (html or png or not (json or csv or parquet)):
        with watch("choosing what is shown"):
            shown, left = largest_rows(told_of, rows[: len(found)], level, simultaneous=simultaneous)
        shown += rows[len(found) :]
    write_pictures(shown, title, html, png, made, left)
    columns: tuple[str, ...] = ("dimension", "statistic", *COLUMNS[1:]) if several else COLUMNS
    if any(row.get("unit") for row in rows):
        columns = (*columns, "unit")
    if parquet is not None:
        told = [c for c in ("unit", "note") if any(row.get(c) for row in rows)]
        write_bytes(parquet, as_parquet(rows, ("dimension", "statistic", *COLUMNS[1:], *told), made))
        print_note(f"wrote {parquet}")
    if csv is not None:
        text = as_csv(rows, columns, made)
        if to_stdout:
            sys.stdout.write(text)
        else:
            write_text(csv, text)
            print_note(f"wrote {csv}")
    if json:
        print_json(
            {
                **made,
                "reports": tally.n_reports,
                "rejected": tally.rejected,
                "simultaneous": simultaneous,
                "advice": advice,
                "rows": rows,
            }
        )
    elif csv is None and parquet is None:
        from hdr4me.statistics.intervals import EXACT, FEW_NOTE

        few = sum(FEW_NOTE in str(row.get("note", "")) for row in rows)
        shown = [row | {"note": str(row.get("note", "")).replace(FEW_NOTE, EXACT)} for row in shown]
        columns = ("dimension", "statistic") if several else ("dimension",)
        columns += (*COLUMNS[1:], "unit", "note")
        told = [c for c in columns if any(row.get(c) not in (None, "ok", "") for row in shown)]
        print_table(
            title + (" for all rows at once" if simultaneous else ""),
            ["s.e." if column == "standard_error" else column for column in told],
            [[row.get(column) for column in told] for row in shown],
        )
        if few:
            left.append(f"{few:,} of {len(rows):,} rows have {FEW_NOTE}")
        for note in left:
            print_note(note)
    if advice and not json:
        of_each = [text for text in advice[1:] if text.partition(": ")[0] in found.dimensions]
        for text in advice:
            if text not in of_each:
                print_note(text)
        if of_each:
            print_note(f"--json says the same of each categorical dimension ({len(of_each)})")


def _tally(
    source: Sequence[Path], survey: Path | None, engine: str, master: str | None, watch: Watch
) -> Tally:
    from hdr4me.io.arrow import binary_format
    from hdr4me.survey import Survey

    if survey is not None:
        with open_engine(engine, master) as worker:
            return tally_files(worker, Survey.load(survey), source, None, False)
    if engine != "local":
        raise InvalidInput(f"--engine {engine} goes with files of reports: give --survey too")
    for path in source:
        if binary_format(path) is not None:
            raise InvalidInput(
                f"{path} is no tally but a Parquet or Arrow file: for reports, give their --survey"
            )
    with watch("reading tallies"):
        return load_sum(source)


def _names(text: str, known: Sequence[str]) -> list[str]:
    """Names between commas; a pattern stands for all that match, in the schema's order."""
    out: list[str] = []
    for part in text.split(","):
        found = [name for name in known if fnmatchcase(name, part)]
        out += found if found and part not in known else [part]
    return out


def _combined(pilot: Tally, later: Sequence[Path]) -> Answer:
    """The answer of the pilot and of later rounds together."""
    from hdr4me.statistics import combine

    return combine([pilot, *(load_sum([path]) for path in later)])
