"""The paper, item by item: where each definition, lemma, equation, table, figure, setting and assertion is implemented.

`IN_THE_PAPER` counts the numbered items of the paper, its settings and its assertions. `items.csv` maps each of them to
a function, a command, claims and errata; the verdicts come from the claims of a run. An item of the kind Background is
a sentence about other work, which no code can examine.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from hdr4me.pages.document import Block, Table, section
from hdr4me.paper.claims import Verdict
from hdr4me.paper.errata import errata

# The numbered environments of the paper (a test counts them in its LaTeX source), and its settings and asserting
# sentences as counted in three readings. Within its kind an item has the number of its place in the text.
IN_THE_PAPER = {
    "Definition": 1, "Lemma": 5, "Theorem": 4, "Equation": 42, "Table": 2, "Figure": 5, "Setting": 16, "Assertion": 85,
    "Background": 13,
}  # fmt: skip
TITLE = "The paper, item by item"


@dataclass(frozen=True)
class Item:
    """One item of the paper: symbol and content, `module:function`, the command, and its claims and errata by name."""

    kind: str
    where: str
    content: str
    code: str
    claims: tuple[str, ...]
    errata: tuple[str, ...]
    command: str


def _read() -> tuple[Item, ...]:
    rows = csv.DictReader(
        io.StringIO(files("hdr4me.paper").joinpath("items.csv").read_text(encoding="utf-8"))
    )
    split = ("claims", "errata")
    return tuple(
        Item(**{name: tuple(text.split()) if name in split else text for name, text in row.items()})  # type: ignore[arg-type]
        for row in rows
    )


ITEMS = _read()


def items_lead() -> str:
    """The number of items in the paper and the number mapped."""
    mapped, there = len(ITEMS), sum(IN_THE_PAPER.values())
    parts = Counter(item.kind for item in ITEMS)
    kinds = ", ".join(f"{kind} {parts[kind]} of {number}" for kind, number in IN_THE_PAPER.items())
    return f"Items in the paper: {there}. Items mapped: {mapped} ({kinds})."


def _without_claim(item: Item) -> str:
    """What the column of verdicts has for an item none of whose claims was judged."""
    if item.claims:
        return "not run"
    if item.errata:
        return "see the erratum"
    return "implemented" if item.code else "about other work"


def items_blocks(verdicts: Sequence[Verdict], others: Mapping[int, Mapping[str, str]]) -> list[Block]:
    """A table for each kind of item; `others` has the verdicts of runs with other seeds."""
    by_name = {verdict.name: verdict for verdict in verdicts}
    numbers = {item.name: number for number, item in enumerate(errata(), start=1)}
    blocks: list[Block] = []
    columns = ["", "where", "symbol or content", "module: function", "hdr4me reproduce", "verdict", "erratum"]
    groups: dict[str, list[Item]] = {}
    for item in ITEMS:
        groups.setdefault(item.kind, []).append(item)
    for kind in IN_THE_PAPER:
        rows = []
        for number, item in enumerate(groups[kind], start=1):
            words = dict.fromkeys(by_name[name].verdict for name in item.claims if name in by_name)
            verdict = "; ".join(words) or _without_claim(item)
            wrong = ", ".join(str(numbers[name]) for name in item.errata)
            rows.append(
                [
                    number,
                    item.where,
                    item.content,
                    f"`{item.code}`" if item.code else None,
                    item.command or None,
                    verdict,
                    wrong or None,
                ]
            )
        plural = len(rows) > 1 and kind != "Background"
        blocks += section(f"{kind}s" if plural else kind, Table(columns, rows))
    if others:
        seeds = sorted(others)
        rows = [
            [f"`{v.name}`", v.verdict, *(others[seed].get(v.name, "–") for seed in seeds)] for v in verdicts
        ]
        blocks += section(
            "Every claim with a second seed",
            "The verdicts of this run and of runs with other seeds at the same scale. Each test of a distribution "
            "(Figures 2 and 3) rejects a correct prediction with a probability of 1 %.",
            Table(["claim", "this run", *(f"seed {seed}" for seed in seeds)], rows),
        )
    return blocks
