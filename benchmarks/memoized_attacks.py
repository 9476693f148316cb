"""Attacks on memoized responses after the budget is spent; writes benchmarks/results/memoized_attacks.md.

    python benchmarks/memoized_attacks.py [--devices 10000] benchmarks/results/memoized_attacks.md

Each device has a fixed secret (the SHA-256 of its number) and one of two histories. The attacker knows both histories,
the survey and all reports of the device, and guesses which history it has. No attacker can be right more often than
L/(1 + L), where L is the loss that docs/over-time.md states for the two histories. `nearest` is the rule that was used
before: the paid row nearest to the value answered, so the choice among stored answers depended on the value.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from scipy.stats import binomtest

from hdr4me.client.client import decide
from hdr4me.survey import Categorical, Numeric, Schema, Survey

EPSILON = 1.0
SEVERITY = ("none", "low", "high", "severe")
WEEKS = 50
CONFIDENCE = 0.99

Value = str | float
Report = tuple[int, ...]
Guess = Callable[[Sequence[Report]], int | None]
"""0 or 1, the history that the attacker guesses; None for a random guess."""


@dataclass(frozen=True)
class Outcome:
    """The number of correct guesses of an attack."""

    attack: str
    rule: str
    bound: float
    right: int
    devices: int

    @property
    def limits(self) -> tuple[float, float]:
        """Clopper-Pearson confidence limits."""
        found = binomtest(self.right, self.devices).proportion_ci(CONFIDENCE, method="exact")
        return float(found.low), float(found.high)

    @property
    def within(self) -> bool:
        """Whether the lower confidence limit is at most the bound."""
        return self.limits[0] <= self.bound


def secret_of(device: int) -> bytes:
    """The fixed secret of a device."""
    return hashlib.sha256(b"memoized device %d" % device).digest()


def coin(device: int) -> int:
    """A fair coin that depends on the device's number alone."""
    return hashlib.sha256(b"coin %d" % device).digest()[0] & 1


def answers(survey: Survey, secret: bytes, values: Sequence[Value], budget: int, rule: str) -> list[Report]:
    """The answers of one device to its values, with `budget` rows to pay for."""
    name, known, paid = survey.schema.dimensions[0].name, list[str](), list[Value]()
    found = []
    for value in values:
        if rule == "nearest" and len(known) == budget:
            reports, new = decide(survey, secret, {name: nearest(value, paid)}, known, 1)
        else:
            reports, new = decide(survey, secret, {name: value}, known, budget - len(known))
        if new:
            known += new
            paid.append(value)
        found.append(reports[0][1:])
    return found


def nearest(value: Value, paid: Sequence[Value]) -> Value:
    """The paid value nearest to this one, which an earlier version repeated."""

    def position(x: Value) -> float:
        return float(SEVERITY.index(x)) if isinstance(x, str) else x

    return min(paid, key=lambda x: (abs(position(x) - position(value)), position(x)))


def bound_of(n_rows: int) -> float:
    """How often one of two histories with loss e^{ε·n_rows} can be guessed right."""
    return 1 / (1 + math.exp(-EPSILON * n_rows))


def third_report(devices: int, rule: str) -> Outcome:
    """(none, severe, low) against (none, severe, high), two rows paid for: which stored answer is repeated?"""
    survey = categories()
    histories = [("none", "severe", "low"), ("none", "severe", "high")]

    def guess(reports: Sequence[Report]) -> int | None:
        return None if reports[0] == reports[1] else int(reports[2] == reports[1])

    return play("third report: low or high", survey, histories, 2, guess, bound_of(0), devices, rule)


def weekly(devices: int, rule: str) -> tuple[Outcome, float]:
    """0 and 100 are paid for, then a secret sequence of 20s and 80s: a bit of each device, the mean of all bits."""
    survey = Survey(Schema([Numeric("x", 0, 100)]), epsilon=EPSILON)
    right, bits = 0, 0
    for device in range(devices):
        secret = secret_of(device)
        stream = hashlib.shake_256(b"weeks %d" % device).digest(WEEKS)
        sequence = [byte & 1 for byte in stream]
        reports = answers(survey, secret, [0, 100, *(80 if bit else 20 for bit in sequence)], 2, rule)
        ambiguous = reports[0] == reports[1]
        guesses = [coin(device) if ambiguous else int(t == reports[1]) for t in reports[2:]]
        hits = [a == b for a, b in zip(guesses, sequence, strict=True)]
        bits += sum(hits)
        right += hits[device % WEEKS]
    return Outcome("weekly sequence: one bit", rule, bound_of(0), right, devices), bits / devices


