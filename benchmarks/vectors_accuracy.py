"""Errors of blocks and vectors, measured beside those predicted: drawn populations and real data; published rivals.

Used by `benchmarks/vectors.py`. A ratio is a mean of squared errors over the predicted one, with the standard error of
its repeats. Collections have 10,000 users, drawn anew from the population, and intervals are those of the
population's mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import hdr4me as hd
from hdr4me.channels.codebook.channel import values
from hdr4me.channels.codebook.design import codebook_channel, total_error
from hdr4me.engines import Local
from hdr4me.survey import Numeric, Schema, Survey, Vector
from hdr4me.tally import Tally

__all__ = ["blocked", "errors_of_blocks", "errors_of_vectors", "on_real_blocks", "on_real_vectors", "rivals"]

Floats = NDArray[np.float64]
N = 10_000
REPEATS = 34_000
"""Errors of single numbers in a full run: chance then moves a ratio by √(2/34,000) = 0.0077."""


def blocked(b: int, epsilon: float, size: int | None = None) -> Survey:
    """b numbers on [−1, 1], in blocks of `size`."""
    names = [f"x{i}" for i in range(b)]
    size = b if size is None else size
    blocks = [names[i : i + size] for i in range(0, b, size)]
    return Survey(Schema([Numeric(x, -1, 1) for x in names]), epsilon=epsilon, block_questions=blocks)


class Measured(NamedTuple):
    """Mean squared errors of collections, and how many intervals of how many had the truth."""

    squares: list[float]
    covered: int
    intervals: int

    def ratio(self, predicted: float) -> str:
        """Measured over predicted, and its standard error."""
        ratio = np.array(self.squares) * N / predicted
        return f"{ratio.mean():.3f} ± {ratio.std(ddof=1) / np.sqrt(len(ratio)):.3f}"

    @property
    def coverage(self) -> str:
        """In per cent, and its standard error."""
        share = self.covered / self.intervals
        return f"{100 * share:.2f} ± {100 * np.sqrt(share * (1 - share) / self.intervals):.2f}"


def collected(survey: Survey, records: Floats) -> Tally:
    """One collection through the engine, with the system's randomness."""
    tally = Tally(survey)
    for block in Local(threads=1).reports(records, survey):
        tally.add_block(block)
    return tally


def judged(survey: Survey, rounds: Iterator[Floats], truth: Floats) -> Measured:
    """Collections of these records beside the truth."""
    squares, covered, intervals = [], 0, 0
    for records in rounds:
        answer = collected(survey, records).estimate()
        low, high = answer.interval(0.95)
        squares.append(float(((answer.value - truth) ** 2).mean()))
        covered += int(((low <= truth) & (truth <= high)).sum())
        intervals += truth.size
    return Measured(squares, covered, intervals)


def errors_of_blocks(d: int, size: int, epsilon: float, spread: str, scale: float) -> str:
    """A line: with θ the population's mean, n·MSE = (d/b)(1/c² − θ²)."""
    survey = blocked(d, epsilon, size)
    channel: Any = survey.channels[0]
    rng = np.random.default_rng(2)
    ends = spread == "±1"
    mean = np.linspace(-0.9, 0.9, d) * (1.0 if ends else 0.5)

    def rounds() -> Iterator[Floats]:
        for _ in range(max(10, round(scale * REPEATS / d))):
            u = rng.random((N, d))
            yield np.where(u < (1 + mean) / 2, 1.0, -1.0) if ends else mean + u - 0.5

    found = judged(survey, rounds(), mean)
    predicted = d / size * float(np.mean(channel.response.contrast_c**-2 - mean**2))
    return (
        f"| {d} | {size} | {epsilon:g} | {spread} | {len(found.squares):,} | {predicted:.3f} "
        f"| {found.ratio(predicted)} | {found.coverage} |"
    )


def drawn(data: Floats, times: int, seed: int) -> Iterator[Floats]:
    """Users of so many collections, drawn from the rows."""
    rng = np.random.default_rng(seed)
    for _ in range(times):
        yield data[rng.integers(0, len(data), N)]


def on_real_blocks(name: str, epsilon: float, size: int, scale: float) -> str:
    """A line: columns scaled to [−1, 1]; n·MSE = Σ(1/c² − θ²)/d times the number of blocks."""
    load = {"breast cancer": load_breast_cancer, "digits": load_digits}[name]
    data = np.asarray(load().data, np.float64)
    low, high = data.min(axis=0), data.max(axis=0)
    data = 2 * (data - low) / np.where(high > low, high - low, 1.0) - 1
    mean, d = data.mean(axis=0), data.shape[1]
    survey = blocked(d, epsilon, size)
    channel: Any = survey.channels[0]
    found = judged(survey, drawn(data, max(10, round(scale * REPEATS / d)), 4), mean)
    predicted = d / size * float(np.mean(channel.response.contrast_c**-2 - mean**2))
    return (
        f"| {name} | {d} numbers, blocks of {size} | {epsilon:g} | {len(found.squares):,} | {predicted:.3f} "
        f"| engine | {found.ratio(predicted)} | {found.coverage} |"
    )


