"""What is bounded, and what is not, when the same people are asked again and again; standard library only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hdr4me.errors import InvalidInput

_COMMON = (
    "Not hidden: that a value moved to another row, and when, while budget is left; and that a device takes part.",
    "A device whose storage is deleted draws a new secret: its next answers cost ε again, and nobody counts that. "
    "A cloned device repeats the answers of its original, and each copy's ledger allows new rows of its own.",
)


def guessed(epsilon: float, n_reports: int) -> float:
    """How often a yes/no attribute is guessed right from `n_reports` fresh answers, by the better of two counts.

    With p = e^ε/(1 + e^ε): P(Bin(T, p) > T/2) + P(Bin(T, p) = T/2)/2. No other rule does better. One answer, or any
    number of copies of one permanent answer, gives p.

    >>> round(guessed(1.0, 30), 3), round(guessed(1.0, 1), 3)
    (0.996, 0.731)
    """
    half, odd = divmod(n_reports, 2)
    log_p = -math.log1p(math.exp(-epsilon))
    log_q = log_p - epsilon

    def mass(k: int) -> float:
        log_count = math.lgamma(n_reports + 1) - math.lgamma(k + 1) - math.lgamma(n_reports - k + 1)
        return math.exp(log_count + k * log_p + (n_reports - k) * log_q)

    more = math.fsum(mass(k) for k in range(half + 1, n_reports + 1))
    return min(1.0, more + (0.0 if odd else mass(half) / 2))


@dataclass(frozen=True)
class Repeated:
    """A survey asked `rounds` times: the losses with fresh and with permanent answers."""

    epsilon: float
    n_sampled: int
    rounds: int

    @property
    def per_row(self) -> Fraction:
        """ε/m: what each row costs that a dimension visits for the first time."""
        return Fraction(self.epsilon) / self.n_sampled

    @property
    def fresh(self) -> Fraction:
        """T·ε: fresh answers add up."""
        return self.rounds * Fraction(self.epsilon)

    def permanent(self, n_rows: int) -> Fraction:
        """k·ε/m for a dimension that visits k rows, however often it is asked."""
        return min(n_rows, self.rounds) * self.per_row

    def lines(self) -> list[str]:
        """The statement in sentences."""
        share = float(self.per_row)
        fresh, once = (guessed(share, n) for n in (self.rounds, 1))
        return [
            f"{self.rounds:,} rounds with fresh answers: up to ε = {float(self.fresh):g} in total. A yes/no attribute "
            f"that is answered in each round at ε = {share:g} is guessed right in {100 * fresh:.1f} % of cases.",
            f"With permanent answers: ε = {self.epsilon:g} for a record that does not change, and ε = {share:g} more "
            f"for each row that one of its dimensions visits for the first time. The yes/no attribute is guessed right "
            f"in {100 * once:.1f} % of cases, after any number of rounds.",
            *_COMMON,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        share = float(self.per_row)
        return {
            "rounds": self.rounds,
            "epsilon": self.epsilon,
            "fresh_epsilon": float(self.fresh),
            "permanent_epsilon_unchanged": self.epsilon,
            "permanent_epsilon_for_each_new_row": share,
            "guessed_right_fresh": guessed(share, self.rounds),
            "guessed_right_permanent": guessed(share, 1),
        }


def repeated(epsilon: float, n_sampled: int, rounds: int) -> Repeated:
    """What asking `rounds` times costs.

    Examples
    --------
    >>> weekly = repeated(1.0, 2, 53)
    >>> weekly.fresh, weekly.permanent(3)
    (Fraction(53, 1), Fraction(3, 2))
    """
    if not isinstance(epsilon, int | float) or isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
        raise InvalidInput.of("epsilon", epsilon, "a positive, finite number")
    for name, value in (("n_sampled", n_sampled), ("rounds", rounds)):
        if type(value) is not int or not 1 <= value <= 1_000_000:
            raise InvalidInput.of(name, value, "a whole number from 1 to 1000000")
    return Repeated(float(epsilon), n_sampled, rounds)
