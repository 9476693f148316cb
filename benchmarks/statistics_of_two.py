"""Covariances, correlations, and means and shares by group: coverage, errors and formulas (see more_statistics.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd
from hdr4me.channels import Table
from hdr4me.channels.response import Marginal
from more_statistics import Floats, populations, table_of

Numbers = NDArray[np.int64]


def pairs_of_numbers(n: int, rng: np.random.Generator) -> dict[str, tuple[Floats, Floats]]:
    """Two columns each on [−1, 1]."""
    a = rng.uniform(-1, 1, n)
    known = populations(n, rng)
    found = {
        "uniform, correlated": (a, 0.6 * a + 0.4 * rng.uniform(-1, 1, n)),
        "age, income": (known["age"], np.clip(known["income"] + 0.2 * (known["age"] + 1), -1, 1)),
    }
    try:
        from sklearn import datasets
    except ImportError:
        return found
    tumours, digits = datasets.load_breast_cancer().data, datasets.load_digits().data
    rows = rng.integers(0, len(tumours), n)
    radius, texture = tumours[rows, 0], tumours[rows, 1]
    found["real: tumour radius, texture"] = (
        np.clip(radius / 15 - 1, -1, 1),
        np.clip(texture / 20 - 1, -1, 1),
    )
    rows = rng.integers(0, len(digits), n)
    found["real: two pixels of a digit"] = (digits[rows, 28] / 8 - 1, digits[rows, 36] / 8 - 1)
    return found


def cells_of(values: Floats, reading: Marginal, rng: np.random.Generator) -> Numbers:
    """The cell of each user's report."""
    place = (values + 1) / 2 * (reading.levels.size - 1)
    level = np.minimum(place.astype(np.int64), reading.levels.size - 2)
    level = level + (rng.random(level.size) < place - level)
    law = reading.law[:, 0]
    ends = (np.cumsum(law, axis=1) / law.sum(axis=1, keepdims=True) + np.arange(len(law))[:, None]).ravel()
    found = np.searchsorted(ends, level + rng.random(level.size), side="right") - level * law.shape[1]
    return np.asarray(np.clip(found, 0, law.shape[1] - 1), np.int64)


def both_tallies(
    survey: hd.Survey, cells: tuple[Numbers, Numbers], names: tuple[str, str]
) -> tuple[hd.Tally, hd.PairCounts]:
    """A tally and its pair counts of users who answer two questions of one cell each."""
    tally, pairs = hd.Tally(survey), hd.PairCounts(survey, [names])
    sizes = [survey.questions[q].channel.n_counters for q in (0, 1)]
    joint = np.bincount(cells[0] * sizes[1] + cells[1], minlength=sizes[0] * sizes[1]).reshape(sizes)
    for q, axis in ((0, 1), (1, 0)):
        tally.layout.of_question(tally.counts, q)[:] = joint.sum(axis=axis)
    tally.n_reports = len(cells[0])
    counts = pairs.counts[0, 1]
    counts[:-1, :-1] = joint
    counts[-1, :-1], counts[:-1, -1], counts[-1, -1] = joint.sum(axis=0), joint.sum(axis=1), joint.sum()
    return tally, pairs


def by_product(a: Floats, b: Floats, survey: hd.Survey, rng: np.random.Generator) -> hd.Tally:
    """A tally in which each user answers one of three questions: both numbers and their product."""
    reading = survey.questions[0].channel.response.marginal()
    weights = np.array([float(survey.inclusion(q)) for q in range(3)])
    asked = rng.choice(3, size=a.size, p=weights / weights.sum())
    tally = hd.Tally(survey)
    for q, values in enumerate((a, b, a * b)):
        cells = cells_of(values[asked == q], reading, rng)
        place = tally.layout.of_question(tally.counts, q)
        place[:] = np.bincount(cells, minlength=place.size)
    tally.n_reports = a.size
    return tally


def formula(a: Floats, b: Floats, epsilon: float) -> tuple[float, float]:
    """The variance of the covariance from pairs under ε/2 each, and of the mean of the product under ε; times n."""
    reading, whole = (
        table_of("optimal", epsilon / 2).response.marginal(),
        table_of("optimal", epsilon).response.marginal(),
    )
    decode = reading.decoders["value"]
    noise = [reading.at(values)[:, 0] @ decode**2 - values**2 for values in (a, b)]
    t = [a - a.mean(), b - b.mean()]
    two = np.mean(noise[0] * noise[1] + noise[0] * t[1] ** 2 + noise[1] * t[0] ** 2)
    product = a * b
    one = np.mean(whole.at(product)[:, 0] @ whole.decoders["value"] ** 2 - product**2)
    return float(two), float(one)


