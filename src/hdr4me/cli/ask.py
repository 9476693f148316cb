"""The statistics that `hdr4me estimate` adds to means and frequencies, from its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.cli.option_names import named_options, numbers, pair_of
from hdr4me.cli.output import Watch, print_note
from hdr4me.cli.paths import write_results
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.statistics import Answer
    from hdr4me.tally import PairCounts, Tally


_FITTING = "fitting distributions"


def more_answers(
    tally: Tally,
    *,
    quantiles: str | None,
    histogram: Sequence[str],
    variance: bool,
    correlation: Sequence[str],
    by: str | None,
    pairs: Path | None,
    reports: Sequence[Path],
    watch: Watch,
) -> list[Answer]:
    """The answers to what was asked beyond the default."""
    found = []
    if quantiles is not None:
        p = numbers("--quantiles", quantiles)
        with named_options({"p": "--quantiles"}), watch(_FITTING):
            found.append(tally.ask("quantile", p=p, progress=watch.told))
    for text in histogram:
        name, _, edges = text.rpartition("=")
        cuts = numbers("--histogram", edges)
        chosen = name.strip() or None
        with named_options({"edges": "--histogram", "bins": "--histogram"}), watch(_FITTING):
            if len(cuts) == 1 and cuts[0].is_integer():
                found.append(tally.ask("distribution", chosen, bins=int(cuts[0]), progress=watch.told))
            else:
                found.append(tally.ask("histogram", chosen, edges=cuts, progress=watch.told))
    if variance:
        with watch("estimating variances"):
            found += [tally.ask("variance"), tally.ask("sd")]
    wanted = [pair_of("--correlation", text) for text in correlation]
    if wanted or by is not None:
        with watch("estimating pairs of dimensions"):
            found += _of_two(tally, wanted, by, pairs, reports)
    if (quantiles or histogram) and not any(len(answer) for answer in found):
        print_note("note: no number of this survey shows its distribution, so there are no rows for it")
    return found


def _of_two(
    tally: Tally, wanted: list[tuple[str, str]], by: str | None, pairs: Path | None, reports: Sequence[Path]
) -> list[Answer]:
    schema = tally.survey.schema
    grouped: list[tuple[str, str]] = []
    if by is not None:
        if schema[by].reads != "category":
            raise InvalidInput(f"--by {by}: not a category")
        grouped = [(d.name, by) for d in schema if d.name != by and d.reads in ("number", "category")]
    counts = _pair_counts(tally, wanted + grouped, pairs, reports)
    if pairs is not None and counts is not None:
        left_out = [name for name, group in grouped if not counts.holds(name, group)]
        grouped = [pair for pair in grouped if pair[0] not in left_out]
        for name in left_out:
            print_note(f"note: {name} was not counted together with {by} in {pairs}, and is left out")
    found = [tally.ask("correlation", pair, pairs=counts) for pair in wanted]
    for name, group in grouped:
        statistic = "mean_by" if schema[name].reads == "number" else "share_by"
        found.append(tally.ask(statistic, [name, group], pairs=counts))
    return found


def _pair_counts(
    tally: Tally, wanted: list[tuple[str, str]], pairs: Path | None, reports: Sequence[Path]
) -> PairCounts | None:
    """Pair counts from their file, or from the reports; None if every pair is one question, or has its product."""
    from hdr4me.survey import Product
    from hdr4me.tally import PairCounts

    survey = tally.survey
    asked = {frozenset(x.product) for x in survey.schema if isinstance(x, Product)}
    apart = [
        pair
        for pair in wanted
        if survey.question_of(pair[0]) != survey.question_of(pair[1]) and frozenset(pair) not in asked
    ]
    if not apart:
        return None
    if pairs is not None:
        return PairCounts.load(pairs)
    if not reports:
        raise InvalidInput(
            "a tally does not tell of two dimensions together: give --pairs (hdr4me tally --pair a,b makes the "
            "file), or the reports with --survey"
        )
    counts = PairCounts(survey, apart)
    for path in reports:
        counts.add_file(path)
    return counts


def write_pictures(
    rows: list[dict[str, Any]],
    title: str,
    html: Path | None,
    png: Path | None,
    made: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> None:
    """The page and the picture that were asked for; `notes` say which rows are left out."""
    if html is None and png is None:
        return
    from matplotlib.figure import Figure

    from hdr4me.pages.answer import as_html, draw

    def page() -> str:
        return as_html(rows, "hdr4me: what the tally says", title, notes)

    with Watch()("drawing"):
        write_results(html, png, made, page, lambda: draw(rows) or Figure())
