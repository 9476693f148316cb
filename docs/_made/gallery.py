"""The gallery: one page per example, with its figure; notebooks are created from the same scripts.

python docs/_made/gallery.py pictures     runs every example and writes its figure to docs/gallery
python docs/_made/gallery.py notebooks    writes the notebooks of `NOTEBOOKS` into notebooks/
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "docs" / "gallery"
NOTEBOOKS = ("which_epsilon", "which_mechanism", "hourly_curve", "median_income", "two_rounds")


def titles() -> dict[str, str]:
    """The question that each example answers: the first line of its docstring."""
    found = {}
    for path in sorted(EXAMPLES.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or path.stem
        found[path.stem] = text.splitlines()[0]
    return found


def index_page() -> str:
    """All figures, each with a link to its page."""
    cards = "\n".join(_card(name, title) for name, title in titles().items())
    listed = "\n".join(titles())
    lead = (
        "Each example is a question and a short script that draws the answer. The scripts are in `examples/`; five are "
        "also notebooks in `notebooks/`. Three use data of scikit-learn (`pip install scikit-learn`); the example on "
        "Spark needs `pip install '.[spark]'` and Java 17."
    )
    grid = f"::::{{container}} gallery\n{cards}\n::::"
    return f"# Gallery\n\n{lead}\n\n{grid}\n\n```{{toctree}}\n:hidden:\n{listed}\n```\n"


def _card(name: str, title: str) -> str:
    image = f"```{{image}} {name}.png\n:target: {name}.html\n:alt: {title}\n:width: 100%\n```"
    return f":::{{container}} card\n{image}\n[{title}]({name}.md)\n:::"


def page(name: str) -> str:
    """One example: figure and source."""
    source = (EXAMPLES / f"{name}.py").read_text("utf-8")
    return f"# {titles()[name]}\n\n![{name}]({name}.png)\n\n```{{code-block}} python\n{source}```\n"


def notebook(name: str) -> str:
    """The script as a notebook without outputs, with deterministic bytes."""
    import jupytext
    import nbformat

    made = jupytext.reads((EXAMPLES / f"{name}.py").read_text("utf-8"), fmt="py:percent")
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] == "code" and cell["source"].startswith("if __name__"):
            cell["source"] = "figure"
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return str(nbformat.writes(made)) + "\n"  # type: ignore[no-untyped-call]


def draw(name: str) -> None:
    """Run one example and keep its picture."""
    subprocess.run([sys.executable, EXAMPLES / f"{name}.py", PAGES / f"{name}.png"], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["pictures"]:
        PAGES.mkdir(exist_ok=True)
        for one in titles():
            draw(one)
    elif sys.argv[1:] == ["notebooks"]:
        (ROOT / "notebooks").mkdir(exist_ok=True)
        for one in NOTEBOOKS:
            (ROOT / "notebooks" / f"{one}.ipynb").write_text(notebook(one), encoding="utf-8")
    else:
        sys.exit(__doc__)
