"""Blocks of signs and vectors, measured in one run on one thread: speed, accuracy, coverage, and published rivals.

    python benchmarks/vectors.py benchmarks/results/vectors.md [share of the repeats]

Reports are made with the system's randomness, except where a line says simulated. Rates are the best of three runs, in
processor time, because the machine may be shared.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

import hdr4me as hd
from hdr4me.atomic import write_text
from hdr4me.channels.codebook import values
from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.engines.samplers import sample_many
from hdr4me.engines.secure import SecureDraws
from hdr4me.mechanisms.agreement import contrast
from hdr4me.mechanisms.codebook import codebook_channel, scores_of, total_error
from hdr4me.survey import Numeric, Schema, Survey, Vector
from hdr4me.tally import Tally

Floats = NDArray[np.float64]


def best(work: Callable[[], Any], times: int = 3) -> float:
    """The least processor time of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def blocked(b: int, epsilon: float, size: int | None = None) -> Survey:
    """b numbers on [−1, 1], in blocks of `size`."""
    names = [f"x{i}" for i in range(b)]
    size = b if size is None else size
    blocks = [names[i : i + size] for i in range(0, b, size)]
    return Survey(Schema([Numeric(x, -1, 1) for x in names]), epsilon=epsilon, blocks=blocks)


def block_rates(b: int, epsilon: float) -> str:
    """One line: the channel alone, records to reports, reports to counts, and the client."""
    survey, n = blocked(b, epsilon), 1 << 18
    channel = survey.channels[0]
    inputs = np.zeros((n, len(channel.fields)), np.int64)
    records = np.random.default_rng(1).uniform(-1, 1, (n, b))
    engine, draws = Local(threads=1), SecureDraws()
    sample_many(channel, inputs[:10], draws)
    blocks = list(engine.reports(records, survey))
    alone = best(lambda: sample_many(channel, inputs, draws))
    made = best(lambda: list(engine.reports(records, survey)))
    counted = best(lambda: [Tally(survey).add_block(block) for block in blocks])
    client, one = Client(survey), dict.fromkeys(survey.schema.names, 0.5)
    single = best(lambda: [client.report(one) for _ in range(300)])
    return (
        f"| {b} | {epsilon:g} | {survey.report_size} | {n / alone / 1e6:.2f} | {n / made / 1e6:.2f} "
        f"| {n * b / made / 1e6:.0f} | {n / counted / 1e6:.2f} | {300 / single / 1e3:.2f} |"
    )


