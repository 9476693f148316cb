"""The page and the picture of an audit: of a survey's channels, or of a tally's counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hdr4me.auditing.auditor import COLUMNS
from hdr4me.pages import html
from hdr4me.pages.counted import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hdr4me.auditing import Audit
    from hdr4me.auditing.alarms import Watch


_PROVEN, _FOUND, _LIMIT = "#0b6e99", "#d1495b", "#1d2329"
_MOST = 40


def audit_page(found: Audit) -> str:
    """What is declared, proven and attacked, on one page that needs no network."""
    verdict = "passes" if found.passed else "FAILS"
    lead = (
        f"The survey {verdict}. A whole report ({counted(found.n_sampled, 'answer')}) has ε = "
        f"{found.epsilon_proven:.9g} proven, of {found.epsilon_declared:g} declared."
    )
    return html.page(
        "Audit of a survey",
        lead,
        html.figure(
            draw_audit(found), "What is proven (bar), what the attack found (point), the limit (line)."
        ),
        html.section(
            "Every channel",
            html.table(COLUMNS, found.rows()),
            *(html.paragraph(f"{note}.") for note in found.notes),
        ),
        html.section(
            "How to read this page",
            html.paragraph(
                "The proof is a fraction of integers: the largest ratio of the probabilities that two true values "
                "give to one report. The proof passes if the fraction is at most e^ε. The attack draws reports of "
                "the two values that are easiest to tell apart, and gives a lower bound of ε from these reports "
                "alone. A bound above the declared ε means that the sampler does not follow its channel."
            ),
        ),
    )


def draw_audit(found: Audit) -> Figure:
    """One bar for each channel: its proven ε; a point: what the attack found; a line: what is declared."""
    from matplotlib.figure import Figure

    shown = found.findings[:_MOST]
    figure = Figure(figsize=(8, 1.4 + 0.4 * len(shown)), layout="constrained")
    axes = figure.subplots()
    places = [float(k) for k in range(len(shown))]
    axes.barh(places, [f.epsilon_proven for f in shown], height=0.6, color="#9fc5d6", label="proven")
    axes.plot([f.epsilon_attacked for f in shown], places, "o", color=_FOUND, label="attack finds at least")
    for place, f in zip(places, shown, strict=True):
        limit = [f.epsilon_declared] * 2
        label = "declared" if place == 0 else None
        axes.plot(limit, [place - 0.4, place + 0.4], color=_LIMIT, lw=2, label=label)
    axes.set_yticks(places, [f"{f.mechanism}, {f.kind}".replace("$", r"\$") for f in shown])
    axes.invert_yaxis()
    axes.set(xlabel="ε of one answer", xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def tally_page(found: Watch, limits: Sequence[Mapping[str, Any]]) -> str:
    """The alarms of a look at a tally, and what false reports could do."""
    head, *sentences = str(found).splitlines()
    share = limits[0]["share"] if limits else 0.01
    rows = [[item["dimension"], item["shift"], item["shift_aimed"]] for item in limits]
    return html.page(
        "Audit of a tally",
        head,
        html.section("Alarms", *(html.paragraph(sentence) for sentence in sentences)),
        html.section(
            f"What {100 * share:g} % of false reports could do at most",
            html.figure(draw_harm(limits), "How far an answer could move, in its own units."),
            html.table(["dimension", "spread over all questions", "all aimed at this one"], rows),
            html.paragraph(
                "False reports that imitate an honest population with other values are not found. These limits hold "
                "for them too."
            ),
        ),
    )


def draw_harm(limits: Sequence[Mapping[str, Any]]) -> Figure:
    """For each dimension, how far false reports move its answer at most, spread and aimed."""
    from matplotlib.figure import Figure

    shown = list(limits[:_MOST])
    figure = Figure(figsize=(8, 1.4 + 0.4 * len(shown)), layout="constrained")
    axes = figure.subplots()
    places = [float(k) for k in range(len(shown))]
    axes.plot(
        [item["shift"] for item in shown], places, "o", color=_PROVEN, label="spread over all questions"
    )
    axes.plot(
        [item["shift_aimed"] for item in shown], places, "D", color=_FOUND, label="all aimed at this one"
    )
    axes.set_yticks(places, [str(item["dimension"]).replace("$", r"\$")[:60] for item in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set(xlabel="largest shift, in the answer's own units", xscale="log")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
