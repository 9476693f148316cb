"""The main job from end to end on a simulated panel: survey, perturb, tally, estimate, and a page that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

__all__ = ["Demo", "run_demo"]


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


@contextmanager
def _unseen(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Progress that nobody watches."""
    yield lambda count: None


def run_demo(
    folder: Path,
    *,
    n_users: int,
    epsilon: float,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
    progress: Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]] = _unseen,
) -> Demo:
    """Every step as a collector would take it, with its file left in `folder`.

    Only the panel is seeded; the reports are not: they use the system's randomness, so each run differs a little.

    Parameters
    ----------
    folder
        Where the files go.
    n_users, epsilon, seed
        The size of the panel, the budget of a user, the seed of the panel.
    say
        Called with a sentence before each step.
    progress
        Called with the name of a step and its number of records; yields what is called with records that are done.
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
    rows = [
        {
            **row,
            "true": truth[row["dimension"]][row["category"]] if row["category"] else truth[row["dimension"]],
        }
        for row in estimate.table(0.95)
    ]
    demo = Demo(survey, tally, estimate, estimate.recalibrate("auto"), truth, rows)
    write_text(folder / "report.html", demo_page(demo))
    write_text(folder / "day.svg", svg(draw_days(demo)))
    return demo


def true_values(records: pa.Table, schema: Schema) -> dict[str, Any]:
    """The means and frequencies of the panel after the client's own cleaning: defaults for gaps, clamped to range."""
    truth: dict[str, Any] = {}
    for dimension in (schema[name] for name in schema.columns):
        column: Any = records[dimension.name]
        if isinstance(dimension, Categorical):
            found = column.fill_null(dimension.default).to_numpy()
            truth[dimension.name] = {c: float(np.mean(found == c)) for c in dimension.categories}
        elif isinstance(dimension, Numeric):
            found = column.fill_null(dimension.default).to_numpy()
            truth[dimension.name] = float(np.clip(found, dimension.low, dimension.high).mean())
    return truth
