"""A sentence of the paper as a check on this run's numbers, and the verdict over all readings of λ*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from inspect import signature

from hdr4me.paper.readings import READINGS, Reading
from hdr4me.paper.results import Results

HOLDS = "reproduced"
READING = "depends on the reading"
DOMAIN = "depends on the domain"
GENERAL = "holds in these cells, false in general"
FAILS = "not reproduced"
VERDICTS = {
    HOLDS: ("is reproduced", "are reproduced"),
    READING: ("depends on how λ* is read", "depend on how λ* is read"),
    DOMAIN: ("depends on the domain", "depend on the domain"),
    GENERAL: ("holds in these cells and is false in general", "hold in these cells and are false in general"),
    FAILS: ("is not reproduced", "are not reproduced"),
}
"""Every verdict there is, as a sentence has it of one claim and of several."""

Check = Callable[..., "Finding"]
"""A check of the results under a reading of λ*, or of the results alone where λ* does not enter."""


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds on some numbers: the numbers that decide it, and why it is so."""

    holds: bool
    evidence: str
    why: str


@dataclass(frozen=True)
class Beyond:
    """A second check, outside what the paper's own cells show.

    A claim that holds in the cells and fails here gets the verdict `word`; `test` says in words what is asked.
    """

    word: str
    test: str
    check: Check


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper. `test` says in words what the check asks; `needs` is the figure it is made on."""

    name: str
    where: str
    text: str
    test: str
    needs: str
    check: Check
    beyond: Beyond | None = None

    @property
    def reads(self) -> bool:
        """Whether λ* enters: such a claim is judged under every reading."""
        return _reads(self.check)


def _reads(check: Check) -> bool:
    return "reading" in signature(check).parameters


def _found(check: Check, results: Results, reading: Reading) -> Finding:
    return check(results, reading) if _reads(check) else check(results)


class Section:
    """The claims of one part of the paper, in the order of the text; it decorates their checks."""

    def __init__(self, needs: str) -> None:
        self.needs = needs
        self.claims: list[Claim] = []

    def __call__(
        self, name: str, where: str, text: str, test: str, *, needs: str = "", beyond: Beyond | None = None
    ) -> Callable[[Check], Check]:
        """Add a claim, checked by the function that follows."""

        def add(check: Check) -> Check:
            self.claims.append(Claim(name, where, text, test, needs or self.needs, check, beyond))
            return check

        return add


@dataclass(frozen=True)
class Verdict:
    """What became of a claim; evidence and reason are those of the run's own reading.

    `readings_for` names every reading under which the claim holds. Readings that give the same numbers in all that the
    claim looks at are one reading to it: `distinct_for` of `distinct_all` counts them once.
    """

    name: str
    where: str
    text: str
    test: str
    verdict: str
    holds: bool
    readings_for: tuple[str, ...]
    distinct_for: int
    distinct_all: int
    evidence: str
    why: str
    beyond: str = ""

    @property
    def support(self) -> str:
        """How many of the readings that differ are in favour."""
        return f"{self.distinct_for} of {self.distinct_all}" if self.distinct_all else "–"


@dataclass(frozen=True, eq=False)
class _Watched(Reading):
    """A reading that remembers the numbers looked up under it."""

    found: list[tuple[object, ...]] = field(default_factory=list)

    def note(self, *found: object) -> None:
        self.found.append(found)


def _watched(claim: Claim, results: Results, reading: Reading) -> tuple[Finding, tuple[object, ...]]:
    """The finding under this reading, and every number that it rests on."""
    watched = _Watched(*astuple(reading))
    return _found(claim.check, results, watched), tuple(watched.found)


def judge(claims: Sequence[Claim], results: Results, reading: Reading) -> list[Verdict]:
    """The verdict on each claim whose figure was run; evidence and reasons are given for this reading of λ*.

    `reproduced` where the claim holds under every reading (and beyond the cells, where that was checked), `not
    reproduced` where it holds under none, `depends on the reading` in between; `depends on the domain` and `holds in
    these cells, false in general` where it holds under every reading and fails the check beyond.
    """
    return [_verdict(claim, results, reading) for claim in claims if results.has(claim.needs)]


def _verdict(claim: Claim, results: Results, reading: Reading) -> Verdict:
    under = READINGS if claim.reads else (reading,)
    found = {r.name: _watched(claim, results, r) for r in under}
    favourable = tuple(name for name, (finding, _) in found.items() if finding.holds)
    groups: dict[tuple[object, ...], bool] = {}
    for finding, rests_on in found.values():
        groups[rests_on] = finding.holds
    own, _ = _watched(claim, results, reading)
    if len(favourable) < len(under):
        word, second = (READING if favourable else FAILS), ""
    else:
        word, second = _second(claim, results, reading, under)
    return Verdict(
        name=claim.name,
        where=claim.where,
        text=claim.text,
        test=claim.test,
        verdict=word,
        holds=own.holds,
        readings_for=favourable if claim.reads else (),
        distinct_for=sum(groups.values()) if claim.reads else 0,
        distinct_all=len(groups) if claim.reads else 0,
        evidence=own.evidence,
        why=own.why,
        beyond=second,
    )


def _second(claim: Claim, results: Results, reading: Reading, under: Sequence[Reading]) -> tuple[str, str]:
    """The verdict on a claim that holds in the cells, and what was found beyond them."""
    if claim.beyond is None:
        return HOLDS, ""
    failed = [r for r in under if not _found(claim.beyond.check, results, r).holds]
    own = _found(claim.beyond.check, results, reading)
    text = f"{claim.beyond.test}: {own.evidence}. {own.why}"
    return (claim.beyond.word if failed else HOLDS), text
