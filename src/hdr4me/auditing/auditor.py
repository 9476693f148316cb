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

from hdr4me.auditing.attacking import attack, draws_made
from hdr4me.channels.proof import exp_lower, log_upper
from hdr4me.survey import Survey

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
    >>> from hdr4me.survey import Numeric, Schema
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
