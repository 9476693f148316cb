"""The audit of a survey: for each of its tables the exact privacy loss, and an attack that tries to beat it.

The proof is in integers: the loss is a fraction, compared with a rational number below e^ε. The attack is a check of
the deployed sampler: it randomises two worst-case values many times with the same kernel that a batch uses and counts
how often the reports fall into the set that tells the two apart best. With confidence 1 − `ALARM` the true loss is
at least what it finds, so a sampler that does not follow its table is caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook, values, word_levels
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.projective import Projective
from hdr4me.channels.proof import ONE, exp_lower, log_upper
from hdr4me.channels.subset import Subset
from hdr4me.engines.local import Local
from hdr4me.kernels.exact.codebook import axis_ranks
from hdr4me.kernels.exact.projective import coordinates, dots
from hdr4me.mechanisms.projective import field_arrays
from hdr4me.survey import Categorical, Dimension, Numeric, Question, Schema, Selection, Survey, Vector
from hdr4me.tally.counting import fields_of

__all__ = ["ALARM", "COLUMNS", "Audit", "Finding", "attack", "audit", "bound", "draws_made"]

ALARM = 1e-6
"""The probability that an honest table is accused, for each table."""
COLUMNS = (
    "mechanism",
    "channel",
    "dimensions",
    "worst ratio",
    "ε proven",
    "declared",
    "attack finds ≥",
    "draws",
    "verdict",
)
"""What `Audit.rows` has for each channel."""

Shares = NDArray[np.float64]
_LEAST_DRAWS, _MOST_PRODUCTS = 10_000, 1_000_000_000
"""Draws of a codebook that are always made, and products beyond which no more are."""


@dataclass(frozen=True)
class Finding:
    """One table: what it declares, what is proven, what the attack found."""

    mechanism: str
    kind: str
    n_dims: int
    epsilon_declared: float
    loss: Fraction
    epsilon_attacked: float
    n_draws: int = 0
    n_asked: int = 0

    @property
    def fewer(self) -> str:
        """Why the attack made fewer draws than it was asked for; empty if it made them all."""
        if self.n_draws >= self.n_asked:
            return ""
        return (
            f"{self.mechanism}: {self.n_draws:,} draws of each value instead of {self.n_asked:,}, because each draw "
            "compares a long vector with every codeword. The bound holds at any number of draws; more draws bring it "
            "nearer to the truth"
        )

    @property
    def epsilon_proven(self) -> float:
        """log of the loss, rounded up."""
        return log_upper(self.loss)

    @property
    def passed(self) -> bool:
        """The proof holds and the attack stays below what is declared."""
        return (
            self.loss <= exp_lower(self.epsilon_declared) and self.epsilon_attacked <= self.epsilon_declared
        )


@dataclass(frozen=True, repr=False)
class Audit:
    """All tables of a survey, and the whole report: the m dimensions that leak most, together."""

    epsilon_declared: float
    n_sampled: int
    findings: tuple[Finding, ...]
    loss: Fraction

    def __repr__(self) -> str:
        verdict = "passes" if self.passed else "FAILS"
        return (
            f"<Audit {verdict}: epsilon {self.epsilon_proven:.6g} proven of {self.epsilon_declared:g} declared, "
            f"{len(self.findings)} channel(s)>"
        )

    def _repr_html_(self) -> str:
        from hdr4me.pages import html

        return html.paragraph(repr(self)[1:-1]) + html.table(COLUMNS, self.rows())

    def rows(self) -> list[list[object]]:
        """A line for each channel, under `COLUMNS`, as pages and the command line show it."""
        return [
            [
                f.mechanism,
                f.kind,
                f.n_dims,
                str(f.loss),
                f"{f.epsilon_proven:.9g}",
                f"{f.epsilon_declared:.9g}",
                f"{f.epsilon_attacked:.4f}",
                f"{f.n_draws:,}",
                "passes" if f.passed else "FAILS",
            ]
            for f in self.findings
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the attack made fewer draws than it was asked for, and why."""
        return tuple(f.fewer for f in self.findings if f.fewer)

    @property
    def epsilon_proven(self) -> float:
        """log of the whole report's loss, rounded up."""
        return log_upper(self.loss)

    @property
    def passed(self) -> bool:
        """Every table passes, and so does a whole report."""
        whole = self.loss <= exp_lower(self.epsilon_declared)
        return whole and all(finding.passed for finding in self.findings)


