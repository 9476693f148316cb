"""Speed and size of questions with many categories, measured in one run on one thread.

    python benchmarks/categories.py benchmarks/results/categories.md

Reports are made with the system's randomness. A rate is the best of five runs by processor time of one thread, so that
other work on the machine matters less.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from hdr4me.atomic import write_text
from hdr4me.channels.projective.response import hyperplane_sums
from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.mechanisms.categorical import categorical_channel
from hdr4me.statistics.calibrate import functional
from hdr4me.statistics.intervals import frequency_law
from hdr4me.survey import Categorical, Schema, Survey
from hdr4me.tally import Tally

N = 1_000_000


def best(work: Callable[[], Any], times: int = 5) -> float:
    """The shortest processor time of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def rates(name: str, epsilon: float, v: int) -> str:
    """One line: the channel alone, records to reports, reports to counts, and the client."""
    rng = np.random.default_rng(1)
    survey = Survey(Schema([Categorical("x", range(v))]), epsilon=epsilon, categorical=name)
    channel = categorical_channel(name, epsilon, v)
    n = N if channel.per_report == 1 else N // 5 if v < 1000 else N // 100
    inputs = rng.integers(0, v, n)
    records = inputs[:, None].astype(np.float64)
    engine = Local(threads=1)
    channel.response.sample(inputs[:10], SecureDraws())
    alone = best(lambda: channel.response.sample(inputs, SecureDraws()))
    blocks = list(engine.reports(records, survey))
    made = best(lambda: list(engine.reports(records, survey)))
    counted = best(lambda: [Tally(survey).add_block(block) for block in blocks])
    client, one = Client(survey), {"x": v - 1}
    single = best(lambda: [client.report(one) for _ in range(2000)])
    return (
        f"| {name} | {v:,} | {epsilon:g} | {survey.report_size} | {n / alone / 1e6:.2f} | {n / made / 1e6:.2f} "
        f"| {n / counted / 1e6:.2f} | {2000 / single / 1e3:.1f} |"
    )


