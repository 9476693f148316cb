"""The parts of the report that show figures, each with the numbers under it; and the report of an own study."""

from __future__ import annotations

from collections.abc import Sequence

from hdr4me.pages.counted import counted
from hdr4me.pages.document import Block, Heading, Picture, Table, Text
from hdr4me.paper.cells import MECHANISMS, CellResult, title_of
from hdr4me.paper.claims.measure import METHODS, NOISY
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results
from hdr4me.paper.studies import DATASETS

OWN_TITLE = "HDR4ME on your own terms"
_METHODS = ("l1", "l2", "auto", "clip", "zeros", "oracle", "calibrated")
_UNBROKEN = str.maketrans({" ": "\u00a0", "-": "\u2011"})
_SYMBOLS = {"epsilon": "ε", "n_dims": "d"}


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


def _mse_table(cells: Sequence[CellResult], reading: Reading, axis: str) -> Table:
    """The MSE of every method in some cells, a row each; `axis` is the field of a cell that names the rows."""
    rows: list[list[object]] = []
    for result in cells:
        have = {item.method for item in result.outcomes}
        naive = result.outcome("naive")
        row = [
            f"{title_of(result.cell.mechanism)}, {_SYMBOLS[axis]} = {getattr(result.cell, axis):g}",
            f"{result.predicted_mse:.4g}",
            f"{naive.mse:.4g} ± {naive.standard_error:.1g}",
            f"{result.distance:+.2f}",
            *(f"{result.outcome(m, reading).mse:.3g}" if m in have else None for m in _METHODS),
        ]
        # No breaks inside a number or a label: eleven columns have to share the page's width.
        rows.append([item and item.translate(_UNBROKEN) for item in row])
    names = ["L1", "L2", *_METHODS[2:]]
    return Table(["", "predicted", "naive ± s.e.", "in s.e.", *names], rows)


def _legend(reading: Reading) -> str:
    return (
        f"Solid: the paper's three curves (reading of λ*: {reading.title}). Broken: what the paper does not show. "
        "Crosses: the framework's prediction of the naive curve. Bars: two standard errors."
    )


def figure4_blocks(results: Results, reading: Reading) -> list[Block]:
    """The section of Figure 4: the picture, and a table for each data set."""
    parts: list[Block] = [
        Heading("Figure 4: MSE against the budget"),
        Picture("figure-4", f"MSE against ε, every user reporting all dimensions. {_legend(reading)}"),
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
            _mse_table(cells, reading, "epsilon"),
        ]
    return parts


def figure5_blocks(results: Results, reading: Reading) -> list[Block]:
    """The section of Figure 5: the picture and its table."""
    cells = [cell for name in NOISY for cell in results.curve("fig5", "cov19", name)]
    first = cells[0]
    return [
        Heading("Figure 5: MSE against the number of dimensions"),
        Picture(
            "figure-5",
            f"{first.title}, {first.cell.n_users:,} users, ε = {first.cell.epsilon:g} shared by all d dimensions; "
            f"beyond the data's own, dimensions are drawn again at random. Reading of λ*: {reading.title}.",
        ),
        _mse_table(cells, reading, "n_dims"),
    ]


def own_lead(results: Results) -> str:
    """What was run, in one sentence."""
    cells = results.of("own")
    names = ", ".join(dict.fromkeys(title_of(result.cell.mechanism) for result in cells))
    return f"{cells[0].title}: {cells[0].cell.n_users:,} users, {counted(len(cells), 'cell')}, {names}."


def own_table(results: Results, reading: Reading) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of the MSE in each cell: the prediction, the current aggregation, and every method."""
    methods = ("naive", *_METHODS[:-1])
    rows: list[list[object]] = [
        [
            title_of(result.cell.mechanism),
            result.cell.n_dims,
            result.cell.epsilon,
            result.predicted_mse,
            *(result.outcome(method, reading).mse for method in methods),
        ]
        for panel in results.own_panels()[1]
        for result in panel
    ]
    return ["mechanism", "dimensions", "epsilon", "predicted", *methods], rows


def own_blocks(results: Results, reading: Reading) -> list[Block]:
    """Prediction against simulation, where L1 and L2 help, the figure and the numbers."""
    axis, panels = results.own_panels()
    cells = [cell for panel in panels for cell in panel]
    first = cells[0]
    farthest = max(abs(cell.distance) for cell in cells)
    rows: list[list[object]] = []
    for method in METHODS:
        better = sum(cell.enhances(method, reading) for cell in cells)
        worse = sum(cell.harms(method, reading) for cell in cells)
        rows.append([method.upper(), better, worse, len(cells) - better - worse])
    parts: list[Block] = [
        Text(
            f"Every user reports all dimensions, so each value has the budget ε/d. Data: {first.title}, "
            f"normalisation {first.normalisation}, {first.cell.n_users:,} users, {first.cell.repeats} repeats. The "
            "paper's claims are about its own data and are not judged here."
        ),
        Heading("Does the framework predict the MSE?"),
        Text(
            f"The simulated naive MSE is at most {farthest:.2f} standard errors from its prediction, "
            f"over {len(cells)} cells; chance alone gives distances of 2 to 4 where cells are many and repeats are "
            "few."
        ),
        Heading("Where re-calibration helps"),
        Text(
            "By more than two standard errors, against the current aggregation, in the reading of λ* named below."
        ),
        Table(["method", "better in", "worse in", "no difference in"], rows),
        Picture(
            "figure-own",
            f"MSE against {'the number of dimensions' if axis == 'n_dims' else 'ε'}. {_legend(reading)}",
        ),
    ]
    for panel in panels:
        name = title_of(panel[0].cell.mechanism)
        title = name if axis == "n_dims" else f"{name}, {counted(panel[0].cell.n_dims, 'dimension')}"
        parts += [Heading(title, 3), _mse_table(panel, reading, axis)]
    return parts
