"""A search of the site for the field's terms finds the page about them."""

import json
import warnings
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

pytest.importorskip("sphinx")

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

DOCS = Path(__file__).parents[1] / "docs"
TITLE, TEXT = 15, 5  # the scores of Sphinx for a word of a title and of the text
PAGES = {
    "poisoning attack": "poisoning",
    "memoization": "over-time",
    "RAPPOR permanent randomized response": "over-time",
    "shuffle DP": "shuffling",
    "randomized response": "categories",
    "frequency oracle": "categories",
    "LDP": "concepts",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The search index of the pages, without the references of Python and of the commands."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for path in DOCS.glob("*.md"):
        copy(path, source)
    settings = {"extensions": ["myst_parser"], "root_doc": "index", "suppress_warnings": ["*"]}
    settings["myst_enable_extensions"] = ["attrs_inline", "colon_fence", "dollarmath"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the extension, not of the pages
        Sphinx(source, None, built, built / "trees", "html", settings, status=None, warning=None).build()
    text = (built / "searchindex.js").read_text("utf-8")
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def search(index: dict[str, Any], query: str) -> dict[str, int]:
    """The pages that have every word of the query, with their scores."""
    language = SearchEnglish({})
    scores: list[dict[int, int]] = []
    for word in query.lower().split():
        stem, found = language.stem(word), dict[int, int]()
        for table, score in (("terms", TEXT), ("titleterms", TITLE)):
            held = index[table].get(stem, [])
            found |= dict.fromkeys([held] if isinstance(held, int) else held, score)
        scores.append(found)
    pages = set.intersection(*map(set, scores))
    return {index["docnames"][page]: sum(found[page] for found in scores) for page in pages}


@pytest.mark.parametrize("query", PAGES)
def test_a_term_of_the_field_is_found(index: dict[str, Any], query: str) -> None:
    assert PAGES[query] in search(index, query)


def test_a_word_that_no_page_has_is_not_found(index: dict[str, Any]) -> None:
    assert not search(index, "zebra")
