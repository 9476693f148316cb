"""Writes what a run found: the report, the figures, and the numbers behind them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.atomic import replacing, write_text
from hdr4me.pages import html
from hdr4me.pages.document import to_html, to_markdown
from hdr4me.paper.case_study import TABLE_COLUMNS, table2
from hdr4me.paper.claims import Verdict
from hdr4me.paper.figures import draw
from hdr4me.paper.report import TITLE, About, blocks_of, lead_of, support_of
from hdr4me.paper.report_figures import OWN_TITLE, own_lead
from hdr4me.paper.results import COLUMNS, Results, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CLT = ("figure", "mechanism", "epsilon", "n_users", "n_dims", "n_sampled", "repeats")
_CLT_FOUND = (
    "seed",
    "how",
    "true_mean",
    "bias",
    "sd",
    "paper_sd",
    "berry_esseen",
    "ks_distance",
    "ks_p_value",
)


def as_first_run(about: About, output: Path) -> About:
    """Where nothing was computed anew, the record of the run that did, if `output` has one of the same numbers.

    Drawing a report again must not make its run look shorter, or its machine another.
    """
    try:
        before = json.loads((output / "run.json").read_text(encoding="utf-8"))
        same = (before["scale"], before["seed"], before["processor_seconds"]) == (
            about.scale,
            about.seed,
            about.processor_seconds,
        )
        record = {name: before[name] for name in ("workers", "machine", "seconds", "kept")}
    except (OSError, ValueError, KeyError):
        return about
    return replace(about, **record) if same else about


def publish(results: Results, verdicts: Sequence[Verdict], about: About, output: Path) -> list[str]:
    """Write everything into `output` and return the files' names."""
    output.mkdir(parents=True, exist_ok=True)
    figures = draw(results, about.reading)
    drawings = {name: html.svg(figure) for name, figure in figures.items()}
    blocks = blocks_of(results, verdicts, about)
    lead = lead_of(verdicts) if verdicts else "The paper's case study, computed anew."
    own = results.has("own")
    title, lead = (OWN_TITLE, own_lead(results)) if own else (TITLE, lead)
    files = {
        "report.html": to_html(title, lead, blocks, drawings),
        "report.md": to_markdown(title, lead, blocks),
        **({} if own else {"table-2.csv": _csv(TABLE_COLUMNS, table2())}),
        "run.json": _json({**asdict(about), "reading": about.reading.name}),
    }
    if verdicts:
        counted = support_of(verdicts)
        files["claims.json"] = _json(
            {"claims": [asdict(v) for v in verdicts], "claims_that_hold_under_a_reading": dict(counted)}
        )
    if results.clt:
        files |= _deviations(results)
    if results.theory:
        rows = [[r.cell.study, name, value] for r in results.theory for name, value in r.numbers.items()]
        files["theory.csv"] = _csv(("study", "quantity", "value"), rows)
    files |= {f"{name}.svg": drawing for name, drawing in drawings.items()}
    for name, text in files.items():
        write_text(output / name, text)
    written = [*files, *_pictures(figures, output)]
    if results.cells:
        numbers = rows_of(results.cells)
        write_text(output / "numbers.csv", _csv(COLUMNS, [list(row.values()) for row in numbers]))
        _parquet(numbers, output / "numbers.parquet")
        written += ["numbers.csv", "numbers.parquet"]
    return sorted(written)


def _deviations(results: Results) -> dict[str, str]:
    """One line per panel of Figures 2 and 3, and every simulated deviation."""
    panels = [
        [*(getattr(r.cell, name) for name in _CLT), *(getattr(r, name) for name in _CLT_FOUND)]
        for r in results.clt
    ]
    points = [
        [r.cell.figure, r.cell.mechanism, number, f"{value:.9g}"]
        for r in results.clt
        for number, value in enumerate(r.deviations)
    ]
    return {
        "deviations.csv": _csv((*_CLT, *_CLT_FOUND), panels),
        "deviations-simulated.csv": _csv(("figure", "mechanism", "repeat", "deviation"), points),
    }


def _pictures(figures: Mapping[str, Figure], output: Path) -> list[str]:
    for name, figure in figures.items():
        with replacing(output / f"{name}.png") as path:
            figure.savefig(path, format="png", dpi=110, metadata={"Software": None})
        with replacing(output / f"{name}.pdf") as path:
            figure.savefig(path, format="pdf", metadata={"CreationDate": None})
    return [f"{name}.{kind}" for name in figures for kind in ("png", "pdf")]


def _csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _json(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _parquet(rows: list[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows), temporary)
