"""hdr4me audit: is this survey as private as it says, and can an honest population give this tally?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import HTML, JSON, PNG, SURVEY, File
from hdr4me.cli.output import print_json, print_note, print_table, progress, working
from hdr4me.errors import InvalidInput
from hdr4me.pages import html as pages
from hdr4me.pages.counted import counted
from hdr4me.pages.html import stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hdr4me.auditing import Audit

Write = Callable[[Mapping[str, Any], Callable[[], str], Callable[[], "Figure"]], None]
# The keys of a finding in JSON, and its attributes.
_FINDING = {
    "mechanism": "mechanism", "kind": "kind", "dimensions": "dims", "loss": "loss",
    "epsilon_proven": "epsilon_proven", "epsilon_declared": "epsilon_declared",
    "epsilon_attacked": "epsilon_attacked", "draws": "draws", "draws_asked": "n_asked", "passed": "passed",
}  # fmt: skip
_HARM = ["dimension", "spread over all questions", "all aimed at this one"]
_IMITATION = (
    "Not detected: false reports that imitate an honest population with other values, and those of a two-cell table. "
    "The limits above hold for them too."
)
_MOST, _SHOWN = 40, 20  # rows of a picture, and dimensions of a table


def audit(
    survey: SURVEY,
    draws: Annotated[int, Option(help="Reports drawn for each of the attack's two values.")] = 1_000_000,
    tally: Annotated[File, Option(help="Audit this tally instead: can an honest population give it?")] = None,
    reports: Annotated[list[Path] | None, Option(help="… and its reports, for copies (repeat).")] = None,
    false_alarm_rate: Annotated[
        float, Option(help="… probability of any false alarm over all looks, at most.")
    ] = 0.001,
    looks_before: Annotated[int, Option(help="… how many times this collection was audited before.")] = 0,
    html: HTML = None,
    png: PNG = None,
    json: JSON = False,
) -> None:
    """Prove every table private in integers, and attack the sampler that would use it.

    The loss is an exact fraction, compared with a rational number below e^epsilon. The attack gives a lower bound of
    epsilon from sampled reports. With --tally, an alarm means that no honest population gives these counts. Exit code 1
    if the survey fails or there is an alarm.

    Example: hdr4me audit survey.json --html audit.html
    """
    from hdr4me.survey import Survey

    opt.check("--draws", draws, 1000 <= draws <= 20_000_000, "1000 to 20,000,000")
    if reports and tally is None:
        raise InvalidInput("--reports goes with --tally: give both")
    opt.check_outputs([html], [survey, tally, *(reports or [])], png=png)
    document = Survey.load(survey)
    write = partial(opt.write_results, html, png)
    if tally is None:
        passed = _audit_survey(document, draws, write, json)
    else:
        passed = _audit_tally(document, tally, reports or [], false_alarm_rate, looks_before + 1, write, json)
    if not passed:
        raise typer.Exit(1)


def _audit_survey(survey: Any, draws: int, write: Write, json: bool) -> bool:
    """Print the proof and the attack; True if the survey passes."""
    from hdr4me.auditing.auditor import ALARM, COLUMNS
    from hdr4me.auditing.auditor import audit as run

    with progress("attacking", draws * len(survey.channels)) as advance:
        found = run(survey, draws=draws, progress=advance)
    made = stamp(survey.fingerprint, found.epsilon_declared, 1 - ALARM)
    write(made, lambda: _page(found), lambda: _draw(found))
    if json:
        tables = [{key: getattr(f, name) for key, name in _FINDING.items()} for f in found.findings]
        about = {"passed": found.passed, "epsilon_proven": found.epsilon_proven, "loss": str(found.loss)}
        print_json({**made, **about, "tables": tables})
    else:
        columns = [column.replace("ε", "epsilon") for column in COLUMNS]
        print_table(f"Audit of survey {survey.fingerprint[:12]}", columns, found.rows())
        for note in found.notes:
            print_note(f"note: {note}")
        typer.echo(_verdict(found))
    return found.passed


def _verdict(found: Audit) -> str:
    loss = str(found.loss)
    shown = loss if len(loss) <= 60 else f"{float(found.loss):.12g} (a fraction of {len(loss)} digits)"
    return (
        f"A whole report ({counted(found.sampled, 'answer')}): ratio at most {shown}, epsilon "
        f"{found.epsilon_proven:.9g} of {found.epsilon_declared:g} declared: {'passes' if found.passed else 'FAILS'}"
    )


def _page(found: Audit) -> str:
    from hdr4me.auditing.auditor import COLUMNS

    notes = (pages.paragraph(f"{note}.") for note in found.notes)
    how = (
        "The proof is a fraction of integers: the largest ratio of the probabilities that two true values give to one "
        "report. The proof passes if the fraction is at most e^ε. The attack draws reports of the two values that are "
        "easiest to tell apart, and gives a lower bound of ε: above the declared ε, the sampler is wrong."
    )
    return pages.page(
        "Audit of a survey",
        _verdict(found),
        pages.figure(_draw(found), "Proven (bar), found by the attack (point), declared (line)."),
        pages.section("Every channel", pages.table(COLUMNS, found.rows()), *notes),
        pages.section("How to read this page", pages.paragraph(how)),
    )


def _rows(labels: Sequence[str]) -> tuple[Figure, Axes]:
    """A picture with a row for each label."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.4 + 0.4 * len(labels)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(labels)), [label.replace("$", r"\$")[:60] for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _draw(found: Audit) -> Figure:
    """One bar for each channel: its proven ε; a point: what the attack found; a line: what is declared."""
    shown = found.findings[:_MOST]
    figure, axes = _rows([f"{f.mechanism}, {f.kind}" for f in shown])
    places, limits = range(len(shown)), [f.epsilon_declared for f in shown]
    axes.barh(places, [f.epsilon_proven for f in shown], height=0.6, color="#9fc5d6", label="proven")
    found_at = [f.epsilon_attacked for f in shown]
    axes.plot(found_at, places, "o", color="#d1495b", label="attack finds at least")
    axes.plot(limits, places, "|", color="#1d2329", ms=24, mew=2, label="declared")
    axes.set(xlabel="ε of one answer", xlim=(0, None))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _audit_tally(
    survey: Any, path: Path, reports: list[Path], level: float, look: int, write: Write, json: bool
) -> bool:
    """Print what a look at a tally finds; True if there was no alarm."""
    from hdr4me.accounting.poisoning import manipulation_bounds
    from hdr4me.auditing import watch
    from hdr4me.auditing.alarms import most_copies
    from hdr4me.tally import Tally

    tally = Tally.load(path, survey)
    with (
        opt.named_options(level="--false-alarm-rate", look="--looks-before"),
        working("looking at the counts"),
    ):
        copies = most_copies(survey, reports) if reports else None
        found = watch(tally, level=level, look=look, copies=copies)
    limits = [item.to_dict() for item in manipulation_bounds(survey)]
    made = stamp(survey.fingerprint, survey.epsilon, level)
    write(made, lambda: _tally_page(str(found), limits), lambda: _draw_harm(limits))
    if json:
        print_json({**made, **found.to_dict(), "manipulation_bounds": limits})
    else:
        typer.echo(str(found))
        manipulation_table(limits)
        typer.echo(_IMITATION)
    return not found.alarms


