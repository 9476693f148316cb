"""The demonstration: a complete collection on a simulated panel of 64 dimensions, and a page with the results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hdr4me.atomic import replacing
from hdr4me.engines import Local
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

HOURS = tuple(f"{hour:02d}" for hour in range(24))
_CATEGORIES: dict[str, tuple[str, ...]] = {
    "smoker": ("never", "former", "current"),
    "sex": ("female", "male", "other"),
    "works_nights": ("no", "yes"),
    "chronotype": ("early", "middle", "late"),
    "device": ("band", "watch", "ring", "phone"),
    "commute": ("none", "car", "train", "bus", "bicycle", "on foot"),
    "diet": ("mixed", "vegetarian", "vegan", "low carbohydrate", "other"),
    "main_sport": ("none", "walking", "running", "cycling", "swimming", "strength", "team", "yoga", "other"),
}
_NUMERIC: dict[str, tuple[float, float]] = {
    "age": (18, 98),
    "height_cm": (130, 220),
    "weight_kg": (35, 185),
    "sleep_hours": (0, 16),
    "resting_heart_rate": (30, 120),
    "alcohol_units_per_week": (0, 60),
    "screen_hours": (0, 18),
    "stress_score": (0, 100),
}


def panel_schema() -> Schema:
    """48 hourly dimensions (heart rate and steps, each a curve), 8 other numbers and 8 categorical dimensions."""
    hourly = [Numeric(f"heart_rate_{hour}", 30, 200, 115, curve="heart rate") for hour in HOURS]
    hourly += [Numeric(f"steps_{hour}", 0, 4000, 2000, curve="steps") for hour in HOURS]
    others = [Numeric(name, low, high, (low + high) / 2) for name, (low, high) in _NUMERIC.items()]
    categories = [Categorical(name, list(c), c[0]) for name, c in _CATEGORIES.items()]
    return Schema([*hourly, *others, *categories])


def panel(users: int, seed: int) -> pa.Table:
    """Simulated records of `users` people; 0.5 % of the values are missing."""
    rng = np.random.default_rng(seed)
    hour = np.arange(24)
    lateness = rng.normal(0, 1.5, (users, 1))
    awake = 1 / (1 + np.exp(-(hour - 7 - lateness))) * (1 - 1 / (1 + np.exp(-(hour - 22.5 - lateness))))
    fitness = rng.normal(0, 1, (users, 1))
    resting = np.clip(62 - 5 * fitness + rng.normal(0, 5, (users, 1)), 38, 100)
    evening = np.exp(-((hour - 18) ** 2) / 6.0)
    heart = resting + awake * (16 + 10 * evening) + rng.normal(0, 6, (users, 24))
    pace = awake * (260 + 420 * evening + 240 * np.exp(-((hour - 8) ** 2) / 3.0)) * np.exp(0.3 * fitness)
    steps = rng.gamma(2.0, np.maximum(pace, 1.0) / 2.0)
    columns: dict[str, Any] = {
        **{f"heart_rate_{h}": heart[:, i] for i, h in enumerate(HOURS)},
        **{f"steps_{h}": steps[:, i] for i, h in enumerate(HOURS)},
        "age": 18 + 62 * rng.beta(1.6, 2.4, users),
        "height_cm": rng.normal(171, 9.5, users),
        "weight_kg": rng.normal(76, 14, users) - 3 * fitness[:, 0],
        "sleep_hours": rng.normal(7.1, 1.1, users),
        "resting_heart_rate": resting[:, 0],
        "alcohol_units_per_week": rng.gamma(0.8, 6.0, users),
        "screen_hours": rng.gamma(5.0, 1.1, users),
        "stress_score": 100 * rng.beta(2.2, 3.0, users),
    }
    for name, categories in _CATEGORIES.items():
        shares = 1 / np.arange(1, len(categories) + 1)
        columns[name] = np.asarray(categories)[rng.choice(len(categories), users, p=shares / shares.sum())]
    return pa.table(
        {name: pa.array(values, mask=rng.random(users) < 0.005) for name, values in columns.items()}
    )


@dataclass(frozen=True)
class Demo:
    """The results of the demonstration; `rows` and `advice` use true values, which a collector does not have."""

    survey: Survey
    tally: Tally
    rows: list[dict[str, Any]]
    advice: str

    @property
    def coverage(self) -> float:
        """The share of 95 % intervals that contain the true value."""
        return float(np.mean([row["lower"] <= row["true"] <= row["upper"] for row in self.rows]))


# Called with the name of a step and its number of records; yields a function that is called with finished records.
Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


def run_demo(
    folder: Path,
    *,
    users: int,
    epsilon: float,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
    progress: Progress = lambda label, total: nullcontext(lambda count: None),
) -> Demo:
    """Run every step of a collection and write its files to `folder`; only the simulated records are seeded."""
    from hdr4me.demo.page import write_page

    schema = panel_schema()
    say(f"creating the survey: ε = {epsilon:g}, each person answers 1 of {len(schema)} questions")
    survey = Survey(schema, epsilon=epsilon, mechanism="optimal", sampled=1, name="fitness panel")
    folder.mkdir(parents=True, exist_ok=True)
    survey.save(folder / "survey.json")
    say(f"simulating the records of {users:,} users")
    records = panel(users, seed)
    with replacing(folder / "records.parquet") as temporary:
        pq.write_table(records, temporary)
    say("randomizing the records")
    with progress("perturbing", users) as advance:
        Local().perturb(folder / "records.parquet", survey, folder / "reports.parquet", progress=advance)
    say("counting the reports")
    with progress("tallying", users) as advance:
        tally = Local().tally([folder / "reports.parquet"], survey, progress=advance)
    tally.save(folder / "panel.tally")
    say("estimating and re-calibrating")
    estimate = tally.estimate()
    better = estimate.recalibrate("auto")
    truth = true_values(records, schema)
    rows = [{**row, "true": truth[row["dimension"], row["category"]]} for row in estimate.table(0.95)]
    low, high = np.array([schema[name].bounds for name in estimate.means.dimensions]).T
    true = 2 * (np.array([truth[name, None] for name in estimate.means.dimensions]) - low) / (high - low) - 1
    before, after = (np.mean((found.means.scaled_value - true) ** 2) for found in (estimate, better))
    errors = f"Actual mean squared error on [-1, 1]: {before:.3g} before, {after:.3g} after."
    demo = Demo(survey, tally, rows, f"{better.advice[0]} {errors}")
    write_page(demo, folder)
    return demo


def true_values(records: pa.Table, schema: Schema) -> dict[tuple[str, str | None], float]:
    """True means and frequencies after the client has replaced missing values and clipped to the range."""
    truth: dict[tuple[str, str | None], float] = {}
    for name in schema.columns:
        dimension: Any = schema[name]
        found = records[name].fill_null(dimension.fallback).to_numpy()
        for row in dimension.rows:
            values = found == row if row else np.clip(found, *dimension.bounds)
            truth[name, row] = float(values.mean())
    return truth
