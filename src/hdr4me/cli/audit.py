"""hdr4me audit: prove and attack a survey, or test a tally for poisoned reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON, RESULTS, SURVEY, VERBOSE, File
from hdr4me.cli.output import print_json, print_note, print_notes, print_table, print_text, progress, working
from hdr4me.errors import InvalidInput
from hdr4me.pages import html as pages
from hdr4me.pages.html import provenance
from hdr4me.pages.text import pluralize, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hdr4me.auditing import Audit

Write = Callable[[Mapping[str, Any], Callable[[], str], Callable[[], "Figure"]], None]
# The keys of a finding in JSON, and its attributes.
_FINDING = {
    "mechanism": "mechanism", "kind": "kind", "dimensions": "dims", "names": "names",
    "likelihood_ratio": "likelihood_ratio",
    "epsilon_proven": "epsilon_proven", "epsilon_declared": "epsilon_declared",
    "epsilon_attacked": "epsilon_attacked", "draws": "draws", "draws_asked": "requested", "passed": "passed",
}  # fmt: skip
_BOUNDS = ["dimension", "spread over all questions", "all on this question"]
_IMITATION = (
    "Poisoned reports that imitate users with other values are not detectable; the bounds above include them."
)
_MOST, _SHOWN = 40, 20  # rows of a figure, and dimensions of a table


def audit(
    survey: SURVEY,
    draws: Annotated[
        int, Option(help="Simulated reports for each of the two values of the attack.")
    ] = 1_000_000,
    tally: Annotated[File, Option(help="Test this tally for poisoned reports instead.")] = None,
    reports: Annotated[
        list[Path] | None, Option(help="With --tally: its reports, to find copies (repeatable).")
    ] = None,
    false_alarm_rate: Annotated[
        float, Option(help="With --tally: probability of any false alarm over all audits.")
    ] = 0.001,
    audits_before: Annotated[
        int, Option(help="With --tally: number of earlier audits of this collection.")
    ] = 0,
    outputs: RESULTS = None,
    json: JSON = False,
    verbose: VERBOSE = False,
) -> None:
    """Prove in exact arithmetic that a survey satisfies ε-LDP, and test its sampler by an empirical attack.

    The proof gives the largest likelihood ratio of a report as an exact fraction. The attack gives a lower bound on ε
    from simulated reports. With --tally, test whether the counts can come from users who follow the protocol. Exit
    code 1 if the survey fails or there is an alarm.

    Example: hdr4me audit survey.json --output audit.html
    """
    from hdr4me.survey import Survey

    opt.check("--draws", draws, 1000 <= draws <= 20_000_000, "1000 to 20,000,000")
    opt.check("--audits-before", audits_before, audits_before >= 0, "a non-negative integer")
    if reports and tally is None:
        raise InvalidInput("--reports needs --tally: give both")
    html, png = opt.outputs_of(outputs, ".html", ".png")
    opt.check_outputs([html, png], [survey, tally, *(reports or [])])
    document = Survey.load(survey)
    write = partial(opt.write_results, html, png)
    if tally is None:
        passed = _audit_survey(document, draws, write, json, verbose)
    else:
        passed = _audit_tally(document, tally, reports or [], false_alarm_rate, audits_before, write, json)
    if not passed:
        raise typer.Exit(1)


def _audit_survey(survey: Any, draws: int, write: Write, json: bool, verbose: bool) -> bool:
    """Print the proof and the attack; True if the survey passes."""
    from hdr4me.auditing.auditor import ALARM
    from hdr4me.auditing.auditor import audit as run
    from hdr4me.channels import CHANNELS

    with progress("attacking", draws * len(survey.channels)) as advance:
        found = run(survey, draws=draws, progress=advance)
    made = provenance(survey.fingerprint, found.epsilon_declared, 1 - ALARM)
    write(made, lambda: _page(found), lambda: _draw(found))
    if json:
        tables = [{key: getattr(f, name) for key, name in _FINDING.items()} for f in found.findings]
        about = {
            "passed": found.passed,
            "epsilon_proven": found.epsilon_proven,
            "likelihood_ratio": str(found.likelihood_ratio),
        }
        print_json({**made, **about, "tables": tables})
    else:
        rows = [
            [
                f.mechanism,
                shortened(f.names),
                f.epsilon_declared,
                f.epsilon_proven,
                f.epsilon_attacked,
                "yes" if f.passed else "NO",
            ]
            + ([CHANNELS[f.kind].__name__, f"{f.draws:,}", _fraction(f.likelihood_ratio)] if verbose else [])
            for f in found.findings
        ]
        columns = [
            "mechanism",
            "dimensions",
            "declared ε",
            "proven ε",
            "ε found by the attack (lower bound)",
            "passes",
        ]
        columns += ["channel", "draws", "likelihood ratio"] if verbose else []
        print_table(f"Audit of survey {survey.fingerprint[:12]}; ε of one answer", columns, rows)
        print_text(_verdict(found))
        print_notes(found.notes, verbose)
    return found.passed


def _fraction(ratio: Any) -> str:
    text = str(ratio)
    return text if len(text) <= 60 else f"{float(ratio):.12g} (a fraction of {len(text)} digits)"


def _verdict(found: Audit) -> str:
    proof = "at most e^ε" if found.proven else "MORE than e^ε"
    return (
        f"The largest likelihood ratio of a report ({pluralize(found.sampled, 'answer')}) is "
        f"{_fraction(found.likelihood_ratio)}, which is {proof} for the declared ε = {found.epsilon_declared:g}. "
        f"The survey {'passes' if found.passed else 'FAILS'}."
    )


def _page(found: Audit) -> str:
    from hdr4me.auditing.auditor import COLUMNS

    notes = (pages.paragraph(f"{note}.") for note in found.notes)
    how = (
        "The proof is an exact fraction: the largest ratio of the probabilities of one report under two true values. "
        "The proof passes if the fraction is at most e^ε. The attack draws reports of the two values that are easiest "
        "to distinguish, and gives a lower bound on ε. A bound above the declared ε shows that the sampler is wrong."
    )
    return pages.page(
        "Audit of a survey",
        _verdict(found),
        pages.figure(_draw(found), "Proven (bar), found by the attack (point), declared (line)."),
        pages.section("Every channel", pages.table(COLUMNS, found.rows()), *notes),
        pages.section("Method", pages.paragraph(how)),
    )


def _rows(labels: Sequence[str]) -> tuple[Figure, Axes]:
    """A figure with one row per label."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.4 + 0.4 * len(labels)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(labels)), [label.replace("$", r"\$")[:60] for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _draw(found: Audit) -> Figure:
    """For each channel: a bar for the proven ε, a point for the attack, a line for the declared ε."""
    shown = found.findings[:_MOST]
    figure, axes = _rows([f"{f.mechanism}, {f.kind}" for f in shown])
    places, limits = range(len(shown)), [f.epsilon_declared for f in shown]
    axes.barh(places, [f.epsilon_proven for f in shown], height=0.6, color="#9fc5d6", label="proven")
    found_at = [f.epsilon_attacked for f in shown]
    axes.plot(found_at, places, "o", color="#d1495b", label="lower bound of the attack")
    axes.plot(limits, places, "|", color="#1d2329", ms=24, mew=2, label="declared")
    axes.set(xlabel="ε of one answer", xlim=(0, None))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _audit_tally(
    survey: Any, path: Path, reports: list[Path], rate: float, before: int, write: Write, json: bool
) -> bool:
    """Print the result of testing a tally; True if there is no alarm."""
    from hdr4me.accounting.poisoning import manipulation_bounds
    from hdr4me.auditing import present_shares, watch
    from hdr4me.auditing.alarms import most_copies
    from hdr4me.tally import Tally

    tally = Tally.load(path, survey)
    with (
        opt.named_options(),
        working("testing the counts"),
    ):
        copies = most_copies(survey, reports) if reports else None
        found = watch(tally, false_alarm_rate=rate, audits_before=before, copies=copies)
    limits = [item.to_dict() for item in manipulation_bounds(survey, present_shares(tally), observed=True)]
    made = provenance(survey.fingerprint, survey.epsilon, 1 - rate)
    write(made, lambda: _tally_page(str(found), limits), lambda: _draw_bounds(limits))
    if json:
        print_json({**made, **found.to_dict(), "manipulation_bounds": limits})
    else:
        print_text(str(found))
        print_table(*manipulation_table(limits))
        print_note(_IMITATION)
    return not found.alarms


