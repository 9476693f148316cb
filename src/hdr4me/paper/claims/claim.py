"""A sentence of the paper as a check on this run's numbers, and the verdict over all readings of λ*."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from inspect import signature

from hdr4me.paper.methods import READINGS, Reading
from hdr4me.paper.studies import Results

HOLDS = "reproduced"
READING = "depends on the reading"
DOMAIN = "depends on the domain"
GENERAL = "holds in these cells, false in general"
FAILS = "not reproduced"
# Every verdict, as a sentence about one claim and about several.
VERDICTS = {
    HOLDS: ("is reproduced", "are reproduced"),
    READING: ("depends on how λ* is read", "depend on how λ* is read"),
    DOMAIN: ("depends on the domain", "depend on the domain"),
    GENERAL: ("holds in these cells and is false in general", "hold in these cells and are false in general"),
    FAILS: ("is not reproduced", "are not reproduced"),
}
NOISY = ("laplace", "piecewise")
METHODS = ("l1", "l2")
# A check of the results under a reading of λ*, or of the results alone where λ* does not enter.
Check = Callable[..., "Finding"]


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds on some numbers: the numbers that decide it, and why it is so."""

    holds: bool
    evidence: str
    why: str


def either(holds: bool, evidence: str, why: str, why_not: str) -> Finding:
    """A finding whose reason depends on whether the claim holds."""
    return Finding(holds, evidence, why if holds else why_not)


@dataclass(frozen=True)
class Beyond:
    """A second check outside the paper's own cells; a claim that holds in the cells and fails here gets `word`."""

    word: str
    test: str
    check: Check


@dataclass(frozen=True)
class _Sentence:
    """One sentence of the paper. `test` says in words what the check asks."""

    name: str
    where: str
    text: str
    test: str


@dataclass(frozen=True)
class Claim(_Sentence):
    """A sentence with its check; `needs` is the figure it is made on."""

    needs: str
    check: Check
    beyond: Beyond | None = None

    @property
    def input_kind(self) -> bool:
        """Whether λ* enters: such a claim is judged under every reading."""
        return "reading" in signature(self.check).parameters


@dataclass(frozen=True)
class Section:
    """Claims in the order of the text; it decorates their checks. `needs` holds where the place names no figure."""

    needs: str
    claims: list[Claim] = field(default_factory=list)

    def __call__(
        self, name: str, where: str, text: str, test: str, *, needs: str = "", beyond: Beyond | None = None
    ) -> Callable[[Check], Check]:
        """Add a claim, checked by the function that follows."""
        named = re.search(r"Fig\. (\d)", where)
        figure = needs or (f"fig{named[1]}" if named else self.needs)

        def add(check: Check) -> Check:
            self.claims.append(Claim(name, where, text, test, figure, check, beyond))
            return check

        return add


@dataclass(frozen=True)
class Verdict(_Sentence):
    """The verdict on a claim; `distinct_for` of `distinct_all` counts readings that give it the same numbers once."""

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
        """How many of the readings that differ are in favor."""
        return f"{self.distinct_for} of {self.distinct_all}" if self.distinct_all else "–"


@dataclass(frozen=True, eq=False)
class _Watched(Reading):
    """A reading that remembers the numbers looked up under it."""

    found: list[tuple[object, ...]] = field(default_factory=list)

    def note(self, *found: object) -> None:
        self.found.append(found)


def judge(claims: Sequence[Claim], results: Results, reading: Reading) -> list[Verdict]:
    """The verdict on each claim whose figure was run; evidence and reasons are given for this reading of λ*."""
    return [_verdict(claim, results, reading) for claim in claims if results.has(claim.needs)]


def _verdict(claim: Claim, results: Results, reading: Reading) -> Verdict:
    def ask(check: Check, each: Reading) -> Finding:
        return check(results, each) if claim.input_kind else check(results)

    under = READINGS if claim.input_kind else (reading,)
    found: dict[Reading, Finding] = {}
    groups: dict[tuple[object, ...], bool] = {}
    for each in under:
        watched = _Watched(*astuple(each))
        found[each] = ask(claim.check, watched)
        groups[tuple(watched.found)] = found[each].holds
    own = found[reading]
    favorable = [each.name for each in under if found[each].holds]
    word, second = (READING if favorable else FAILS), ""
    if len(favorable) == len(under):
        word = HOLDS
        if claim.beyond is not None:
            other = {each: ask(claim.beyond.check, each) for each in under}
            second = f"{claim.beyond.test}: {other[reading].evidence}. {other[reading].why}"
            word = HOLDS if all(item.holds for item in other.values()) else claim.beyond.word
    support = (tuple(favorable), sum(groups.values()), len(groups)) if claim.input_kind else ((), 0, 0)
    sentence = (claim.name, claim.where, claim.text, claim.test)
    return Verdict(*sentence, word, own.holds, *support, own.evidence, own.why, second)


def span(values: Sequence[float]) -> str:
    """The smallest and largest of some numbers, as text."""
    return f"{min(values):.3g}–{max(values):.3g}"
