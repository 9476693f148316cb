"""The gallery: every example runs and draws; pictures and notebooks are there for all that name them."""

import json
import runpy
import sys
from pathlib import Path

import gallery
import pytest
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]

NAMES = sorted(gallery.titles())


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.spark] if n == "on_spark" else []) for n in NAMES]
)
def test_an_example_draws_its_figure(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The example on Spark uses the session that is open in this process, and leaves it open for other tests."""
    if name == "on_spark":
        session = request.getfixturevalue("spark_session")
        monkeypatch.setattr(type(session), "stop", lambda self: None)
    target = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(target)])
    made = runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert target.stat().st_size > 5000
    assert isinstance(made.get("figure", Figure()), Figure)


def test_each_example_has_its_figure_in_the_gallery() -> None:
    assert len(NAMES) >= 10
    for name in NAMES:
        assert (ROOT / "docs" / "gallery" / f"{name}.png").stat().st_size > 5000
        assert gallery.titles()[name].rstrip().endswith((".", "?"))


@pytest.mark.parametrize("name", gallery.NOTEBOOKS)
def test_a_notebook_is_its_example(name: str) -> None:
    kept = (ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8")
    assert kept == gallery.notebook(name), "python docs/_made/gallery.py notebooks"
    cells = json.loads(kept)["cells"]
    assert cells[-1]["source"] == ["figure"] or cells[-1]["source"] == "figure"
    for cell in cells:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), name, "exec")