def _coverage(answer: Any, truth: float) -> tuple[bool, bool]:
    """Whether the interval covers, and whether there is one at all."""
    low, high = answer.interval()
    return bool(low[0] <= truth <= high[0]), bool(np.isfinite(answer.value[0]))


def covariances(rng: np.random.Generator, draws: int = 1000) -> list[str]:
    lines = [
        "| ε, n, values, way | coverage: covariance | correlation (significant in) | variance simulated / formula | "
        "product's mean: variance less by | covariance: variance less by |",
        "|---|---|---|---|---|---|",
    ]
    plain = hd.Schema([hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1)])
    asked = hd.Schema([*plain, hd.Product("a × b", ["a", "b"])])
    for epsilon in (1.0, 2.0, 4.0):
        two = hd.Survey(plain, epsilon, "optimal", sampled=2)
        three = hd.Survey(asked, epsilon, "optimal", weights={"a": 1, "b": 1, "a × b": 4})
        reading = two.questions[0].channel.response.marginal()
        for n in (10_000, 100_000):
            for name, (a, b) in pairs_of_numbers(n, rng).items():
                truth, rho = float(np.cov(a, b, ddof=0)[0, 1]), float(np.corrcoef(a, b)[0, 1])
                variances = {}
                for way in ("pairs", "product"):
                    found, inside, close, significant = [], 0, 0, 0
                    for _ in range(draws if n < 100_000 else draws // 4):
                        if way == "pairs":
                            cells = cells_of(a, reading, rng), cells_of(b, reading, rng)
                            tally, more = both_tallies(two, cells, ("a", "b"))
                            options: dict[str, Any] = {"pair_counts": more}
                        else:
                            tally, options = by_product(a, b, three, rng), {}
                        answer = hd.ask(tally, "covariance", ["a", "b"], **options)
                        inside += _coverage(answer, truth)[0]
                        found.append(float(answer.value[0]))
                        covers, known = _coverage(hd.ask(tally, "correlation", ["a", "b"], **options), rho)
                        significant += known
                        close += covers and known
                    variances[way] = float(np.mean((np.array(found) - truth) ** 2))
                    by_pairs, one = (v / n for v in formula(a, b, epsilon))
                    corr = (
                        f"{100 * close / significant:.1f} % ({significant / len(found):.0%})"
                        if significant
                        else "never significant"
                    )
                    ratio = f"{variances[way] / by_pairs:.3f}" if way == "pairs" else ""
                    less = f"{by_pairs / one:.1f}" if way == "product" else ""
                    gain = f"{variances['pairs'] / variances[way]:.1f}" if way == "product" else ""
                    lines.append(
                        f"| {epsilon:g}, {n:,}, {name}, {way} | {100 * inside / len(found):.1f} % | {corr} | {ratio} | "
                        f"{less} | {gain} |"
                    )
                    print(lines[-1], flush=True)
    return lines


def formulas(rng: np.random.Generator, draws: int = 10_000) -> list[str]:
    """The covariance from pairs in some cells, with enough runs to distinguish 95 % from 93 % and 1 from 1.05."""
    lines = [
        "| ε, values | coverage | its standard error | variance simulated / formula | its standard error |",
        "|---|---|---|---|---|",
    ]
    n = 10_000
    plain = hd.Schema([hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1)])
    chosen = ("uniform, correlated", "real: tumour radius, texture", "real: two pixels of a digit")
    known = pairs_of_numbers(n, rng)
    for epsilon in (1.0, 2.0, 4.0):
        survey = hd.Survey(plain, epsilon, "optimal", sampled=2)
        reading = survey.questions[0].channel.response.marginal()
        for name in chosen:
            a, b = known[name]
            truth, found, inside = float(np.cov(a, b, ddof=0)[0, 1]), np.zeros(draws), 0
            for i in range(draws):
                cells = cells_of(a, reading, rng), cells_of(b, reading, rng)
                tally, pairs = both_tallies(survey, cells, ("a", "b"))
                answer = hd.ask(tally, "covariance", ["a", "b"], pair_counts=pairs)
                inside += _coverage(answer, truth)[0]
                found[i] = answer.value[0]
            squares = (found - truth) ** 2 / (formula(a, b, epsilon)[0] / n)
            share, ratio = inside / draws, float(squares.mean())
            errors = 100 * float(np.sqrt(share * (1 - share) / draws)), float(squares.std() / np.sqrt(draws))
            lines.append(
                f"| {epsilon:g}, {name} | {100 * share:.2f} % | {errors[0]:.2f} % | {ratio:.3f} | {errors[1]:.3f} |"
            )
            print(lines[-1], flush=True)
    return lines


