"""The audit of a survey: the exact likelihood ratio of each channel, and an attack that tries to exceed it.

The proof uses integers: the ratio is a fraction, which is compared with a rational number below e^ε. The attack checks
the deployed sampler. It randomizes two worst-case values many times with the kernel that batches use, and counts the
reports in the set that best separates the two values. With confidence 1 − `ALARM` the true ε is at least the bound
that it finds, so a sampler that does not follow its table is detected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdr4me.channels import Channel
from hdr4me.channels.proof import exp_lower, log_upper
from hdr4me.engines.general import answers_of
from hdr4me.pages.text import listed, shortened
from hdr4me.survey import Dimension, Survey

ALARM = 1e-6  # the probability of a false alarm, for each channel
# The smallest number of draws, and the limit of the work.
_LEAST_DRAWS, _MOST_PRODUCTS = 10_000, 1_000_000_000
_AT_ONCE = 1 << 19  # outputs that are held in memory at a time


def attack(channel: Channel, draws: int, progress: Callable[[int], None] | None = None) -> float:
    """A lower bound of a channel's ε from its outputs alone; it exceeds the true ε with probability at most `ALARM`.

    The sampler that batches use randomizes each of the two worst inputs `draws` times. Outputs are classified by their
    likelihood ratio. The set of classes is fixed in advance (it has the highest expected bound), so the two
    Clopper–Pearson bounds are valid.

    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> channel = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi").channels[0]
    >>> 0 < attack(channel, 10_000) <= 1.0
    True
    """
    worst, hits = channel.worst_pair(), [0, 0]
    contrast = channel.response.contrast(*worst)
    chosen = _separating_set(contrast.first, contrast.second, draws)
    for start in range(0, draws, _AT_ONCE):
        n = min(_AT_ONCE, draws - start)
        for i, x in enumerate(worst):
            hits[i] += int(chosen[contrast.classify(answers_of(channel, x, n))].sum())
        if progress is not None:
            progress(n)
    return bound(hits[0], hits[1], draws)


def bound(first: int, second: int, draws: int) -> float:
    """The lower bound of ε from the numbers of outputs in the separating set, out of `draws` for each input."""
    low = float(stats.beta.ppf(ALARM / 2, first, draws - first + 1)) if first else 0.0
    high = float(stats.beta.isf(ALARM / 2, second + 1, draws - second)) if second < draws else 1.0
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _separating_set(first: NDArray[np.float64], second: NDArray[np.float64], draws: int) -> NDArray[np.bool_]:
    """Among the sets {ratio ≥ τ}, the one whose expected bound is highest at this many draws."""
    order = np.argsort(-first / np.maximum(second, 1e-300), kind="stable")
    p, q = np.cumsum(first[order]), np.cumsum(second[order])
    z = float(stats.norm.isf(ALARM / 2))
    low = p - z * np.sqrt(p / draws)
    high = q + z * np.sqrt(q / draws) + z**2 / draws
    best = int(np.argmax(np.where(low > 0, low, 1e-300) / high))
    chosen = np.zeros(first.size, dtype=bool)
    chosen[order[: best + 1]] = True
    return chosen


@dataclass(frozen=True)
class Finding:
    """One channel: its declared ε, its proven ratio, and the result of the attack."""

    mechanism: str
    kind: str
    dims: int
    epsilon_declared: float
    likelihood_ratio: Fraction
    epsilon_attacked: float
    draws: int = 0
    requested: int = 0
    names: tuple[str, ...] = ()

    @property
    def epsilon_proven(self) -> float:
        """log of the ratio, rounded up."""
        return log_upper(self.likelihood_ratio)

    @property
    def passed(self) -> bool:
        """The proof holds, and the attack's bound does not exceed the declared ε."""
        return (
            self.likelihood_ratio <= exp_lower(self.epsilon_declared)
            and self.epsilon_attacked <= self.epsilon_declared
        )


