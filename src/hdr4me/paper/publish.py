"""Writes what a run found: the report, the figures, and the numbers behind them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hdr4me.atomic import replacing, write_text
from hdr4me.pages import html
from hdr4me.pages.document import to_html, to_markdown
from hdr4me.paper.case_study import TABLE_COLUMNS, table2
from hdr4me.paper.claims import Verdict
from hdr4me.paper.figures import draw
from hdr4me.paper.report import OWN_TITLE, TITLE, About, blocks_of, lead_of, own_lead, support_of
from hdr4me.paper.results import COLUMNS, Results, rows_of

_CLT = ("figure", "mechanism", "epsilon", "n_users", "n_dims", "n_sampled", "repeats")
_FOUND = ["seed", "how", "true_mean", "bias", "sd", "paper_sd", "berry_esseen", "ks_distance", "ks_p_value"]


def as_first_run(about: About, output: Path) -> About:
    """Where nothing was computed anew: `about` with time and machine of the run in `output` that made the numbers."""
    try:
        before = json.loads((output / "run.json").read_text(encoding="utf-8"))
        same = all(before[name] == getattr(about, name) for name in ("scale", "seed", "processor_seconds"))
        record = {name: before[name] for name in ("workers", "machine", "seconds", "kept")}
    except (OSError, ValueError, KeyError):
        return about
    return replace(about, **record) if same else about


def publish(results: Results, verdicts: Sequence[Verdict], about: About, output: Path) -> list[str]:
    """Write everything into `output` and return the files' names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    output.mkdir(parents=True, exist_ok=True)
    figures = draw(results, about.reading)
    drawings = {name: html.svg(figure) for name, figure in figures.items()}
    blocks = blocks_of(results, verdicts, about)
    own = results.has("own")
    title = OWN_TITLE if own else TITLE
    lead = "The paper's case study, computed anew."
    if own or verdicts:
        lead = own_lead(results) if own else lead_of(verdicts)
    files = {
        "report.html": to_html(title, lead, blocks, drawings),
        "report.md": to_markdown(title, lead, blocks),
        "run.json": _json({**asdict(about), "reading": about.reading.name}),
        **{f"{name}.svg": drawing for name, drawing in drawings.items()},
    }
    if not own:
        files["table-2.csv"] = _csv(TABLE_COLUMNS, table2())
    if verdicts:
        claims = {"claims": [asdict(v) for v in verdicts]}
        files["claims.json"] = _json({**claims, "claims_that_hold_under_a_reading": support_of(verdicts)})
    if results.clt:
        panels = [[*(vars(r.cell)[k] for k in _CLT), *(vars(r)[k] for k in _FOUND)] for r in results.clt]
        points = [
            [r.cell.figure, r.cell.mechanism, number, f"{value:.9g}"]
            for r in results.clt
            for number, value in enumerate(r.deviations)
        ]
        files["deviations.csv"] = _csv((*_CLT, *_FOUND), panels)
        files["deviations-simulated.csv"] = _csv(("figure", "mechanism", "repeat", "deviation"), points)
    if results.theory:
        rows = [[r.cell.study, name, value] for r in results.theory for name, value in r.numbers.items()]
        files["theory.csv"] = _csv(("study", "quantity", "value"), rows)
    numbers = rows_of(results.cells)
    if numbers:
        files["numbers.csv"] = _csv(COLUMNS, [list(row.values()) for row in numbers])
    for name, text in files.items():
        write_text(output / name, text)
    written = [*files, *(f"{name}.{kind}" for name in figures for kind in ("png", "pdf"))]
    for name, figure in figures.items():
        with replacing(output / f"{name}.png") as path:
            figure.savefig(path, format="png", dpi=110, metadata={"Software": None})
        with replacing(output / f"{name}.pdf") as path:
            figure.savefig(path, format="pdf", metadata={"CreationDate": None})
    if numbers:
        written.append("numbers.parquet")
        with replacing(output / "numbers.parquet") as path:
            pq.write_table(pa.Table.from_pylist(numbers), path)
    return sorted(written)


def _csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _json(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
