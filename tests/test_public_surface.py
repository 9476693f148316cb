"""Every public name is documented: what it is, its parameters, what it returns and raises, an example that runs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from types import FunctionType
from typing import Any

import pytest

import hdr4me as hd

CLASSES = [name for name in hd.__all__ if inspect.isclass(getattr(hd, name))]
EVERYDAY = {
    "Answer",
    "Client",
    "Comparison",
    "Ledger",
    "PermanentClient",
    "Plan",
    "Report",
    "Schema",
    "Survey",
    "Tally",
}
"""What a user holds in hand; the other classes are written for authors of channels, dimensions and statistics."""
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


def refuses(found: Callable[..., Any]) -> bool:
    """Whether the function's own code raises InvalidInput."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    return any("InvalidInput" in ast.unparse(item) for item in raised)


@pytest.mark.parametrize("name", hd.__all__)
def test_a_public_name_says_what_it_takes(name: str) -> None:
    found = getattr(hd, name)
    text = text_of(found)
    assert text
    if inspect.ismodule(found):
        return
    given = parameters(found)
    assert len(given) <= 2 or has("Parameters", text), f"{name} has {given}"
    assert ">>> " in text, f"{name} has no example"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_returns_and_refuses(name: str) -> None:
    found = getattr(hd, name)
    text = text_of(found)
    if inspect.signature(found).return_annotation not in (None, "None"):
        assert has("Returns", text)
    if refuses(found):
        assert has("Raises", text)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_of_a_public_class_has_a_sentence(member: Any) -> None:
    """Its own, or that of the method which it overrides."""
    assert text_of(member).strip()


@pytest.mark.parametrize("member", METHODS)
def test_a_method_says_what_it_takes_and_refuses(member: Callable[..., Any]) -> None:
    text, given = text_of(member), parameters(member)
    assert len(given) <= 2 or has("Parameters", text), given
    assert not refuses(member) or has("Raises", text)


@pytest.mark.parametrize("member", [case for case in METHODS if str(case.id).partition(".")[0] in EVERYDAY])
def test_a_method_of_an_everyday_class_shows_what_it_returns(member: Callable[..., Any]) -> None:
    if inspect.signature(member).return_annotation in (None, "None"):
        return
    assert has("Returns", text_of(member))
    assert ">>> " in text_of(member)


@pytest.mark.parametrize("member", METHODS)
def test_the_parameters_that_are_described_are_those_that_there_are(member: Callable[..., Any]) -> None:
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


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = hd.nothing_like_it
    assert dir(hd) == sorted(hd.__all__)


def test_every_name_that_can_be_loaded_is_listed() -> None:
    homes: dict[str, str] = vars(hd)["_HOMES"]
    assert {*homes, *vars(hd)["_ROOMS"]} == set(hd.__all__)