def _harm_rows(limits: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    return [[item["dimension"], item["shift"], item["shift_aimed"]] for item in limits]


def manipulation_table(limits: Sequence[Mapping[str, Any]]) -> None:
    """How far false reports move each answer at most."""
    share = limits[0]["share"] if limits else 0.01
    title = f"If {100 * share:g} % of the reports are false, an answer moves by at most (own units)"
    print_table(title, _HARM, _harm_rows(limits[:_SHOWN]))
    if len(limits) > _SHOWN:
        typer.echo(f"… and {counted(len(limits) - _SHOWN, 'more dimension')}")


def _tally_page(found: str, limits: Sequence[Mapping[str, Any]]) -> str:
    """The alarms of a look at a tally, and what false reports could do."""
    head, *sentences = found.splitlines()
    return pages.page(
        "Audit of a tally",
        head,
        pages.section("Alarms", *map(pages.paragraph, sentences)),
        pages.section(
            "What 1 % of false reports could do at most",
            pages.figure(_draw_harm(limits), "How far an answer could move, in its own units."),
            pages.table(_HARM, _harm_rows(limits)),
            pages.paragraph(_IMITATION),
        ),
    )


def _draw_harm(limits: Sequence[Mapping[str, Any]]) -> Figure:
    """For each dimension, how far false reports move its answer at most, spread and aimed."""
    names, spread, aimed = zip(*_harm_rows(limits[:_MOST]), strict=True) if limits else ((), (), ())
    figure, axes = _rows([str(name) for name in names])
    axes.plot(spread, range(len(names)), "o", color="#0b6e99", label=_HARM[1])
    axes.plot(aimed, range(len(names)), "D", color="#d1495b", label=_HARM[2])
    axes.set(xlabel="largest shift, in the answer's own units", xscale="log")
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
