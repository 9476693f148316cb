"""The audit of a survey: for each of its tables the exact privacy loss, and an attack that tries to beat it.

The proof is in integers: the loss is a fraction, compared with a rational number below e^ε. The attack is a check of
the deployed sampler: it randomises two worst-case values many times with the same kernel that a batch uses and counts
how often the reports fall into the set that tells the two apart best. With confidence 1 − `ALARM` the true loss is
at least what it finds, so a sampler that does not follow its table is caught.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from hdr4me.engines.local import Local
from hdr4me.mechanisms.exactness import BITS, exp_lower, log_upper
from hdr4me.survey import Categorical, Numeric, Randomizer, Schema, Survey

__all__ = ["ALARM", "Audit", "Finding", "attack", "audit"]

ALARM = 1e-6
"""The probability that an honest table is accused, for each table."""

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """One table: what it declares, what is proven, what the attack found."""

    mechanism: str
    kind: str
    n_dims: int
    epsilon_declared: float
    loss: Fraction
    epsilon_attacked: float

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


@dataclass(frozen=True)
class Audit:
    """All tables of a survey, and the whole report: the m dimensions that leak most, together."""

    epsilon_declared: float
    n_sampled: int
    findings: tuple[Finding, ...]
    loss: Fraction

    @property
    def epsilon_proven(self) -> float:
        """log of the whole report's loss, rounded up."""
        return log_upper(self.loss)

    @property
    def passed(self) -> bool:
        """Every table passes, and so does a whole report."""
        whole = self.loss <= exp_lower(self.epsilon_declared)
        return whole and all(finding.passed for finding in self.findings)


def audit(survey: Survey, n_draws: int = 1_000_000) -> Audit:
    """Prove and attack every table of `survey`, with `n_draws` reports for each of the attack's two values."""
    findings = tuple(
        Finding(
            mechanism=randomizer.mechanism,
            kind=randomizer.kind,
            n_dims=survey.assignment.count(index),
            epsilon_declared=randomizer.epsilon,
            loss=randomizer.loss,
            epsilon_attacked=attack(survey.randomizers, index, n_draws),
        )
        for index, randomizer in enumerate(survey.randomizers)
    )
    losses = sorted((survey.randomizer(j).loss for j in range(len(survey.schema))), reverse=True)
    return Audit(
        survey.epsilon, survey.n_sampled, findings, math.prod(losses[: survey.n_sampled], start=Fraction(1))
    )


def attack(randomizers: tuple[Randomizer, ...], index: int, n_draws: int) -> float:
    """A lower bound of the ε of one of a survey's tables, from reports alone, wrong with probability at most `ALARM`.

    All tables are laid out as in the survey, so that the sampler could also be caught looking at a wrong one.
    The set of outputs is fixed beforehand from the table (the likelihood-ratio set whose bound should come out
    highest), so the two Clopper–Pearson bounds are honest.
    """
    first, second, law = _worst_pair(randomizers[index])
    chosen = _telling_set(law[0], law[1], n_draws)
    hits = [int(chosen[_outputs(randomizers, index, row, n_draws)].sum()) for row in (first, second)]
    low = float(stats.beta.ppf(ALARM / 2, hits[0], n_draws - hits[0] + 1)) if hits[0] else 0.0
    high = float(stats.beta.isf(ALARM / 2, hits[1] + 1, n_draws - hits[1])) if hits[1] < n_draws else 1.0
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _worst_pair(randomizer: Randomizer) -> tuple[int, int, tuple[Shares, Shares]]:
    """The two inputs whose reports differ most, and the law of what the attack looks at under each."""
    shares = np.array(randomizer.weights, dtype=np.float64) / 2.0**BITS
    if randomizer.kind == "entries":  # the two entries in which two categories differ, seen together
        pair = (np.outer(shares[1], shares[0]).ravel(), np.outer(shares[0], shares[1]).ravel())
        return 0, 1, pair
    used = shares.max(axis=0) > 0
    ratio = np.where(used, shares.max(axis=0) / np.where(used, shares.min(axis=0), 1.0), 0.0)
    column = int(np.argmax(ratio))
    first, second = int(np.argmax(shares[:, column])), int(np.argmin(shares[:, column]))
    return first, second, (shares[first], shares[second])


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


def _outputs(randomizers: tuple[Randomizer, ...], index: int, row: int, n_draws: int) -> NDArray[np.int64]:
    """What `n_draws` users whose value is that row's would send, as numbers of outputs."""
    randomizer = randomizers[index]
    n_categories = 2 if randomizer.kind == "entries" else randomizer.n_cells
    names = [str(k) for k in range(n_categories)]
    dimension = Numeric("x", -1, 1) if randomizer.kind == "value" else Categorical("x", names)
    survey = Survey.from_tables(
        Schema([dimension]),
        epsilon=max(table.epsilon for table in randomizers),
        n_sampled=1,
        randomizers=randomizers,
        assignment=(index,),
    )
    value = randomizer.levels[row] if randomizer.kind == "value" else names[row]
    blocks = Local().reports(pa.table({"x": np.repeat(value, n_draws)}), survey)
    codes = np.concatenate(list(blocks))[:, 2:].astype(np.int64)
    if randomizer.kind == "entries":
        return np.asarray(codes[:, 0] * randomizer.n_cells + codes[:, 1])
    return np.asarray(codes[:, 0])
