"""Real data sets that come with scikit-learn, as tables with a known truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets

from hdr4me.survey import Categorical, Numeric, Schema


class Real(NamedTuple):
    """A table, the schema that asks it, and the true mean or frequencies of each dimension after the schema's rules."""

    table: pa.Table
    schema: Schema
    truth: dict[tuple[str, str | None], float]


def times(table: pa.Table, n: int) -> pa.Table:
    """The rows of a table repeated, so that a table of some hundred people gives narrow intervals."""
    return pa.concat_tables([table] * -(-n // table.num_rows)).slice(0, n)


def real(columns: dict[str, np.ndarray | pa.Array], schema: Schema, n: int = 30_000) -> Real:
    """The truth is counted here, in Python, from the values that are repeated."""
    table = times(pa.table(columns), n)
    truth: dict[tuple[str, str | None], float] = {}
    for dimension in schema:
        values = table.column(dimension.name).to_pylist()
        if isinstance(dimension, Numeric):
            present = [dimension.default if x is None or x != x else x for x in values]
            truth[dimension.name, None] = float(np.clip(present, dimension.low, dimension.high).mean())
        else:
            labels = [dimension.categories[-1] if x is None else str(x).lower() for x in values]
            for category in dimension.categories:
                truth[dimension.name, category] = labels.count(category.lower()) / n
    return Real(table, schema, truth)


@pytest.fixture(scope="session")
def wine() -> Real:
    """Thirteen measurements of wines, in units from tenths to thousands, and the grower as an integer."""
    data = datasets.load_wine()
    names = [name.replace("/", " of ") for name in data.feature_names]
    columns = {name: data.data[:, j] for j, name in enumerate(names)}
    chosen = ["alcohol", "magnesium", "hue", "proline"]
    limits = {"alcohol": (10, 16), "magnesium": (60, 180), "hue": (0, 2), "proline": (200, 1800)}
    schema = Schema([*(Numeric(name, *limits[name]) for name in chosen), Categorical("grower", [0, 1, 2])])
    return real({**columns, "grower": data.target}, schema)


@pytest.fixture(scope="session")
def cancer() -> Real:
    """Tumours: measurements with values removed (a fixed one in fifteen), and whether the tumour is malignant."""
    data = datasets.load_breast_cancer()
    radius = data.data[:, 0].astype(object)
    radius[::15] = None
    schema = Schema(
        [
            Numeric("radius", 5, 30, default=14),
            Numeric("texture", 5, 40),
            Categorical("malignant", ["true", "false"]),
        ]
    )
    return real(
        {"radius": pa.array(radius, pa.float64()), "texture": data.data[:, 1], "malignant": data.target == 0},
        schema,
    )


@pytest.fixture(scope="session")
def iris() -> Real:
    """Flowers: species by name, some of them removed, which is an answer of its own."""
    data = datasets.load_iris()
    species = data.target_names[data.target].astype(object)
    species[::10] = None
    schema = Schema(
        [
            Numeric("sepal length", 4, 8),
            Numeric("petal width", 0, 3),
            Categorical("species", ["setosa", "versicolor", "virginica"], optional=True),
        ]
    )
    columns = {"sepal length": data.data[:, 0], "petal width": data.data[:, 3]}
    return real({**columns, "species": pa.array(species, pa.string())}, schema)
