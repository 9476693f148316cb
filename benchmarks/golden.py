"""Writes tests/golden/kinds: surveys, reports, tallies and answers for every kind of question, and predicted errors.

    python benchmarks/golden.py tests/golden/kinds

The files were written once, by the version that the tests compare every later version with. Reports use the system's
randomness, so another run writes other reports; surveys, predictions and comparisons are computed from seeds only.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy

import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.io.report import Report, unpack
from hdr4me.survey import Categorical, Numeric, Product, Schema, Selection, Survey, Vector

NOW = datetime(2026, 11, 18, 2, tzinfo=UTC)
SECRET = bytes(range(32))
RECORD = {"a": 0.5, "b": 3.0, "k": "c2"}
N = 60
"""Reports of each survey."""


def numbers(*names: str) -> list[Numeric]:
    """Numbers with different ranges."""
    return [Numeric(name, -j - 1, 2 * j + 1, default=j / 2) for j, name in enumerate(names)]


def category(name: str = "k", size: int = 4) -> Categorical:
    """A category with `size` labels."""
    return Categorical(name, [f"c{i}" for i in range(size)], default="c0")


def vector(*, optional: bool = False) -> Vector:
    """Six coordinates, norm 2."""
    return Vector("v", 6, 2.0, optional=optional)


def coin(*dimensions: Any, epsilon: float = 2.0, **options: Any) -> Survey:
    """A survey with the smallest table for numbers."""
    return Survey(Schema(dimensions), epsilon=epsilon, mechanism="duchi", **options)


LABELS = [f"town {i}" for i in range(4200)]
"""Longer than what a document writes out: the survey has their hash."""

SURVEYS: dict[str, Callable[[], Survey]] = {
    "duchi": lambda: coin(*numbers("a", "b", "c"), sampled=2),
    "optimal": lambda: Survey(Schema(numbers("a", "b")), epsilon=1.0),
    "optional": lambda: coin(Numeric("a", 0, 10, default=5, optional=True), *numbers("b")),
    "pairs": lambda: Survey(Schema(numbers("a", "b", "c")), epsilon=2.0, pair_questions=[("a", "b")]),
    "blocks": lambda: coin(
        *numbers("a", "b", "c", "d", "e"), epsilon=4.0, block_questions=[("a", "b", "c", "d")]
    ),
    "vectors": lambda: Survey(Schema([vector()]), epsilon=3.0),
    "optional_vectors": lambda: coin(vector(optional=True), *numbers("a"), epsilon=3.0, sampled=2),
    **{
        name: partial(Survey, Schema([category(size=9)]), 1.5, categorical=name)
        for name in ("grr", "subset", "projective", "oue", "histogram")
    },
    "optional_category": lambda: Survey(Schema([Categorical("k", ["x", "y"], optional=True)]), epsilon=1.0),
    "selection": lambda: Survey(Schema([Selection("s", [f"c{i}" for i in range(8)], 3)]), epsilon=2.0),
    "products": lambda: coin(*numbers("a", "b"), Product("ab", ["a", "b"])),
    "category_list": lambda: Survey(
        Schema([Categorical("t", LABELS, default=LABELS[0], file="towns.txt")]), epsilon=3.0
    ),
    "lasting": lambda: Survey(
        Schema([*numbers("a"), category()]), epsilon=1.0, sampled=2, memoized_epsilon=3.0
    ),
    "weights": lambda: coin(*numbers("a", "b"), category(), weights={"a": 5, "k": 2}, name="weights, ε = 2"),
    "mixed": lambda: coin(*numbers("a", "b"), category(), sampled=3, epsilon=6.0),
}

ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("distribution", {"bins": 4}),
    ("cdf", {"x": [0.25]}),
    ("quantile", {"p": [0.25, 0.5]}),
    ("variance", {}),
    ("sd", {}),
    ("chosen", {}),
    ("number chosen", {}),
)
"""Asked of every dimension that the statistic supports, beside the default answer."""


def records(survey: Survey, n: int = N, seed: int = 7) -> pa.Table:
    """Values of every dimension, one in five of the optional ones missing."""
    rng, columns = np.random.default_rng(seed), {}
    for d in survey.schema.dimensions:
        if isinstance(d, Product):
            continue
        if isinstance(d, Vector):
            values: list[Any] = list((rng.standard_normal((n, d.length)) / 3).tolist())
        elif isinstance(d, Selection):
            values = [[d.labels[i] for i in rng.permutation(5)[: rng.integers(4)]] for _ in range(n)]
        elif isinstance(d, Categorical):
            values = [d.labels[min(i, len(d.labels) - 1)] for i in rng.geometric(0.4, n) - 1]
        else:
            low, high = d.bounds
            values = (low + (high - low) * rng.beta(2, 4, n)).tolist()
        if getattr(d, "optional", False):
            values = [None if missing else x for missing, x in zip(rng.random(n) < 0.2, values, strict=True)]
        columns[d.name] = values
    return pa.table(columns)


def plain(answer: Any) -> list[list[Any]]:
    """Dimension, category, statistic, estimate, standard error, interval and number of answers of the first rows."""
    keys = ("dimension", "category", "statistic", "estimate", "standard_error", "lower", "upper", "n_answers")
    rows = [[row.get(key) for key in keys] for row in answer.table()[:60]]
    return [[x.hex() if isinstance(x, float) else x for x in row] for row in rows]


def answers(tally: Any) -> dict[str, Any]:
    """What a tally says: the default answer, that after re-calibration, and each statistic that it supports."""
    found = {"estimate": plain(tally.estimate())}
    for statistic, options in ASKED:
        rows = plain(tally.ask(statistic, **options))
        if rows:
            found[statistic] = rows
    names = tally.survey.schema.names
    if "ab" in names or tally.survey.questions[0].dimensions == (0, 1):
        found["covariance"] = plain(tally.ask("covariance", ["a", "b"]))
    return found


# -- predicted errors ------------------------------------------------------------------------------------------------

WORKLOADS: dict[str, tuple[Callable[[], Schema], float, dict[str, Any]]] = {
    "numbers": (lambda: Schema(numbers(*"abcd")), 2.0, {}),
    "numbers, small budget": (lambda: Schema(numbers(*"abcd")), 0.5, {}),
    "pairs and blocks": (lambda: Schema(numbers(*"abcdef")), 6.0, {"mechanisms": ["pair", "agreement"]}),
    "optional numbers": (lambda: Schema([Numeric("a", 0, 10, optional=True), *numbers("b")]), 2.0, {}),
    "vectors": (lambda: Schema([vector()]), 3.0, {}),
    "optional vectors": (lambda: Schema([vector(optional=True), *numbers("a")]), 3.0, {}),
    "categories": (lambda: Schema([category(size=9), category("l", 40)]), 1.5, {}),
    "optional category": (lambda: Schema([Categorical("k", ["x", "y", "z"], optional=True)]), 1.0, {}),
    "selections": (lambda: Schema([Selection("s", [f"c{i}" for i in range(8)], 3)]), 2.0, {}),
    "products": (lambda: Schema([*numbers("a", "b"), Product("ab", ["a", "b"])]), 2.0, {}),
    "everything": (
        lambda: Schema([*numbers("a", "b"), Numeric("o", 0, 10, optional=True), category(), vector()]),
        4.0,
        {"mechanisms": ["duchi", "optimal_mean", "piecewise"]},
    ),
}
FIELDS = (
    *("mse", "tolerance_each", "tolerance_joint", "worst_mse", "worst_tolerance_each"),
    *("worst_tolerance_joint", "probability_within", "joint_probability_within"),
)


def pilot(schema: Schema) -> dict[str, Any]:
    """Values by name, for `hd.plan(prior=…)`."""
    table = records(Survey(schema, epsilon=4.0, mechanism="duchi"), n=300, seed=11)
    return {name: table[name].to_pylist() for name in table.column_names}


def plans() -> Iterator[tuple[str, Any]]:
    """Every option of every workload: predictions without a prior, for the worst case, from values, and for few."""
    beliefs = (("", 20_000), ("worst", 20_000), ("values", 20_000), ("few", 80))
    for name, (schema, epsilon, options) in WORKLOADS.items():
        made = schema()
        for how, users in beliefs:
            known: dict[str, Any] = {"worst": {"prior": "worst"}, "values": {"prior": pilot(made)}}
            try:
                plan = hd.plan(schema=made, users=users, epsilon=epsilon, **options, **known.get(how, {}))
            except hd.errors.InvalidInput:
                yield f"{name} / {how}", "refused"
                continue
            for o in plan.options:
                key = f"{name} / {how} / {o.mechanism} + {o.categorical} / {o.sampled}"
                yield key, [getattr(o, each) for each in FIELDS]
    for statistic in ("distribution", "quantile", "variance", "sd", "covariance"):
        found = hd.plan(
            schema=Schema(numbers("a", "b")),
            users=20_000,
            epsilon=2.0,
            mechanisms=["optimal", "piecewise"],
            statistic=statistic,
        )
        yield (
            f"statistic {statistic}",
            [[o.mechanism, o.sampled, found.error_of(o)] for o in found.options],
        )
    solved = hd.plan(dims=20, epsilon=1.0, tolerance=0.05, mechanisms=["duchi", "optimal"])
    yield "solved for users", [solved.best.mechanism, solved.best.users]


def designs() -> Iterator[tuple[str, str]]:
    """A hash of the integers of the table of every mechanism for numbers."""
    from hdr4me.mechanisms.registry import built_in

    for name in built_in():
        rows = Survey(Schema(numbers("a")), epsilon=1.0, mechanism=name).channels[0].rows
        yield name, hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def comparisons() -> Iterator[tuple[str, Any]]:
    """Every row of a comparison of small seeded collections, for every workload."""
    compared = ["optimal", "duchi", "pair", "agreement", "optional", "grr", "subset", "projective", "oue"]
    for name in (
        "pairs and blocks",
        "optional numbers",
        "vectors",
        "optional vectors",
        "categories",
        "selections",
    ):
        schema, epsilon, _ = WORKLOADS[name]
        made = schema()
        table = records(Survey(made, epsilon=4.0, mechanism="duchi"), n=400, seed=13)
        found = hd.compare(
            table,
            schema=made,
            epsilon=epsilon,
            mechanisms=[*compared, "codebook", "privset"],
            repeats=2,
            recalibrate=False,
        )
        for row in found.rows:
            key = f"{name} / {row.kind} / {row.statistic} / {row.mechanism}"
            yield key, [row.predicted, row.simulated, row.coverage, row.answered]


# -- writing -----------------------------------------------------------------------------------------------------------


def write_store(path: Path, survey: Survey, rows: Any) -> None:
    """A round with the reports in three writes, of which one repeats an id, and one deleted report."""
    from hdr4me.collector import open_store
    from hdr4me.collector.batch import Batch

    store = open_store(path)
    store.open_round(survey, now=NOW)
    sent = [Report(survey.fingerprint, unpack(row.tobytes(), survey)).to_bytes(survey) for row in rows]
    ids = [i.to_bytes(16, "big") for i in range(len(rows))]
    for part in (slice(0, 20), slice(20, None), slice(5, 8)):
        sizes = [len(one) for one in sent[part]]
        store.write([Batch(1, 0, b"".join(ids[part]), b"".join(sent[part]), sizes, hour=490_000)])
    store.delete(1, ids[3])
    store.close()


def main(folder: Path) -> None:
    """Write every file."""
    from hdr4me.io import write_reports

    folder.mkdir(exist_ok=True)
    found: dict[str, Any] = {}
    for name, make in SURVEYS.items():
        survey = make()
        survey.save(folder / f"{name}.survey.json")
        rows = np.concatenate(list(Local(threads=1).reports(records(survey), survey)))
        for suffix in ("parquet", "arrow", "jsonl"):
            with write_reports(folder / f"{name}.{suffix}", survey) as writer:
                writer.write(rows)
        tally = hd.Tally(survey).add_block(rows)
        tally.save(folder / f"{name}.tally")
        wire = [
            Report(survey.fingerprint, unpack(row.tobytes(), survey)).to_bytes(survey).hex() for row in rows
        ]
        found[name] = {"fingerprint": survey.fingerprint, "wire": wire[:10], **answers(tally)}
        if name == "mixed":
            write_store(folder / "collector.db", survey, rows)
    survey = SURVEYS["mixed"]()
    (folder / "ledger.json.secret").write_bytes(SECRET)
    client = hd.MemoizedClient(survey, hd.Ledger(folder / "ledger.json", reports_per_survey=4))
    found["mixed"]["memoized"] = [client.report({**RECORD, "k": k}).to_json() for k in ("c2", "c3", "c2")]
    for lock in folder.glob("*.lock"):
        lock.unlink()
    computed = {"designs": dict(designs()), "plans": dict(plans()), "comparisons": dict(comparisons())}
    for name, content in (("answers", found), ("predictions", {"scipy": scipy.__version__, **computed})):
        text = json.dumps(content, indent=0, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