def million() -> list[str]:
    """A million reports over 4,043 categories, from records to frequencies."""
    survey = Survey(Schema([Categorical("x", range(4043))]), epsilon=1.0)
    records = np.random.default_rng(2).integers(0, 4043, (N, 1)).astype(np.float64)
    engine = Local(threads=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    tally = Tally(survey)
    size = 0
    for block in engine.reports(records, survey):
        size += block.nbytes
        tally.add_block(block)
    answer = tally.estimate()
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [
        f"A million reports over 4,043 categories at epsilon = 1 ({survey.channels[0].mechanism}): "
        f"{survey.report_size} bytes a report, {size / 1e6:.1f} MB of reports, {seconds:.2f} s of one core from "
        f"records to {len(answer):,} frequencies, "
        f"peak memory {max(0, after - before) / 1024:.0f} MB above the {before / 1024:.0f} MB before.",
    ]


def decoding() -> list[str]:
    """Sums over hyperplanes."""
    rows = []
    for q, t in ((4, 7), (4, 8), (8, 6), (9, 6), (53, 4), (64, 3), (4, 11), (8, 8)):
        points = (q**t - 1) // (q - 1)
        counts = np.random.default_rng(3).integers(0, 1000, points)
        seconds = best(lambda c=counts, q=q, t=t: hyperplane_sums(c, q, t), 1)  # type: ignore[misc]
        rows.append(f"| {q} | {t} | {points:,} | {seconds:.2f} |")
    return rows


def accuracy(name: str, epsilon: float, v: int) -> str:
    """One line: squared error over the predicted one with its standard error, and coverage of 95 % intervals.

    The prediction is (v − 1)·V₀ + V₁ of the channel, which no data enter. Coverage is also given by the expected number
    of reports that name a category: below 5, 5 to 20, above 20.
    """
    survey = Survey(Schema([Categorical("x", range(v))]), epsilon=epsilon, categorical=name)
    channel: Any = survey.channels[0]
    n, times = 10_000, max(120, 400_000 // v)  # so that chance moves the ratio by less than 0.5 %
    records = np.minimum(np.arange(n) // 50, v - 1)[:, None].astype(np.float64)
    truth = np.bincount(records[:, 0].astype(np.int64), minlength=v) / n
    equal, other = channel.decode
    expected = n * (truth - other) / (equal - other)
    classes = (expected < 5, (expected >= 5) & (expected <= 20), expected > 20)
    totals, covered = [], np.zeros(v, np.int64)
    engine = Local(threads=1)
    for _ in range(times):
        tally = Tally(survey)
        for block in engine.reports(records, survey):
            tally.add_block(block)
        answer = tally.estimate()
        low, high = answer.interval(0.95)
        totals.append(float(((answer.value - truth) ** 2).sum()))
        covered += (low <= truth) & (truth <= high)
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    ratios = np.array(totals) * n / ((v - 1) * absent + present)
    noise = float(ratios.std(ddof=1)) / times**0.5
    parts = [f"{100 * covered[own].mean() / times:.2f}" if own.any() else "–" for own in classes]
    line = (
        f"| {name} | {v:,} | {epsilon:g} | {times:,} | {ratios.mean():.3f} ± {noise:.3f} | "
        f"{100 * covered.mean() / times:.2f} | {' | '.join(parts)} |"
    )
    print(line, flush=True)
    return line


def by_counting(epsilon: float, v: int) -> list[str]:
    """Exact coverage of 95 % intervals of randomized response by the number of users who have a category.

    Whether an interval covers is a matter of how many reports name the category, so its coverage is a sum of
    probabilities. An interval whose ends rise with the number of reports covers a category that nobody has if they are
    at most some x: the last column is the least P(at most x reports) that is 95 % or more.
    """
    survey = Survey(Schema([Categorical("x", range(v))]), epsilon=epsilon, categorical="grr")
    channel: Any = survey.channels[0]
    n = 10_000
    p, q = channel.shares
    rows = []
    for having in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500):
        law = np.convolve(
            binom.pmf(np.arange(having + 1), having, p), binom.pmf(np.arange(200), n - having, q)
        )
        named = np.arange(law.size, dtype=np.int64)
        errors = np.sqrt(np.maximum(_variances(channel, named, n), 0))
        small_sample = frequency_law(
            functional(channel.response.marginal()), np.stack([n - named, named], axis=1), errors, n
        )
        small_rows = small_sample.effective < 0.95 * 1.959964**5
        equal, other = channel.decode
        value = other + (equal - other) * named / n
        low, high = value - 1.959964 * errors, value + 1.959964 * errors
        low[small_rows], high[small_rows] = small_sample.ends(0.95, np.flatnonzero(small_rows))
        covers = (low <= having / n + 1e-12) & (having / n - 1e-12 <= high)
        running = np.cumsum(law)
        least = f"{100 * running[np.argmax(running >= 0.95)]:.2f}" if having == 0 else ""
        mean = having * p + (n - having) * q
        rows.append(f"| {having} | {mean:.1f} | {100 * float(law @ covers):.2f} | {least} |")
    return rows


def _variances(channel: Any, named: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    equal, other = channel.decode
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    share = other + (equal - other) * named / n
    return np.asarray((share * present + (1 - share) * absent) / n)


def main(path: Path) -> None:
    """Measure and write."""
    first = million()
    lines = [
        "# Many categories",
        "",
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, one thread; "
        f"processor time, load average {os.getloadavg()[0]:.1f} at the start.",
        "",
        *first,
        "",
        "Millions of reports a second: the channel alone, records to reports, reports to counts; and thousands of",
        "reports a second of the client in pure Python.",
        "",
        "| oracle | categories | epsilon | bytes a report | channel | reports | counts | client (k/s) |",
        "|---|---|---|---|---|---|---|---|",
        *(
            rates(*case)
            for case in (
                ("grr", 1.0, 100),
                ("subset", 1.0, 10),
                ("subset", 1.0, 100),
                ("subset", 1.0, 4000),
                ("projective", 1.0, 100),
                ("projective", 1.0, 4043),
                ("projective", 1.0, 10_000),
                ("projective", 2.0, 10_000),
                ("projective", 4.0, 10_000),
                ("grr", 8.0, 10_000),
            )
        ),
        "",
        "Measured over predicted squared error, and coverage of 95 % intervals, in collections of 10,000:",
        "",
        "| oracle | categories | epsilon | collections | ratio | coverage (%) | below 5 reports | 5 to 20 | above 20 |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            accuracy(*case)
            for case in (
                ("grr", 2.0, 10),
                ("subset", 1.0, 100),
                ("projective", 1.0, 100),
                ("projective", 1.0, 4043),
                ("projective", 2.0, 4043),
                ("projective", 4.0, 4043),
                ("grr", 8.0, 4043),
            )
        ),
        "",
        "Exact coverage of 95 % intervals of randomized response, 4,043 categories, epsilon = 8, 10,000 users: by the",
        "number of users who have the category; and the least coverage from 95 % on of an interval whose ends",
        "rise with the number of reports.",
        "",
        "| users who have it | reports expected | coverage (%) | least that is possible (%) |",
        "|---|---|---|---|",
        *by_counting(8.0, 4043),
        "",
        "Decoding, in seconds:",
        "",
        "| field | length | points | seconds |",
        "|---|---|---|---|",
        *decoding(),
        "",
    ]
    write_text(path, "\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
