"""The page of a run: figures, tables beside the paper's, claims, errata, how it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hdr4me.evaluation.cells import MECHANISMS
from hdr4me.evaluation.claims import Verdict
from hdr4me.evaluation.clt import CltResult
from hdr4me.evaluation.document import Block, Heading, Table, Text
from hdr4me.evaluation.errata import errata
from hdr4me.evaluation.figures.table2 import COLUMNS as TABLE2_COLUMNS
from hdr4me.evaluation.figures.table2 import table2
from hdr4me.evaluation.outcomes import CellResult
from hdr4me.evaluation.readings import READINGS, Reading
from hdr4me.evaluation.report_figures import density_blocks, figure4_blocks, figure5_blocks
from hdr4me.evaluation.results import Results

__all__ = [
    "ERRATA_LEAD",
    "ERRATA_TITLE",
    "TITLE",
    "About",
    "blocks_of",
    "errata_blocks",
    "lead_of",
    "support_of",
]

TITLE = "HDR4ME: the evaluation, reproduced"
ERRATA_TITLE = "Errata of the paper"
ERRATA_LEAD = (
    "What the paper prints, what is right and why. This page is made from `hdr4me.evaluation.errata`, which computes "
    "its numbers."
)


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


def support_of(verdicts: Sequence[Verdict]) -> Counter[str]:
    """For each reading, how many of the claims that depend on λ* hold under it: our measure of “closest”."""
    return Counter({r.name: 0 for r in READINGS}) + Counter(
        name for verdict in verdicts for name in verdict.readings_for
    )


def lead_of(verdicts: Sequence[Verdict]) -> str:
    """One sentence for the top of the page."""
    words = Counter(verdict.verdict for verdict in verdicts)
    return (
        f"Of {len(verdicts)} claims checked, {words['reproduced']} are reproduced, {words['depends on the reading']} "
        f"depend on how λ* is read, {words['not reproduced']} are not reproduced."
    )


def blocks_of(results: Results, verdicts: Sequence[Verdict], about: About) -> list[Block]:
    """The whole report; parts that were not run are left out."""
    parts: list[Block] = [*_opening(results, about)]
    if verdicts:
        parts += _claims(verdicts, about.reading)
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
        Table(TABLE2_COLUMNS, table2()),
    ]
    if results.has("fig4"):
        parts += figure4_blocks(results, about.reading)
    if results.has("fig5"):
        parts += figure5_blocks(results, about.reading)
    if verdicts:
        parts += _readings(verdicts, about.reading)
    parts += [Heading("Errata, with derivations"), *errata_blocks(), *_making(results, about)]
    return parts


def _opening(results: Results, about: About) -> list[Block]:
    parts: list[Block] = [
        Text(
            "The paper: *Utility Analysis and Enhancement of LDP Mechanisms in High-Dimensional Space* (HDR4ME), "
            "sections IV-C and VI. Everything below was computed by the command at the end of this page; no number and "
            "no verdict is written by hand.".replace("*", "“", 1).replace("*", "”", 1)
        )
    ]
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


def _claims(verdicts: Sequence[Verdict], reading: Reading) -> list[Block]:
    rows = []
    for item in verdicts:
        under = (
            f"{len(item.readings_for)} of {item.readings_all} readings"
            if item.readings_all
            else "λ* plays no part"
        )
        rows.append([item.name, item.verdict, under, "yes" if item.holds else "no"])
    details: list[Block] = []
    for item in verdicts:
        details += [
            Heading(f"{item.name} ({item.where})", 3),
            Text(f"“{item.text}”"),
            Text(f"**{item.verdict.capitalize()}.** Test: {item.test}. Found: {item.evidence}. {item.why}"),
        ]
    return [
        Heading("The claims"),
        Text(
            "“Reproduced”: the test holds under every reading of λ*; “not reproduced”: under none; “depends on the "
            f"reading”: under some. The last column is the reading of the figures, {reading.title}."
        ),
        Table(["claim", "verdict", "holds under", "in the figures' reading"], rows),
        *details,
    ]


def _readings(verdicts: Sequence[Verdict], reading: Reading) -> list[Block]:
    counted = support_of(verdicts)
    total = sum(1 for verdict in verdicts if verdict.readings_all)
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
            "re-calibration hold under it."
        ),
        Table(["reading", "name", "claims that hold"], rows),
    ]


def errata_blocks() -> list[Block]:
    """Each erratum: printed, right, derivation, numbers."""
    parts: list[Block] = []
    for number, item in enumerate(errata(), start=1):
        parts += [
            Heading(f"{number}. {item.title}", 3),
            Text(f"{item.where}. **Printed:** {item.printed}. **Right:** {item.right}."),
            Text(item.derivation),
        ]
        if item.numbers:
            parts.append(Table(["", "value"], [[what, f"{value:.6g}"] for what, value in item.numbers]))
    return parts


def _making(results: Results, about: About) -> list[Block]:
    ways: dict[tuple[str, str], float] = {}
    finished: list[CellResult | CltResult] = [*results.clt, *results.cells]
    for result in finished:
        key = (
            f"{result.cell.figure.replace('fig', 'Figure ')}, {MECHANISMS[result.cell.mechanism]}",
            result.how,
        )
        ways[key] = ways.get(key, 0.0) + result.seconds
    rows: list[list[object]] = [[where, how, f"{seconds:.1f} s"] for (where, how), seconds in ways.items()]
    lines: list[list[object]] = [
        ["command", about.command],
        ["scale", about.scale],
        ["seed", str(about.seed)],
    ]
    lines += [["workers", str(about.workers)], ["run time", f"{about.seconds:.0f} s"]]
    lines += [[name, value] for name, value in about.machine.items()]
    return [
        Heading("How it was made"),
        Text(
            "Shortcuts draw from exactly the same distribution as perturbing every single value would; the tests "
            "compare them with the plain mechanisms. Times are of one core."
        ),
        Table(["cells", "how", "time"], rows),
        Table(["", "this run"], lines),
    ]
