"""Blocks of signs and vectors, measured in one run on one thread: speed, accuracy, coverage, and published rivals.

    python benchmarks/vectors.py benchmarks/results/vectors.md [share of the repeats] [only sections with this title]

A run of one section renews it and keeps the others. Reports are made with the system's randomness, except where a line
says simulated. Rates are the best of three runs, in processor time, because the machine may be shared.
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

from hdr4me.atomic import write_text
from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.survey import Schema, Survey, Vector
from hdr4me.tally import Tally
from vectors_accuracy import (
    blocked,
    errors_of_blocks,
    errors_of_vectors,
    on_real_blocks,
    on_real_vectors,
    rivals,
)
from vectors_optional import on_optional_vectors


def best(work: Callable[[], Any], times: int = 3) -> float:
    """The least processor time of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def block_rates(b: int, epsilon: float) -> str:
    """One line: the channel alone, records to reports, reports to counts, and the client."""
    survey, n = blocked(b, epsilon), 1 << 18
    channel = survey.channels[0]
    inputs = np.zeros((n, len(channel.fields)), np.int64)
    records = np.random.default_rng(1).uniform(-1, 1, (n, b))
    engine, draws = Local(threads=1), SecureDraws()
    channel.response.sample(inputs[:10], draws)
    blocks = list(engine.reports(records, survey))
    alone = best(lambda: channel.response.sample(inputs, draws))
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


Rows = Iterator[str]


def sections(scale: float) -> dict[str, tuple[list[str], Callable[[], Rows]]]:
    """Each section's title, its text, and its lines as they are measured."""
    return {
        "Errors of blocks": (
            [
                "n·MSE about the mean of the population, predicted and measured over predicted through the engine;",
                "coverage of 95 % intervals of that mean; collections of 10,000 users drawn anew.",
                "Values ±1: the means go evenly from −0.9 to 0.9. Values spread: evenly over an interval of",
                "width 1, whose middle, the mean θ of the population, goes evenly from −0.45 to 0.45;",
                "n·MSE = (d/b)(1/c² − θ²), on average.",
                "This is not the error about the mean of the users themselves, which a plan predicts.",
                "",
                "| numbers | block | epsilon | values | collections | n·MSE | ratio | coverage (%) |",
                "|---|---|---|---|---|---|---|---|",
            ],
            lambda: (
                errors_of_blocks(*case, scale)
                for case in (
                    (64, 64, 8.0, "±1"),
                    (100, 100, 8.0, "spread"),
                    (8, 8, 8.0, "±1"),
                    (100, 4, 4.0, "spread"),
                )
            ),
        ),
        "Blocks on real data": (
            [
                "The same on scikit-learn's data, each column scaled to [−1, 1]; users are drawn from the rows.",
                "",
                "| data | asked | epsilon | collections | n·MSE | by | ratio | coverage (%) |",
                "|---|---|---|---|---|---|---|---|",
            ],
            lambda: (
                on_real_blocks(*case, scale)
                for case in (("breast cancer", 8.0, 30), ("digits", 8.0, 64), ("digits", 4.0, 8))
            ),
        ),
        "Errors of vectors": (
            [
                *VECTORS,
                "One vector that everybody has.",
                "",
                *VECTOR_HEAD,
            ],
            lambda: (
                errors_of_vectors(*case, scale)
                for case in ((10, 4.0, 1.0, 40), (100, 4.0, 0.3, 20), (100, 8.0, 1.0, 5))
            ),
        ),
        "Vectors on real data": (
            [
                *VECTORS,
                "Rows of scikit-learn's digits (norm 1) and of its diabetes data (the longest row has norm 1).",
                "",
                *VECTOR_HEAD,
            ],
            lambda: (on_real_vectors(*case, scale) for case in (("diabetes", 4.0, 40), ("digits", 4.0, 20))),
        ),
        "Optional vectors on real data": (
            [
                "Rows of scikit-learn's diabetes data (the longest row has norm 1), which a share of the users has.",
                "n·MSE of a coordinate's mean among those, predicted by the delta method; through the engine, in",
                "collections of 10,000 users drawn anew: the error over the one predicted, and the coverage of 95 %",
                "intervals of the population's means and share. ± is one standard error.",
                "",
                "| vectors | length | share | epsilon | collections | n·MSE | ratio | means (%) | share (%) |",
                "|---|---|---|---|---|---|---|---|---|",
            ],
            lambda: (
                on_optional_vectors(share, 4.0, max(10, round(scale * 300))) for share in (0.1, 0.5, 0.9)
            ),
        ),
        "Published rivals": (
            [
                "n·MSE of a coordinate for vectors on the unit sphere: the codebook (codewords, heavy ones), PrivUnitG",
                "by its own formula, and the best of asking for one or more coordinates by themselves.",
                "",
                "| length | epsilon | codebook | its error | PrivUnitG | ratio | coordinates | times the codebook's |",
                "|---|---|---|---|---|---|---|---|",
            ],
            lambda: (rivals(d, epsilon) for d in (10, 100, 1000) for epsilon in (4.0, 8.0)),
        ),
        "Speed of blocks": (
            [
                "Agreement blocks, millions a second: the channel alone, records to reports, values read, reports to",
                "counts; thousands of reports a second of the client in pure Python.",
                "",
                "| numbers | epsilon | bytes a report | channel | reports | values | counts | client (k/s) |",
                "|---|---|---|---|---|---|---|---|",
            ],
            lambda: (block_rates(*case) for case in ((8, 8.0), (64, 8.0), (100, 8.0))),
        ),
        "Speed of vectors": (
            [
                "Vectors, thousands a second: records to reports, reports to counts; milliseconds of the client for "
                "one.",
                "",
                "| length | epsilon | codewords | bytes a report | reports (k/s) | counts (k/s) | client (ms) |",
                "|---|---|---|---|---|---|---|",
            ],
            lambda: (vector_rates(*case) for case in ((10, 4.0), (100, 4.0), (100, 8.0))),
        ),
    }