def swapped(devices: int, rule: str) -> Outcome:
    """(none, severe) against (severe, none), both rows paid for: the likelihood ratio of two answers."""
    histories = [("none", "severe", "none", "low"), ("severe", "none", "low", "high")]
    return likely("two rows paid for, swapped", histories, 2, devices, rule)


def one_report(devices: int, rule: str) -> Outcome:
    """A budget of one report: a constant history against one that changes every week."""
    histories = [("none",) * 10, ("severe", "none") * 5]
    return likely("one report paid for", histories, 1, devices, rule)


def likely(attack: str, histories: Sequence[Sequence[Value]], rows: int, devices: int, rule: str) -> Outcome:
    """The best attack on the answers that were paid for: the larger likelihood."""
    survey = categories()
    channel = survey.questions[0].channel
    laws: list[list[dict[Report, Fraction]]] = [
        [{(y,): channel.probability(SEVERITY.index(str(x)), (y,)) for y in range(4)} for x in history[:rows]]
        for history in histories
    ]

    def guess(reports: Sequence[Report]) -> int | None:
        a, b = (
            math.prod((p[y] for p, y in zip(law, reports, strict=False)), start=Fraction(1)) for law in laws
        )
        return None if a == b else int(b > a)

    return play(attack, survey, histories, rows, guess, bound_of(rows), devices, rule)


def categories() -> Survey:
    """Four categories by randomized response."""
    return Survey(Schema([Categorical("severity", list(SEVERITY))]), epsilon=EPSILON, categorical="grr")


def play(
    attack: str,
    survey: Survey,
    histories: Sequence[Sequence[Value]],
    budget: int,
    guess: Guess,
    bound: float,
    devices: int,
    rule: str,
) -> Outcome:
    """Every second device has the second history."""
    right = 0
    for device in range(devices):
        truth = device % 2
        guessed = guess(answers(survey, secret_of(device), histories[truth], budget, rule))
        right += truth == (coin(device) if guessed is None else guessed)
    return Outcome(attack, rule, bound, right, devices)


def outcomes(devices: int, rule: str = "last") -> tuple[list[Outcome], float]:
    """All attacks, and the mean number of the fifty weekly bits that the attacker reads."""
    week, bits = weekly(devices, rule)
    return [third_report(devices, rule), week, swapped(devices, rule), one_report(devices, rule)], bits


def main(path: Path, devices: int) -> None:
    """Both rules, as a table in Markdown."""
    lines = [
        "# Attacks on memoized responses",
        "",
        f"{devices:,} devices with fixed secrets, ε = {EPSILON:g} a row; the attacker guesses one of two histories. "
        f"The limits are Clopper-Pearson at {CONFIDENCE:.0%}. `last` is the rule of this version, `nearest` the rule "
        "before it. "
        "`python benchmarks/memoized_attacks.py benchmarks/results/memoized_attacks.md` writes this file.",
        "",
        "| attack | rule | guessed right | limits | stated bound | |",
        "|---|---|---|---|---|---|",
    ]
    weeks = []
    for rule in ("last", "nearest"):
        found, bits = outcomes(devices, rule)
        for one in found:
            low, high = one.limits
            verdict = "within the bound" if one.within else "ABOVE THE BOUND"
            share, limits = f"{one.right / devices:.2%}", f"{low:.2%} to {high:.2%}"
            lines.append(f"| {one.attack} | {rule} | {share} | {limits} | {one.bound:.2%} | {verdict} |")
        weeks.append(f"`{rule}`: {bits:.2f}")
    lines += [
        "",
        f"Weekly sequence, bits of {WEEKS} guessed right on average (25 by guessing): {', '.join(weeks)}.",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--devices", type=int, default=10_000)
    given = parser.parse_args()
    main(given.output, given.devices)