_AT_ONCE = 1 << 19
"""Outputs that are in memory at a time."""


def audit(
    survey: Survey, n_draws: int = 1_000_000, *, progress: Callable[[int], None] | None = None
) -> Audit:
    """Prove and attack every channel of a survey.

    Parameters
    ----------
    survey
        The survey.
    n_draws
        How many reports are drawn for each of the two values that the attack tries to tell apart.
    progress
        Called with a number of reports whenever so many more have been drawn; of each channel's `n_draws` in all.

    Returns
    -------
    Audit
        The proof of each channel and of a whole report, and what the attack found.

    Examples
    --------
    >>> audit(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0), n_draws=1000)
    <Audit passes: epsilon 1 proven of 1 declared, 1 channel(s)>
    """
    findings = tuple(
        Finding(
            mechanism=channel.mechanism,
            kind=channel.kind,
            n_dims=sum(len(q.dimensions) for q in survey.questions if q.channel is channel),
            epsilon_declared=channel.epsilon,
            loss=channel.loss,
            epsilon_attacked=attack(channel, n_draws, progress),
            n_draws=draws_made(channel, n_draws),
            n_asked=n_draws,
        )
        for channel in survey.channels
    )
    losses = sorted((question.channel.loss for question in survey.questions), reverse=True)
    return Audit(
        survey.epsilon, survey.n_sampled, findings, math.prod(losses[: survey.n_sampled], start=Fraction(1))
    )