def _name_with_parts(dimension: Dimension) -> str:
    """The name of a dimension; for one with several parts also theirs.

    >>> from hdr4me.survey import Categorical
    >>> from hdr4me.survey.derived import Joint
    >>> _name_with_parts(Joint("who", [Categorical("sex", ["f", "m"]), Categorical("smoker", ["no", "yes"])]))
    'who (sex and smoker together)'
    """
    parts = [part.name for part in dimension.leaves]
    if len(parts) < 2 or dimension.name == " × ".join(parts):
        return dimension.name
    return f"{dimension.name} ({listed(parts)} together)"


_SHOWN: dict[str, Callable[[Finding], object]] = {
    "mechanism": lambda f: f.mechanism,
    "channel": lambda f: f.kind,
    "dimensions": lambda f: shortened(f.names),
    "worst ratio": lambda f: str(f.likelihood_ratio),
    "ε proven": lambda f: f"{f.epsilon_proven:.9g}",
    "declared": lambda f: f"{f.epsilon_declared:.9g}",
    "attack finds ≥": lambda f: f"{f.epsilon_attacked:.4f}",
    "draws": lambda f: f"{f.draws:,}",
    "verdict": lambda f: "passes" if f.passed else "FAILS",
}
COLUMNS = tuple(_SHOWN)


@dataclass(frozen=True, repr=False)
class Audit:
    """The findings on all channels of a survey, and the likelihood ratio of a report with the worst answers."""

    epsilon_declared: float
    sampled: int
    findings: tuple[Finding, ...]
    likelihood_ratio: Fraction

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
        """One line for each channel, with the columns `COLUMNS`."""
        return [[show(finding) for show in _SHOWN.values()] for finding in self.findings]

    @property
    def notes(self) -> tuple[str, ...]:
        """The channels for which the attack made fewer draws than requested."""
        return tuple(
            f"{f.mechanism}: {f.draws:,} draws of each value instead of {f.requested:,}, because each draw compares a "
            "long vector with every codeword. The bound is valid for any number of draws; more draws make it tighter"
            for f in self.findings
            if f.draws < f.requested
        )

    @property
    def epsilon_proven(self) -> float:
        """log of the whole report's ratio, rounded up."""
        return log_upper(self.likelihood_ratio)

    @property
    def proven(self) -> bool:
        """Whether the likelihood ratio of a report is at most e^ε."""
        return self.likelihood_ratio <= exp_lower(self.epsilon_declared)

    @property
    def passed(self) -> bool:
        """Whether every channel passes, and the whole report."""
        return self.proven and all(finding.passed for finding in self.findings)


def audit(survey: Survey, draws: int = 1_000_000, *, progress: Callable[[int], None] | None = None) -> Audit:
    """Prove and attack every channel of a survey.

    Parameters
    ----------
    survey
        The survey.
    draws
        The number of reports for each of the two values that the attack tries to separate.
    progress
        Called with the number of reports drawn since the last call; the sum is `draws` for each channel.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> audit(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0), draws=1000)
    <Audit passes: epsilon 1 proven of 1 declared, 1 channel(s)>
    """
    findings = []
    for channel in survey.channels:
        # A draw of a codebook costs K·d products, so fewer draws are made for long vectors.
        made = min(draws, max(_LEAST_DRAWS, _MOST_PRODUCTS // channel.response.cost))

        def advance(n: int, made: int = made) -> None:
            if progress is not None:
                progress(n * draws // made)

        covered = [
            survey.schema.dimensions[j]
            for q in survey.questions
            if q.channel is channel
            for j in q.dimensions
        ]
        found = attack(channel, made, advance)
        own = (channel.mechanism, channel.kind, len(covered), channel.epsilon, channel.likelihood_ratio)
        findings.append(Finding(*own, found, made, draws, tuple(map(_name_with_parts, covered))))
    ratios = sorted((question.channel.likelihood_ratio for question in survey.questions), reverse=True)
    ratio = math.prod(ratios[: survey.sampled], start=Fraction(1))
    return Audit(survey.epsilon, survey.sampled, tuple(findings), ratio)