def _bound_rows(limits: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    def name(item: Mapping[str, Any]) -> str:
        present = item.get("present")
        return str(item["dimension"]) + ("" if present is None else f" ({100 * present:.3g} % with a value)")

    return [[name(item), item["shift"], item["shift_aimed"]] for item in limits]


def manipulation_table(limits: Sequence[Mapping[str, Any]]) -> tuple[str, list[str], list[list[Any]]]:
    """Title, columns and rows: how far poisoned reports can move each estimate."""
    share = limits[0]["share"] if limits else 0.01
    title = (
        f"Manipulation bound: largest change of an estimate if {100 * share:g} % of the reports are poisoned"
    )
    more = len(limits) - _SHOWN
    rows = _bound_rows(limits[:_SHOWN])
    return (
        title,
        _BOUNDS,
        rows + ([[f"… {pluralize(more, 'more dimension')}", None, None]] if more > 0 else []),
    )


def _tally_page(found: str, limits: Sequence[Mapping[str, Any]]) -> str:
    """The alarms of a tally, and the manipulation bounds."""
    head, *sentences = found.splitlines()
    return pages.page(
        "Audit of a tally",
        head,
        pages.section("Alarms", *map(pages.paragraph, sentences)),
        pages.section(
            "Manipulation bound: the effect of 1 % poisoned reports",
            pages.figure(_draw_bounds(limits), "The largest shift of an estimate, in its own units."),
            pages.table(_BOUNDS, _bound_rows(limits)),
            pages.paragraph(_IMITATION),
        ),
    )


def _draw_bounds(limits: Sequence[Mapping[str, Any]]) -> Figure:
    """For each dimension, the largest shift by poisoned reports, spread and aimed."""
    names, spread, aimed = zip(*_bound_rows(limits[:_MOST]), strict=True) if limits else ((), (), ())
    figure, axes = _rows([str(name) for name in names])
    axes.plot(spread, range(len(names)), "o", color="#0b6e99", label=_BOUNDS[1])
    axes.plot(aimed, range(len(names)), "D", color="#d1495b", label=_BOUNDS[2])
    axes.set(xlabel="largest shift, in own units", xscale="log")
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