def _reports(d: int, epsilon: float, data: Floats, times: int, seed: int) -> str:
    """Through the engine: the mean square of decoded reports over that predicted, and collections."""
    survey = Survey(Schema([Vector("x", d)]), epsilon=epsilon)
    channel: Any = survey.channels[0]
    decode = np.array(values()) / channel.response.scores.contrast
    truth = data.mean(axis=0)
    predicted = predicted_error(channel, data)
    squares, ratios, covered = [], [], 0
    for records in drawn(data, times, seed):
        tally = collected(survey, records)
        counts = tally.counts.reshape(d, 256)
        own = predicted_error(channel, records) + float(((records.mean(axis=0)) ** 2).sum())
        ratios.append(float((counts @ decode**2).sum() / N) / own)
        answer = tally.estimate()
        low, high = answer.interval(0.95)
        squares.append(float(((answer.value - truth) ** 2).sum()))
        covered += int(((low <= truth) & (truth <= high)).sum())
    found = Measured(squares, covered, times * d)
    square = f"{np.mean(ratios):.4f} ± {np.std(ratios, ddof=1) / np.sqrt(times):.4f}"
    return f"{square} | {found.ratio(predicted)} | {found.coverage}"


def predicted_error(channel: Any, data: Floats) -> float:
    """n·E|error|² about the population's mean θ: the mean of E|y|² over the vectors, less |θ|²."""
    sizes = np.square(data).sum(axis=1)
    at = {norm: total_error(channel, norm) + norm**2 for norm in (0.0, 1.0)}  # E|y|², linear in |x|²
    return float(at[0.0] + (at[1.0] - at[0.0]) * sizes.mean() - np.square(data.mean(axis=0)).sum())


def _simulated(channel: Any, data: Floats, times: int) -> str:
    """The same collections by `hd.simulate`, whose codewords are normal numbers without levels."""
    truth, predicted = data.mean(axis=0), predicted_error(channel, data)
    squares, covered = [], 0
    for seed, records in enumerate(drawn(data, times, 5)):
        found = hd.simulate(channel, records, seed=seed)
        error = np.sqrt((found.squares / N - found.mean**2) / (N - 1))
        squares.append(float(((found.mean - truth) ** 2).sum()))
        covered += int((np.abs(found.mean - truth) <= 1.96 * error).sum())
    done = Measured(squares, covered, times * data.shape[1])
    return f"{done.ratio(predicted)} | {done.coverage}"


def _vectors(name: str, epsilon: float, data: Floats, times: int, scale: float) -> str:
    d = data.shape[1]
    channel: Any = codebook_channel(epsilon, d)
    times = max(3, round(scale * times))
    engine = _reports(d, epsilon, data, times, 6)
    simulated = _simulated(channel, data, max(10, round(scale * REPEATS / d)))
    predicted = predicted_error(channel, data) / d
    return f"| {name} | {d} | {epsilon:g} | {predicted:.4f} | {times} | {engine} | {simulated} |"


def errors_of_vectors(d: int, epsilon: float, norm: float, times: int, scale: float) -> str:
    """A line for one vector that everybody has."""
    vector = np.random.default_rng(3).standard_normal((1, d))
    return _vectors(f"norm {norm:g}", epsilon, vector * norm / np.linalg.norm(vector), times, scale)


def on_real_vectors(name: str, epsilon: float, times: int, scale: float) -> str:
    """A line: digits with norm 1, or diabetes rows scaled so that the longest has norm 1."""
    if name == "digits":
        data = np.asarray(load_digits().data, np.float64)
        data /= np.linalg.norm(data, axis=1)[:, None]
    else:
        data = np.asarray(load_diabetes().data, np.float64)
        data /= np.linalg.norm(data, axis=1).max()
    return _vectors(name, epsilon, data * (1 - 1e-12), times, scale)


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
    """The best that asking for coordinates by themselves does, over two ranges: 1, and 4 standard deviations.

    A coordinate of a vector that is uniform on the sphere is 2B − 1 with B of the Beta law with (d − 1)/2 twice.
    """
    n, found = 1_000_000, []
    for reach in {1.0, min(1.0, 4 / np.sqrt(d))}:
        law = stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1 / reach, scale=2 / reach)
        names = ["optimal_mean", "piecewise"]
        best = hd.plan(users=n, dims=d, epsilon=epsilon, prior=law, mechanisms=names).best
        beyond = integrate.quad(lambda x, law=law: (x - 1) ** 2 * law.pdf(x), 1.0, 1 / reach)[0]
        words = (
            f"{best.mechanism}, {best.sampled} sent, range ±{reach:.2g}, clips {2 * reach**2 * beyond:.1e}"
        )
        found.append((best.mse * n * reach**2, words))
    least, words = min(found)
    return words, least


def rivals(d: int, epsilon: float) -> str:
    """One line: the codebook, PrivUnitG, coordinates."""
    channel: Any = codebook_channel(epsilon, d)
    own, theirs = total_error(channel) / d, priv_unit_g(d, epsilon) / d
    family = channel.family
    words, alone = coordinates(d, epsilon)
    return (
        f"| {d} | {epsilon:g} | {family.codewords:,}, {family.heavy} | {own:.4f} | {theirs:.4f} | {own / theirs:.4f} "
        f"| {alone:.3f} ({words}) | {alone / own:.1f} |"
    )
