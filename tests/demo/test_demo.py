"""The demonstration on a small panel, and its page."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hdr4me.demo import Demo, panel, panel_schema, run_demo, true_values
from hdr4me.pages.html import page, paragraph, table


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Demo, list[str]]:
    folder, said = tmp_path_factory.mktemp("demo"), list[str]()
    return folder, run_demo(folder, users=20_000, epsilon=2.0, seed=2, say=said.append), said


def test_it_writes_all_files(demo: tuple[Path, Demo, list[str]]) -> None:
    folder, _, said = demo
    names = {"records.parquet", "survey.json", "reports.parquet", "panel.tally", "report.html", "day.svg"}
    names |= {"_reports.parquet.quality.json", "_panel.tally.quality.json"}  # the data-quality reports
    assert {path.name for path in folder.iterdir()} == names
    assert len(said) == 5


def test_its_standard_errors_are_calibrated(demo: tuple[Path, Demo, list[str]]) -> None:
    """z-scores of 91 rows, nearly independent: their mean square is 1 ± 0.15, so 1.9 is six sigma (< 1e-8)."""
    _, made, _ = demo
    z = np.array([(row["estimate"] - row["true"]) / row["standard_error"] for row in made.rows])
    assert len(z) == 91
    assert 0.4 < np.mean(z**2) < 1.9
    assert made.coverage > 0.8
    assert "mean squared error" in made.advice


def test_the_page_is_self_contained(demo: tuple[Path, Demo, list[str]]) -> None:
    text = (demo[0] / "report.html").read_text()
    HTMLParser().feed(text)
    assert text.count("<svg") == 3
    assert "src=" not in text
    assert "http://" not in text.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    ET.fromstring((demo[0] / "day.svg").read_text())


def test_the_panel_has_missing_values_and_sixty_dimensions() -> None:
    schema = panel_schema()
    records = panel(2000, seed=1)
    assert len(schema) >= 60
    assert records.column_names == list(schema.names)
    assert all(column.null_count > 0 for column in records.columns)
    assert panel(2000, seed=1).equals(records)
    truth = true_values(records, schema)
    assert sum(truth["diet", name] for name in schema["diet"].categories) == pytest.approx(1.0)


def test_pieces_of_a_page_are_escaped() -> None:
    assert "&lt;b&gt;" in page("t", "<b>")
    assert paragraph("`x`") == "<p><code>x</code></p>"
    assert "<td>–</td><td>0.1235</td><td class='text'>a&amp;b</td><td>3</td>" in table(
        ["v", "w", "x", "y"], [[None, 0.123456, "a&b", 3], [1, 2, "c", 4]]
    )
