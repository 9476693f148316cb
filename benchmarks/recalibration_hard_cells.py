"""The hard cells of the re-calibration benchmark: unequal noise, edges, clusters, curves, groups, real data."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalibration_cells import Data, best_sampled, cell

Floats = NDArray[np.float64]

REAL_SETS = ("digits", "breast_cancer", "diabetes", "wine")


@dataclass(frozen=True)
class Hard:
    """True means, standard errors, and what is declared of the dimensions."""

    family: str
    name: str
    mean: Floats
    standard_error: Floats
    options: dict[str, Any] = field(default_factory=dict)

    def rng(self, seed: int = 0) -> np.random.Generator:
        """A generator of the cell's own."""
        return np.random.default_rng([zlib.crc32(f"{self.family}/{self.name}".encode()), seed])


def unequal() -> Iterator[Hard]:
    """Standard errors that differ, with means that do not depend on them, or do."""
    rng = np.random.default_rng(11)
    for d in (10, 40, 100, 400):
        spreads = {
            "lognormal .7": 0.1 * np.exp(0.7 * rng.normal(size=d)),
            "tenfold": 0.02 * 10 ** rng.uniform(0, 1, d),
            "hundredfold": 0.005 * 100 ** rng.uniform(0, 1, d),
        }
        for name, s in spreads.items():
            yield Hard("unequal", f"{name}, normal means, d={d}", np.clip(rng.normal(0, 0.3, d), -1, 1), s)
            yield Hard("unequal", f"{name}, offset .5, d={d}", np.clip(rng.normal(0.5, 0.1, d), -1, 1), s)
            follow = np.clip(np.where(s > np.median(s), 2 * s, 0.0), -1, 1)
            yield Hard("unequal", f"{name}, means follow noise, d={d}", follow, s)


def tied() -> Iterator[Hard]:
    """Two, three and five levels of standard error, of unequal sizes, as pooled ones have."""
    rng = np.random.default_rng(13)
    for sizes, errors in (((50, 70), (0.1, 0.3)), ((30, 70), (0.05, 0.2)), ((60, 60, 60), (0.1, 0.3, 0.9))):
        s = np.repeat(np.array(errors, np.float64), sizes)
        name = " + ".join(map(str, sizes))
        yield Hard("tied", f"{name}, normal means", np.clip(rng.normal(0.3, 0.25, s.size), -1, 1), s)
        yield Hard("tied", f"{name}, uniform means", rng.uniform(-1, 1, s.size), s)
    level = np.arange(150.0) % 5
    yield Hard("tied", "five levels, means follow noise", level / 2.5 - 0.8, 0.05 * (1 + level))


def equal() -> Iterator[Hard]:
    """Few dimensions, edges, and clusters among spread-out means."""
    rng = np.random.default_rng(12)
    for d in (3, 5, 10, 20):
        for s in (0.1, 0.4, 0.8):
            yield Hard("small_sample", f"uniform, d={d}, s={s}", rng.uniform(-1, 1, d), np.full(d, s))
            yield Hard("small_sample", f"all at s, d={d}, s={s}", np.full(d, s), np.full(d, s))
    for d in (20, 100, 784):
        for s in (0.02, 0.15, 0.5):
            error = np.full(d, s)
            j = np.arange(d)
            yield Hard("edge", f"all at 1, d={d}, s={s}", np.ones(d), error)
            yield Hard("edge", f"half at each end, d={d}, s={s}", np.where(j % 2 == 0, 1.0, -1.0), error)
            yield Hard(
                "edge",
                f"a tenth at -1, d={d}, s={s}",
                np.where(j % 10 == 0, -1, rng.uniform(-1, 1, d)),
                error,
            )
    for d in (100, 400):
        for s in (0.02, 0.1):
            mean = np.where(np.arange(d) % 2 == 0, 0.2, rng.uniform(-1, 1, d))
            yield Hard("clusters", f"half at .2, half uniform, d={d}, s={s}", mean, np.full(d, s))


def shapes() -> Iterator[Hard]:
    """Shapes that lead a rule astray when there are few dimensions."""
    rng = np.random.default_rng(20231)
    for d in (8, 13, 20, 32, 64):
        for s in (0.03, 0.3):
            for name, theta in {
                "as large as the noise": 1.2 * s * rng.normal(size=d),
                "spread": rng.uniform(-1, 1, d),
                "two groups": np.where(rng.random(d) < 0.5, 0.6, -0.4) + 0.05 * rng.normal(size=d),
                "in a row": np.linspace(-0.5, 0.5, d),
                "skewed": rng.exponential(0.4, d) - 1,
                "one outlier": np.r_[0.9, 0.05 * rng.normal(size=d - 1) - 0.2],
                "next to an edge": 1 - np.abs(0.05 * rng.normal(size=d)),
            }.items():
                yield Hard("shapes", f"{name}, d={d}, s={s:g}", np.clip(theta, -1, 1), np.full(d, s))


