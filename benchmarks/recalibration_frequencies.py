"""Frequencies of the hard benchmark: Zipf and one large category among many rare, under three oracles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdr4me.recalibration import recalibrate_frequencies
from hdr4me.recalibration.shrinkage import norm_sub
from recalibration_runs import Draw, Job, excesses

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """One cell: a distribution, an oracle, a budget, a number of users."""

    shape: str
    category_count: int
    users: int
    oracle: str
    epsilon: float

    @property
    def name(self) -> str:
        """A line that names the cell."""
        return f"{self.shape}, v={self.category_count}, n={self.users}, {self.oracle}, eps={self.epsilon:g}"

    @property
    def truth(self) -> Floats:
        """The distribution that users are drawn from."""
        v = self.category_count
        large = 0.8 if self.shape == "one larger" else 0.6
        rare = np.full(v - 1, (1 - large) / (v - 1))
        f = 1 / np.arange(1, v + 1) if self.shape == "zipf" else np.r_[large, rare]
        return np.asarray(f / f.sum())


def frequency_cells() -> Iterator[Shape]:
    """v = 4 … 500, n = 500 … 10⁶."""
    for shape in ("zipf", "one large"):
        for v in (4, 20, 100, 500):
            for n in (500, 10_000, 1_000_000):
                for oracle, epsilon in (("grr", 4.0), ("oue", 2.0), ("subset", 1.0)):
                    yield Shape(shape, v, n, oracle, epsilon)
    for v in (20, 40, 100):
        for n in (2_000, 20_000):
            yield Shape("one larger", v, n, "grr", 3.0)


def collected(cell: Shape, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """The users' own frequencies, their estimates and standard errors, as the package computes them."""
    v, n, e = cell.category_count, cell.users, float(np.exp(cell.epsilon))
    counts = rng.multinomial(n, cell.truth)
    if cell.oracle == "grr":
        p = e / (e + v - 1)
        q = (1 - p) / (v - 1)
        kept = rng.binomial(counts, p)
        seen = kept.copy()
        for k in np.flatnonzero(counts > kept):
            others = np.full(v, 1 / (v - 1))
            others[k] = 0
            seen += rng.multinomial(counts[k] - kept[k], others)
    else:
        p, q = 0.5, 1 / (e + 1)
        if cell.oracle == "subset":
            w = max(1, round(v / (e + 1)))
            p = e * w / (e * w + v - w)
            q = (p * (w - 1) + (1 - p) * w) / (v - 1)
        seen = rng.binomial(counts, p) + rng.binomial(n - counts, q)
    found = (seen / n - q) / (p - q)
    inside = np.clip(found, 0, 1)
    variance = (inside * p * (1 - p) + (1 - inside) * q * (1 - q)) / (p - q) ** 2 / n
    return counts / n, found, np.sqrt(variance)


def frequency_job(cell: Shape) -> Job:
    """Errors of raw (naive), norm-sub (clip) and auto, and how much the first category is overestimated."""

    def draw(rng: np.random.Generator) -> Draw:
        truth, found, error = collected(cell, rng)
        auto = recalibrate_frequencies(found, error)
        raw, plain, mine = (
            float(np.mean((f - truth) ** 2)) for f in (found, norm_sub(found), auto.frequencies)
        )
        expected = auto.expected_error_after
        out = {"naive": raw, "clip": plain, "auto": mine, "announced": expected}
        out["first_excess"] = float(auto.frequencies[0] - truth[0])
        return out | excesses(raw, plain, mine, expected)

    return Job(cell.name, {}, draw)
