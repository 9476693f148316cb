"""The privacy loss when the same people are asked repeatedly; standard library only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hdr4me.channels.channel import is_number
from hdr4me.errors import InvalidInput

_COMMON = (
    "While budget is left, an observer can see that a value changed, and when. Participation is not hidden.",
    "If the storage of a device is deleted, its next answers cost ε again, and no ledger counts them. "
    "A cloned device repeats the answers of its original, and the ledger of each copy allows further new values.",
)


def guessed(epsilon: float, n_reports: int) -> float:
    """The probability that the best attack guesses a yes/no attribute from `n_reports` fresh answers.

    With p = e^ε/(1 + e^ε): P(Bin(T, p) > T/2) + P(Bin(T, p) = T/2)/2. One answer, or any number of copies of one
    memoized response, gives p.

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
    """A survey asked `rounds` times: the privacy losses with fresh noise and with memoized responses."""

    epsilon: float
    sampled: int
    rounds: int

    def lines(self) -> list[str]:
        """The statement in sentences."""
        found = self.to_dict()
        share = found["memoized_epsilon_for_each_new_row"]
        fresh, once = 100 * found["guessed_right_fresh"], 100 * found["guessed_right_memoized"]
        return [
            f"{self.rounds:,} rounds with fresh noise: up to ε = {found['fresh_epsilon']:g} in total. An "
            f"observer who knows nothing else guesses a yes/no value that is answered in each round at ε = {share:g} "
            f"correctly in at most {fresh:.1f} % of cases.",
            f"With memoized responses: ε = {self.epsilon:g} for a record that does not change, and another ε = "
            f"{share:g} for each new value of a dimension. The observer guesses an unchanged yes/no value correctly in "
            f"at most {once:.1f} % of cases, after any number of rounds.",
            *_COMMON,
        ]

    def to_dict(self) -> dict[str, Any]:
        """The privacy losses and an attacker's success, as plain values for JSON.

        The losses of fresh answers add up to T·ε. Memoized responses cost ε/m for each row that a dimension visits.
        """
        share = float(Fraction(self.epsilon) / self.sampled)
        return {
            "rounds": self.rounds,
            "epsilon": self.epsilon,
            "fresh_epsilon": float(self.rounds * Fraction(self.epsilon)),
            "memoized_epsilon_unchanged": self.epsilon,
            "memoized_epsilon_for_each_new_row": share,
            "guessed_right_fresh": guessed(share, self.rounds),
            "guessed_right_memoized": guessed(share, 1),
        }


def repeated(epsilon: float, sampled: int, rounds: int) -> Repeated:
    """The privacy losses of a survey that is asked `rounds` times."""
    if not is_number(epsilon) or epsilon <= 0:
        raise InvalidInput.of("epsilon", epsilon, "a positive, finite number")
    for name, value in (("sampled", sampled), ("rounds", rounds)):
        if type(value) is not int or not 1 <= value <= 1_000_000:
            raise InvalidInput.of(name, value, "an integer from 1 to 1000000")
    return Repeated(float(epsilon), sampled, rounds)
