"""The privacy of a survey follows from its document alone: exact arithmetic that shares no code with the library."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest

import hdr4me as hd

NUMBERS = ("optimal", "optimal_mean", "piecewise", "square_wave", "laplace", "staircase", "hybrid")
TEN = [str(k) for k in range(10)]
CATEGORY = hd.Categorical("color", TEN)
NUMBER = hd.Numeric("x", 0, 10)
SURVEYS = {
    **{f"number, {name}": hd.Survey(hd.Schema([NUMBER]), 1.3, name) for name in NUMBERS},
    **{
        f"category, {name}": hd.Survey(hd.Schema([CATEGORY]), 2.3, categorical=name)
        for name in ("grr", "subset", "oue", "histogram", "projective")
    },
    "two of three": hd.Survey(
        hd.Schema([NUMBER, CATEGORY, hd.Numeric("y", 0, 1, optional=True)]), 3.0, sampled=2
    ),
    "block": hd.Survey(
        hd.Schema([hd.Numeric(f"x{k}", 0, 1) for k in range(9)]),
        2.5,
        block_questions=[[f"x{k}" for k in range(9)]],
    ),
    "pair": hd.Survey(hd.Schema([NUMBER, hd.Numeric("y", 0, 1)]), 2.5, pair_questions=[("x", "y")]),
    "selection": hd.Survey(hd.Schema([hd.Selection("colors", TEN, at_most=3)]), 1.5),
    "vector": hd.Survey(hd.Schema([hd.Vector("move", 5)]), 4.0),
    "two stages": hd.Survey(hd.Schema([NUMBER, CATEGORY]), 1.0, memoized_epsilon=2.0),
}
DOCUMENTS = {name: json.loads(survey.to_json()) for name, survey in SURVEYS.items()} | {
    path.name.split(".")[0]: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[1] / "golden" / "kinds").glob("*.survey.json"))
}


def worst_of_rows(rows: list[list[int]]) -> Fraction:
    """The largest ratio of the probabilities of one output under two inputs."""
    assert len({sum(row) for row in rows}) == 1
    used = [column for column in zip(*rows, strict=True) if any(column)]
    return max(Fraction(max(column), min(column)) for column in used)


def worst_of_entries(absent: list[int], present: list[int]) -> Fraction:
    """Two categories differ in two entries of their unary encodings, one in each direction."""
    assert sum(absent) == sum(present)
    pairs = [(a, p) for a, p in zip(absent, present, strict=True) if a or p]
    return max(Fraction(a, p) for a, p in pairs) * max(Fraction(p, a) for a, p in pairs)


def points(order: int, length: int) -> int:
    return (order**length - 1) // (order - 1)


def heavy_and_all(family: dict[str, Any]) -> tuple[int, int]:
    """The number of outputs with the larger probability, and of all outputs."""
    match family:
        case {"name": "subset", "size": v, "chosen": w}:
            return comb(v - 1, w - 1), comb(v, w)
        case {"name": "privset", "size": v, "most": s, "chosen": w}:
            return comb(v + s, w) - comb(v, w), comb(v + s, w)
        case {"name": "agreement", "size": d, "agreeing": least}:
            return sum(comb(d, t) for t in range(d - least + 1)), 2**d
        case {"name": "codebook", "codewords": codewords, "heavy": heavy}:
            return heavy, codewords
        case {"name": "projective", "order": q, "length": m}:
            return points(q, m - 1), points(q, m)
    raise AssertionError(f"a new family needs a line here: {family}")


def worst(channel: dict[str, Any]) -> Fraction:
    if channel["kind"] == "table":
        return worst_of_rows(channel["weights"])
    if channel["kind"] == "entries":
        return worst_of_entries(*channel["weights"])
    heavy, every = heavy_and_all(channel["family"])
    likely = Fraction(channel["weight"], heavy)
    rare = Fraction(2**32 - channel["weight"], every - heavy)
    return max(likely / rare, rare / likely)


def loss(ratio: Fraction) -> Decimal:
    return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def check(document: dict[str, Any]) -> None:
    with localcontext() as context:
        context.prec = 60
        channels = [document["channels"][question["channel"]] for question in document["questions"]]
        losses = sorted(loss(worst(channel)) for channel in channels)
        assert sum(losses[-document["n_sampled"] :]) <= Decimal(document["epsilon"])
        for channel in (channel for channel in channels if "stages" in channel):
            first = channel["stages"]["first"]
            memoized = worst_of_entries(*first) if channel["kind"] == "entries" else worst_of_rows(first)
            assert loss(memoized) <= Decimal(channel["stages"]["epsilon"])


def test_there_are_as_many_surveys_as_promised() -> None:
    assert len(DOCUMENTS) >= 28


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_document_proves_its_budget(name: str) -> None:
    check(DOCUMENTS[name])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_smaller_budget_is_not_proven(name: str) -> None:
    """Every survey uses more than 90 % of its budget, so the check finds a loss that is 10 % too large."""
    with pytest.raises(AssertionError):
        check({**DOCUMENTS[name], "epsilon": 0.9 * DOCUMENTS[name]["epsilon"]})
