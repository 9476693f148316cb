"""The report of a study of one's own: the framework's prediction and every method, on one's own terms."""

from __future__ import annotations

from hdr4me.pages.counted import counted
from hdr4me.pages.document import Block, Heading, Picture, Table, Text
from hdr4me.paper.cells import title_of
from hdr4me.paper.claims.measure import enhances, harms
from hdr4me.paper.figures.own import own_panels
from hdr4me.paper.readings import Reading
from hdr4me.paper.report_figures import mse_table
from hdr4me.paper.results import Results, outcome

__all__ = ["OWN_TITLE", "own_blocks", "own_lead", "own_table"]

OWN_TITLE = "HDR4ME on your own terms"


def own_lead(results: Results) -> str:
    """What was run, in one sentence."""
    cells = [result for result in results.cells if result.cell.figure == "own"]
    names = ", ".join(dict.fromkeys(title_of(result.cell.mechanism) for result in cells))
    return f"{cells[0].title}: {cells[0].cell.n_users:,} users, {counted(len(cells), 'cell')}, {names}."


def own_table(results: Results, reading: Reading) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of the MSE in each cell: what was foretold, the current aggregation, and every method."""
    methods = ("naive", "l1", "l2", "auto", "clip", "zeros", "oracle")
    rows: list[list[object]] = [
        [
            title_of(result.cell.mechanism),
            result.cell.n_dims,
            result.cell.epsilon,
            result.predicted_mse,
            *(outcome(result, method, reading).mse for method in methods),
        ]
        for panel in own_panels(results)[1]
        for result in panel
    ]
    return ["mechanism", "dimensions", "epsilon", "predicted", *methods], rows


def own_blocks(results: Results, reading: Reading) -> list[Block]:
    """Prediction against simulation, where L1 and L2 help, the figure and the numbers."""
    axis, panels = own_panels(results)
    cells = [cell for panel in panels for cell in panel]
    first = cells[0]
    distances = [
        (outcome(cell, "naive").mse - cell.predicted_mse) / outcome(cell, "naive").standard_error
        for cell in cells
    ]
    rows: list[list[object]] = []
    for method in ("l1", "l2"):
        better = sum(enhances(cell, method, reading) for cell in cells)
        worse = sum(harms(cell, method, reading) for cell in cells)
        rows.append([method.upper(), better, worse, len(cells) - better - worse])
    parts: list[Block] = [
        Text(
            f"Every user reports all dimensions, so each value has the budget ε/d. Data: {first.title}, "
            f"normalisation {first.normalisation}, {first.cell.n_users:,} users, {first.cell.repeats} repeats. The "
            "paper's claims are about its own data and are not judged here."
        ),
        Heading("Does the framework predict the MSE?"),
        Text(
            f"The simulated naive MSE is at most {max(map(abs, distances)):.2f} standard errors from its prediction, "
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
            f"MSE against {'the number of dimensions' if axis == 'n_dims' else 'ε'}. Solid: the paper's three curves "
            f"(reading of λ*: {reading.title}). Broken: what the paper does not show. Crosses: the framework's "
            "prediction of the naive curve. Bars: two standard errors.",
        ),
    ]
    for panel in panels:
        name = title_of(panel[0].cell.mechanism)
        title = name if axis == "n_dims" else f"{name}, {counted(panel[0].cell.n_dims, 'dimension')}"
        parts += [Heading(title, 3), mse_table(panel, reading, "d" if axis == "n_dims" else "ε")]
    return parts
