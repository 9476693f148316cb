"""The cells of each figure, and access to the numbers of finished cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.registry import built_in, registered
from hdr4me.paper.cells import MECHANISMS, Cell, CellResult
from hdr4me.paper.methods import METHODS, LambdaChoice
from hdr4me.paper.theory import STUDIES, CltCell, CltResult, TheoryCell, TheoryResult

TARGETS = ("all", "case-study", "fig2", "fig3", "table2", "fig4", "fig5", "theory")
AnyCell = Cell | CltCell | TheoryCell
# Users and dimensions of section VI.
DATASETS = {
    "gaussian": (100_000, 100),
    "poisson": (150_000, 300),
    "uniform": (120_000, 500),
    "cov19": (150_000, 750),
}
BUDGETS = {
    "laplace": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
    "piecewise": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
    "square_wave": (0.1, 10.0, 100.0, 500.0, 1000.0, 5000.0),
}
DIMENSIONS = (50, 100, 200, 400, 800, 1600)  # of Figure 5, under ε = 0.8


@dataclass(frozen=True)
class Scale:
    """Sizes relative to the paper. The noise variance is proportional to d²/n, so n has the squared factor of d."""

    name: str
    fewer_dims: int
    repeats: int
    clt_repeats: int

    def users(self, n: int) -> int:
        """The number of users at this scale."""
        return n // self.fewer_dims**2

    def dims(self, d: int) -> int:
        """The number of dimensions at this scale."""
        return d // self.fewer_dims


SCALES = {"quick": Scale("quick", 5, 12, 300), "full": Scale("full", 1, 100, 1000)}


def scale_named(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise InvalidInput.of("scale", name, f"use one of {', '.join(SCALES)}")
    return SCALES[name]


def cells_for(target: str, scale: Scale) -> list[AnyCell]:
    """The cells of a target."""
    if target not in TARGETS:
        raise InvalidInput.of("target", target, f"use one of {', '.join(TARGETS)}")
    # In Figure 2 the share of users who report a dimension is 1 % at every scale.
    n2, n5, repeats = max(scale.users(200_000), 40_000), scale.users(DATASETS["cov19"][0]), scale.clt_repeats
    figures: dict[str, list[AnyCell]] = {
        "fig2": [CltCell("fig2", name, 1.0, n2, 5000, 50, repeats) for name in MECHANISMS],
        "fig3": [
            CltCell("fig3", name, 0.1, 10_000, 100, 100, repeats) for name in ("piecewise", "square_wave")
        ],
        "fig4": [
            Cell("fig4", data, name, epsilon, scale.users(n), scale.dims(d), scale.repeats)
            for data, (n, d) in DATASETS.items()
            for name in MECHANISMS
            for epsilon in BUDGETS[name]
        ],
        "fig5": [
            Cell("fig5", "cov19", name, 0.8, n5, scale.dims(d), scale.repeats)
            for name in ("laplace", "piecewise")
            for d in DIMENSIONS
        ],
        "theory": [TheoryCell(name, repeats) for name in STUDIES],
    }
    if target == "all":
        return [cell for cells in figures.values() for cell in cells]
    return figures.get("fig3" if target == "case-study" else target, [])


@dataclass(frozen=True)
class Own:
    """A study of one's own data; `dataset` is one of `DATASETS`, or "data" for a file."""

    dataset: str
    users: int
    dims: tuple[int, ...]
    budgets: tuple[float, ...]
    mechanisms: tuple[str, ...]
    repeats: int
    sampled: tuple[int, ...] = ()


def own_cells(own: Own) -> list[Cell]:
    """One cell for each mechanism, number of dimensions, number of reported dimensions, and budget."""
    for number in own.dims:
        if not 1 <= number <= 65536:
            raise InvalidInput.of("dims", number, "integers from 1 to 65536")
    for number in own.sampled:
        if not 1 <= number <= max(own.dims):
            raise InvalidInput.of(
                "sampled", number, f"integers from 1 to {max(own.dims)}, the number of dimensions"
            )
    if own.repeats < 2:
        raise InvalidInput.of("repeats", own.repeats, "an integer of at least 2")
    for epsilon in own.budgets:
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise InvalidInput.of("epsilon", epsilon, "finite numbers > 0")
    if own.users < 2:
        raise InvalidInput.of("users", own.users, "an integer of at least 2")
    for name in own.mechanisms:
        registered(name)
    cells = [
        Cell("own", own.dataset, name, epsilon, own.users, d, own.repeats, m if m and m < d else None)
        for name in dict.fromkeys(own.mechanisms)
        for d in sorted(set(own.dims))
        for m in sorted({min(m, d) for m in own.sampled or (0,)})
        for epsilon in sorted(set(own.budgets))
    ]
    for cell in cells:
        if cell.mechanism not in built_in():
            try:
                cell.law.variance(0.0)
            except Exception as error:  # a law of another package may raise any exception
                reason = f"{error or type(error).__name__} (budget of one value: {cell.epsilon / cell.m:g})"
                raise InvalidInput.of("mechanism", cell.mechanism, reason) from error
    return cells


