"""Every public name is documented: a sentence, more than two parameters described, an example that runs."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import hdr4me as hd
import hdr4me.engines
import hdr4me.io

CLASSES = [name for name in hd.__all__ if inspect.isclass(getattr(hd, name))]
FUNCTIONS = [name for name in hd.__all__ if inspect.isfunction(getattr(hd, name))]


def members(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class that this package defines."""
    for name in dir(cls):
        raw = inspect.getattr_static(cls, name)
        if not name.startswith("_") and isinstance(
            raw, FunctionType | classmethod | staticmethod | property | cached_property
        ):
            yield name, getattr(cls, name) if isinstance(raw, classmethod | staticmethod) else raw


METHODS = [
    pytest.param(member, id=f"{name}.{own}")
    for name in CLASSES
    for own, member in members(getattr(hd, name))
    if not isinstance(member, property | cached_property)
    and str(getattr(member, "__module__", "")).startswith("hdr4me")
]
MEMBERS = [
    pytest.param(member, id=f"{name}.{own}") for name in CLASSES for own, member in members(getattr(hd, name))
]


def text_of(found: Any) -> str:
    return inspect.getdoc(found) or ""


def parameters(found: Any) -> list[str]:
    return [p for p in inspect.signature(found).parameters if p not in ("self", "cls")]


def has(section: str, text: str) -> bool:
    return f"{section}\n{'-' * len(section)}\n" in text


@pytest.mark.parametrize("name", hd.__all__)
def test_a_public_name_documents_its_parameters(name: str) -> None:
    found = getattr(hd, name)
    text = text_of(found)
    assert text
    if inspect.ismodule(found):
        return
    given = parameters(found)
    assert len(given) <= 2 or has("Parameters", text), f"{name} has {given}"
    assert ">>> " in text, f"{name} has no example"


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_of_a_public_class_has_a_sentence(member: Any) -> None:
    """Its own, or that of the method which it overrides."""
    assert text_of(member).strip()


@pytest.mark.parametrize("member", METHODS)
def test_a_method_describes_more_than_two_parameters(member: Callable[..., Any]) -> None:
    given = parameters(member)
    assert len(given) <= 2 or has("Parameters", text_of(member)), given


@pytest.mark.parametrize("member", METHODS)
def test_only_existing_parameters_are_described(member: Callable[..., Any]) -> None:
    described = _described(text_of(member))
    assert described <= {name.lstrip("*") for name in parameters(member)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_describes_all_of_its_parameters(name: str) -> None:
    found = getattr(hd, name)
    described = _described(text_of(found))
    if described:
        assert described == set(parameters(found))


def _described(text: str) -> set[str]:
    """The names in the section Parameters: lines that are not indented, names between commas, before a colon."""
    if not has("Parameters", text):
        return set()
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    heads = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for line in heads for name in line.partition(":")[0].split(",")}


def test_an_unknown_name_is_an_error() -> None:
    name = "nothing_like_it"
    with pytest.raises(AttributeError, match=name):
        getattr(hd, name)
    assert dir(hd) == sorted(hd.__all__)


@pytest.mark.parametrize("package", [hd, hdr4me.io, hdr4me.engines], ids=lambda package: package.__name__)
def test_type_checkers_and_the_interpreter_read_one_list(package: ModuleType) -> None:
    """Every import of the stub is a public name, loaded from the module that the stub names."""
    stub = ast.parse(Path(str(package.__file__)).with_suffix(".pyi").read_text("utf-8"))
    imported = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname for node in imported for alias in node.names]
    assert sorted(map(str, names)) == package.__all__
    for node in imported:
        for alias in node.names:
            assert alias.name == alias.asname
            home = import_module(str(node.module))
            assert getattr(package, alias.name) is getattr(home, alias.name)


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, hdr4me; print([name for name in sys.modules if name.startswith('hdr4me.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['hdr4me._lazy']"
