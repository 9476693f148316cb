"""The commands of the tutorials run as they stand, in the order of the page, each page in a folder of its own."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hdr4me.cli.app import app

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("first-collection", "from-a-csv", "paper")
_BLOCK = re.compile(r"^```(toml|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_tutorial(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorials" / f"{name}.md").read_text("utf-8")
    ran = 0
    for kind, block in _BLOCK.findall(text):
        if kind == "toml":
            Path(block.splitlines()[0].removeprefix("# ")).write_text(block, encoding="utf-8")
        elif kind == "python" and not block.startswith(">>>"):  # what is no doctest runs here
            exec(block, {})
        elif kind == "console":
            for line in block.splitlines():
                command, *arguments = shlex.split(line.removeprefix("$ "))
                assert command == "hdr4me", line
                done = CliRunner().invoke(app, arguments)
                assert done.exit_code == 0, f"{line}\n{done.output}"
                ran += 1
    assert ran


def test_every_page_is_listed_once() -> None:
    """A page that no list of pages names would be lost; Sphinx says so too, as an error."""
    listed = "\n".join(
        path.read_text("utf-8") for path in DOCS.rglob("*.md") if "{toctree}" in path.read_text("utf-8")
    )
    for path in DOCS.glob("*.md"):
        if path.stem != "index":
            assert re.search(rf"^(\.\./)?{path.stem}$", listed, re.MULTILINE), path.name
