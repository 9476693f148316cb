"""Writes docs/errata.md from `hdr4me.paper.errata`: python docs/_made/paper.py"""

from __future__ import annotations

from pathlib import Path

from hdr4me.pages.document import to_markdown
from hdr4me.paper.report import ERRATA_LEAD, ERRATA_TITLE, errata_blocks

if __name__ == "__main__":
    page = to_markdown(ERRATA_TITLE, ERRATA_LEAD, errata_blocks())
    Path(__file__).parents[1].joinpath("errata.md").write_text(page, encoding="utf-8")