def vector_rates(d: int, epsilon: float) -> str:
    """The same for vectors, in thousands a second."""
    survey = Survey(Schema([Vector("x", d)]), epsilon=epsilon)
    channel: Any = survey.channels[0]
    n = max(200, 40_000_000 // (channel.family.codewords * d))
    records = np.full((n, d), 0.5 / np.sqrt(d))
    engine = Local(threads=1)
    blocks = list(engine.reports(records, survey))
    made = best(lambda: list(engine.reports(records, survey)))
    block = np.concatenate([*blocks] * (100_000 // n + 1))
    counted = best(lambda: Tally(survey).add_block(block))
    client, one = Client(survey), {"x": records[0].tolist()}
    single = best(lambda: [client.report(one) for _ in range(3)])
    return (
        f"| {d} | {epsilon:g} | {channel.family.codewords:,} | {survey.report_size} | {n / made / 1e3:.1f} "
        f"| {len(block) / counted / 1e3:.0f} | {1e3 * single / 3:.0f} |"
    )


def block_accuracy(d: int, size: int, epsilon: float, spread: str, scale: float) -> str:
    """Measured over predicted squared error, and coverage, in collections of 10,000 users drawn from a population.

    With θ the population's mean and S² its variance, the error about θ has n·MSE = (d/b)(1/c² − θ²), and the error
    about the mean of the users themselves has S² less.
    """
    survey, n = blocked(d, epsilon, size), 10_000
    channel: Any = survey.channels[0]
    rng = np.random.default_rng(2)
    ends = spread == "±1"
    mean = np.linspace(-0.9, 0.9, d) * (1.0 if ends else 0.5)
    variance = 1 - mean**2 if ends else np.full(d, 1 / 12)
    times = max(10, round(scale * 20_000 / d))
    engine, about, own, covered = Local(threads=1), 0.0, 0.0, 0
    for _ in range(times):
        u = rng.random((n, d))
        records = np.where(u < (1 + mean) / 2, 1.0, -1.0) if ends else mean + u - 0.5
        tally = Tally(survey)
        for block in engine.reports(records, survey):
            tally.add_block(block)
        answer = tally.estimate()
        low, high = answer.interval(0.95)
        about += float(((answer.value - mean) ** 2).mean())
        own += float(((answer.value - records.mean(axis=0)) ** 2).mean())
        covered += int(((low <= mean) & (mean <= high)).sum())
    predicted = d / size * float(np.mean(contrast(channel) ** -2 - mean**2))
    users = predicted - float(variance.mean())
    return (
        f"| {d} | {size} | {epsilon:g} | {spread} | {predicted:.3f} | {about / times * n / predicted:.3f} "
        f"| {users:.3f} | {own / times * n / users:.3f} "
        f"| {np.sqrt(2 / times / d):.3f} | {100 * covered / times / d:.2f} |"
    )


def vector_accuracy(d: int, epsilon: float, norm: float, scale: float) -> str:
    """The same for vectors: the engine's mean square of decoded reports, and simulated errors and coverage."""
    channel: Any = codebook_channel(epsilon, d)
    rng = np.random.default_rng(3)
    vector = rng.standard_normal(d)
    vector *= norm / np.linalg.norm(vector)
    predicted = total_error(channel, norm)
    n = max(2_000, round(scale * 1_000_000_000) // (channel.family.codewords * d))
    survey = Survey(Schema([Vector("x", d)]), epsilon=epsilon)
    tally = Tally(survey)
    for block in Local(threads=1).reports(np.tile(vector, (n, 1)), survey):
        tally.add_block(block)
    decode = np.array(values()) / scores_of(channel).contrast
    counts = tally.counts.reshape(d, 256)
    engine = float((counts @ decode**2).sum() / n - norm**2) / predicted
    z = (counts @ decode / n - vector) / np.sqrt(predicted / d / n)
    n, times, total, covered = 10_000, max(10, round(scale * 20_000 / d)), 0.0, 0
    for seed in range(times):
        found = hd.simulate(channel, np.tile(vector, (n, 1)), seed=seed)
        error = np.sqrt((found.squares / n - found.mean**2) / (n - 1))
        total += float(((found.mean - vector) ** 2).sum())
        covered += int((np.abs(found.mean - vector) <= 1.96 * error).sum())
    ratio = total / times * n / predicted
    return (
        f"| {d} | {epsilon:g} | {norm:g} | {predicted / d:.4f} | {engine:.3f} | {np.sqrt(np.mean(z**2)):.2f} "
        f"| {ratio:.3f} | {np.sqrt(2 / times / d):.3f} | {100 * covered / times / d:.2f} |"
    )


def priv_unit_g(d: int, epsilon: float) -> float:
    """n·E|error|² of PrivUnitG on the unit sphere at its best p and q (Asi, Feldman and Talwar 2022).

    V is normal with variance σ² = 1/d in each coordinate. With probability p it is drawn with ⟨V, v⟩ ≥ γ, otherwise
    with ⟨V, v⟩ < γ, where q = P(⟨V, v⟩ < γ) and log(p/(1 − p)) + log(q/(1 − q)) = ε. V/m is unbiased with
    m = σφ(γ/σ)(p/(1 − q) − (1 − p)/q), and the error is E|V|²/m² − 1.
    """

    def error(share: float) -> float:
        q = stats.norm.cdf(share)
        p = 1 / (1 + np.exp(-epsilon) * q / (1 - q))
        density, sigma = stats.norm.pdf(share), 1 / np.sqrt(d)
        m = sigma * density * (p / (1 - q) - (1 - p) / q)
        above, below = 1 + share * density / (1 - q), 1 - share * density / q
        square = sigma**2 * (d - 1 + p * above + (1 - p) * below)
        return float(square / m**2 - 1)

    return float(optimize.minimize_scalar(error, bounds=(0.0, 5.0), method="bounded").fun)


def coordinates(d: int, epsilon: float) -> tuple[str, float]:
    """The best that asking for coordinates by themselves does, over two ranges: 1, and 4 standard deviations."""
    n, sd = 1_000_000, 1 / np.sqrt(d)
    found: list[tuple[float, str]] = []
    for reach in (1.0, 4 * sd):
        if reach > 1.0:
            continue
        names = ["optimal", "optimal_mean", "piecewise"]
        option = hd.plan(
            n_users=n, n_dims=d, epsilon=epsilon, prior=stats.norm(0, sd / reach), mechanisms=names
        ).best
        clipped = (
            2
            * sd**2
            * float(
                (1 + (reach / sd) ** 2) * stats.norm.sf(reach / sd) - reach / sd * stats.norm.pdf(reach / sd)
            )
        )
        found.append(
            (option.mse * n * reach**2, f"{option.mechanism}, range ±{reach:.2g}, clips {clipped:.1e}")
        )
    least, words = min(found)
    return words, least


def rivals(d: int, epsilon: float) -> str:
    """One line: the codebook, PrivUnitG, coordinates."""
    channel: Any = codebook_channel(epsilon, d)
    own, theirs = total_error(channel) / d, priv_unit_g(d, epsilon) / d
    family = channel.family
    words, alone = coordinates(d, epsilon) if d == 100 else ("not computed", float("nan"))
    return (
        f"| {d} | {epsilon:g} | {family.codewords:,}, {family.heavy} | {own:.4f} | {theirs:.4f} | {own / theirs:.4f} "
        f"| {alone:.3f} ({words}) | {alone / own:.1f} |"
    )


def sections(scale: float) -> Iterator[tuple[list[str], Iterator[str]]]:
    """Each section's text, and its lines as they are measured."""
    yield (
        [
            "Blocks: n·MSE predicted and measured over predicted, about the mean of the population and about that of",
            "the users themselves; coverage of 95 % intervals of the population's mean, in collections of 10,000.",
            "Chance moves a ratio by the standard deviation that is given.",
            "",
            "| numbers | block | epsilon | values | n·MSE | ratio | n·MSE, users | ratio | by chance | coverage (%) |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ],
        (
            block_accuracy(*case, scale)
            for case in (
                (64, 64, 8.0, "±1"),
                (100, 100, 8.0, "spread"),
                (8, 8, 8.0, "±1"),
                (100, 4, 4.0, "spread"),
            )
        ),
    )
    yield (
        [
            "Vectors: n·MSE of a coordinate predicted; the engine's mean square over the predicted one, and the root",
            "mean square of its errors over their standard errors; simulated: measured over predicted, its standard",
            "deviation by chance, coverage of 95 % intervals, in collections of 10,000 users.",
            "",
            "| length | epsilon | norm | n·MSE | engine | z | ratio | by chance | coverage (%) |",
            "|---|---|---|---|---|---|---|---|---|",
        ],
        (vector_accuracy(*case, scale) for case in ((10, 4.0, 1.0), (100, 4.0, 0.3), (100, 8.0, 1.0))),
    )
    yield (
        [
            "n·MSE of a coordinate for vectors on the unit sphere: the codebook (codewords, heavy ones), PrivUnitG",
            "by its own formula, and the best of asking for one or more coordinates by themselves.",
            "",
            "| length | epsilon | codebook | its error | PrivUnitG | ratio | coordinates | times the codebook's |",
            "|---|---|---|---|---|---|---|---|",
        ],
        (rivals(*case) for case in ((10, 4.0), (1000, 4.0), (10, 8.0), (1000, 8.0), (100, 8.0), (100, 4.0))),
    )
    yield (
        [
            "Agreement blocks, millions a second: the channel alone, records to reports, values read, reports to",
            "counts; thousands of reports a second of the client in pure Python.",
            "",
            "| numbers | epsilon | bytes a report | channel | reports | values | counts | client (k/s) |",
            "|---|---|---|---|---|---|---|---|",
        ],
        (block_rates(*case) for case in ((8, 8.0), (64, 8.0), (100, 8.0))),
    )
    yield (
        [
            "Vectors, thousands a second: records to reports, reports to counts; milliseconds of the client for one.",
            "",
            "| length | epsilon | codewords | bytes a report | reports (k/s) | counts (k/s) | client (ms) |",
            "|---|---|---|---|---|---|---|",
        ],
        (vector_rates(*case) for case in ((10, 4.0), (100, 4.0), (100, 8.0))),
    )


def main(path: Path, scale: float) -> None:
    """Measure, and write what is measured after each line."""
    lines = [
        "# Blocks and vectors",
        "",
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, one thread; load average "
        f"{os.getloadavg()[0]:.1f} at the start. Repeats: {scale:g} times those of a full run.",
    ]
    for text, rows in sections(scale):
        lines += ["", *text]
        for row in rows:
            lines.append(row)
            write_text(path, "\n".join([*lines, "", "Not finished.", ""]))
    write_text(path, "\n".join([*lines, ""]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
