"""All finished cells of a run, and how figures and claims ask for their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hdr4me.paper.cells import CellResult
from hdr4me.paper.theory import CltResult, TheoryResult

AnyResult = CellResult | CltResult | TheoryResult
_ABOVE = ("some_above", "all_above", "share_above")
_CELL = "figure dataset data stand_in normalisation mechanism epsilon n_users n_dims repeats seed how"
_OUTCOME = "method width spread reference mse standard_error better weight predicted_mse"
# One line per cell and method: the numbers behind Figures 4 and 5.
COLUMNS = (
    *_CELL.split(),
    *_OUTCOME.split(),
    *(f"{name}_{threshold}" for threshold in (1, 2) for name in _ABOVE),
)


@dataclass(frozen=True)
class Results:
    """The cells of Figures 4 and 5, those of 2 and 3, and the studies of lemmas and theorems."""

    cells: tuple[CellResult, ...]
    clt: tuple[CltResult, ...]
    theory: tuple[TheoryResult, ...] = ()

    def of(self, figure: str) -> list[CellResult]:
        """The cells of Figure 4, of Figure 5 or of an own study."""
        return [result for result in self.cells if result.cell.figure == figure]

    def curve(self, figure: str, dataset: str, mechanism: str) -> list[CellResult]:
        """The cells of one panel, by budget (Figure 4) or number of dimensions (Figure 5)."""
        chosen = [r for r in self.of(figure) if (r.cell.dataset, r.cell.mechanism) == (dataset, mechanism)]
        return sorted(chosen, key=lambda result: (result.cell.n_dims, result.cell.epsilon))

    def own_panels(self) -> tuple[str, list[list[CellResult]]]:
        """What runs along the axis of an own study ("epsilon" or "n_dims"), and the cells of each panel."""
        cells = self.of("own")
        by_size = len({c.cell.epsilon for c in cells}) == 1 and len({c.cell.n_dims for c in cells}) > 1
        panels: dict[tuple[str, int], list[CellResult]] = {}
        for result in cells:
            size = 0 if by_size else result.cell.n_dims
            panels.setdefault((result.cell.mechanism, size), []).append(result)
        axis = "n_dims" if by_size else "epsilon"
        return axis, [sorted(panel, key=lambda r: getattr(r.cell, axis)) for panel in panels.values()]

    def has(self, figure: str) -> bool:
        """Whether this figure was run."""
        found: list[AnyResult] = [*self.cells, *self.clt, *self.theory]
        return any(result.cell.figure == figure for result in found)

    def study(self, name: str) -> TheoryResult:
        """The numbers of one study of the theory."""
        return next(result for result in self.theory if result.cell.study == name)

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


def rows_of(results: Sequence[CellResult]) -> list[dict[str, Any]]:
    """One dictionary per cell and method, with the keys of `COLUMNS`."""
    rows = []
    for result in results:
        about = {**asdict(result.cell), **vars(result), "data": result.title}
        about |= {f"{name}_{k}": vars(result)[name][k - 1] for name in _ABOVE for k in (1, 2)}
        rows += [{**about, **vars(item)} for item in result.outcomes]
    return [{name: row[name] for name in COLUMNS} for row in rows]
