"""The page of a run: figures, tables beside the paper's, claims, errata, how it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.paper.case_study import TABLE_COLUMNS, TOLERANCES, deviation_on, table2
from hdr4me.paper.cells import MECHANISMS, CellResult, title_of
from hdr4me.paper.claims import Verdict
from hdr4me.paper.claims.claim import READING, VERDICTS
from hdr4me.paper.clt import CltResult
from hdr4me.paper.errata import errata
from hdr4me.paper.readings import READINGS, Reading
from hdr4me.paper.report_figures import density_blocks, figure4_blocks, figure5_blocks, own_blocks
from hdr4me.paper.results import Results


@dataclass(frozen=True)
class About:
    """What a run was asked for and what it ran on."""

    command: str
    scale: str
    seed: int
    reading: Reading
    workers: int
    machine: dict[str, str]
    seconds: float
    processor_seconds: float = 0.0
    kept: int = 0


TITLE = "HDR4ME: the evaluation, reproduced"
ERRATA_TITLE = "Errata of the paper"
ERRATA_LEAD = (
    "What the paper prints, what is right and why. This page is made from `hdr4me.paper.errata`, which computes its "
    "numbers."
)


def support_of(verdicts: Sequence[Verdict]) -> Counter[str]:
    """For each reading, how many of the claims that depend on λ* hold under it: our measure of “closest”."""
    return Counter({r.name: 0 for r in READINGS}) + Counter(
        name for verdict in verdicts for name in verdict.readings_for
    )


def lead_of(verdicts: Sequence[Verdict]) -> str:
    """One sentence for the top of the page."""
    words = Counter(verdict.verdict for verdict in verdicts)
    parts = [f"{words[word]} {said[words[word] > 1]}" for word, said in VERDICTS.items() if words[word]]
    return f"Of {len(verdicts)} claims checked, {', '.join(parts)}."


def blocks_of(results: Results, verdicts: Sequence[Verdict], about: About) -> list[Block]:
    """The whole report; parts that were not run are left out."""
    if results.has("own"):
        return [*own_blocks(results, about.reading), *_making(results, about)]
    parts: list[Block] = [*_opening(results, about)]
    if verdicts:
        parts += _summary(verdicts)
    if results.has("fig2"):
        parts += density_blocks(results, "fig2", "Figure 2: is the deviation normal?", tuple(MECHANISMS))
    if results.has("fig3"):
        parts += density_blocks(results, "fig3", "Figure 3: the case study", ("piecewise", "square_wave"))
    parts += [
        Heading("Table II and the case study's numbers"),
        Text(
            "Each number that section IV-C prints, and Theorem 2's example, beside ours. “Rounded”: off by less than "
            "one unit of the last printed digit."
        ),
        Table(TABLE_COLUMNS, table2()),
        *_domains(),
    ]
    if results.has("fig4"):
        parts += figure4_blocks(results, about.reading)
    if results.has("fig5"):
        parts += figure5_blocks(results, about.reading)
    if verdicts:
        parts += [*_details(verdicts), *_readings(verdicts, about.reading)]
    parts += [Heading("Errata, with derivations"), *errata_blocks(), *_making(results, about)]
    return parts


def _domains() -> list[Block]:
    """Table II once more, with Square wave on the domain of Piecewise."""
    laws = {
        "Piecewise on [−1, 1]": deviation_on("piecewise"),
        "Square wave on [0, 1] (Table II)": deviation_on("square_wave"),
        "Square wave on [−1, 1]": deviation_on("square_wave", (-1.0, 1.0)),
    }
    rows: list[list[object]] = [
        [name, f"{float(law.bias):.4g}", *(f"{float(law.probability_within(xi)):.3g}" for xi in TOLERANCES)]
        for name, law in laws.items()
    ]
    return [
        Text(
            "Table II puts Square wave on [0, 1] beside Piecewise on [−1, 1]. On the common [−1, 1], which the paper "
            "assumes everywhere else, Square wave's mean is drawn to 0 and the comparison at larger tolerances turns "
            "round:"
        ),
        Table(["", "bias δ", *(f"within {xi:g}" for xi in TOLERANCES)], rows),
    ]


def _opening(results: Results, about: About) -> list[Block]:
    parts: list[Block] = [
        Text(
            "The paper: “Utility Analysis and Enhancement of LDP Mechanisms in High-Dimensional Space”, sections II, "
            "IV, V and VI. Everything below was computed by the command at the end of this page; no number and no "
            "verdict is written by hand."
        )
    ]
    if about.scale != "full":
        parts.append(
            Text(
                f"**This is the {about.scale} scale**: smaller data and fewer repeats than the paper's. Sizes are "
                "given with each figure, and the verdicts hold for these sizes only."
            )
        )
    if any(cell.stand_in for cell in results.cells):
        parts.append(
            Text(
                "**The COV-19 data are a stand-in**: made from a seed, of the same size and with strongly correlated "
                "dimensions, because the paper's own file is not at hand. Every table and figure says so. With the "
                "CORD-19 embeddings file, give `--cov19 PATH`."
            )
        )
    parts.append(
        Text(
            f"The reading of λ* in the figures: **{about.reading.title}** (`--reading {about.reading.name}`)."
        )
    )
    return parts


def _summary(verdicts: Sequence[Verdict]) -> list[Block]:
    rows = [[v.text, v.where, v.verdict, v.support, "yes" if v.holds else "no"] for v in verdicts]
    return [
        Heading("The claims"),
        Text(
            "Each sentence of the paper that asserts something is a test on the numbers below. **Reproduced**: it "
            "holds under every reading of λ*; **not reproduced**: under none; **depends on the reading**: under "
            "some. Readings that give the same numbers in all that a claim looks at are counted once. **Depends on "
            "the domain** and **holds in these cells, false in general**: it holds here, and a second check outside "
            "the paper's own cells finds that it does not there. The tests, the numbers that decide them and the "
            "reasons follow the figures."
        ),
        Table(["the paper says", "where", "verdict", "readings for it", "in the figures' reading"], rows),
    ]


def _details(verdicts: Sequence[Verdict]) -> list[Block]:
    parts: list[Block] = [Heading("The claims, one by one")]
    for item in verdicts:
        under = ""
        if 0 < item.distinct_for < item.distinct_all:
            under = (
                f" It holds under {item.support} readings that differ here: {_shortened(item.readings_for)}."
            )
        if item.beyond:
            under += f" {item.beyond}"
        parts += [
            Heading(f"{item.where}: “{item.text}”", 3),
            Text(
                f"**{item.verdict.capitalize()}**{_under_own(item)}. Test (`{item.name}`): {item.test}. Found: "
                f"{item.evidence}. {item.why}{under}"
            ),
        ]
    return parts


def _under_own(item: Verdict) -> str:
    if item.verdict != READING:
        return ""
    return ", and holds in the figures' reading" if item.holds else ", and fails in the figures' reading"


def _shortened(names: Sequence[str]) -> str:
    """The readings by what they have in common, where that says it all; else their names.

    >>> _shortened([r.name for r in READINGS if r.reference == "bias"])
    'all with L2 reference bias'
    """
    chosen = [r for r in READINGS if r.name in names]
    for field, words in (("reference", "L2 reference"), ("spread", "spread"), ("width", "z =")):
        values = {getattr(r, field) for r in chosen}
        if len(chosen) == sum(getattr(r, field) in values for r in READINGS):
            return f"all with {words} {' or '.join(sorted(values))}"
    return ", ".join(f"`{name}`" for name in names)


def _readings(verdicts: Sequence[Verdict], reading: Reading) -> list[Block]:
    counted = support_of(verdicts)
    total = sum(1 for verdict in verdicts if verdict.distinct_all)
    rows: list[list[object]] = [
        [r.title + (" (the figures')" if r == reading else ""), r.name, f"{counted[r.name]} of {total}"]
        for r in sorted(READINGS, key=lambda r: -counted[r.name])
    ]
    return [
        Heading("The readings of λ*"),
        Text(
            "Lemmas 4 and 5 leave three things open: how large a supremum is (z standard deviations, or the z that "
            "all dimensions keep at once with 95 %), whether the bias belongs to it, and what stands for the unknown "
            "θ̄ in L2's weight. How close a reading is to the paper is measured by how many of the claims about "
            "re-calibration hold under it. The default was chosen by that count on the full run of seed 1, so its "
            "count is that of a winner."
        ),
        Table(["reading", "name", "claims that hold"], rows),
    ]


def errata_blocks() -> list[Block]:
    """Each erratum: printed, right, derivation, numbers; then the commentary."""
    parts: list[Block] = []
    said = False
    for number, item in enumerate(errata(), start=1):
        if item.commentary and not said:
            said = True
            parts.append(Heading("Commentary: not wrong, but left unsaid"))
        truth = "What to know" if item.commentary else "Right"
        parts += [
            Heading(f"{number}. {item.title}", 3),
            Text(f"{item.where}. **Printed:** {item.printed}. **{truth}:** {item.right}."),
            Text(item.derivation),
        ]
        if item.numbers:
            parts.append(Table(["", "value"], [[what, f"{value:.6g}"] for what, value in item.numbers]))
    return parts


def _making(results: Results, about: About) -> list[Block]:
    """Which cells were drawn how and in what time, and what the run was asked for."""
    ways: dict[tuple[str, str], list[CellResult | CltResult]] = {}
    finished: list[CellResult | CltResult] = [*results.clt, *results.cells]
    for result in finished:
        where = "own" if result.cell.figure == "own" else result.cell.figure.replace("fig", "Figure ")
        place = f"{where}, {title_of(result.cell.mechanism)}"
        ways.setdefault((place, result.how), []).append(result)
    rows: list[list[object]] = [
        [place, how, _which(cells), f"{sum(cell.seconds for cell in cells):.0f} s"]
        for (place, how), cells in ways.items()
    ]
    if results.theory:
        names = ", ".join(study.cell.study for study in results.theory)
        seconds = sum(study.seconds for study in results.theory)
        rows.append(["Lemmas and theorems", "every report drawn", names, f"{seconds:.0f} s"])
    lines: list[list[object]] = [
        ["command", about.command],
        ["scale", about.scale],
        ["seed", str(about.seed)],
        ["workers", str(about.workers)],
        ["run time", f"{about.seconds:.0f} s"],
        ["processor time of all cells", f"{about.processor_seconds:.0f} s"],
        ["cells kept from an earlier run", str(about.kept)],
    ]
    lines += [[name, value] for name, value in about.machine.items()]
    return [
        Heading("How it was made"),
        Text(
            "Shortcuts draw from exactly the same distribution as perturbing every single value would; the tests "
            "compare them with the plain mechanisms. Times are processor time."
        ),
        Table(["figure", "how", "cells", "time"], rows),
        Table(["", "this run"], lines),
    ]


def _which(cells: Sequence[CellResult | CltResult]) -> str:
    """The cells by data set, with their budgets (or numbers of dimensions)."""
    found: dict[str, list[str]] = {}
    for result in cells:
        if isinstance(result, CltResult):
            return "all"
        by_size = result.cell.figure == "fig5"
        found.setdefault(result.title + (": d = " if by_size else ": ε = "), []).append(
            f"{result.cell.n_dims if by_size else result.cell.epsilon:g}"
        )
    return "; ".join(title + ", ".join(values) for title, values in found.items())
