"""hdr4me estimate: means, frequencies and other statistics of a tally, with confidence intervals."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from hdr4me.atomic import write_bytes, write_text
from hdr4me.cli import options as opt
from hdr4me.cli.options import CONFIDENCE, JSON, QUANTILES, ROUND_NUMBER, File, Texts
from hdr4me.cli.output import Watch, print_json, print_note, print_notes, print_table, with_digits_of
from hdr4me.cli.reports import say_rejected
from hdr4me.errors import InvalidInput
from hdr4me.pages.answer import as_csv, as_html, as_parquet, draw
from hdr4me.pages.html import provenance
from hdr4me.pages.text import listed

if TYPE_CHECKING:
    from hdr4me.statistics import Answer
    from hdr4me.survey import Schema
    from hdr4me.tally import PairCounts, Tally

_INTERVALS = ("conservative", "approximate", "average", "credible")
_WORDS = {
    "sd": "standard deviation", "mean_by": "mean by", "share_by": "share by", "chosen": "share choosing",
    "frequency": "share", "distribution": "share", "histogram": "share", "share": "share with a value",
}  # fmt: skip
_CONSERVATIVE = (
    "Intervals of quantiles, bins and variances hold for any distribution of the values; --interval approximate gives "
    "narrower ones."
)
# A status of the answer, and what it means on the command line.
_ROUND = ("give the number of the round", "give --round-number")
_ROUNDED = ("estimate", "standard_error", "lower", "upper")
COLUMNS = ("dimension", "category", "estimate", "standard_error", "lower", "upper", "answers", "status")


def estimate(
    source: Annotated[list[Path], Argument(help="Tallies; or, with --survey, files of reports.")],
    survey: Annotated[File, Option(help="The survey file, if the sources are reports.")] = None,
    confidence: CONFIDENCE = 0.95,
    simultaneous: Annotated[
        bool, Option("--simultaneous", help="Intervals that cover all estimates at once.")
    ] = False,
    recalibrate: Annotated[
        str | None, Option(metavar="<method>", help="Re-calibrate with this method, or auto.")
    ] = None,
    interval: Annotated[
        str,
        Option(
            metavar="<kind>",
            help="conservative; approximate (narrower; for quantiles, histograms and variances); with --recalibrate "
            "also average (average coverage over dimensions) or credible (Bayesian).",
        ),
    ] = "conservative",
    quantiles: QUANTILES = None,
    histogram: Annotated[
        Texts,
        Option(
            metavar="<bins or name=edges>",
            help="Also estimate histograms with this number of bins, or of one dimension, such as pay=0,10,50 "
            "(repeatable).",
        ),
    ] = None,
    variance: Annotated[
        bool, Option("--variance", help="Also estimate variances and standard deviations.")
    ] = False,
    correlation: Annotated[
        Texts, Option(metavar="<a,b>", help="Also estimate a correlation (repeatable).")
    ] = None,
    by: Annotated[
        str | None,
        Option(
            metavar="<dimension>", help="Also estimate means and shares in each category of this dimension."
        ),
    ] = None,
    pair_counts: Annotated[
        File, Option(help="Joint counts for --correlation and --by, from tally --count-pair.")
    ] = None,
    later_round: Annotated[
        list[Path] | None, Option("--later-round", help="Combine with a tally of a later round (repeatable).")
    ] = None,
    same_population: Annotated[
        bool, Option("--same-population", help="With --later-round: users were assigned to rounds at random.")
    ] = False,
    round_number: ROUND_NUMBER = None,
    outputs: Annotated[
        opt.Files,
        opt.written(
            "rows (.csv, .parquet; -: CSV to standard output), a page (.html), figures (.png, .svg, .pdf)"
        ),
    ] = None,
    json: JSON = False,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="Also print details, all rows and all notes.")
    ] = False,
) -> None:
    """Estimate means (in your units), frequencies and other statistics with confidence intervals.

    Estimates are unbiased and never clipped, so noise can move them outside the range. --recalibrate trades bias for
    lower variance: use auto unless you need one of l1, l2, bayes, james_stein, sure, clip, zeros (a
    baseline), none; or, for frequencies, norm_sub, base_cut.

    Example: hdr4me estimate week.tally --quantiles 0.5,0.9 --recalibrate auto --output answer.csv
    """
    from hdr4me import statistics
    from hdr4me.statistics.answer import largest_rows

    html, png, csv, parquet = opt.outputs_of(outputs, ".html", ".png", ".csv", ".parquet")
    to_stdout = str(csv) == "-"
    approximate = interval == "approximate"
    opt.check("--interval", repr(interval), interval in _INTERVALS, f"one of {', '.join(_INTERVALS)}")
    if to_stdout and json:
        raise InvalidInput("--output - and --json both write to standard output: use one of them")
    if simultaneous and recalibrate is not None:
        raise InvalidInput(
            "--simultaneous and --recalibrate cannot be combined: re-calibrated estimates have no simultaneous "
            "intervals"
        )
    if recalibrate is None and interval in ("average", "credible"):
        raise InvalidInput(f"--interval {interval} needs --recalibrate: give both")
    if later_round and (recalibrate is not None or quantiles or histogram or variance or correlation or by):
        raise InvalidInput(
            "--later-round combines means, shares and frequencies only: estimate other statistics per round"
        )
    if same_population and not later_round:
        raise InvalidInput("--same-population needs --later-round")
    files = [None if to_stdout else csv, html, png, parquet]
    opt.check_outputs(files, [*source, survey, pair_counts, *(later_round or [])])
    opt.check_twice(source)
    watch = Watch()
    tally = _tally(source, survey, watch)
    with watch("estimating"):
        rounds = [tally, *(opt.load_sum([path]) for path in later_round or ())]
        for one in rounds:
            one.round_number = round_number
        found = tally.estimate()
        if later_round:
            found = statistics.combine(rounds, same_population=same_population or None)
    final, advice = found, []
    with opt.named_options():
        if recalibrate is not None:
            with watch("re-calibrating"):
                final = found.recalibrate(recalibrate)
                rows, advice = (
                    final.table(confidence=confidence, kind="conservative" if approximate else interval),
                    list(final.advice),
                )
        else:
            with watch("intervals"):
                rows = found.table(confidence, simultaneous=simultaneous)
        more, first = _distributions(tally, quantiles, histogram or (), variance, watch)
        wanted = [opt.pair_of("--correlation", text) for text in correlation or ()]
        if wanted or by is not None:
            with watch("estimating pairs of dimensions"):
                more += _of_two(tally, wanted, by, pair_counts, source if survey is not None else ())
        for answer in more:
            kind = (
                ("approximate" if approximate else "conservative") if answer.intervals is not None else None
            )
            with watch(f"intervals: {answer.statistics[0]}" if len(answer) else "intervals"):
                rows += answer.table(confidence, simultaneous=simultaneous, kind=kind)
    asked = f"questions per person: {tally.survey.sampled} of {len(tally.survey.questions)}"
    title = f"{found.n_reports:,} reports ({asked})"
    if any(row["lower"] is not None for row in rows):
        title += f", {100 * confidence:g} % confidence intervals"
    made = provenance(tally.survey.fingerprint, tally.survey.epsilon, confidence)
    shown: list[dict[str, Any]] = rows
    notes: list[str] = []
    if not verbose and (html or png or not (json or csv or parquet)):
        with watch("selecting rows"):
            shown, notes = largest_rows(final, rows[: len(found)], confidence, simultaneous=simultaneous)
        shown += rows[len(found) :]
    if html is not None or png is not None:
        from matplotlib.figure import Figure

        with watch("drawing"):
            page = partial(as_html, shown, tally.survey.name or "Estimates", title, notes)
            opt.write_results(html, png, made, page, lambda: draw(shown) or Figure())
    # With more than means and frequencies, a column names the statistic.
    full = ("dimension", "statistic", *COLUMNS[1:])
    several = more or not {row["statistic"] for row in rows} <= {"mean", "frequency"}
    columns = full if several else COLUMNS
    used = [name for name in ("unit", "note") if any(row.get(name) for row in rows)]
    if parquet is not None:
        write_bytes(parquet, as_parquet(rows, (*full, *used), made))
        print_note(f"wrote {parquet}")
    if csv is not None:
        text = as_csv(rows, (*columns, *used), made)
        if to_stdout:
            sys.stdout.write(text)
        else:
            write_text(csv, text)
            print_note(f"wrote {csv}")
    if json:
        about = {"reports": tally.n_reports, "rejected": tally.rejected, "simultaneous": simultaneous}
        print_json({**made, **about, "advice": advice, "rows": rows})
        return
    if csv is None and parquet is None:
        several_rows = " (joint for all rows)" if simultaneous else ""
        _show(title + several_rows, columns, shown, approximate, tally.survey.schema, by)
    else:
        notes = []
    if advice and sum(map(isnan, final.standard_error)) > sum(map(isnan, found.standard_error)):
        kept = interval in ("conservative", "approximate")
        advice[0] += (
            " Expected errors are mean squared errors, of means on the scale [-1, 1]. A changed estimate has no "
            f"standard error{'; its interval is that of the unbiased estimate, limited to the range' * kept}."
        )
    if not approximate and any(answer.intervals is not None for answer in more):
        first.append(_CONSERVATIVE)
    print_notes([*first, *notes, *advice], verbose)


def _show(
    title: str,
    columns: Sequence[str],
    shown: Sequence[dict[str, Any]],
    approximate: bool,
    schema: Schema,
    by: str | None,
) -> None:
    """Print the table grouped by dimension, without empty columns, and its footnotes."""
    places = {row["dimension"]: i for i, row in reversed(list(enumerate(shown)))}
    table, marks = [], dict[str, str]()
    for row in sorted(shown, key=lambda row: places[row["dimension"]]):
        status = str(row.get("status") or "ok").replace(*_ROUND)
        status = f"no interval, because responses {status}" if status.startswith("may be stale") else status
        texts = [status, *str(row.get("note") or "").split("; ")]
        texts = [x for x in texts if x not in ("", "ok") and (approximate or "approximate" not in x)]
        texts += _beside_the_range(row, schema)
        letters = sorted(marks.setdefault(text, _letter(len(marks))) for text in texts)
        error = row["standard_error"]
        if error is None and row["lower"] is not None and row["upper"] is not None:
            error = (row["upper"] - row["lower"]) / 4
        table.append(_in_words(row, by) | {"status": None, "note": " ".join(letters)})
        table[-1] |= {name: with_digits_of(error, row[name]) for name in _ROUNDED}
    used = [c for c in (*columns, "unit", "note") if any(row.get(c) not in (None, "") for row in table)]
    cells = [[row.get(column) for column in used] for row in table]
    for line, before in reversed(list(zip(cells[1:], cells, strict=False))):
        line[0] = "" if line[0] == before[0] else line[0]
    bins = any(row["statistic"] in ("distribution", "histogram") for row in shown)
    heads = {"category": "category or bin"} if bins else {}
    print_table(title, [heads.get(column, column.replace("_", " ")) for column in used], cells)
    for text, letter in marks.items():
        typer.echo(f"{letter}: {text}")


def _beside_the_range(row: dict[str, Any], schema: Schema) -> list[str]:
    """What a reader must know if an interval contains the whole range, or an estimate is outside of it."""
    dimension, statistic = schema[row["dimension"]], row["statistic"]
    if statistic in ("frequency", "chosen", "share"):
        low, high = 0.0, 1.0
    elif statistic in ("mean", "quantile") and dimension.is_number:
        low, high = dimension.bounds
    else:
        return []
    if row["lower"] is not None and row["lower"] <= low and row["upper"] >= high:
        return ["the interval contains the whole range: more reports are needed"]
    outside = row["estimate"] is not None and not low <= row["estimate"] <= high
    return [
        "outside the range by noise: estimates are unbiased and not clipped (see --recalibrate)"
    ] * outside


def _in_words(row: dict[str, Any], by: str | None) -> dict[str, Any]:
    """A row whose statistic is in words, with the parameter of the statistic, or the dimension of the groups."""
    name, of = row["statistic"], row.get("category")
    if name in ("quantile", "correlation"):
        return row | {"statistic": f"{name} {'with ' if name == 'correlation' else ''}{of}", "category": None}
    return row | {"statistic": f"{_WORDS.get(name, name)} {by if name.endswith('_by') else ''}".rstrip()}


def _letter(i: int) -> str:
    """The mark of the i-th footnote: a, b, …, z, a1, …"""
    return chr(ord("a") + i % 26) + (str(i // 26) if i >= 26 else "")


def _tally(source: Sequence[Path], survey: Path | None, watch: Watch) -> Tally:
    from hdr4me.engines import Local
    from hdr4me.io.arrow import binary_format
    from hdr4me.survey import Survey

    if survey is not None:
        found = opt.tally_files(Local(), Survey.load(survey), source, None)
        say_rejected(found)
        return found
    for path in source:
        if binary_format(path) is not None:
            raise InvalidInput(
                f"{path} is a Parquet or Arrow file, not a tally: if it has reports, give their --survey"
            )
    with watch("reading tallies"):
        return opt.load_sum(source)


def _distributions(
    tally: Tally, quantiles: str | None, histogram: Sequence[str], variance: bool, watch: Watch
) -> tuple[list[Answer], list[str]]:
    """The requested quantiles, histograms and variances, and a note if the survey does not allow them."""
    found = []
    asked: list[tuple[str, str | None, dict[str, Any]]] = []
    if quantiles is not None:
        asked.append(("quantile", None, {"p": opt.numbers("--quantiles", quantiles)}))
    for text in histogram:
        name, _, edges = text.rpartition("=")
        cuts = opt.numbers("--histogram", edges)
        bins = len(cuts) == 1 and cuts[0].is_integer()
        how: dict[str, Any] = {"bins": int(cuts[0])} if bins else {"edges": cuts}
        asked.append(("distribution" if bins else "histogram", name.strip() or None, how))
    for statistic, chosen, parameters in asked:
        with watch("fitting distributions"):
            found.append(tally.ask(statistic, chosen, **parameters, progress=watch.update))
    if variance:
        with watch("estimating variances"):
            found += [tally.ask("variance"), tally.ask("sd")]
    none = "This survey does not allow quantiles or histograms: create it with --purpose distribution"
    return found, [none] if asked and not any(map(len, found)) else []


def _of_two(
    tally: Tally, wanted: list[tuple[str, str]], by: str | None, pairs: Path | None, reports: Sequence[Path]
) -> list[Answer]:
    """Correlations, and means and shares by group."""
    from hdr4me.statistics.pairs import joint_question

    schema = tally.survey.schema
    attributes = {y.name: y for x in schema for y in (x, *x.leaves) if len(x.leaves) == 1 or y is not x}
    grouped: list[tuple[str, str]] = []
    if by is not None:
        group = attributes.get(by) or schema[by]
        if not group.is_category:
            known = (
                ", ".join(name for name, x in attributes.items() if x.is_category) or "the survey has none"
            )
            raise InvalidInput(f"--by {by} is not allowed: a categorical dimension ({known})")
        asked_alone = by in schema.names
        grouped = [
            (name, by)
            for name, x in attributes.items()
            if name != by and (x.is_number or x.is_category)
            if (asked_alone and name in schema.names) or joint_question(schema, (name, by)) is not None
        ]
    counts = _pair_counts(tally, wanted + grouped, pairs, reports)
    if pairs is not None and counts is not None:
        left_out = [name for name, group in grouped if not counts.holds(name, group)]
        grouped = [pair for pair in grouped if pair[0] not in left_out]
        if left_out:
            print_note(f"{pairs} has no joint counts with {by} of {listed(left_out)}: they are left out")
    asked = [("correlation", pair) for pair in wanted]
    asked += [("mean_by" if attributes[pair[0]].is_number else "share_by", pair) for pair in grouped]
    return [tally.ask(statistic, pair, pair_counts=counts) for statistic, pair in asked]


def _pair_counts(
    tally: Tally, wanted: list[tuple[str, str]], pairs: Path | None, reports: Sequence[Path]
) -> PairCounts | None:
    """Joint counts from a file or from the reports; None if each pair is one question or has a product."""
    from hdr4me.statistics.pairs import joint_question
    from hdr4me.survey import Product
    from hdr4me.tally import PairCounts

    of, schema = tally.survey.question_of, tally.survey.schema
    products = {frozenset(x.product) for x in schema if isinstance(x, Product)}
    apart = [
        (a, b)
        for a, b in wanted
        if joint_question(schema, (a, b)) is None and of(a) != of(b) and frozenset((a, b)) not in products
    ]
    if not apart:
        return None
    if pairs is not None:
        return PairCounts.load(pairs)
    if not reports:
        a, b = apart[0]
        raise InvalidInput(
            f"--correlation and --by need joint counts: give --pair-counts FILE, from hdr4me tally --count-pair {a},{b}"
            if tally.survey.sampled > 1
            else "--correlation and --by need reports that answer two questions: create the survey with --sampled 2, "
            "or with both as one question (--pair-question a,b for numbers, --tables a,b for categories)"
        )
    counts = PairCounts(tally.survey, apart)
    for path in reports:
        counts.add_file(path)
    return counts
