"""A sentence of the paper as a check on this run's numbers, and the verdict over all readings of λ*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hdr4me.paper.readings import READINGS, Reading
from hdr4me.paper.results import Results

__all__ = ["Claim", "Finding", "Verdict", "judge"]


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds on some numbers: the numbers that decide it, and why it is so."""

    holds: bool
    evidence: str
    why: str


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper. `test` says in words what the check asks; `needs` is the figure it is made on.

    `reads` tells whether λ* enters: such a claim is judged under every reading.
    """

    name: str
    where: str
    text: str
    test: str
    needs: str
    check: Callable[[Results, Reading], Finding]
    reads: bool = True


@dataclass(frozen=True)
class Verdict:
    """What became of a claim; evidence and reason are those of the run's own reading."""

    name: str
    where: str
    text: str
    test: str
    verdict: str
    holds: bool
    readings_for: tuple[str, ...]
    readings_all: int
    evidence: str
    why: str


def judge(claims: Sequence[Claim], results: Results, reading: Reading) -> list[Verdict]:
    """`reproduced` under every reading, `not reproduced` under none, else `depends on the reading`.

    Claims whose figure was not run are left out.
    """
    verdicts = []
    for claim in claims:
        if not results.has(claim.needs):
            continue
        under = READINGS if claim.reads else (reading,)
        favourable = tuple(r.name for r in under if claim.check(results, r).holds)
        own = claim.check(results, reading)
        if len(favourable) == len(under):
            word = "reproduced"
        else:
            word = "depends on the reading" if favourable else "not reproduced"
        verdicts.append(
            Verdict(
                name=claim.name,
                where=claim.where,
                text=claim.text,
                test=claim.test,
                verdict=word,
                holds=own.holds,
                readings_for=favourable if claim.reads else (),
                readings_all=len(under) if claim.reads else 0,
                evidence=own.evidence,
                why=own.why,
            )
        )
    return verdicts