def few_noisy() -> Iterator[Hard]:
    """A few noisy means among many that are known well, and two levels of noise in few dimensions."""
    rng = np.random.default_rng(20232)
    for d, noisy, s in ((1000, 12, 0.3), (1000, 20, 0.3), (784, 15, 0.5)):
        error = np.where(np.arange(d) < noisy, s, 0.005)
        for name, theta in {
            "uniform": rng.uniform(-1, 1, d),
            "1.5 s": 1.5 * s * rng.choice([-1.0, 1.0], d),
        }.items():
            mean = np.where(error == s, np.clip(theta, -1, 1), 0.0)
            yield Hard("few noisy", f"{noisy} of {d} at s={s}, {name}", mean, error)
    for d in (16, 40):
        high = np.arange(d) % 4 == 0
        yield Hard(
            "few noisy", f"a quarter at s=0.6, d={d}", np.where(high, 0.7, -0.5), np.where(high, 0.6, 0.05)
        )


def small_structures() -> Iterator[Hard]:
    """Short curves and small groups: declarations that are wrong, and some that are right."""
    s = 0.05
    for d in (4, 6, 8, 12, 16):
        j = np.arange(d)
        swing = np.where(j % 2 == 0, 1.5 * s, -1.5 * s)
        yield Hard("small", f"curve that swings, d={d}", 0.5 + swing, np.full(d, s), {"order": j})
        bump = 0.7 * np.sin(2 * np.pi * j / d)
        yield Hard("small", f"sine, d={d}", bump, np.full(d, 0.3), {"order": j})
    rng = np.random.default_rng(20233)
    for sizes in ((2, 2, 1, 1, 1, 1), (4, 1, 1, 1), (2, 2, 2, 1), (2,) * 5, (2,) * 10):
        group = np.repeat(np.arange(len(sizes)), sizes)
        swing = np.where(np.arange(group.size) % 2 == 0, s, -s)
        name = "+".join(map(str, sizes))
        error, groups = np.full(group.size, s), {"groups": group.tolist()}
        yield Hard("small", f"groups {name}, all alike", 0.5 + 1.5 * swing, error, groups)
        own = rng.normal(0, 0.3, len(sizes))
        yield Hard("small", f"groups {name}, members differ by 2 s", own[group] + swing, error, groups)


def daily_steps(d: int) -> Floats:
    """The demonstration's expected steps over a day, scaled to [−1, 1]."""
    hour = np.arange(d) * 24 / d
    awake = 1 / (1 + np.exp(-(hour - 7))) * (1 - 1 / (1 + np.exp(-(hour - 22.5))))
    pace = awake * (260 + 420 * np.exp(-((hour - 18) ** 2) / 6) + 240 * np.exp(-((hour - 8) ** 2) / 3))
    return np.asarray(2 * (pace - pace.min()) / np.ptp(pace) - 1)


def structured() -> Iterator[Hard]:
    """Curves and groups, declared rightly, wrongly and not at all; noise .3."""
    rng = np.random.default_rng(13)
    for d in (24, 100):
        s, order = np.full(d, 0.3), {"order": np.arange(d)}
        yield Hard("structure", f"daily steps, d={d}", daily_steps(d), s, order)
        shuffled = rng.permutation(daily_steps(d))
        yield Hard("structure", f"daily steps shuffled, d={d}", shuffled, s, order)
        yield Hard("structure", f"daily steps shuffled, nothing declared, d={d}", shuffled, s)
        yield Hard("structure", f"all zero, d={d}", np.zeros(d), s, order)
    groups = np.repeat(np.arange(10), 20)
    mean = np.clip(rng.normal(0, 0.5, 10)[groups] + rng.normal(0, 0.05, 200), -1, 1)
    s = np.full(200, 0.3)
    yield Hard("structure", "groups 10 x 20", mean, s, {"groups": groups.tolist()})
    shuffled = rng.permutation(mean)
    yield Hard("structure", "groups shuffled", shuffled, s, {"groups": groups.tolist()})
    yield Hard("structure", "groups shuffled, nothing declared", shuffled, s)


def real_records(name: str) -> Floats:
    """A data set that scikit-learn ships, each column scaled to [−1, 1] by its range."""
    from sklearn import datasets

    values = getattr(datasets, f"load_{name}")().data
    low, high = (
        (np.zeros(64), np.full(64, 16.0)) if name == "digits" else (values.min(axis=0), values.max(axis=0))
    )
    return np.asarray(2 * (values - low) / (high - low) - 1)


def real() -> Iterator[Hard]:
    """The means of real data under the framework's noise, Piecewise at the best number of reports."""
    for name in REAL_SETS:
        records = real_records(name)
        for n in (10_000, 100_000, 1_000_000, 10_000_000):
            for epsilon in (1.0, 4.0):
                data = Data(name, n, records.mean(axis=0), np.mean(records**2, axis=0))
                m = min(best_sampled(data, "piecewise", epsilon), records.shape[1])
                error = cell("real", data, "piecewise", epsilon, m, n).standard_error
                yield Hard("real", f"{name}, n={n:.0e}, eps={epsilon:g}", data.mean, error)


def hard_cells() -> Iterator[Hard]:
    """All of them."""
    for make in (unequal, tied, equal, few_noisy, shapes, structured, small_structures, real):
        yield from make()
