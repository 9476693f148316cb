"""Writes tests/vectors/client.json.gz: the answers that every client must give to a record for given random words.

    python benchmarks/client_vectors.py tests/vectors/client.json.gz

The generator of the inputs is seeded; the answers are those of `hdr4me.client`. A case is [survey, record, words,
answers]. Words are bytes in hexadecimal, or a number a: the stream of `hdr4me.client.prf` for the secret of 32 zero
bytes, a series of zeros, use 2, and a. Values that JSON does not have are written as {"number": "nan"}.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from client_values import CHOICES, LABELS, NUMBERS
from hdr4me.channels import KSubset, Table
from hdr4me.channels.channel import below
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.projective import Projective
from hdr4me.channels.subset import Subset
from hdr4me.client.client import answer, draw_questions
from hdr4me.client.prf import Stream, Use
from hdr4me.survey import Categorical, Dimension, Numeric, Question, Schema, Selection, Survey

SECRET, SERIES = bytes(32), "00" * 32
GOLDEN = Path(__file__).parents[1] / "tests" / "golden"


class Words:
    """Draws from given bytes, as `Stream` draws from its own."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def bits(self, n: int) -> int:
        size = -(-n // 8)
        if len(self._left) < size:
            raise EOFError
        found, self._left = self._left[:size], self._left[size:]
        return int.from_bytes(found, "big") >> (8 * size - n)

    def below(self, n: int) -> int:
        return below(self, n)


def surveys() -> list[Survey]:
    """Every kind of question and channel, and the surveys in tests/golden."""
    odd = declared(
        [
            Numeric("age", 0, 120, default=40),
            Numeric("debt", -1000, 0),
            Categorical("smoker", ["no", "yes"]),
            Categorical("truth", ["False", "True"]),
            Categorical("rooms", ["1", "2", "3.0", "3.5", "-7"], default="2"),
            Categorical("same labels", ["TRUE", "true", "3", "3.0", "a"], default="a"),
            Categorical("colour", ["red", "green", "blue", "missing"], default="missing"),
            Categorical("names", ["constructor", "__proto__", "toString", "é", "ε", "\U0001f600"]),
        ]
    )
    mixed = declared(
        [
            Numeric("a", -1, 1),
            Numeric("b", 0, 10, optional=True),
            Numeric("c", 1e-3, 7e5),
            Categorical("d", list("abcdefgh")),
            Selection("s", [*"abcdef", "true", "1"], at_most=3),
        ]
    )
    pair = declared([Numeric("x", 0, 1), Categorical("k", ["a", "b", "c"]), Numeric("y", -5, 5)])
    only = declared([Numeric("age", 0, 120)])
    towns = declared([Categorical("town", [f"t{i}" for i in range(40)])])
    found = [
        *(
            Survey(odd, 4.0, name=mechanism, mechanism=mechanism, sampled=m, categorical=categorical)
            for mechanism, m, categorical in (
                ("duchi", 1, "auto"),
                ("piecewise", 3, "oue"),
                ("optimal", 8, "grr"),
                ("square_wave", 2, "histogram"),
            )
        ),
        *(
            Survey(mixed, 3.0, mechanism=mechanism, sampled=m, categorical=categorical)
            for mechanism, m, categorical in (("hybrid", 1, "subset"), ("duchi", 5, "projective"))
        ),
        Survey(pair, 2.0, pair_questions=[("x", "y")], name='a pair, ε = 2 "quoted" \\ \n\x7f'),
        Survey(mixed, 1.0, mechanism="duchi", weights={"a": 7, "c": 3, "s": 20}),
        Survey(only, 0.1, mechanism="laplace"),
        *(Survey(only, 1.0, mechanism=name) for name in ("staircase", "duchi", "piecewise")),
        *_families(),
        *(Survey(towns, 2.0, categorical=name) for name in ("projective", "subset", "grr", "oue")),
    ]
    golden = [Survey.load(path) for path in sorted(GOLDEN.glob("*.survey.json"))]
    return [*found, *golden]


def declared(dimensions: Iterable[Dimension]) -> Schema:
    """A schema whose numbers and categories declare the defaults that the first documents had."""
    found: list[Dimension] = []
    for dimension in dimensions:
        if isinstance(dimension, Numeric):
            dimension = replace(dimension, default=dimension.fallback)
        elif isinstance(dimension, Categorical) and not dimension.optional:
            dimension = Categorical(dimension.name, dimension.labels, default=dimension.fallback)
        found.append(dimension)
    return Schema(found)


def _families() -> Iterator[Survey]:
    """Families with parameters that no survey design would choose."""
    for size, order, length in ((7, 2, 3), (10, 3, 3), (21, 4, 3), (31, 5, 3), (8, 7, 2), (13, 11, 3)):
        yield _one(Projective(size, order, length), size)
    for size, chosen in ((2, 1), (6, 2), (9, 8), (300, 3)):
        yield _one(Subset(size, chosen), size)
    for size, most, chosen in ((8, 3, 2), (6, 1, 1), (6, 6, 6), (50, 5, 4), (40, 8, 30)):
        yield _one(PrivSet(size, most, chosen), size, most)


def _one(family: Any, size: int, most: int = 0) -> Survey:
    names = [chr(97 + k) if k < 6 else f"t{k}" for k in range(size)]
    dimension = Selection("s", names, most) if most else Categorical("k", names)
    channel = KSubset("made", 1.5, family, heaviest(1.5, family))
    return Survey.from_questions(
        declared([dimension]), epsilon=1.5, sampled=1, questions=[Question((0,), channel)]
    )


def record(survey: Survey, rng: random.Random) -> dict[str, Any]:
    """Values of every kind, a third of them unusual."""
    found: dict[str, Any] = {}
    for dimension in survey.schema:
        strange = rng.random() < 1 / 3
        value: Any
        if dimension.input_kind in ("number", "optional"):
            low, high = dimension.bounds
            middle = rng.uniform(low, high)
            plain = [
                middle,
                repr(middle),
                low,
                high,
                low - 1,
                high + 1,
                round(middle),
                _half(survey, dimension, rng),
            ]
            value = rng.choice(NUMBERS if strange else plain)
        elif dimension.input_kind == "category":
            value = rng.choice(LABELS) if strange else rng.choice(dimension.categories)
        else:
            some = rng.sample(dimension.categories, rng.randint(0, min(5, len(dimension.categories))))
            value = rng.choice(CHOICES) if strange else rng.choice([some, "|".join(some)])
        if rng.random() < 0.95:
            found[dimension.name] = value
    return found | ({"other": 1} if rng.random() < 0.05 else {})


def _half(survey: Survey, dimension: Any, rng: random.Random) -> float:
    """A value at or next to half of the sixteenth bit, where rounding half to even matters."""
    question = survey.questions[survey.question_of(dimension.name)]
    size = question.channel.inputs[0].size - dimension.optional
    low, high = dimension.bounds
    steps = (size - 1) << 16
    value = float(low + (high - low) * (rng.randrange(steps) + 0.5) / steps)
    return rng.choice([value, math.nextafter(value, -math.inf), math.nextafter(value, math.inf)])


def edge_words(survey: Survey, rng: random.Random) -> str | None:
    """Words on and next to the cumulative sums of a table's row, for surveys of one question about one number."""
    if len(survey.questions) > 1 or not isinstance(survey.questions[0].channel, Table):
        return None
    channel = survey.questions[0].channel
    bound = rng.choice([*accumulate(rng.choice(channel.weights))]) + rng.choice([-1, 0, 1])
    word = min(max(bound, 0), (1 << 32) - 1)
    question, fraction = (0).to_bytes(4, "big"), rng.choice([b"\0\0", b"\xff\xff", rng.randbytes(2)])
    return (question + fraction * len(channel.inputs) + word.to_bytes(4, "big")).hex()


def plain(value: Any) -> Any:
    """The value in a form that JSON can represent."""
    if isinstance(value, float) and (
        not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)
    ):
        return {"number": repr(value)}
    return value


def main(path: Path) -> None:
    """All vectors, about 21,000 of them."""
    rng = random.Random(20260202)
    asked = surveys()
    cases: list[list[Any]] = []
    for index, survey in enumerate(asked):
        edges = 800 if edge_words(survey, rng) else 0
        for case in range(520 + edges):
            given = record(survey, rng)
            words = edge_words(survey, rng) if case < edges else None
            number = len(cases)
            draws: Any = Words(bytes.fromhex(words)) if words else Stream(SECRET, SERIES, Use.ANSWER, number)
            answers = [[q, *answer(survey, q, given, draws)] for q in draw_questions(survey, draws)]
            cases.append([index, {k: plain(v) for k, v in given.items()}, words or number, answers])
    document = {
        "format": "hdr4me-client-vectors",
        "version": 1,
        "surveys": [json.loads(survey.to_json()) for survey in asked],
        "series": [survey.series for survey in asked],
        "cases": cases,
    }
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode("ascii"))
    print(f"{len(asked)} surveys, {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