# -- results -----------------------------------------------------------------------------------------------------

AnyResult = CellResult | CltResult | TheoryResult
_ABOVE = ("some_above", "all_above", "share_above")
_CELL = "figure dataset data stand_in normalization mechanism epsilon users dims sampled repeats seed how"
_OUTCOME = "method width spread reference mse standard_error better weight predicted_mse"
# The columns of the numbers of Figures 4 and 5: one row for each cell and method.
COLUMNS = (
    *_CELL.split(),
    *_OUTCOME.split(),
    *(f"{name}_{threshold}" for threshold in (1, 2) for name in _ABOVE),
)


@dataclass(frozen=True)
class Results:
    """The cells of Figures 4 and 5, the cells of Figures 2 and 3, and the studies of the theory."""

    cells: tuple[CellResult, ...]
    clt: tuple[CltResult, ...]
    theory: tuple[TheoryResult, ...] = ()

    def of(self, figure: str) -> list[CellResult]:
        """The cells of Figure 4, of Figure 5 or of a study of one's own."""
        return [result for result in self.cells if result.cell.figure == figure]

    def curve(self, figure: str, dataset: str, mechanism: str) -> list[CellResult]:
        """The cells of one panel, sorted by dimensions and budget."""
        chosen = [r for r in self.of(figure) if (r.cell.dataset, r.cell.mechanism) == (dataset, mechanism)]
        return sorted(chosen, key=lambda result: (result.cell.dims, result.cell.epsilon))

    def own_panels(self) -> tuple[str, list[list[CellResult]]]:
        """The axis of a study of one's own ("epsilon", "dims" or "m"), and the cells of each panel."""
        cells = self.of("own")
        varied = [
            name for name in ("epsilon", "dims", "m") if len({getattr(c.cell, name) for c in cells}) > 1
        ]
        axis = varied[0] if varied else "epsilon"
        others = {"epsilon": ("dims", "sampled"), "dims": ("sampled",), "m": ("dims",)}[axis]
        panels: dict[tuple[object, ...], list[CellResult]] = {}
        for result in cells:
            key = (result.cell.mechanism, *(getattr(result.cell, name) for name in others))
            panels.setdefault(key, []).append(result)
        return axis, [sorted(panel, key=lambda r: getattr(r.cell, axis)) for panel in panels.values()]

    def has(self, figure: str) -> bool:
        """Whether this figure was run."""
        found: list[AnyResult] = [*self.cells, *self.clt, *self.theory]
        return any(result.cell.figure == figure for result in found)

    def study(self, name: str) -> dict[str, float]:
        """The numbers of a study of the theory."""
        return next(result.numbers for result in self.theory if result.cell.study == name)

    def deviations(self, figure: str, mechanism: str) -> CltResult:
        """The cell of Figure 2 or 3 for this mechanism."""
        return next(r for r in self.clt if (r.cell.figure, r.cell.mechanism) == (figure, mechanism))


def gather(finished: Iterable[AnyResult]) -> Results:
    """The results of a run, in the order given."""
    items = list(finished)
    return Results(
        cells=tuple(item for item in items if isinstance(item, CellResult)),
        clt=tuple(item for item in items if isinstance(item, CltResult)),
        theory=tuple(item for item in items if isinstance(item, TheoryResult)),
    )


def study_rows(
    results: Sequence[CellResult], choice: LambdaChoice, methods: Sequence[str] = METHODS
) -> list[dict[str, Any]]:
    """The table of a study: one row for each cell and method, with predicted and simulated MSE."""
    rows = []
    for result in results:
        cell, have = result.cell, {item.method for item in result.outcomes}
        about = {name: getattr(cell, name) for name in ("mechanism", "epsilon", "users", "dims")}
        for method in (name for name in methods if name in have):
            found = result.outcome(method, choice)
            rows.append(
                about
                | {"sampled": cell.m, "method": method, "predicted_mse": found.predicted_mse}
                | {"mse": found.mse, "standard_error": found.standard_error}
                | {"ratio_to_naive": found.mse / result.outcome("naive").mse}
            )
    return rows


def rows_of(results: Sequence[CellResult]) -> list[dict[str, Any]]:
    """One dictionary per cell and method, with the keys of `COLUMNS`."""
    rows = []
    for result in results:
        about = {**asdict(result.cell), **vars(result), "data": result.title, "sampled": result.cell.m}
        about |= {f"{name}_{k}": vars(result)[name][k - 1] for name in _ABOVE for k in (1, 2)}
        rows += [{**about, **vars(item)} for item in result.outcomes]
    return [{name: row[name] for name in COLUMNS} for row in rows]
