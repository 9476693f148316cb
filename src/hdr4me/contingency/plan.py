"""Which tables to ask for: designs ranked by the distance of their tables to the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from hdr4me.contingency.schema import SIZES, table_schema
from hdr4me.contingency.tables import tables
from hdr4me.errors import InvalidInput
from hdr4me.io.reading import read_table
from hdr4me.simulation.collection import simulate_tally
from hdr4me.survey import Schema, Survey


def plan_tables(
    schema: Schema,
    *,
    users: int,
    epsilon: float,
    data: Any = None,
    repeats: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[dict[str, Any]]:
    """Designs of a survey for tables, the best first: one-way questions, pairs, triples.

    With `data` (public or synthetic records), each design is simulated, and ranked by the mean total variation distance
    of its tables of two attributes to those of the data. Without data only the noise of the direct estimates is known:
    the error of one-way questions is that of assuming independence, which depends on the data.

    Parameters
    ----------
    schema
        The attributes: categories and buckets.
    users, epsilon
        The number of users, and the budget of one report.
    data
        Records as for `hd.compare`: a file, a table or a frame.
    repeats, seed
        Simulated collections for each design, and their seed. By default there are 3, and up to 10 with fewer than
        3,333 users, because small collections differ more.
    progress
        Called with 1 after each collection.

    Examples
    --------
    >>> import hdr4me as hd
    >>> schema = hd.Schema([hd.Categorical(name, ["no", "yes"]) for name in "abc"])
    >>> [row["design"] for row in plan_tables(schema, users=10_000, epsilon=1.0)]
    ['pairs', 'triples', 'one-way']
    """
    if not isinstance(users, int) or users < 1:
        raise InvalidInput.of("users", users, "a positive integer")
    whole = None if data is None else read_table(data)
    repeats = max(3, min(10, 10_000 // users)) if repeats is None else repeats
    rows = []
    for design, k in SIZES.items():
        if k > len(schema):
            continue
        survey = Survey(table_schema(schema, k), epsilon=epsilon)
        found: dict[str, Any] = {
            "design": design,
            "questions": len(survey.questions),
            "noise": _noise(survey, users),
        }
        if whole is not None:
            collections = []
            for i in range(repeats):
                rng = np.random.default_rng((seed, i))
                drawn = whole.take(rng.integers(0, whole.num_rows, users))
                fitted = tables(simulate_tally(drawn, survey, seed=seed + i))
                collections.append([_distance(fitted, schema, drawn, size) for size in (2, 3)])
                if progress is not None:
                    progress(1)
            found["two_way"], found["three_way"] = (float(np.mean(x)) for x in zip(*collections, strict=True))
        rows.append(found)
    if whole is not None:
        return sorted(rows, key=lambda row: row["two_way"])
    return sorted(rows, key=lambda row: (row["design"] == "one-way", row["noise"]))


def _noise(survey: Survey, users: int) -> float:
    """The expected distance of a directly estimated table by noise alone: ½·Σ √(2/π)·(standard error of a cell)."""
    found = []
    for q, question in enumerate(survey.questions):
        variance = question.channel.response.marginal().moments([0.0]).variance([1.0])[0]  # of an empty cell
        answers = users * float(survey.inclusion(q))
        found.append(0.5 * question.channel.n_inputs * math.sqrt(2 / math.pi * float(variance) / answers))
    return float(np.mean(found))


def _distance(fitted: Any, schema: Schema, drawn: Any, size: int) -> float:
    """The mean distance of all tables of so many attributes to those of the records."""
    if size > len(schema):
        return math.nan
    codes = {x.name: _codes(x, drawn) for x in schema}
    found = []
    for names in combinations(schema.names, size):
        shape = [len(schema[name].categories) for name in names]
        cells = np.ravel_multi_index([codes[name] for name in names], shape)
        true = np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(cells)
        found.append(0.5 * float(np.abs(fitted.table(*names).shares - true).sum()))
    return float(np.mean(found))


def _codes(dimension: Any, drawn: Any) -> Any:
    """The category of each record."""
    column: Sequence[Any] = [drawn[dimension.columns[0]].combine_chunks()]
    clean = dimension.clean_column(column, len(dimension.categories))
    lut = np.asarray(clean.lut)
    return lut[np.asarray(clean.array.cast("int64").fill_null(len(lut) - 1))]
