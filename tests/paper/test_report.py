"""The report: complete, self-contained, labeled."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from hdr4me.pages.document import Table, to_markdown
from hdr4me.paper.claims import CLAIMS, judge
from hdr4me.paper.figures import draw
from hdr4me.paper.methods import DEFAULT
from hdr4me.paper.report import blocks_of, publish
from hdr4me.paper.studies import COLUMNS, Results


@pytest.fixture(scope="module")
def published(results, about, tmp_path_factory):
    output = tmp_path_factory.mktemp("report")
    verdicts = judge(CLAIMS, results, DEFAULT)
    return output, publish(results, verdicts, about, output), verdicts


def test_every_file_named_is_there_and_no_other(published):
    output, files, _ = published
    assert sorted(path.name for path in output.iterdir()) == files
    assert {f"figure-{k}.{kind}" for k in (2, 3, 4, 5) for kind in ("svg", "png", "pdf")} <= set(files)
    assert {"figure-4-paper.svg", "figure-5-paper.svg", "items.md"} <= set(files)


def test_the_paper_only_figures_have_the_three_curves(results):
    found = draw(results, DEFAULT)
    for name, others in (("figure-4-paper", False), ("figure-4", True)):
        labels = {text.get_text() for legend in found[name].legends for text in legend.get_texts()}
        assert {"current aggregation (naive)", "HDR4ME, L1", "HDR4ME, L2"} <= labels
        assert ("auto (ours)" in labels) == others
        first = found[name].axes[0]
        assert len(first.containers) == 3  # error bars
        assert "categorical" in found[name].axes[-1].get_xlabel()


def test_the_page_is_self_contained_and_complete(published, about):
    output, _, verdicts = published
    page = (output / "report.html").read_text()
    assert page.count("<svg") == 6
    assert not re.search(r"""(?:src|href)\s*=\s*["']https?:""", page)
    assert str(output) not in page
    assert about.command in page
    for verdict in verdicts:
        assert verdict.name in page
    assert page.count("class='verdict'") >= len(verdicts)
    for title in ("Figure 2", "Figure 3", "Table II", "Figure 4", "Figure 5", "Errata", "How it was made"):
        assert title in page


def test_the_stand_in_is_named_wherever_it_is_shown(published, results, about):
    output, _, verdicts = published
    bare = re.compile(r"(?<!needs the )COV-19(?! \(stand-in\)| data are replaced by a stand-in)")
    assert not bare.search((output / "figure-4.svg").read_text())
    assert not bare.search((output / "figure-5.svg").read_text())
    with (output / "numbers.csv").open() as lines:
        for row in csv.DictReader(lines):
            assert (row["stand_in"] == "True") == (row["data"] == "COV-19 (stand-in)")
    tables = [block for block in blocks_of(results, verdicts, about) if isinstance(block, Table)]
    assert not bare.search(to_markdown("", "", tables))


def test_numbers_are_the_same_in_csv_and_parquet(published, results):
    output, _, _ = published
    with (output / "numbers.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    table = pq.read_table(output / "numbers.parquet")
    assert tuple(rows[0]) == tuple(table.column_names) == COLUMNS
    assert [float(row["mse"]) for row in rows] == table["mse"].to_pylist()
    assert len(rows) == sum(len(result.outcomes) for result in results.cells)


def test_cells_come_back_from_the_csv(published, results, read_back):
    output, _, _ = published
    back = replace(read_back(output), clt=results.clt)
    assert judge(CLAIMS, back, DEFAULT) == judge(CLAIMS, results, DEFAULT)


def test_claims_are_written_with_their_readings(published):
    output, _, verdicts = published
    document = json.loads((output / "claims.json").read_text())
    assert [item["verdict"] for item in document["claims"]] == [v.verdict for v in verdicts]


@pytest.mark.no_cover
def test_the_same_numbers_make_the_same_files(results, about, tmp_path):
    """Without Figure 4, which takes the longest to draw and is drawn by the same code as Figure 5."""
    some = Results(tuple(r for r in results.cells if r.cell.figure == "fig5"), results.clt)
    verdicts = judge(CLAIMS, some, DEFAULT)
    files = publish(some, verdicts, about, tmp_path / "one")
    assert publish(some, verdicts, about, tmp_path / "two") == files
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_part_alone_is_a_report_too(results, about, tmp_path):
    alone = Results((), tuple(r for r in results.clt if r.cell.figure == "fig3"))
    files = publish(alone, judge(CLAIMS, alone, DEFAULT), about, tmp_path)
    assert "figure-3.svg" in files
    assert "figure-4.svg" not in files
    assert "numbers.csv" not in files
    publish(Results((), ()), [], about, tmp_path / "none")
    assert "Table II" in (tmp_path / "none" / "report.md").read_text()
