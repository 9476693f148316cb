"""Writes tests/vectors/derived.json: the answers that every client must give about derived inputs for given words.

    python benchmarks/derived_vectors.py tests/vectors/derived.json

The format is that of `client_vectors.py`. One survey of each pair has a large ε, so that almost every answer is the
input itself: a wrong input is seen at once.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from pathlib import Path
from typing import Any

from client_values import LABELS, NUMBERS
from client_vectors import SECRET, SERIES, plain
from hdr4me.channels import KSubset
from hdr4me.channels.projective import Projective
from hdr4me.channels.projective.field import MODULI
from hdr4me.channels.proof import ONE
from hdr4me.client.client import answer, draw_questions
from hdr4me.client.prf import Stream, Use
from hdr4me.errors import PrivacyWarning
from hdr4me.survey import Categorical, Dimension, Numeric, Product, Question, Schema, Survey
from hdr4me.survey.derived import Bucket, Hash, Joint, Outer, Prefix

WORDS = [
    "apple",
    "Apple",
    " apple",
    "ä",
    "a\u0308",
    "\U0001f600\U0001f601",
    "10115",
    "x" * 100,
    "12047",
    "3.0",
    "\x1c",
    "\x1cab",
    "12\x1f",
    "\ud55c\u200d\U0001f468",
    "\ufb01",
]
EDGES = [
    18,
    65,
    120,
    0,
    0.1,
    -1.5,
    17.999999999999996,
    "17.999999999999999",
    "\x1c18\x1d",
    " \x85true",
    5e-324,
    -5e-324,
    1e9,
    999999999.9999999,
]
AGE, SEX = Bucket("age", [0, 18, 65, 120], default=30), Categorical("sex", ["f", "m"], default="m")
ZIP = Categorical("zip", ["10", "12", "20", "\U0001f600"], default="20")
WORD = Hash("word", 16, seed=7, default="none")
X, Y = Numeric("x", -5, 10, default=1), Numeric("y", 0, 4, default=2)
KINDS: dict[str, list[Dimension]] = {
    "bucket": [AGE, Bucket("half", [-1.5, 0, 0.1, 1e9], default=0, column="x")],
    "joint": [Joint("who", [SEX, AGE]), Joint("three", [ZIP, SEX, WORD])],
    "hash": [WORD, Hash("many", 1_000_000, seed=2**53 - 1, default="?", column="word")],
    "prefix": [Prefix("area", [ZIP], 2), Prefix("first", [WORD], 1)],
    "nested": [
        Joint("all", [Prefix("area", [ZIP], 2), Bucket("half", [-1.5, 0, 0.1, 1e9], 0, "x"), SEX, AGE])
    ],
    "outer": [Outer("moments", [X, Y, Numeric("z", 0, 1, default=0)], [2, 1, 0.5], [4, 1.5, 0.3], norm=3)],
    "product": [X, Y, Product("both", ["x", "y"])],
}


def surveys() -> list[Survey]:
    """Each kind under a small and a large budget; texts with every field of a prime power."""
    words = [Hash(f"word{q}", q, seed=q, default="none", column="word") for q in MODULI]
    ones = [
        KSubset("projective", 1.0, Projective(q, q, 3 if q < 50 else 2), ONE // (q + 1) * 2) for q in MODULI
    ]
    questions = [Question((j,), channel) for j, channel in enumerate(ones)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return [
            *(
                Survey(Schema(asked), epsilon, name=kind, mechanism="duchi")
                for kind, asked in KINDS.items()
                for epsilon in (1.0, 24.0)
            ),
            Survey.from_questions(Schema(words), epsilon=4.0, sampled=4, questions=questions, name="fields"),
        ]


def record(survey: Survey, rng: random.Random) -> dict[str, Any]:
    """Values of every kind, a third of them unusual, some missing."""
    found: dict[str, Any] = {}
    for name, reader in survey.schema.readers.items():
        strange = rng.random() < 1 / 3
        value: Any
        if name in ("age", "x", "y", "z"):
            value = rng.choice([*NUMBERS, *EDGES]) if strange else rng.uniform(-6, 130)
        elif strange or reader.kind == "hash":
            value = rng.choice([*LABELS, *WORDS])
        else:
            value = rng.choice(reader.categories) + rng.choice(["", "", "123"])
        if rng.random() < 0.95:
            found[name] = plain(value)
    return found


def main(path: Path) -> None:
    """All vectors."""
    rng = random.Random(20261118)
    asked = surveys()
    cases: list[list[Any]] = []
    for index, survey in enumerate(asked):
        for _ in range(200):
            given, number = record(survey, rng), len(cases)
            values = {
                k: float(v["number"]) if isinstance(v, dict) and "number" in v else v
                for k, v in given.items()
            }
            draws = Stream(SECRET, SERIES, Use.ANSWER, number)
            answers = [[q, *answer(survey, q, values, draws)] for q in draw_questions(survey, draws)]
            cases.append([index, given, number, answers])
    document = {
        "format": "hdr4me-client-vectors",
        "version": 1,
        "surveys": [json.loads(survey.to_json()) for survey in asked],
        "series": [survey.series for survey in asked],
        "cases": cases,
    }
    path.write_text(json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n", encoding="ascii")
    print(f"{len(asked)} surveys, {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
