"""Designs of surveys for tables, ranked by the distance of their tables to the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from hdr4me.contingency.schema import SIZES, table_schema
from hdr4me.contingency.tables import tables
from hdr4me.errors import InvalidInput
from hdr4me.io.reading import read_table
from hdr4me.simulation.collection import simulate_tally
from hdr4me.survey import Categorical, Schema, Survey

MOST = 1_000_000  # users that are simulated
# The assumed population: its seed and number of records. At these strengths independence is .07 from the tables of two
# attributes of data with the categories of Adult, COMPAS and German credit, where it is .12, .09 and .07.
_SEED, _RECORDS = 20261119, 100_000


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
    """Designs of a survey for tables, the best first: one-way questions and independence, pairs, triples.

    Each design is simulated, and ranked by the mean total variation distance of its tables of two attributes to those
    of `data` (public or synthetic records), or, without data, to those of an assumed population, whose associations are
    about as strong as in the census and credit data of `benchmarks/joint_tables.py`.

    Parameters
    ----------
    schema
        The attributes: categories and buckets.
    users, epsilon
        The number of users, and the budget of one report.
    data
        Records as for `hd.compare`: a file, a table or a frame. Without them a population is assumed: the attributes
        depend on a hidden normal variable, with correlations from 0.1 to 0.9, and their shares are as 1 : 1/2 : 1/3 ….
    repeats, seed
        Simulated collections for each design, and their seed. By default there are 3, and up to 10 with fewer than
        3,333 users, because small collections differ more. At most 1,000,000 users are simulated.
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
    table_schema(schema, 1)  # every attribute has categories
    simulated, whole = schema, None if data is None else read_table(data)
    if whole is None:
        simulated, whole = _assumed(schema)
    repeats = max(3, min(10, 10_000 // users)) if repeats is None else repeats
    rows = []
    for design, k in SIZES.items():
        if k > len(schema):
            continue
        survey = Survey(table_schema(simulated, k), epsilon=epsilon)
        found: dict[str, Any] = {
            "design": design,
            "questions": len(survey.questions),
            "noise": _noise(survey, users),
        }
        collections = []
        for i in range(repeats):
            rng = np.random.default_rng((seed, i))
            drawn = whole.take(rng.integers(0, whole.num_rows, min(users, MOST)))
            fitted = tables(simulate_tally(drawn, survey, seed=seed + i))
            collections.append([_distance(fitted, simulated, drawn, size) for size in (2, 3)])
            if progress is not None:
                progress(1)
        found["two_way"], found["three_way"] = (float(np.mean(x)) for x in zip(*collections, strict=True))
        rows.append(found)
    return sorted(rows, key=lambda row: row["two_way"])


def _assumed(schema: Schema) -> tuple[Schema, pa.Table]:
    """An assumed population if there are no data, and the attributes as categories of the same number."""
    rng = np.random.default_rng(_SEED)
    hidden, columns = rng.normal(size=_RECORDS), {}
    named = Schema([Categorical(x.name, [str(i) for i in range(len(x.categories))]) for x in schema])
    strengths = rng.permutation(0.1 + 0.8 * (np.arange(len(schema)) + 0.5) / len(schema))
    for dimension, strength in zip(named, strengths, strict=True):
        score = strength * hidden + math.sqrt(1 - strength**2) * rng.normal(size=_RECORDS)
        shares = rng.permutation(1 / np.arange(1.0, len(dimension.categories) + 1))
        ends = np.quantile(score, np.cumsum(shares / shares.sum())[:-1])
        columns[dimension.name] = pa.array(np.searchsorted(ends, score)).cast(pa.string())
    return named, pa.table(columns)


def _noise(survey: Survey, users: int) -> float:
    """The expected distance of a directly estimated table by noise alone: ½·Σ √(2/π)·(standard error of a cell)."""
    found = []
    for q, question in enumerate(survey.questions):
        variance = question.channel.response.marginal().moments([0.0]).variance([1.0])[0]  # of an empty cell
        answers = users * float(survey.inclusion(q))
        found.append(0.5 * question.channel.n_inputs * math.sqrt(2 / math.pi * float(variance) / answers))
    return float(np.mean(found))


def _distance(fitted: Any, schema: Schema, drawn: Any, size: int) -> float:
    """The mean distance of all tables of `size` attributes to those of the records."""
    if size > len(schema):
        return math.nan
    codes = {x.name: _codes(x, drawn) for x in schema}
    found = []
    for names in combinations(schema.names, size):
        shape = [len(schema[name].categories) for name in names]
        cells = np.ravel_multi_index([codes[name] for name in names], shape)
        true = np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(cells)
        found.append(0.5 * float(np.abs(fitted.shares(*names) - true).sum()))
    return float(np.mean(found))


def _codes(dimension: Any, drawn: Any) -> Any:
    """The category of each record."""
    column: Sequence[Any] = [drawn[dimension.columns[0]].combine_chunks()]
    clean = dimension.clean_column(column, len(dimension.categories))
    lut = np.asarray(clean.lut)
    return lut[np.asarray(clean.array.cast("int64").fill_null(len(lut) - 1))]
