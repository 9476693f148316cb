"""Laws and dimensions of other packages in plans and comparisons: supported, or rejected with a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import registry
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.survey import Dimension


class Broken(Duchi):
    """A law that cannot be made under small budgets."""

    def __init__(self, epsilon: float) -> None:
        if epsilon < 1.0:
            raise ZeroDivisionError("no design below 1")
        super().__init__(epsilon)


@dataclass(frozen=True)
class Leaky(hd.UniformMixture):
    """Reports ±1 for every ε: a small variance, because some likelihood ratios are infinite."""

    epsilon: float
    name = "leaky"
    bound = property(lambda self: 1.0)

    def parts(self, t: Any) -> hd.Parts:
        weight = np.stack([1 - t, 1 + t]) / 2
        return hd.Parts(weight, np.stack([-1 - t, 1 - t]), np.zeros_like(weight))


@dataclass(frozen=True)
class Melody(Dimension):
    """A dimension that no channel of this package supports."""

    kind = "melody"
    name: str

    @property
    def input_kind(self) -> str:
        return "melody"

    def encode(self, value: Any, size: int) -> int:
        return 0

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Melody:
        return cls(**fields)


@pytest.fixture
def _laws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, factory in (("our_duchi", Duchi), ("broken", Broken), ("leaky", Leaky)):
        monkeypatch.setitem(registry._known, name, registry.Registered(name, factory))


@pytest.mark.usefixtures("_laws")
def test_a_law_that_cannot_be_used_is_left_out_with_a_note() -> None:
    found = hd.plan(users=10_000, dims=4, epsilon=2.0)
    assert "broken is left out of the plan: no design below 1." in found.notes
    assert found.to_dict()["notes"] == list(found.notes)
    names = {option.mechanism for option in found.options}
    assert "our_duchi" in names
    assert "broken" not in names
    with pytest.raises(InvalidInput, match="mechanisms = 'broken' is not allowed: no design below 1"):
        hd.plan(users=10_000, dims=4, epsilon=2.0, mechanisms=["broken"])
    with pytest.raises(InvalidInput, match="no design below 1"):
        hd.plan(users=10_000, dims=4, tolerance=0.1, mechanisms=["broken"])


@pytest.mark.usefixtures("_laws")
@pytest.mark.parametrize("question", [{"epsilon": 2.0}, {"tolerance": 0.1}])
def test_a_law_without_a_proof_of_privacy_is_never_recommended(question: dict[str, float]) -> None:
    found = hd.plan(users=10_000, dims=4, **question)
    assert any("leaky is left out of the plan" in note and "not private" in note for note in found.notes)
    assert "leaky" not in {option.mechanism for option in found.options}
    with pytest.raises(InvalidInput, match="mechanisms = 'leaky' is not allowed"):
        hd.plan(users=10_000, dims=4, mechanisms=["leaky"], **question)


@pytest.mark.usefixtures("_laws")
def test_a_plan_notes_no_mechanism_that_can_be_used() -> None:
    found = hd.plan(users=10_000, dims=1, epsilon=2.0)
    assert "broken" in {option.mechanism for option in found.options}
    assert not any("broken" in note for note in (*found.left_out, *found.notes))


@pytest.mark.usefixtures("_laws")
def test_comparisons_take_registered_names() -> None:
    table = pa.table({"x": np.linspace(0.0, 9.0, 500)})
    found = hd.compare(table, epsilon=1.0, mechanisms=["our_duchi", "duchi"], repeats=2, recalibrate=False)
    ours, duchi = found.rows
    assert (ours.mechanism, ours.predicted) == ("our_duchi", duchi.predicted)
    with pytest.raises(InvalidInput, match=r"mechanisms = 'nobody' is not allowed: one of .*our_duchi"):
        hd.compare(table, epsilon=1.0, mechanisms=["nobody"])


def test_an_unsupported_dimension_is_named_in_the_error() -> None:
    schema = hd.Schema([hd.Numeric("age", 0, 120), Melody("tune")])
    with pytest.raises(InvalidInput, match=r"schema = 'tune' is not allowed: .*input kind 'melody'"):
        hd.plan(users=1000, schema=schema, epsilon=1.0)
