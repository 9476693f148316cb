"""Every public name is documented, with its parameters where it has more than two."""

from __future__ import annotations

import inspect

import pytest

import hdr4me as hd

RESULTS = {"Deviation", "Plan", "Recalibration"}
"""Made by functions, not by users: their attributes are described instead."""


@pytest.mark.parametrize("name", sorted(set(hd.__all__) - RESULTS))
def test_a_public_name_says_what_it_takes(name: str) -> None:
    found = getattr(hd, name)
    text = inspect.getdoc(found) or ""
    assert text
    if inspect.ismodule(found):
        return
    try:
        parameters = [p for p in inspect.signature(found).parameters if p not in ("self", "cls")]
    except ValueError:
        return
    assert len(parameters) <= 2 or "Parameters\n----------" in text, f"{name} has {parameters}"


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = hd.nothing_like_it
    assert dir(hd) == sorted(hd.__all__)
