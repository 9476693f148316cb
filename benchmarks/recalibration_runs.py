"""Repeats of the re-calibration benchmark: taken cell by cell, more where a bar is near, kept in a file between runs.

A draw is one repeat of a cell: a dictionary of numbers. A row is what is kept of a cell: the number of repeats, the
mean of every number, and the standard deviation of those in `SPREAD`. Rows of two runs are merged exactly. Repeat
number k of a cell has a generator of its own, so that a campaign can be stopped and continued.
"""

from __future__ import annotations

import csv
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.recalibration.auto.intervals import conservative_interval

Floats = NDArray[np.float64]
Row = dict[str, float | str]
Draw = dict[str, float]

SPREAD = ("auto", "excess_naive", "excess_clip", "excess_announced", "conservative", "edge", "average")
"""Excesses are auto − 1.02 × naive (× clip) and announced − 0.75 × auto."""
LEVEL = 0.95


class Job(NamedTuple):
    """A cell: its name, the columns that describe it, and one repeat of it."""

    name: str
    about: dict[str, float | str]
    draw: Callable[[np.random.Generator], Draw]


def excesses(naive: float, clip: float, auto: float, announced: float) -> Draw:
    """The numbers that the bars are about."""
    return {
        "excess_naive": auto - 1.02 * naive,
        "excess_clip": auto - 1.02 * clip,
        "excess_announced": announced - 0.75 * auto,
    }


def conservative_coverage(theta: Floats, s: Floats, rng: np.random.Generator) -> Draw:
    """Coverage of conservative intervals over some 2,000 intervals, all and at an edge.

    They are the intervals before they are extended to hold the estimate, which can only add to what they cover. So no
    re-calibration is needed for them, and a cell of few dimensions has as many as one of many.
    """
    times = max(1, 2000 // theta.size)
    x = theta + s * rng.normal(size=(times, theta.size))
    low, high = conservative_interval(x, np.broadcast_to(s, x.shape), -1.0, 1.0, LEVEL)
    held = (low <= theta) & (theta <= high)
    edge = np.abs(theta) >= 1 - 1e-12
    found = {"conservative": float(held.mean())}
    return found | {"edge": float(held[:, edge].mean()) if edge.any() else float("nan")}


def row_of(draws: Sequence[Draw]) -> Row:
    """Means of all numbers, standard deviations of some."""
    row: Row = {"repeats": float(len(draws))}
    for name in draws[0]:
        values = np.array([draw[name] for draw in draws])
        row[name] = float(values.mean())
        if name in SPREAD:
            row[f"sd_{name}"] = float(values.std(ddof=1)) if len(draws) > 1 else 0.0
    return row


def merged(one: Row, two: Row) -> Row:
    """The row of the repeats of both."""
    n, m = float(one["repeats"]), float(two["repeats"])
    out = dict(one) | {"repeats": n + m}
    for name in two:
        if name == "repeats" or name.startswith("sd_") or isinstance(two[name], str):
            continue
        a, b = float(one[name]), float(two[name])
        out[name] = (n * a + m * b) / (n + m)
        if name in SPREAD:
            sd = [float(row[f"sd_{name}"]) for row in (one, two)]
            total = (n - 1) * sd[0] ** 2 + (m - 1) * sd[1] ** 2 + n * m / (n + m) * (a - b) ** 2
            out[f"sd_{name}"] = float(np.sqrt(total / (n + m - 1)))
    return out


def z_of(row: Row, name: str, bar: float = 0.0) -> float:
    """How many of its standard errors the mean is above the bar."""
    if name not in row or not np.isfinite(float(row[name])):
        return float("inf")
    error = float(row[f"sd_{name}"]) / np.sqrt(float(row["repeats"]))
    return float((float(row[name]) - bar) / max(error, 1e-300))


def increase_z(row: Row) -> float:
    """The z-score of the hypothesis that `auto` exceeds 1.02 × the better of naive and clip; above 2 it does."""
    naive = float(row["excess_naive"]) > float(row["excess_clip"])
    return z_of(row, "excess_naive" if naive else "excess_clip")


def undecided(row: Row) -> bool:
    """Whether a requirement is neither significantly met nor significantly missed."""
    if increase_z(row) > -2:
        return True
    expected = z_of(row, "excess_announced")
    return expected < 2 or z_of(row, "conservative", 0.94) < 2 or z_of(row, "edge", 0.93) < 2


def campaign(
    jobs: Sequence[Job],
    path: Path,
    *,
    seed: int,
    least: int,
    most: int,
    batch: int,
    minutes: float,
    save_seconds: float = 30.0,
) -> list[Row]:
    """Every cell `least` times, then the undecided ones in turns: until all are decided, `most`, or the time is up."""
    known = {str(row.get("name")): row for row in read(path)} if path.exists() else {}
    rows: dict[str, Row] = {job.name: known[job.name] for job in jobs if job.name in known}
    start = saved = time.perf_counter()

    def work(job: Job, number: int) -> None:
        nonlocal saved
        first = int(float(rows[job.name]["repeats"])) if job.name in rows else 0
        crc = zlib.crc32(job.name.encode())
        draws = [job.draw(np.random.default_rng([crc, seed, first + k])) for k in range(number)]
        fresh = row_of(draws)
        rows[job.name] = (
            merged(rows[job.name], fresh)
            if job.name in rows
            else {"name": job.name} | dict(job.about) | fresh
        )
        if time.perf_counter() - saved > save_seconds:
            write(path, [rows[one.name] for one in jobs if one.name in rows])
            saved = time.perf_counter()

    def late() -> bool:
        return time.perf_counter() - start > 60 * minutes

    for size in (2, least):
        for job in jobs:
            done = int(float(rows[job.name]["repeats"])) if job.name in rows else 0
            if done < size and not (late() and done >= 2):
                work(job, size - done)
    while not late():
        near = [job for job in jobs if float(rows[job.name]["repeats"]) < most and undecided(rows[job.name])]
        if not near:
            break
        for job in near:
            work(job, batch)
            if late():
                break
        print(f"{len(near)} cells were near a bar", file=sys.stderr, flush=True)
    found = [rows[job.name] for job in jobs]
    write(path, found)
    return found


def write(path: Path, rows: Sequence[Row]) -> None:
    """A CSV file, seven digits."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.7g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows)


def read(path: Path) -> list[Row]:
    """What `write` wrote."""
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if v != ""} for row in csv.DictReader(file)]
