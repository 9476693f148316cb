"""Writes tests/vectors/permanent.json: what every client with permanent answers must compute from a secret.

    python benchmarks/permanent_vectors.py tests/vectors/permanent.json

The generator of the inputs is seeded; the outputs are those of `hdr4me.client`, which the tests check against an
independent reading of docs/over-time.md.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from hdr4me.client.permanent import decide
from hdr4me.client.prf import Stream, Use, secret_mark
from hdr4me.survey import Categorical, Numeric, Randomizer, Schema, Survey

ONE = 1 << 32


def surveys() -> list[Survey]:
    """Small surveys made by hand: every kind of table, one to four answers."""
    coin = Randomizer("coin", 1.1, "value", (-2.0, 2.0), ((3 * ONE // 4, ONE // 4), (ONE // 4, 3 * ONE // 4)))
    rows = []
    for i in range(5):
        total, tilt = ONE // 2 + (i - 2) ** 2 * (ONE // 32), (i - 2) * (ONE // 8)
        rows.append(((total - tilt) // 2, ONE - total, (total + tilt) // 2))
    three = Randomizer("three", 0.85, "value", (-4.0, 0.0, 4.0), tuple(rows))
    q = ONE // 8
    p = ONE - 3 * q
    square = tuple(tuple(p if y == i else q for y in range(4)) for i in range(4))
    choice = Randomizer("choice", 3.0, "category", ((ONE - q) / (p - q), -q / (p - q)), square)
    bits = Randomizer("bits", 1.1, "entries", (-1.0, 3.0), ((3 * ONE // 4, ONE // 4), (ONE // 2, ONE // 2)))
    schema = Schema(
        [
            Numeric("age", 0, 120, default=40),
            Numeric("debt", -1000, 0),
            Categorical("colour", ["red", "green", "blue", "grey"], default="grey"),
            Categorical("pet", ["none", "cat", "dog"]),
        ]
    )
    return [
        Survey.from_tables(
            schema,
            epsilon=12.0,
            n_sampled=m,
            randomizers=(three, coin, choice, bits),
            assignment=(0, 1, 2, 3),
        )
        for m in (1, 2, 4)
    ]


def record(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "age": rng.choice([rng.randrange(121), rng.uniform(0, 120), rng.randrange(121) / 4, -5, 500]),
        "debt": rng.choice([-rng.randrange(1001), rng.uniform(-1000, 0)]),
        "colour": rng.choice(["red", "green", "blue", "grey", "mauve"]),
        "pet": rng.choice(["none", "cat", "dog"]),
    }
    if rng.random() < 0.2:
        del found[rng.choice(list(found))]
    return found


def main(path: Path) -> None:
    """All vectors, about 2,500 of them."""
    rng = random.Random(20260101)
    streams, draws, reports = [], [], []
    for _ in range(300):
        secret, series = rng.randbytes(32), rng.randbytes(32).hex()
        use, a, b, c = (
            rng.choice(list(Use)),
            *(rng.choice([0, 1, 255, 65_535, rng.randrange(ONE)]) for _ in "abc"),
        )
        streams.append(
            [secret.hex(), series, int(use), a, b, c, Stream(secret, series, use, a, b, c).take(40).hex()]
        )
    for _ in range(400):
        secret, series = rng.randbytes(32), rng.randbytes(32).hex()
        n = rng.choice([1, 2, 3, 10, 257, 5_000, 65_536])
        k = rng.randint(1, min(n, 12))
        draws.append([secret.hex(), series, n, k, Stream(secret, series, Use.QUESTIONS).sample(n, k)])
    asked = surveys()
    for _ in range(300):
        secret, index = rng.randbytes(32), rng.randrange(3)
        survey, known = asked[index], list[str]()
        for step in range(6):  # a history: the first rounds are paid for, the last ones are not
            affordable = survey.n_sampled if step == 0 else rng.choice([0, 0, 1, survey.n_sampled])
            told = record(rng)
            answers, new = decide(survey, survey.series, secret, told, known, affordable)
            reports.append(
                {
                    "survey": index,
                    "secret": secret.hex(),
                    "record": told,
                    "known": list(known),
                    "affordable": affordable,
                    "answers": answers,
                    "new": new,
                }
            )
            known += new
    marks = [[secret.hex(), secret_mark(secret)] for secret in (rng.randbytes(32) for _ in range(20))]
    document = {
        "format": "hdr4me-permanent-vectors",
        "version": 1,
        "streams": streams,
        "draws": draws,
        "secret_marks": marks,
        "surveys": [json.loads(survey.to_json()) for survey in asked],
        "series": [survey.series for survey in asked],
        "reports": reports,
    }
    lines = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    path.write_text(lines.replace("],[", "],\n[").replace("},{", "},\n{") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
