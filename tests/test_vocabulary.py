"""The words of this project are the field's: a list of words that must not come back.

Names, docstrings, comments, messages, pages and tests are scanned. Quotations of the paper in docs/errata.md (lines
that begin with ">") and the table of old names in CHANGELOG.md are exempt. Survey documents keep the keys of their
first version, which are in quotation marks ("n_sampled").
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = {
    r"fore(tell\w*|told)": "predict, predicted",
    r"told": "given, estimated, reported, specified",
    r"surely": "significantly",
    r"unsure": "not significant",
    r"whole numbers?": "integer",
    r"nought": "zero",
    r"stor(ey|eys)": "package, layer",
    r"programmes?": "program",
    r"fakes|false reports?": "poisoned reports",
    r"permanent (answers?|noise)|lasting (answers?|noise)": "memoized responses",
    r"honest (intervals?|errors?)|short intervals?": "conservative, approximate interval",
    r"heavy sets?": "k-subset response",
    r"crowds?": "shuffle model",
    r"lasting": "memoized",
    r"twins?": "discretized table",
    r"houses?|doors?|shel(f|ves)|seal(s|ed)?|stamped": "package, interface, snapshot, finalize, provenance",
    r"honest populations?|honest tall(y|ies)": "users who follow the protocol",
    r"somebody|anybody": "someone, anyone, users",
    r"accounts? of (the )?records": "data-quality report",
    r"by shrinking|\d times less": "leave out, or a sentence of statistics",
    r"taken[ _]for|(was|is|are|were) asked for": "treated as, requested",
    r"foreseen?|foresees": "predict, predicted",
    r"whilst|amongst|upon|hereby|thereof": "while, among, on",
    r"whoever|hitherto|merely": "anyone who, so far, only",
    r"n_(users|dims|draws)|(?<![\"'.`])n_sampled(?!:)": "users, dims, sampled, draws",
}
FOLDERS = "src", "docs", "clients", "examples", "tests", "benchmarks", "notebooks"
COMMON = {
    "ε",
    "Σ",
    "Π",
    "Δ",
    "π",
    "Φ",
    "χ",
}  # the budget, sums, products, differences, and standard mathematical symbols
SUFFIXES = {
    ".py",
    ".pyi",
    ".md",
    ".js",
    ".mjs",
    ".html",
    ".css",
    ".toml",
    ".json",
    ".yml",
    ".ipynb",
    ".csv",
    ".svg",
}
PATTERN = re.compile(rf"(?<![A-Za-z])({'|'.join(BANNED)})(?![A-Za-z])", re.IGNORECASE)
# Not prose: libraries of others, recorded bytes of surveys, and the code that makes them. This file has the list.
SKIPPED = {
    "node_modules", "vendor", "dist", "__pycache__", "golden", "golden.py", "vectors", "test_vocabulary.py",
}  # fmt: skip


def texts() -> list[Path]:
    """The files that a user or a contributor reads, generated ones too."""
    folders = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    return [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"] + [
        path
        for path in folders
        if path.suffix in SUFFIXES and not SKIPPED & set(path.parts) and ".min." not in path.name
    ]


def found_in(path: Path) -> list[str]:
    """The places of a file that have a banned word; quotations of errata and the table of old names do not count."""
    name, places, table = path.relative_to(ROOT).as_posix(), [], False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        table = name == "CHANGELOG.md" and (line == "### Renamed" if line.startswith("#") else table)
        if (name == "docs/errata.md" and line.startswith(">")) or (table and line.startswith("|")):
            continue
        places += [f"{name}:{number}: {match[0]!r}" for match in PATTERN.finditer(line)]
    return places


def test_no_word_of_the_list_is_used() -> None:
    read = texts()
    names = {path.relative_to(ROOT).as_posix() for path in read}
    assert {
        "README.md",
        "CHANGELOG.md",
        "docs/reproduction/report.md",
        "docs/reproduction/report.html",
    } <= names
    assert any(name.startswith("benchmarks/results/") for name in names)
    assert any(name.endswith(".ipynb") for name in names)
    places = [place for path in read for place in found_in(path)]
    assert not places, "\n".join(["Use the field's words:", *places])


@pytest.mark.parametrize(
    "line", ["as foretold", "Told by", "a whole number from 1", "harm_of_fakes", "n_users", "taken_for"]
)
def test_the_list_is_found(line: str) -> None:
    assert PATTERN.search(line)


@pytest.mark.parametrize("line", ["a story", "stored", "predicted", "users"])
def test_other_words_are_not(line: str) -> None:
    assert not PATTERN.search(line)


def test_a_symbol_has_one_meaning_in_the_errata_and_the_report() -> None:
    """The Greek symbols of both pages are in the glossary's table; s and a, which had two meanings, are not used."""
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8").partition("## Symbols of the paper")[2]
    listed = set(re.findall(r"[α-ωΑ-Ω]\*?", "".join(re.findall(r"^\| (.*?) \|", glossary, re.MULTILINE))))
    for page in ("docs/errata.md", "docs/reproduction/report.md"):
        text = (ROOT / page).read_text("utf-8")
        assert set(re.findall(r"[α-ωΑ-Ω]\*?", text)) <= listed | COMMON, page
        assert not re.findall(r"(?<![\w'’(-])[sa](?=[²³_√·/]| = )", text), page
