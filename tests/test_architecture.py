"""Only a channel's own package asks which channel it is, and only surveys and readers ask what a dimension reads.

Everything else calls a method. `architecture.json` lists the places that still ask, by file: a number may only fall,
and the list is to become empty. `python tests/test_architecture.py` writes it anew, and refuses if a sum has risen.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "hdr4me"
LIST = Path(__file__).with_name("architecture.json")
ALLOWED = {"channels": {"channels"}, "kinds": {"channels", "survey", "io"}}
"""The packages that may ask for the class of a channel, or compare `.input_kind` and `.kind`."""


def channel_classes() -> set[str]:
    """The classes that `hdr4me.channels` defines, apart from what every channel is."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "channels").rglob("*.py"))
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)} - {
        "Channel"
    }


def names_of_channels(tree: ast.AST, classes: set[str]) -> set[str]:
    """What a module calls the channel classes that it imports."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hdr4me.channels")
        for alias in node.names
        if alias.name in classes
    }


def asks_for_channel(node: ast.AST, names: set[str]) -> bool:
    """isinstance(…, Table), or a `case Table(…)`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        asked: ast.AST = node.args[1]
    elif isinstance(node, ast.MatchClass):
        asked = node.cls
    else:
        return False
    return any(
        (isinstance(part, ast.Name) and part.id in names)
        or (isinstance(part, ast.Attribute) and ast.unparse(part.value).endswith("channels"))
        for part in ast.walk(asked)
    )


def compares_kind(node: ast.AST) -> bool:
    """`.input_kind == …`, `.kind in …`, or a `match` on one of them."""
    if isinstance(node, ast.Match):
        sides = [node.subject]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
        sides = [node.left, *node.comparators]
    else:
        return False
    return any(isinstance(side, ast.Attribute) and side.attr in ("input_kind", "kind") for side in sides)


def places() -> Iterator[tuple[str, str]]:
    """(rule, file) for every place that breaks a rule."""
    classes = channel_classes()
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = names_of_channels(tree, classes)
        for node in ast.walk(tree):
            for rule, broken in (
                ("channels", asks_for_channel(node, names)),
                ("kinds", compares_kind(node)),
            ):
                if broken and file.parts[0] not in ALLOWED[rule]:
                    yield rule, file.as_posix()


def found() -> dict[str, dict[str, int]]:
    """How many places of each file break each rule."""
    counts = Counter(places())
    return {rule: {file: n for (r, file), n in sorted(counts.items()) if r == rule} for rule in ALLOWED}


def listed() -> dict[str, dict[str, int]]:
    return json.loads(LIST.read_text(encoding="utf-8"))


def test_no_more_places_ask_for_a_class_or_a_kind() -> None:
    more = [
        f"{file}: {n} places break the rule of {rule}, {listed()[rule].get(file, 0)} are listed"
        for rule, files in found().items()
        for file, n in files.items()
        if n > listed()[rule].get(file, 0)
    ]
    assert not more, "\n".join(more)


def test_what_is_searched_for_is_found() -> None:
    asking = "isinstance(c, int | T)", "d.input_kind == 'x'", "'x' in y.input_kind", "c.kind in 'ab'"
    tree = ast.parse("\n".join(["from hdr4me.channels import Table as T", *asking]))
    names = names_of_channels(tree, channel_classes())
    assert names == {"T"}
    assert sum(asks_for_channel(node, names) for node in ast.walk(tree)) == 1
    assert sum(compares_kind(node) for node in ast.walk(tree)) == 3


if __name__ == "__main__":
    new, old = found(), listed()
    for rule, files in new.items():
        assert sum(files.values()) <= sum(old[rule].values()), f"{rule}: the sum has risen"
    LIST.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