def groups_of(n: int, rng: np.random.Generator) -> dict[str, tuple[Floats, Numbers, int]]:
    """A number on [−1, 1], each user's group, and how many groups there are."""
    share = np.array([0.4, 0.3, 0.2, 0.095, 0.005])
    group = rng.choice(5, n, p=share)
    found = {
        "five groups, one of .5 %": (
            np.clip(rng.normal(-0.4 + 0.2 * group, 0.3), -1, 1),
            group.astype(np.int64),
            5,
        )
    }
    try:
        from sklearn import datasets
    except ImportError:
        return found
    tumours, digits = datasets.load_breast_cancer(), datasets.load_digits()
    rows = rng.integers(0, len(tumours.data), n)
    area = np.clip(tumours.data[rows, 3] / 1500 - 1, -1, 1)
    found["real: tumour area by diagnosis"] = (area, tumours.target[rows].astype(np.int64), 2)
    rows = rng.integers(0, len(digits.data), n)
    found["real: pixel by digit"] = (digits.data[rows, 28] / 8 - 1, digits.target[rows].astype(np.int64), 10)
    return found


def groups(rng: np.random.Generator, draws: int = 1000) -> list[str]:
    lines = [
        "| ε, n, values | coverage of means | significant | coverage of shares | significant |",
        "|---|---|---|---|---|",
    ]
    for epsilon in (2.0, 4.0):
        for n in (10_000, 100_000):
            for name, (values, group, size) in groups_of(n, rng).items():
                labels = [str(k) for k in range(size)]
                schema = hd.Schema([hd.Numeric("x", -1, 1), hd.Categorical("g", labels)])
                survey = hd.Survey(schema, epsilon, sampled=2, categorical="grr")
                split = (values > np.median(values)).astype(np.int64)
                schema = hd.Schema([hd.Categorical("y", ["low", "high"]), hd.Categorical("g", labels)])
                halves = hd.Survey(schema, epsilon, sampled=2, categorical="grr")
                means = np.array([values[group == g].mean() for g in range(size)])
                shares = np.array([[np.mean(split[group == g] == y) for y in (0, 1)] for g in range(size)])
                counted = np.zeros((2, 2))  # means, shares × covered, significant
                for _ in range(draws if n < 100_000 else draws // 4):
                    first = _reported(survey, (values, group), rng)
                    second = _reported(halves, (split, group), rng)
                    for row, (answer, truth) in enumerate(
                        (
                            (hd.ask(first[0], "mean_by", ["x", "g"], pair_counts=first[1]), means),
                            (
                                hd.ask(second[0], "share_by", ["y", "g"], pair_counts=second[1]),
                                shares.ravel(),
                            ),
                        )
                    ):
                        low, high = answer.interval()
                        known = np.isfinite(answer.value)
                        counted[row] += (known & (low <= truth) & (truth <= high)).sum(), known.sum()
                rounds = draws if n < 100_000 else draws // 4
                significant = counted[:, 1] / (rounds * np.array([size, 2 * size]))
                cover = 100 * counted[:, 0] / np.maximum(counted[:, 1], 1)
                cells = " | ".join(f"{c:.1f} % | {t:.0%}" for c, t in zip(cover, significant, strict=True))
                lines.append(f"| {epsilon:g}, {n:,}, {name} | {cells} |")
                print(lines[-1], flush=True)
    return lines


def _reported(
    survey: hd.Survey, values: tuple[NDArray[Any], NDArray[Any]], rng: np.random.Generator
) -> tuple[hd.Tally, hd.PairCounts]:
    """Users answer both questions; categories by randomized response, whose channel is a table of categories."""
    cells = []
    for q, column in enumerate(values):
        channel = survey.questions[q].channel
        if isinstance(channel, Table) and survey.schema.dimensions[q].input_kind == "number":
            cells.append(cells_of(column, channel.response.marginal(), rng))
        else:
            rows = channel.rows
            law = np.array(rows, np.float64) if rows is not None else _of_subset(channel)
            ends = (
                np.cumsum(law, axis=1) / law.sum(axis=1, keepdims=True) + np.arange(len(law))[:, None]
            ).ravel()
            found = (
                np.searchsorted(ends, column + rng.random(column.size), side="right") - column * law.shape[1]
            )
            cells.append(np.clip(found, 0, law.shape[1] - 1))
    names = survey.schema.names
    return both_tallies(survey, (cells[0], cells[1]), (names[0], names[1]))


def _of_subset(channel: Any) -> Floats:
    """The distribution of randomized response: a subset of size 1."""
    size = channel.inputs[0].size
    p = channel.weight / 2**32
    return np.asarray(np.full((size, size), (1 - p) / (size - 1)) + np.eye(size) * (p - (1 - p) / (size - 1)))
