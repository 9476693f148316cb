"""`study`: predicted and simulated error of mechanisms and re-calibration methods on data of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.pages import html
from hdr4me.pages.text import pluralize
from hdr4me.paper.cells import Cell, CellResult, run_cell
from hdr4me.paper.datasets import (
    SYNTHETIC,
    Dataset,
    check_normalization,
    chosen_dimensions,
    load_own,
    synthetic,
)
from hdr4me.paper.datasets import normalize as scaled_column
from hdr4me.paper.methods import DEFAULT, METHODS, LambdaChoice, lambda_choice_named
from hdr4me.paper.studies import DATASETS, Own, Results, own_cells, study_rows


@dataclass(frozen=True, repr=False)
class Study:
    """The cells of a study: one for each mechanism, budget and number of dimensions.

    Parameters
    ----------
    results
        The finished cells.
    lambda_choice, methods
        The choice of λ* for L1 and L2, and the methods of the table.

    Examples
    --------
    >>> import numpy as np
    >>> result = study(np.random.default_rng(1).uniform(-1, 1, (1000, 4)), "laplace", epsilon=[4, 8], repeats=10)
    >>> [(row["epsilon"], row["method"]) for row in result.table][:2]
    [(4.0, 'naive'), (4.0, 'l1')]
    """

    results: tuple[CellResult, ...]
    lambda_choice: LambdaChoice
    methods: tuple[str, ...]

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for each cell and method: predicted MSE, simulated MSE and its standard error.

        The predicted MSE of `auto` is an average over as many draws of the means as there are repeats, that of the
        other methods an integral.
        """
        return study_rows(self.results, self.lambda_choice, self.methods)

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> Any:
        """The table as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.table)

    def plot(self) -> Any:
        """MSE curves in the style of Figures 4 and 5: a matplotlib figure with one panel for each mechanism.

        Bars are two standard deviations of the MSE of a single collection; crosses are the predicted MSE.
        """
        from hdr4me.paper.figures import drawn

        axis, panels = Results(self.results, ()).own_panels()
        return drawn(panels, axis, self.lambda_choice)

    def __repr__(self) -> str:
        cell = self.results[0].cell
        cells = pluralize(len(self.results), "setting")
        return f"<Study of {cell.users:,} users, {cells}, methods {', '.join(self.methods)}>"

    def _repr_html_(self) -> str:
        rows = self.table
        return html.paragraph(repr(self)[1:-1]) + html.table(
            tuple(rows[0]), [tuple(row.values()) for row in rows]
        )


def study(
    data: Any,
    mechanisms: str | Sequence[str] = ("laplace", "piecewise", "square_wave"),
    epsilon: float | Sequence[float] = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
    sampled: int | Sequence[int] | None = None,
    methods: Sequence[str] = ("naive", "l1", "l2"),
    repeats: int = 20,
    seed: int = 1,
    workers: int = 1,
    *,
    dims: int | Sequence[int] | None = None,
    normalize: str = "auto",
    lambda_choice: str = DEFAULT.name,
) -> Study:
    """Predict and simulate the MSE of mechanisms and methods on these data, as in Figures 4 and 5 of the paper.

    Every argument that accepts a list is swept.

    Parameters
    ----------
    data
        Numbers [users, dimensions] as an array or data frame, a file, or "gaussian", "poisson", "uniform" or "cov19".
    mechanisms
        Names of mechanisms, also registered ones.
    epsilon, sampled
        The total budget, and how many dimensions each user reports: None is all of them.
    methods
        Some of "naive", "l1", "l2", "auto", "oracle", "clip", "zeros" and "calibrated".
    repeats, seed, workers
        Simulated collections per cell, the seed, and the number of threads. The threads do not change the numbers.
    dims
        Numbers of dimensions, drawn from those of the data as in Figure 5; None is all of them.
    normalize
        "min-max" scales each dimension to [−1, 1] by its extremes; "fixed" clips the values to [−1, 1]. "auto" is
        "min-max" for own data, and the one of the figures for a data set by name.
    lambda_choice
        The choice of λ* for L1 and L2, such as "z2-noise-domain".

    Examples
    --------
    >>> result = study("gaussian", ["laplace"], epsilon=8.0, methods=("naive", "l1"), repeats=5, dims=8)
    >>> print(result)
    <Study of 100,000 users, 1 setting, methods naive, l1>
    """
    chosen = lambda_choice_named(lambda_choice)
    method_names = tuple(dict.fromkeys(["naive", *methods]))
    for name in method_names:
        if name not in METHODS:
            raise InvalidInput.of("methods", name, f"use some of {', '.join(METHODS)}")
    sizes = _many(dims) if dims is not None else None
    dataset = _dataset(data, max(sizes) if sizes else None, seed, check_normalization(normalize))
    own = Own(
        dataset.name,
        dataset.users,
        sizes or (dataset.dims,),
        tuple(float(e) for e in _many(epsilon)),
        tuple(_many(mechanisms)),
        repeats,
        () if sampled is None else _many(sampled),
    )
    cells = own_cells(own)

    def run(cell: Cell) -> CellResult:
        columns = np.arange(dataset.dims)
        if cell.dims != dataset.dims:
            columns = chosen_dimensions(dataset.dims, cell.dims, seed)
        return run_cell(cell, dataset, columns, seed, method_names)

    with ThreadPoolExecutor(max(workers, 1)) as pool:
        return Study(tuple(pool.map(run, cells)), chosen, method_names)


def _many(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, str) or np.ndim(given) == 0 else tuple(given)


def _numbers(data: Any) -> NDArray[np.float64] | None:
    """The data as numbers, or None; the message of NumPy would show a value."""
    try:
        return np.asarray(data, dtype=np.float64)
    except Exception:  # of NumPy or of the library of a frame
        return None


def _not_finite(data: Any) -> list[str]:
    """The columns of a frame that are not finite numbers; none if it does not give its columns."""
    names = getattr(data, "column_names", getattr(data, "columns", ()))
    try:
        columns = {str(name): _numbers(data[name]) for name in names}
    except (TypeError, KeyError):  # a lazy frame, or two columns of one name
        return []
    return [name for name, values in columns.items() if values is None or not np.isfinite(values).all()]


def _dataset(data: Any, dims: int | None, seed: int, way: str) -> Dataset:
    """The data in [−1, 1]."""
    if isinstance(data, str) and data in SYNTHETIC:
        users, own = DATASETS[data]
        return synthetic(data, users, dims or own, seed, way)
    if isinstance(data, str | Path):
        return load_own(Path(data), way=way)
    values = _numbers(data)
    if values is None or values.ndim != 2 or len(values) < 2 or not np.isfinite(values).all():
        unusable = _not_finite(data)
        columns = f"; check the columns {', '.join(unusable)}" if unusable else ""
        raise InvalidInput(
            f"data must be finite numbers [users, dimensions], with at least two users{columns}"
        )
    way = "min-max" if way == "auto" else way
    scaled = [scaled_column(values[:, j], way, -1.0, 1.0) for j in range(values.shape[1])]
    return Dataset("data", "own data", len(values), len(scaled), way, lambda j: scaled[j])