def draws_made(channel: Channel, n_draws: int) -> int:
    """How many draws of each value the attack makes when it is asked for `n_draws`.

    A codebook takes K·d products a draw, so that long vectors are drawn fewer times, at least 10,000 times each.

    >>> from hdr4me.mechanisms.codebook import codebook_channel
    >>> draws_made(codebook_channel(4.0, 100), 1_000_000)
    10000
    """
    if isinstance(channel, HeavySet) and isinstance(channel.family, Codebook):
        products = channel.family.codewords * (channel.family.length + 1)
        return min(n_draws, max(_LEAST_DRAWS, _MOST_PRODUCTS // products))
    return n_draws


def attack(
    channel: Channel, n_draws: int, progress: Callable[[int], None] | None = None, *, whole: bool = False
) -> float:
    """A lower bound of a channel's ε, from outputs alone, wrong with probability at most `ALARM`.

    The channel answers its two worst inputs many times each through the sampler that batches use. Outputs are put
    into classes by their likelihood ratio, and the set of classes is fixed beforehand (the one whose bound should come
    out highest), so the two Clopper–Pearson bounds are honest.

    Parameters
    ----------
    channel
        The channel.
    n_draws
        How many answers of each input; long vectors are drawn fewer times (`draws_made`).
    progress
        Called with a number of draws whenever so many more have been made; of `n_draws` in all.
    whole
        Make all `n_draws`, however long they take.

    Returns
    -------
    float
        The bound, which holds at any number of draws.

    Examples
    --------
    >>> channel = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi").channels[0]
    >>> 0 < attack(channel, 10_000) <= 1.0
    True
    """
    first, second = channel.worst_pair()
    wanted, told = n_draws, 0
    n_draws = n_draws if whole else draws_made(channel, n_draws)
    hits = [0, 0]
    for start in range(0, n_draws, _AT_ONCE):
        n = min(_AT_ONCE, n_draws - start)
        classes, law = _classes(channel, first, second, [_outputs(channel, x, n) for x in (first, second)])
        chosen = _telling_set(law[0], law[1], n_draws)
        hits = [before + int(chosen[found].sum()) for before, found in zip(hits, classes, strict=True)]
        if progress is not None:
            reached = wanted * (start + n) // n_draws
            progress(reached - told)
            told = reached
    return bound(hits[0], hits[1], n_draws)


def bound(first: int, second: int, n_draws: int) -> float:
    """The lower bound of ε from how many of `n_draws` outputs of each input fell into the telling set.

    >>> bound(731_000, 269_000, 1_000_000) < 1.0
    True
    """
    hits = (first, second)
    low = float(stats.beta.ppf(ALARM / 2, hits[0], n_draws - hits[0] + 1)) if hits[0] else 0.0
    high = float(stats.beta.isf(ALARM / 2, hits[1] + 1, n_draws - hits[1])) if hits[1] < n_draws else 1.0
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _classes(
    channel: Channel, first: int, second: int, outputs: list[NDArray[np.int64]]
) -> tuple[list[NDArray[np.int64]], tuple[Shares, Shares]]:
    """The class of each output, and the probability of each class under the two inputs."""
    if isinstance(channel, Entries):  # only the two entries in which the inputs differ tell anything
        shares = np.array(channel.weights, np.float64) / ONE
        pair = (np.outer(shares[1], shares[0]).ravel(), np.outer(shares[0], shares[1]).ravel())
        return [found[:, first] * channel.n_cells + found[:, second] for found in outputs], pair
    if isinstance(channel, Table):
        shares = np.array(channel.weights, np.float64) / ONE
        return [found[:, 0] for found in outputs], (shares[first], shares[second])
    if isinstance(channel, HeavySet) and isinstance(channel.family, Subset):
        return [1 - _heavier(found, first, second) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, Projective):
        return [1 - _on_planes(channel.family, found, first, second) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, Agreement):
        return [1 - _nearer(channel.family, found, first, second) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, Codebook):
        return [1 - _on_axis(channel.family, found) for found in outputs], _three(channel)
    if isinstance(channel, HeavySet) and isinstance(channel.family, PrivSet):
        sets = [channel.family.members(x) for x in (first, second)]
        return [1 - _shared(found, *sets) for found in outputs], _three(channel)
    return _by_likelihood(channel, first, second, outputs), _three(channel)


def _three(channel: Channel) -> tuple[Shares, Shares]:
    """A law for the classes 0 (likelier under the first input), 1 (neither) and 2.

    It only decides, before any draw is looked at, that class 0 is the telling one.
    """
    return np.array([1.0, 0.0, 0.0]), np.array([math.exp(-channel.epsilon), 0.0, 1.0])


def _heavier(outputs: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
    """1 where a set has the first category and not the second, −1 the other way round, else 0."""
    return np.asarray((outputs == first).any(axis=1).astype(np.int64) - (outputs == second).any(axis=1))


def _on_planes(family: Projective, outputs: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
    """1 where a point is on the hyperplane of the first category and not of the second, −1 the other way, else 0."""
    q, t = family.order, family.length
    distinct, where = np.unique(outputs[:, 0], return_inverse=True)
    vectors = coordinates(distinct, q, t)
    inputs = coordinates(np.array([first, second]), q, t)
    field = field_arrays(q)
    heavy = dots(vectors[:, None], inputs, q, field.products, field.differences) == 0
    return np.asarray(heavy[:, 0].astype(np.int64) - heavy[:, 1])[where]


def _nearer(family: Agreement, outputs: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
    """1 where a block agrees with the first one in enough places and not with the second, −1 the other way, else 0."""
    heavy = []
    for x in (first, second):
        differ = outputs ^ np.array(family.split(x), np.uint64).view(np.int64)
        n_places = np.bitwise_count(differ.view(np.uint64)).sum(axis=1)
        heavy.append(n_places <= family.size - family.agreeing)
    return np.asarray(heavy[0].astype(np.int64) - heavy[1])


def _on_axis(family: Codebook, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 where a codeword is heavy for the first axis and not for its other end, −1 the other way round, else 0."""
    numbers = np.array(values(), np.float32)[np.frombuffer(word_levels(), np.uint8)]
    ranks = np.empty((len(outputs), 2), np.int64)
    axis_ranks(outputs[:, 0], outputs[:, 1], family.codewords, numbers, ranks)
    heavy = ranks < family.heavy
    return np.asarray(heavy[:, 0].astype(np.int64) - heavy[:, 1])


def _shared(outputs: NDArray[np.int64], first: tuple[int, ...], second: tuple[int, ...]) -> NDArray[np.int64]:
    """1 where a set shares an item with the first set and none with the second, −1 the other way round, else 0."""
    heavy = [np.isin(outputs, members).any(axis=1) for members in (first, second)]
    return np.asarray(heavy[0].astype(np.int64) - heavy[1])


def _by_likelihood(
    channel: Channel, first: int, second: int, outputs: list[NDArray[np.int64]]
) -> list[NDArray[np.int64]]:
    """The same classes for any channel, asked of the channel itself for every different output."""
    found = []
    for rows in outputs:
        distinct, where = np.unique(rows, axis=0, return_inverse=True)
        pairs = [
            (channel.probability(first, row), channel.probability(second, row)) for row in distinct.tolist()
        ]
        signs = np.array([(p > q) - (p < q) for p, q in pairs])
        found.append(1 - signs[where.ravel()])
    return found


def _outputs(channel: Channel, x: int, n_draws: int) -> NDArray[np.int64]:
    """What `n_draws` users with input x send, through the engine that batches go through."""
    dimensions: list[Dimension] = []
    values: list[float] = []
    rest = channel.n_inputs
    if isinstance(channel, HeavySet) and isinstance(channel.family, Codebook):
        return _vectors(channel, channel.family, x, n_draws)
    if isinstance(channel, HeavySet) and isinstance(channel.family, PrivSet):
        return _selected(channel, channel.family, x, n_draws)
    for number, take in enumerate(channel.takes):
        rest //= take.size
        own = (x // rest) % take.size
        if take.reads == "category":
            dimensions.append(Categorical(f"x{number}", range(take.size)))
            values.append(own)
            continue
        n_levels = take.size - (take.reads == "optional")
        dimensions.append(Numeric(f"x{number}", -1, 1, optional=take.reads == "optional"))
        values.append(2 * own / (n_levels - 1) - 1 if own < n_levels else math.nan)
    survey = Survey.from_questions(
        Schema(dimensions),
        epsilon=channel.epsilon,
        n_sampled=1,
        questions=[Question(tuple(range(len(dimensions))), channel)],
    )
    records = np.broadcast_to(np.array(values), (n_draws, len(values)))
    blocks = [fields_of(block[:, 2:], channel) for block in Local().reports(records, survey)]
    return np.concatenate(blocks)


def _selected(channel: HeavySet, family: PrivSet, x: int, n_draws: int) -> NDArray[np.int64]:
    """The same for a set of categories."""
    schema = Schema([Selection("x", range(family.size), family.most)])
    questions = [Question((0,), channel)]
    survey = Survey.from_questions(schema, epsilon=channel.epsilon, n_sampled=1, questions=questions)
    text = "|".join(str(item) for item in family.members(x) if item < family.size)
    records = pa.table({"x": pa.array([text]).take(np.zeros(n_draws, np.int64))})
    return np.concatenate([fields_of(block[:, 2:], channel) for block in Local().reports(records, survey)])


def _vectors(channel: HeavySet, family: Codebook, x: int, n_draws: int) -> NDArray[np.int64]:
    """The same for a vector."""
    schema, questions = Schema([Vector("x", family.length)]), [Question((0,), channel)]
    survey = Survey.from_questions(schema, epsilon=channel.epsilon, n_sampled=1, questions=questions)
    records = np.broadcast_to(np.array(family.vector(x)), (n_draws, family.length))
    return np.concatenate([fields_of(block[:, 2:], channel) for block in Local().reports(records, survey)])


def _telling_set(first: Shares, second: Shares, n_draws: int) -> NDArray[np.bool_]:
    """Among the sets {ratio ≥ τ}, the one whose expected bound is highest at this many draws."""
    order = np.argsort(-first / np.maximum(second, 1e-300), kind="stable")
    p, q = np.cumsum(first[order]), np.cumsum(second[order])
    z = float(stats.norm.isf(ALARM / 2))
    low = p - z * np.sqrt(p / n_draws)
    high = q + z * np.sqrt(q / n_draws) + z**2 / n_draws
    best = int(np.argmax(np.where(low > 0, low, 1e-300) / high))
    chosen = np.zeros(first.size, dtype=bool)
    chosen[order[: best + 1]] = True
    return chosen
