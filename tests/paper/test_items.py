"""The paper, item by item: every item is mapped, and every reference exists."""

from __future__ import annotations

import os
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from hdr4me.paper.claims import CLAIMS, judge
from hdr4me.paper.errata import errata
from hdr4me.paper.items import IN_THE_PAPER, ITEMS, items_blocks, items_lead
from hdr4me.paper.methods import DEFAULT
from hdr4me.paper.studies import TARGETS


def test_every_item_of_the_paper_is_mapped():
    assert Counter(item.kind for item in ITEMS) == IN_THE_PAPER
    assert len({(item.kind, item.content) for item in ITEMS}) == len(ITEMS)
    assert f"Items in the paper: {len(ITEMS)}. Items mapped: {len(ITEMS)} " in items_lead()


@pytest.mark.skipif("PAPER_SOURCE" not in os.environ, reason="PAPER_SOURCE is not a LaTeX file of the paper")
def test_the_numbered_items_are_those_of_the_source():
    """The source is not part of this repository: PAPER_SOURCE=hdr4me.tex pytest tests/paper/test_items.py."""
    text = re.sub(r"(?<!\\)%.*", "", Path(os.environ["PAPER_SOURCE"]).read_text(encoding="utf-8"))
    kinds = {"align": "Equation"}
    found = Counter(
        kinds.get(name, name.capitalize())
        for name in re.findall(r"\\begin\{(definition|lemma|theorem|equation|align|table|figure)\*?\}", text)
    )
    found["Equation"] -= len(re.findall(r"\\begin\{align\*\}", text))
    numbered = ("Definition", "Lemma", "Theorem", "Equation", "Table", "Figure")
    assert {kind: found[kind] for kind in numbered} == {kind: IN_THE_PAPER[kind] for kind in numbered}


def test_only_sentences_about_other_work_have_no_code():
    for item in ITEMS:
        assert bool(item.code) == bool(item.command) == (item.kind != "Background"), item.content


def test_every_function_exists():
    for item in ITEMS:
        if item.kind == "Background":
            continue
        module, _, name = item.code.partition(":")
        found = import_module(f"hdr4me.{module}")
        for part in name.split("."):
            found = getattr(found, part)


def test_every_claim_and_erratum_belongs_to_an_item():
    assert {name for item in ITEMS for name in item.claims} == {claim.name for claim in CLAIMS}
    assert {name for item in ITEMS for name in item.errata} == {item.name for item in errata()}
    assert {item.command for item in ITEMS if item.command} <= set(TARGETS)


def test_the_page_has_verdicts_and_other_seeds(results):
    verdicts = judge(CLAIMS, results, DEFAULT)
    tables = [block for block in items_blocks(verdicts, {2: {"lemma-2": "x"}}) if hasattr(block, "rows")]
    assert sum(len(table.rows) for table in tables[:-1]) == len(ITEMS)
    words = {row[-2] for table in tables[:-1] for row in table.rows}
    assert "holds in the paper's settings, false in general" in words
    assert tables[-1].columns[-1] == "seed 2"
    assert {row[0]: row[-1] for row in tables[-1].rows}["`lemma-2`"] == "x"


def test_an_item_whose_claims_were_not_run_says_so():
    tables = [block for block in items_blocks([], {}) if hasattr(block, "rows")]
    found = [row[-2] for table in tables for row in table.rows]
    for item, word in zip(
        sorted(ITEMS, key=lambda item: list(IN_THE_PAPER).index(item.kind)), found, strict=True
    ):
        assert (word == "not run") == bool(item.claims), item.content
        assert (word == "about other work") == (item.kind == "Background"), item.content
