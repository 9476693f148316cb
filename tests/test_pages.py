"""The commands of the tutorials run as they stand, in the order of the page, each page in a folder of its own."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hdr4me.cli import output
from hdr4me.cli.app import app

DOCS = Path(__file__).parents[1] / "docs"
_WRAPPED = output._wrapped
PAGES = ("first-collection", "from-a-csv", "paper")
_BLOCK = re.compile(r"^```(toml|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_tutorial(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command succeeds. On a terminal of 80 columns no line is longer, and there are at most two notes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "_width", lambda stream: 80)
    notes: list[str] = []
    monkeypatch.setattr(output, "_wrapped", lambda text, width: notes.append(text) or _WRAPPED(text, width))
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
                printed = done.stdout.splitlines() + done.stderr.splitlines()
                page = arguments[0] == "explain"  # Markdown, which is not wrapped
                assert page or max(map(len, printed), default=0) <= 80, f"{line}\n{done.output}"
                said = [
                    note for note in notes if note in done.stderr.replace("\n", " ") and "wrote" not in note
                ]
                assert len(said) <= 2, f"{line}\n{said}"
                notes.clear()
    assert ran


def test_every_page_is_listed_once() -> None:
    """A page that no list of pages names would be lost; Sphinx says so too, as an error."""
    listed = "\n".join(
        path.read_text("utf-8") for path in DOCS.rglob("*.md") if "{toctree}" in path.read_text("utf-8")
    )
    for path in DOCS.glob("*.md"):
        if path.stem != "index":
            assert re.search(rf"^(\.\./)?{path.stem}$", listed, re.MULTILINE), path.name
