"""The pages that are made from the source: the reference of Python names, and that of commands."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]


_INDEX = "# Reference\n\n```{toctree}\n:maxdepth: 2\npython\ncommands\n```\n"


def setup(app: Any) -> dict[str, Any]:
    """Write both pages before Sphinx looks for its sources."""
    app.connect("config-inited", lambda app, config: write())
    app.connect("autodoc-process-docstring", _bars)
    app.connect("source-read", _outside)
    return {"parallel_read_safe": True}


_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:(?:\.\./)+(?:benchmarks|clients|src|tests|examples|notebooks|[A-Z]+\.md)[^)]*|(?:\.\./)*deploy/[^)]*)\)"
)


def _outside(app: Any, document: str, source: list[str]) -> None:
    """Links to files of the repository that are no pages: their names are shown."""
    source[0] = _OUTSIDE.sub(r"\1", source[0])


def _bars(app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """|x| is an absolute value in a docstring, not a substitution."""
    lines[:] = [line if line.lstrip().startswith(">>>") else line.replace("|", "\\|") for line in lines]


def write() -> None:
    """The pages, written only if they changed."""
    import gallery

    pages = {
        "reference/index.md": _INDEX,
        "reference/python.rst": python_page(),
        "reference/commands.md": commands_page(),
    }
    pages["gallery/index.md"] = gallery.index_page()
    pages |= {f"gallery/{name}.md": gallery.page(name) for name in gallery.titles()}
    for name, text in pages.items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")


def python_page() -> str:
    """Every public name by package, from its docstring."""
    import hdr4me as hd
    from hdr4me._lazy import modules_of

    packages: dict[str, list[str]] = {}
    for name, home in modules_of("hdr4me").items():
        if not inspect.ismodule(getattr(hd, name)):
            packages.setdefault(home.removeprefix("hdr4me."), []).append(name)
    parts = [
        _title("Python", "="),
        "All of these are attributes of ``hdr4me``, imported when they are first used.",
    ]
    for package in sorted(packages):
        parts.append(_title(package, "-"))
        for name in sorted(packages[package]):
            thing = getattr(hd, name)
            kind = (
                "autoclass" if inspect.isclass(thing) else "autofunction" if callable(thing) else "autodata"
            )
            members = "\n   :members:" if kind == "autoclass" else ""
            parts.append(f".. currentmodule:: hdr4me.{package}\n\n.. {kind}:: {name}{members}")
    return "\n\n".join(parts) + "\n"


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}"


def commands_page() -> str:
    """Every command with its help, as the terminal shows it."""
    import typer.main

    from hdr4me.cli.app import app

    group: Any = typer.main.get_command(app)
    parts = [
        "# Commands",
        "`hdr4me COMMAND --help` prints the same. Bad input: exit code 2 and one plain line.",
    ]
    for name, command in sorted(group.commands.items()):
        parts += _command(f"hdr4me {name}", command)
    return "\n\n".join(parts) + "\n"


def _command(path: str, command: Any) -> list[str]:
    if hasattr(command, "commands"):
        own = sorted(command.commands.items())
        return [part for name, inner in own for part in _command(f"{path} {name}", inner)]
    context = command.make_context(path, [], resilient_parsing=True)
    rows = ["| argument or option | meaning |", "|---|---|"]
    for _, *record in command.records(context):
        name, text = (x.replace("|", "\\|").replace("\n", " ") for x in record)
        rows.append(f"| `{name}` | {text.replace('<', '&lt;')} |")
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    shown = [
        f"```text\n{part.removeprefix('Example: ')}\n```" if part.startswith("Example: ") else part
        for part in paragraphs
    ]
    return [f"## {path}", *shown, "\n".join(rows)]