VECTORS = [
    "n·MSE of a coordinate about the population's mean, predicted; through the engine, in some collections of 10,000:",
    "the mean square of decoded reports over the predicted one, the error over the predicted one, coverage of 95 %",
    "intervals; simulated, in many more collections: the error and the coverage again. ± is one standard error.",
]
VECTOR_HEAD = [
    "| vectors | length | epsilon | n·MSE | collections | mean square | ratio | coverage (%) | ratio, simulated "
    "| coverage, simulated (%) |",
    "|---|---|---|---|---|---|---|---|---|---|",
]


def kept_sections(path: Path) -> dict[str, list[str]]:
    """The sections that a file has, by title."""
    if not path.exists():
        return {}
    parts = path.read_text("utf-8").split("\n## ")[1:]
    return {part.split("\n")[0]: part.rstrip().split("\n")[2:] for part in parts}


def main(path: Path, scale: float, only: str) -> None:
    """Measure, and write what is measured after each line."""
    kept = kept_sections(path)
    for title, (text, rows) in sections(scale).items():
        if only not in title:
            continue
        kept[title] = [
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, one thread; load "
            f"average {os.getloadavg()[0]:.1f} at the start.",
            *([f"Repeats: {scale:g} times those of a full run."] if scale != 1 else []),
            *text,
        ]
        for row in rows():
            print(row, flush=True)
            kept[title].append(row)
            shown = [
                line
                for name in sections(scale)
                if name in kept
                for line in ("", f"## {name}", "", *kept[name])
            ]
            write_text(path, "\n".join(["# Blocks and vectors", *shown, ""]))


if __name__ == "__main__":
    given = sys.argv[2:]
    main(Path(sys.argv[1]), float(given[0]) if given else 1.0, given[1] if len(given) > 1 else "")
