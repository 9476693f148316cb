"""Which cells each figure is made of, at the paper's sizes and at those of a quick look."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hdr4me.errors import InvalidInput
from hdr4me.paper.cells import MECHANISMS, Cell, law_for
from hdr4me.paper.theory import STUDIES, CltCell, TheoryCell

TARGETS = ("all", "case-study", "fig2", "fig3", "table2", "fig4", "fig5", "theory", "own")
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
    """How much smaller than the paper: the noise's variance goes with d²/n, so n shrinks by d's factor squared."""

    name: str
    fewer_dims: int
    repeats: int
    clt_repeats: int

    def users(self, n: int) -> int:
        """n over the square of the dimensions' factor."""
        return n // self.fewer_dims**2

    def dims(self, d: int) -> int:
        """d over the dimensions' factor."""
        return d // self.fewer_dims


SCALES = {"quick": Scale("quick", 5, 12, 300), "full": Scale("full", 1, 100, 1000)}


def scale_named(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise InvalidInput.of("scale", name, f"use one of {', '.join(SCALES)}")
    return SCALES[name]


def cells_for(target: str, scale: Scale) -> list[AnyCell]:
    """Every cell that a target needs."""
    if target not in TARGETS:
        raise InvalidInput.of("target", target, f"use one of {', '.join(TARGETS)}")
    # The share of users who report a dimension of Figure 2 stays at 1 %: only their number shrinks.
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
    """A study of one's own; `dataset` is one of `DATASETS`, or "data" for a file."""

    dataset: str
    n_users: int
    dims: tuple[int, ...]
    budgets: tuple[float, ...]
    mechanisms: tuple[str, ...]


def own_cells(own: Own, scale: Scale) -> list[AnyCell]:
    """One cell for each mechanism, number of dimensions and budget; every user reports all dimensions."""
    for number in own.dims:
        if not 1 <= number <= 65536:
            raise InvalidInput.of("dims", number, "integers from 1 to 65536")
    for epsilon in own.budgets:
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise InvalidInput.of("epsilon", epsilon, "finite numbers > 0")
    if own.n_users < 2:
        raise InvalidInput.of("users", own.n_users, "an integer of at least 2")
    for name in own.mechanisms:
        law_for(name, 1.0)
    return [
        Cell("own", own.dataset, name, epsilon, own.n_users, d, scale.repeats)
        for name in dict.fromkeys(own.mechanisms)
        for d in sorted(set(own.dims))
        for epsilon in sorted(set(own.budgets))
    ]
