"""Only a channel's own package asks which channel it is, and only surveys and readers ask what a dimension reads.

Everything else calls a method. The list of slow tests is checked here too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "hdr4me"
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


def test_no_place_asks_for_a_class_or_a_kind() -> None:
    asking = [f"{file} breaks the rule of {rule}" for rule, file in places()]
    assert not asking, "\n".join(asking)


def test_every_slow_test_exists() -> None:
    """A test that was renamed would otherwise be run by `make test` without a word."""
    root = Path(__file__).parents[1]
    lines = (root / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        file, _, name = line.partition("::")
        if not line.startswith("#"):
            assert (root / file).exists(), line
        if name:
            assert f"def {name.split('::')[-1]}(" in (root / file).read_text(encoding="utf-8"), line


def test_what_is_searched_for_is_found() -> None:
    asking = "isinstance(c, int | T)", "d.input_kind == 'x'", "'x' in y.input_kind", "c.kind in 'ab'"
    tree = ast.parse("\n".join(["from hdr4me.channels import Table as T", *asking]))
    names = names_of_channels(tree, channel_classes())
    assert names == {"T"}
    assert sum(asks_for_channel(node, names) for node in ast.walk(tree)) == 1
    assert sum(compares_kind(node) for node in ast.walk(tree)) == 3
