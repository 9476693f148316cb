"""A sentence of the paper as a check on the numbers of a run, and the verdict over all choices of λ*."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from inspect import signature

from hdr4me.paper.methods import LAMBDA_CHOICES, LambdaChoice
from hdr4me.paper.studies import Results

HOLDS = "reproduced"
PART = "holds in part"
CHOICE = "depends on the choice of λ*"
GENERAL = "holds in the paper's settings, false in general"
DATA = "needs the COV-19 data"
FAILS = "not reproduced"
# Each verdict as a predicate for one claim and for several claims.
VERDICTS = {
    HOLDS: ("is reproduced", "are reproduced"),
    PART: ("holds in part", "hold in part"),
    CHOICE: ("depends on the choice of λ*", "depend on the choice of λ*"),
    GENERAL: (
        "holds in the paper's settings and is false in general",
        "hold in the paper's settings and are false in general",
    ),
    DATA: ("cannot be judged without the COV-19 data", "cannot be judged without the COV-19 data"),
    FAILS: ("is not reproduced", "are not reproduced"),
}
_OTHER_DATA = (
    "The outcome depends on the means of the data: `benchmarks/results/paper-stand-in.md` has it for twelve seeds of "
    "the stand-in and for two real data sets."
)
NOISY = ("laplace", "piecewise")
METHODS = ("l1", "l2")
# A check of the results under a choice of λ*, or of the results alone where λ* does not enter.
Check = Callable[..., "Finding"]


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds on some numbers, the numbers, and the reason.

    A claim about several panels or mechanisms has `parts`: how many of them it holds in, and their number with a noun.
    """

    holds: bool
    evidence: str
    why: str
    parts: tuple[int, str] = (0, "")


def either(holds: bool, evidence: str, why: str, why_not: str, parts: tuple[int, str] = (0, "")) -> Finding:
    """A finding whose reason depends on whether the claim holds."""
    return Finding(holds, evidence, why if holds else why_not, parts)


@dataclass(frozen=True)
class Beyond:
    """A second check outside the paper's own setting or metric.

    A claim that holds and fails this check gets `verdict`. With an empty `verdict` the check is a remark: it is
    reported and does not change the verdict.
    """

    verdict: str
    test: str
    check: Check


@dataclass(frozen=True)
class _Sentence:
    """One sentence of the paper. `test` describes the check in words."""

    name: str
    where: str
    text: str
    test: str


@dataclass(frozen=True)
class Claim(_Sentence):
    """A sentence and its check; `needs` is the figure that the check uses.

    `means_of_cov19` marks a claim that depends on the means of the COV-19 data, which the stand-in does not have.
    """

    needs: str
    check: Check
    beyond: Beyond | None = None
    means_of_cov19: bool = False

    @property
    def depends_on_lambda(self) -> bool:
        """Whether λ* enters. Such a claim is judged under every choice."""
        return "choice" in signature(self.check).parameters


@dataclass(frozen=True)
class Section:
    """Claims in the order of the text; a decorator of their checks. `needs` applies where the place names no figure."""

    needs: str
    claims: list[Claim] = field(default_factory=list)

    def __call__(
        self,
        name: str,
        where: str,
        text: str,
        test: str,
        *,
        needs: str = "",
        beyond: Beyond | None = None,
        means_of_cov19: bool = False,
    ) -> Callable[[Check], Check]:
        """Add a claim, checked by the function that follows."""
        named = re.search(r"Fig\. ([2-5])", where)
        figure = needs or (f"fig{named[1]}" if named else self.needs)

        def add(check: Check) -> Check:
            self.claims.append(Claim(name, where, text, test, figure, check, beyond, means_of_cov19))
            return check

        return add


@dataclass(frozen=True)
class Verdict(_Sentence):
    """The verdict on a claim. `distinct_for` of `distinct_all` counts choices of λ* with equal numbers once."""

    verdict: str
    holds: bool
    choices_for: tuple[str, ...]
    distinct_for: int
    distinct_all: int
    evidence: str
    why: str
    beyond: str = ""

    @property
    def support(self) -> str:
        """The number of distinct choices under which the claim holds."""
        return f"{self.distinct_for} of {self.distinct_all}" if self.distinct_all else "–"

    @property
    def word(self) -> str:
        """The verdict without the number of parts: a key of `VERDICTS`."""
        return self.verdict.partition(" (")[0]


@dataclass(frozen=True, eq=False)
class _Watched(LambdaChoice):
    """A choice that records the numbers looked up under it."""

    found: list[tuple[object, ...]] = field(default_factory=list)

    def note(self, *found: object) -> None:
        self.found.append(found)


def judge(claims: Sequence[Claim], results: Results, choice: LambdaChoice) -> list[Verdict]:
    """The verdict on each claim whose figure was run; evidence and reasons are those under this choice of λ*."""
    return [_verdict(claim, results, choice) for claim in claims if results.has(claim.needs)]


def _verdict(claim: Claim, results: Results, choice: LambdaChoice) -> Verdict:
    def ask(check: Check, each: LambdaChoice) -> Finding:
        return check(results, each) if "choice" in signature(check).parameters else check(results)

    under = LAMBDA_CHOICES if claim.depends_on_lambda else (choice,)
    findings: dict[LambdaChoice, Finding] = {}
    groups: dict[tuple[object, ...], bool] = {}
    for each in under:
        watched = _Watched(*astuple(each))
        findings[each] = ask(claim.check, watched)
        groups[tuple(watched.found)] = findings[each].holds
    own = findings[choice]
    favorable = [each.name for each in under if findings[each].holds]
    word, second = CHOICE if favorable else FAILS, ""
    if len(favorable) == len(under):
        word = HOLDS
    elif not favorable and own.parts[0]:
        word = f"{PART} ({own.parts[0]} of {own.parts[1]})"
    if claim.means_of_cov19 and any(cell.stand_in for cell in results.of(claim.needs)):
        word, second = DATA, _OTHER_DATA
    beyond = claim.beyond
    if beyond is not None and (word == HOLDS or not beyond.verdict):
        other = {each: ask(beyond.check, each) for each in under}
        second = f"{beyond.test}: {other[choice].evidence}. {other[choice].why}"
        if word == HOLDS and beyond.verdict and not all(item.holds for item in other.values()):
            word = beyond.verdict
    support = (tuple(favorable), sum(groups.values()), len(groups)) if claim.depends_on_lambda else ((), 0, 0)
    sentence = (claim.name, claim.where, claim.text, claim.test)
    return Verdict(*sentence, word, own.holds, *support, own.evidence, own.why, second)


def span(values: Sequence[float]) -> str:
    """The smallest and largest of some numbers, as text."""
    return f"{min(values):.3g}–{max(values):.3g}"
