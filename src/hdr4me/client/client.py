"""The client: on the user's device, with the system's randomness; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import SystemRandom
from typing import Any

from hdr4me.client.ledger import Ledger
from hdr4me.client.values import FRACTION_BITS, category, position
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.exactness import BITS
from hdr4me.reports.report import Report
from hdr4me.survey import Categorical, Randomizer, Survey

__all__ = ["Client"]


class Client:
    """Turns a record into a report: m of d dimensions are drawn without replacement and randomised.

    The randomness is the operating system's and there is no seed to give. How many random numbers are drawn and
    what a report looks like do not depend on the record: a missing or unknown value is randomised like any other.
    With a ledger the budget is written down as spent before the report leaves this method.

    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120), Numeric("height", 0, 250)]), mechanism="duchi")
    >>> report = Client(survey).report({"age": 31})
    >>> len(report.answers), report.survey == survey.fingerprint
    (1, True)
    """

    def __init__(self, survey: Survey, ledger: Ledger | None = None) -> None:
        if not isinstance(survey, Survey):
            raise InvalidInput(f"survey = {survey!r} must be a Survey")
        self.survey = survey
        self.ledger = ledger
        self._random = SystemRandom()

    def report(self, record: Mapping[str, Any]) -> Report:
        """The randomised answers to this record; keys that the survey does not ask for are ignored."""
        if not isinstance(record, Mapping):
            raise InvalidInput(f"a record must map names to values, not be a {type(record).__name__}")
        survey = self.survey
        sampled = sorted(self._random.sample(range(len(survey.schema)), survey.n_sampled))
        answers = tuple((j, *self._answer(j, record)) for j in sampled)
        if self.ledger is not None:
            self.ledger.spend(survey)
        return Report(survey.fingerprint, answers)

    def _answer(self, j: int, record: Mapping[str, Any]) -> tuple[int, ...]:
        dimension, randomizer = self.survey.schema.dimensions[j], self.survey.randomizer(j)
        value = record.get(dimension.name)
        if not isinstance(dimension, Categorical):
            return (self._code(randomizer, position(dimension, value, randomizer.n_levels)),)
        chosen = category(dimension, value)
        if randomizer.kind == "category":
            return (self._code(randomizer, chosen << FRACTION_BITS),)
        present = 1 << FRACTION_BITS
        return tuple(
            self._code(randomizer, present if k == chosen else 0) for k in range(len(dimension.categories))
        )

    def _code(self, randomizer: Randomizer, place: int) -> int:
        """Round to a level at random, then let a word pick the cell: 48 random bits, whatever the value."""
        bits = self._random.getrandbits(FRACTION_BITS + BITS)
        fraction, word = bits & ((1 << FRACTION_BITS) - 1), bits >> FRACTION_BITS
        row = (place >> FRACTION_BITS) + (fraction < place & ((1 << FRACTION_BITS) - 1))
        # Every cell is compared: a search that stops early would take a time that tells of the row.
        return sum([word >= bound for bound in randomizer.cumulative[row]])
