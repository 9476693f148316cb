"""The parts of the report that show figures, each with the numbers under it."""

from __future__ import annotations

from collections.abc import Sequence

from hdr4me.pages.document import Block, Heading, Picture, Table, Text
from hdr4me.paper.cells import MECHANISMS, title_of
from hdr4me.paper.outcomes import CellResult
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results, outcome
from hdr4me.paper.studies import DATASETS

__all__ = ["density_blocks", "figure4_blocks", "figure5_blocks", "mse_table"]


def density_blocks(results: Results, figure: str, title: str, names: tuple[str, ...]) -> list[Block]:
    """The section of Figure 2 or 3: sizes, picture, and a row of numbers for each panel."""
    found = [results.deviations(figure, name) for name in names]
    cell = found[0].cell
    rows: list[list[object]] = [
        [
            MECHANISMS[r.cell.mechanism],
            f"{r.bias:.5g}",
            f"{r.sd:.5g}",
            f"{r.paper_sd:.5g}",
            f"{r.ks_distance:.4f}",
            f"{r.ks_p_value:.3f}",
            f"{r.berry_esseen:.4f}",
        ]
        for r in found
    ]
    return [
        Heading(title),
        Text(
            f"{cell.n_users:,} users, d = {cell.n_dims:,}, m = {cell.n_sampled}, ε = {cell.epsilon:g}, "
            f"{cell.repeats:,} collections, first dimension; {found[0].how}."
        ),
        Picture(
            f"figure-{figure[-1]}",
            f"The framework's density of the deviation and {cell.repeats:,} simulated collections.",
        ),
        Table(
            ["mechanism", "bias δ", "sd, exact", "sd, paper", "KS distance", "p-value", "Berry–Esseen bound"],
            rows,
        ),
    ]


_METHODS = ("naive", "l1", "l2", "auto", "clip", "zeros", "oracle", "calibrated")


def mse_table(cells: Sequence[CellResult], reading: Reading, key: str) -> Table:
    """The MSE of every method in some cells, a row each; `key` ("ε" or "d") names the rows."""
    rows: list[list[object]] = []
    for result in cells:
        have = {item.method for item in result.outcomes}
        naive = outcome(result, "naive")
        distance = (naive.mse - result.predicted_mse) / naive.standard_error
        row: list[object] = [
            f"{title_of(result.cell.mechanism)}, {key} = {getattr(result.cell, _FIELD[key]):g}"
        ]
        row += [
            f"{result.predicted_mse:.4g}",
            f"{naive.mse:.4g} ± {naive.standard_error:.1g}",
            f"{distance:+.2f}",
        ]
        row += [f"{outcome(result, m, reading).mse:.3g}" if m in have else None for m in _METHODS[1:]]
        # No breaks inside a number or a label: eleven columns have to share the page's width.
        rows.append([item if item is None else str(item).translate(_UNBROKEN) for item in row])
    names = ["L1", "L2", "auto", "clip", "zeros", "oracle", "calibrated"]
    return Table(["", "predicted", "naive ± s.e.", "in s.e.", *names], rows)


_UNBROKEN = str.maketrans({" ": "\u00a0", "-": "\u2011"})
_FIELD = {"ε": "epsilon", "d": "n_dims"}


def figure4_blocks(results: Results, reading: Reading) -> list[Block]:
    parts: list[Block] = [
        Heading("Figure 4: MSE against the budget"),
        Picture(
            "figure-4",
            "MSE against ε, every user reporting all dimensions. Solid: the paper's three curves (reading of λ*: "
            f"{reading.title}). Broken: what the paper does not show. Crosses: the framework's prediction of the "
            "naive curve. Bars: two standard errors.",
        ),
    ]
    for dataset in DATASETS:
        cells = [cell for name in MECHANISMS for cell in results.curve("fig4", dataset, name)]
        first = cells[0]
        parts += [
            Heading(f"{first.title}: {first.cell.n_users:,} users, {first.cell.n_dims} dimensions", 3),
            Text(
                f"Normalisation: {first.normalisation}. {first.cell.repeats} repeats. For Square wave `auto` works "
                "on the calibrated means, the last column."
            ),
            mse_table(cells, reading, "ε"),
        ]
    return parts


def figure5_blocks(results: Results, reading: Reading) -> list[Block]:
    cells = [cell for name in ("laplace", "piecewise") for cell in results.curve("fig5", "cov19", name)]
    first = cells[0]
    return [
        Heading("Figure 5: MSE against the number of dimensions"),
        Picture(
            "figure-5",
            f"{first.title}, {first.cell.n_users:,} users, ε = {first.cell.epsilon:g} shared by all d dimensions; "
            f"beyond the data's own, dimensions are drawn again at random. Reading of λ*: {reading.title}.",
        ),
        mse_table(cells, reading, "d"),
    ]
