"""The main job from end to end on a simulated panel: survey, perturb, tally, estimate, and a page that shows it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hdr4me.atomic import replacing, write_text
from hdr4me.demo.population import panel, panel_schema
from hdr4me.engines import Local
from hdr4me.statistics import Answer
from hdr4me.survey import Categorical, Schema, Survey
from hdr4me.tally import Tally


@dataclass(frozen=True)
class Demo:
    """What the demonstration made, and the truth that a real collector never sees."""

    survey: Survey
    tally: Tally
    estimate: Answer
    better: Answer
    truth: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def coverage(self) -> float:
        """The share of 95 % intervals that hold the truth."""
        held = [bool(row["lower"] <= row["true"] <= row["upper"]) for row in self.rows]
        return sum(held) / len(held)

    @property
    def advice(self) -> str:
        """What re-calibration did to the means, and what it really gained: here the truth is known."""
        means = self.estimate.means
        low, high = np.array([self.survey.schema[name].bounds for name in means.dimensions]).T
        true = 2 * (np.array([self.truth[name] for name in means.dimensions]) - low) / (high - low) - 1
        before, after = (
            float(np.mean((found.scaled_value - true) ** 2)) for found in (means, self.better.means)
        )
        said = self.better.advice[0]
        chance = " (so small a difference is chance)" if abs(after - before) < 0.1 * before else ""
        return (
            f"{said} The true mean square errors on [-1, 1]: {before:.3g} before, {after:.3g} after{chance}."
        )


Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Called with the name of a step and its number of records; yields what is called with records that are done."""


def run_demo(
    folder: Path,
    *,
    n_users: int,
    epsilon: float,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
    progress: Progress = lambda label, total: nullcontext(lambda count: None),
) -> Demo:
    """Every step as a collector would take it, with its file left in `folder`; `say` gets a sentence before each step.

    Only the panel is seeded; the reports are not: they use the system's randomness, so each run differs a little.
    """
    from hdr4me.demo.page import demo_page, draw_days
    from hdr4me.pages.html import svg

    schema = panel_schema()
    say(f"designing the survey: epsilon = {epsilon:g}, one dimension from each user, optimal tables")
    survey = Survey(schema, epsilon=epsilon, mechanism="optimal", n_sampled=1, name="fitness panel")
    folder.mkdir(parents=True, exist_ok=True)
    survey.save(folder / "survey.json")
    say(f"simulating {n_users:,} wearers of a fitness band, {len(schema)} dimensions")
    records = panel(n_users, seed)
    with replacing(folder / "records.parquet") as temporary:
        pq.write_table(records, temporary)
    say("perturbing every record with cryptographic randomness")
    engine = Local()
    with progress("perturbing", n_users) as advance:
        engine.perturb(folder / "records.parquet", survey, folder / "reports.parquet", progress=advance)
    say("tallying the reports")
    with progress("tallying", n_users) as advance:
        tally = engine.tally([folder / "reports.parquet"], survey, progress=advance)
    tally.save(folder / "panel.tally")
    say("estimating and re-calibrating")
    estimate = tally.estimate()
    truth = true_values(records, schema)
    rows = estimate.table(0.95)
    for row in rows:
        known = truth[row["dimension"]]
        row["true"] = known[row["category"]] if row["category"] else known
    demo = Demo(survey, tally, estimate, estimate.recalibrate("auto"), truth, rows)
    write_text(folder / "report.html", demo_page(demo))
    write_text(folder / "day.svg", svg(draw_days(demo)))
    return demo


def true_values(records: pa.Table, schema: Schema) -> dict[str, Any]:
    """The means and frequencies of the panel after the client's own cleaning: defaults for gaps, clamped to range."""
    truth: dict[str, Any] = {}
    for name in schema.columns:
        dimension: Any = schema[name]
        column: Any = records[name]
        found = column.fill_null(dimension.default).to_numpy()
        if isinstance(dimension, Categorical):
            truth[name] = {c: float(np.mean(found == c)) for c in dimension.categories}
        else:
            truth[name] = float(np.clip(found, *dimension.bounds).mean())
    return truth
