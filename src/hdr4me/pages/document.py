"""A document as a list of blocks, written as one HTML page or as Markdown with separate figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hdr4me.pages import html


@dataclass(frozen=True)
class Heading:
    """The title of a section (level 2) or of a subsection (level 3)."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; `code` between backticks, **strong** between double asterisks."""

    text: str


@dataclass(frozen=True)
class Table:
    """Columns and rows; a cell that is a verdict is colored."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Picture:
    """A figure, by its file name, and a caption."""

    name: str
    caption: str


Block = Heading | Text | Table | Picture


def section(title: str, *parts: str | Block, level: int = 2) -> list[Block]:
    """A heading and its content; a string is a paragraph."""
    return [Heading(title, level), *(Text(part) if isinstance(part, str) else part for part in parts)]


_VERDICTS = {
    "#2e7d4f": ("reproduced", "right"),
    "#b7791f": (
        r"depends on the choice of λ\*", r"holds in part \([^)]*\)", "needs the COV-19 data",
        "holds in the paper.{1,6}s settings, false in general", "rounded",
    ),
    "#b23a2e": ("not reproduced", "wrong"),
}  # fmt: skip
_STYLE = (
    "<style>th, td { text-align: left; vertical-align: top; padding: .3rem .45rem; } table { font-size: .8rem; } h3 "
    "{ font-size: 1.05rem; margin: 1.6rem 0 .3rem; } .verdict { color: #fff; border-radius: 3px; padding: .05rem "
    ".45rem; font-size: .8rem; white-space: nowrap; }</style>"
)


def to_html(title: str, lead: str, blocks: Sequence[Block], figures: Mapping[str, str]) -> str:
    """A self-contained page; `figures` maps names to SVG."""
    return html.page(title, lead, _STYLE, *(_html(block, figures) for block in blocks))


def _html(block: Block, figures: Mapping[str, str]) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", html.paragraph(block.text))
    if isinstance(block, Picture):
        return f"<figure>{figures[block.name]}<figcaption>{escape(block.caption)}</figcaption></figure>"
    table = html.table(block.columns, block.rows)
    for color, words in _VERDICTS.items():
        badge = rf"<td><span class='verdict' style='background:{color}'>\1</span></td>"
        table = re.sub(rf"<td class='text'>({'|'.join(words)})</td>", badge, table)
    return table


def to_markdown(title: str, lead: str, blocks: Sequence[Block]) -> str:
    """The blocks as Markdown; figures are links to PNG files."""
    return "\n\n".join([f"# {title}", lead, *(_markdown(block) for block in blocks)]) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.name}.png)\n\n{block.caption}"
    lines = [block.columns, ["---"] * len(block.columns), *block.rows]
    return "\n".join(
        "| " + " | ".join(html.cell_text(item).replace("|", "\\|") for item in line) + " |" for line in lines
    )
