"""The registry: one line adds a mechanism, which every function then accepts by name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism, names, register_mechanism, registry
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.laplace import Laplace


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_known", dict(registry._known))
    registry._load_plugins.cache_clear()
    yield
    registry._load_plugins.cache_clear()


@pytest.mark.parametrize("name", registry.built_in())
def test_every_built_in_name_makes_a_mechanism(name: str) -> None:
    made = mechanism(name, epsilon=0.5)
    assert made.name == name
    assert made.epsilon == 0.5
    assert registry.registered(name).summary


def test_a_name_is_registered_in_a_line() -> None:
    register_mechanism("mine", Duchi)
    assert isinstance(mechanism("mine", epsilon=1.0), Duchi)
    assert "mine" in names()
    assert "mine" in names(planned=True)
    register_mechanism("mine", Duchi)  # twice the same is no error
    register_mechanism("quiet", "hdr4me.mechanisms.laplace:Laplace", planned=False)
    assert isinstance(mechanism("quiet", epsilon=1.0), Laplace)
    assert "quiet" not in names(planned=True)


@pytest.mark.parametrize(
    ("name", "factory", "match"),
    [("duchi", Laplace, "no other mechanism has"), ("my name", Duchi, "a word"), ("mine", 3, "callable"),
     ("mine", "no colon", "callable")],
)  # fmt: skip
def test_what_cannot_be_registered(name: str, factory: object, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        register_mechanism(name, factory)  # type: ignore[arg-type]


def test_an_installed_packages_entry_point_is_found_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module is imported only when its mechanism is made; existing names are not replaced."""
    points = [
        EntryPoint("theirs", "hdr4me.mechanisms.duchi:Duchi", registry.GROUP),
        EntryPoint("laplace", "no.such.module:Thing", registry.GROUP),
    ]
    asked = []

    def found(*, group: str) -> list[EntryPoint]:
        asked.append(group)
        return points

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    assert isinstance(mechanism("laplace", epsilon=1.0), Laplace)
    assert asked == []  # built-in names need no entry points
    assert isinstance(mechanism("theirs", epsilon=1.0), Duchi)
    assert "theirs" in names()
    assert asked == [registry.GROUP]


class NotForPlans(Duchi):
    planned = False


def test_a_factory_says_that_it_is_not_for_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("not_for_plans", f"{__name__}:NotForPlans", registry.GROUP),
        EntryPoint("absent", "no.such.module:Thing", registry.GROUP),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: points)
    assert {"not_for_plans", "absent"} <= set(names())
    planned = names(planned=True)
    assert "not_for_plans" not in planned
    assert "absent" in planned  # the plan notes that its module cannot be imported
    notes = hd.plan(users=1000, dims=2, epsilon=1.0).left_out
    assert "absent is left out of the plan: No module named 'no'" in notes
    assert (
        hd.plan(users=1000, dims=2, epsilon=1.0, mechanisms=["not_for_plans"]).best.mechanism
        == "not_for_plans"
    )


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput, match=r"mechanism = 'gauss' is not allowed: use one of laplace.*optimal"
    ) as raised:
        mechanism("gauss", epsilon=1.0)
    assert raised.value.parameters == ("mechanism",)


def test_a_factorys_own_type_error_is_not_called_an_option() -> None:
    def broken(epsilon: float) -> object:
        raise TypeError("inside")

    register_mechanism("broken", broken)
    with pytest.raises(TypeError, match="inside"):
        mechanism("broken", epsilon=1.0)
    with pytest.raises(InvalidInput, match="options \\['color'\\]"):
        mechanism("laplace", epsilon=1.0, color="red")
