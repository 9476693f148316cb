"""The demonstration's simulated panel: 100,000 wearers of a fitness band, 64 dimensions, numeric and categorical."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdr4me.survey import Categorical, Numeric, Schema

if TYPE_CHECKING:
    import pyarrow as pa

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
    """48 hourly dimensions (heart rate and steps, each a curve), 8 other numbers, 8 questions with fixed answers."""
    hourly = [Numeric(f"heart_rate_{hour}", 30, 200, curve="heart rate") for hour in HOURS]
    hourly += [Numeric(f"steps_{hour}", 0, 4000, curve="steps") for hour in HOURS]
    others = [Numeric(name, low, high) for name, (low, high) in _NUMERIC.items()]
    return Schema([*hourly, *others, *(Categorical(name, list(c)) for name, c in _CATEGORIES.items())])


def panel(n_users: int, seed: int) -> pa.Table:
    """Records of `n_users` people; about one value in two hundred is missing, as in real life."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    hour = np.arange(24)
    lateness = rng.normal(0, 1.5, (n_users, 1))
    awake = 1 / (1 + np.exp(-(hour - 7 - lateness))) * (1 - 1 / (1 + np.exp(-(hour - 22.5 - lateness))))
    fitness = rng.normal(0, 1, (n_users, 1))
    resting = np.clip(62 - 5 * fitness + rng.normal(0, 5, (n_users, 1)), 38, 100)
    evening = np.exp(-((hour - 18) ** 2) / 6.0)
    heart = resting + awake * (16 + 10 * evening) + rng.normal(0, 6, (n_users, 24))
    pace = awake * (260 + 420 * evening + 240 * np.exp(-((hour - 8) ** 2) / 3.0)) * np.exp(0.3 * fitness)
    steps = rng.gamma(2.0, np.maximum(pace, 1.0) / 2.0)
    columns: dict[str, NDArray[np.generic]] = {}
    columns |= {f"heart_rate_{h}": heart[:, i] for i, h in enumerate(HOURS)}
    columns |= {f"steps_{h}": steps[:, i] for i, h in enumerate(HOURS)}
    columns["age"] = 18 + 62 * rng.beta(1.6, 2.4, n_users)
    columns["height_cm"] = rng.normal(171, 9.5, n_users)
    columns["weight_kg"] = rng.normal(76, 14, n_users) - 3 * fitness[:, 0]
    columns["sleep_hours"] = rng.normal(7.1, 1.1, n_users)
    columns["resting_heart_rate"] = resting[:, 0]
    columns["alcohol_units_per_week"] = rng.gamma(0.8, 6.0, n_users)
    columns["screen_hours"] = rng.gamma(5.0, 1.1, n_users)
    columns["stress_score"] = 100 * rng.beta(2.2, 3.0, n_users)
    for name, categories in _CATEGORIES.items():
        shares = 1 / np.arange(1, len(categories) + 1)
        columns[name] = np.asarray(categories)[rng.choice(len(categories), n_users, p=shares / shares.sum())]
    return pa.table(
        {name: pa.array(values, mask=rng.random(n_users) < 0.005) for name, values in columns.items()}
    )
