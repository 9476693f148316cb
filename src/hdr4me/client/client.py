"""The client: on the user's device, with the system's randomness; standard library only.

What is drawn, and in which order, is part of the interface: docs/browser.md specifies it, and `tests/vectors` holds the
answers to given words that every client must give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hdr4me.channels import Draws, SystemDraws, Take
from hdr4me.client.ledger import Ledger
from hdr4me.errors import InvalidInput
from hdr4me.io.report import Report
from hdr4me.survey import Dimension, Question, Survey
from hdr4me.survey.dimension import FRACTION_BITS

Fraction = Callable[[int, Take], int]
"""Sixteen bits for a dimension, given its number and what the channel takes of it."""
_ODD = "\0"
"""A value that no dimension can use."""


class Client:
    """Turns a record into a report: m of the survey's questions are drawn without replacement and answered.

    The randomness is the operating system's and there is no seed to give. Which random numbers are drawn and
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
            raise InvalidInput.of("survey", survey, "a Survey")
        self.survey = survey
        self.ledger = ledger
        self._draws = SystemDraws()
        odd = dict.fromkeys((column for dimension in survey.schema for column in dimension.columns), _ODD)
        for question in survey.questions:
            # What a dimension looks up for its first odd value is made now: a report takes as long for every value.
            input_of(survey, question, odd, lambda j, take: 0)

    def report(self, record: Mapping[str, Any]) -> Report:
        """The randomised answers to this record; keys that the survey does not ask for are ignored.

        Raises BudgetExceeded if the client has a ledger and the ledger refuses. A value that cannot be used becomes the
        default.
        """
        if not isinstance(record, Mapping):
            raise InvalidInput(f"a record must map names to values, not be a {type(record).__name__}")
        survey = self.survey
        sampled = draw_questions(survey, self._draws)
        answers = tuple((q, *answer(survey, q, record, self._draws)) for q in sampled)
        if self.ledger is not None:
            self.ledger.spend(survey)
        return Report(survey.fingerprint, answers)


def draw_questions(survey: Survey, draws: Draws) -> list[int]:
    """The numbers of the questions that one user answers, in increasing order.

    Without weights: m different ones by Floyd's algorithm, one draw below j + 1 for each j from q − m to q − 1. With
    weights (m = 1): one draw below their sum, compared with every running sum.
    """
    questions = survey.questions
    if survey.weighted:
        chosen = draws.below(sum(question.weight for question in questions))
        total, found = 0, -1
        for question in questions:
            found += chosen >= total
            total += question.weight
        return [found]
    sampled: set[int] = set()
    for j in range(len(questions) - survey.n_sampled, len(questions)):
        t = draws.below(j + 1)
        sampled.add(j if t in sampled else t)
    return sorted(sampled)


def answer(survey: Survey, q: int, record: Mapping[str, Any], draws: Draws) -> tuple[int, ...]:
    """The fields of a randomised answer to question q: sixteen bits round each number, then the channel draws."""
    question = survey.questions[q]

    def fraction(j: int, take: Take) -> int:
        return 0 if take.reads == "category" else draws.bits(FRACTION_BITS)

    return question.channel.sample(input_of(survey, question, record, fraction), draws)


def input_of(survey: Survey, question: Question, record: Mapping[str, Any], fraction: Fraction) -> int:
    """The input of a question's channel; a number between two levels is rounded by `fraction(dimension, take)`."""
    x = 0
    for j, take in zip(question.dimensions, question.channel.takes, strict=True):
        dimension = survey.schema.dimensions[j]
        place = dimension.place(value_of(record, dimension), take.size)
        level = (place >> FRACTION_BITS) + (fraction(j, take) < place & ((1 << FRACTION_BITS) - 1))
        x = x * take.size + level
    return x


def value_of(record: Mapping[str, Any], dimension: Dimension) -> Any:
    """What the record holds for a dimension: the value of its column, or those of the columns it is computed from."""
    if dimension.columns == (dimension.name,):
        return _value(record, dimension.name)
    return tuple(_value(record, name) for name in dimension.columns)


def _value(record: Mapping[str, Any], name: str) -> Any:
    """What the record holds under the name; a record that fails to tell holds nothing."""
    try:
        return record.get(name)
    except Exception:  # a mapping may be an object that raises anything at all
        return None
