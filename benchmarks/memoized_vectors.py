"""Writes tests/vectors/memoized.json: test vectors for memoized responses that every client must reproduce.

    python benchmarks/memoized_vectors.py tests/vectors/memoized.json

The generator of the inputs is seeded. The outputs are those of `hdr4me.client`; the tests compare them with an
independent implementation of docs/over-time.md.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import product
from pathlib import Path
from typing import Any

from client_vectors import declared
from hdr4me.channels import KSubset, Table, UnaryEncoding
from hdr4me.channels.subset import Subset
from hdr4me.client.client import decide, draw_questions
from hdr4me.client.prf import Stream, Use, secret_mark
from hdr4me.survey import Categorical, Numeric, Question, Survey

ONE = 1 << 32


def surveys() -> list[Survey]:
    """Small surveys made by hand: every kind of channel, one to five answers."""
    coin = Table("coin", 1.1, {"value": (-2.0, 2.0)}, ((3 * ONE // 4, ONE // 4), (ONE // 4, 3 * ONE // 4)))
    rows = []
    for i in range(5):
        total, tilt = ONE // 2 + (i - 2) ** 2 * (ONE // 32), (i - 2) * (ONE // 8)
        rows.append(((total - tilt) // 2, ONE - total, (total + tilt) // 2))
    three = Table("three", 0.85, {"value": (-4.0, 0.0, 4.0)}, tuple(rows))
    choice = KSubset("choice", 3.0, Subset(4, 1), ONE - 3 * (ONE // 8))
    bits = UnaryEncoding("bits", 1.1, 3, (-1.0, 3.0), ((3 * ONE // 4, ONE // 4), (ONE // 2, ONE // 2)))
    subset = KSubset("subset", 2.0, Subset(6, 2), 3 * ONE // 5)
    schema = declared(
        [
            Numeric("age", 0, 120, default=40),
            Numeric("debt", -1000, 0),
            Categorical("colour", ["red", "green", "blue", "grey"], default="grey"),
            Categorical("pet", ["none", "cat", "dog"]),
            Categorical("town", ["a", "b", "c", "d", "e", "f"]),
        ]
    )
    questions = [Question((j,), channel) for j, channel in enumerate((three, coin, choice, bits, subset))]
    return [Survey.from_questions(schema, epsilon=15.0, sampled=m, questions=questions) for m in (1, 2, 5)]


def record(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "age": rng.choice([rng.randrange(121), rng.uniform(0, 120), rng.randrange(121) / 4, -5, 500]),
        "debt": rng.choice([-rng.randrange(1001), rng.uniform(-1000, 0)]),
        "colour": rng.choice(["red", "green", "blue", "grey", "mauve"]),
        "pet": rng.choice(["none", "cat", "dog"]),
        "town": rng.choice("abcdef"),
    }
    if rng.random() < 0.2:
        del found[rng.choice(list(found))]
    return found


def staged() -> Survey:
    """The same dimensions with answers of two stages, three in each report."""
    return Survey(surveys()[0].schema, epsilon=3.0, sampled=3, memoized_epsilon=9.0)


class Words:
    """Fresh words of 16 bits that are written down."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.taken = rng, list[int]()

    def bits(self, n: int) -> int:
        self.taken.append(self.rng.getrandbits(n))
        return self.taken[-1]

    def below(self, n: int) -> int:
        raise AssertionError("a second stage draws words only")


def two_stages(index: int) -> list[dict[str, Any]]:
    """Reports of two stages: the fresh words stand beside what comes of them."""
    rng, survey, found = random.Random(20260102), staged(), []
    for _ in range(300):
        secret, given, fresh = rng.randbytes(32), record(rng), Words(rng)
        answers, new = decide(survey, secret, given, (), survey.sampled, fresh)
        found.append(
            {
                "survey": index,
                "secret": secret.hex(),
                "record": given,
                "fresh": fresh.taken,
                "answers": answers,
                "new": new,
            }
        )
    return found


def small(m: int) -> Survey:
    """m questions of three categories each, all of them answered."""
    names = ["x", "y"][:m]
    return Survey(
        declared([Categorical(name, ["0", "1", "2"]) for name in names]),
        epsilon=9.0 * m,
        sampled=m,
        categorical="grr",
    )


def histories() -> list[dict[str, Any]]:
    """Every history of three reports over three rows, for one and two questions and three budgets in rows.

    Under the secret the three rows of a question have three different answers, so an answer shows which row was used.
    A case is three texts of digits: the values and the answers (the questions of a report side by side), and how many
    rows each report pays for.
    """
    rng, found = random.Random(20260103), []
    for m in (1, 2):
        survey = small(m)
        names = [dimension.name for dimension in survey.schema]
        while True:
            secret = rng.randbytes(32)
            shown = [decide(survey, secret, dict.fromkeys(names, row), (), m)[0] for row in "012"]
            if all(len({answers[q] for answers in shown}) == 3 for q in range(m)):
                break
        for budget in range(m, m + 3):
            cases = []
            for values in product("012", repeat=3 * m):
                known: list[str] = []
                codes, paid = "", ""
                for t in range(3):
                    value = dict(zip(names, values[t * m : t * m + m], strict=True))
                    answers, new = decide(survey, secret, value, known, budget - len(known))
                    known += new
                    codes += "".join(str(code) for _, code in answers)
                    paid += str(len(new))
                cases.append(["".join(values), codes, paid])
            found.append(
                {
                    "survey": json.loads(survey.to_json()),
                    "secret": secret.hex(),
                    "names": names,
                    "budget": budget,
                    "cases": cases,
                }
            )
    return found


def main(path: Path) -> None:
    """All vectors: about 2,900, and 2,268 histories of three reports."""
    rng = random.Random(20260101)
    streams, draws, reports = [], [], []
    for _ in range(300):
        secret, series = rng.randbytes(32), rng.randbytes(32).hex()
        use, a, b = (
            rng.choice(list(Use)),
            *(rng.choice([0, 1, 255, 65_535, rng.randrange(ONE)]) for _ in "ab"),
        )
        streams.append(
            [secret.hex(), series, int(use), a, b, Stream(secret, series, use, a, b).take(40).hex()]
        )
    for _ in range(200):
        secret, series = rng.randbytes(32), rng.randbytes(32).hex()
        bounds = [
            rng.choice([1, 2, 3, 10, 257, 3 << 30, ONE, 3 << 40, rng.randrange(1, ONE)]) for _ in range(6)
        ]
        stream = Stream(secret, series, Use.ANSWER)
        draws.append([secret.hex(), series, bounds, [stream.below(bound) for bound in bounds]])
    asked = [*surveys(), staged()]
    for _ in range(350):
        secret, index = rng.randbytes(32), rng.randrange(3)
        survey, known = asked[index], list[str]()
        for step in range(6):  # a history: the first rounds are paid for, the last ones are not
            affordable = survey.sampled if step == 0 else rng.choice([0, 0, 1, survey.sampled])
            given = record(rng)
            answers, new = decide(survey, secret, given, known, affordable)
            reports.append(
                {
                    "survey": index,
                    "secret": secret.hex(),
                    "record": given,
                    "known": list(known),
                    "affordable": affordable,
                    "questions": draw_questions(survey, Stream(secret, survey.series, Use.QUESTIONS)),
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
        "two_stages": two_stages(len(asked) - 1),
        "histories": histories(),
    }
    lines = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    path.write_text(lines.replace("],[", "],\n[").replace("},{", "},\n{") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
