"""Permanent answers: an unchanged record gives the identical report, for ever and at no further cost.

Everything random comes from the device's secret by HMAC (`prf.py`): which m questions are answered, how a number
between two levels is rounded, and what a channel draws for each (question, row). A row is the channel's input: a level
of a number, a category, a pair of levels. A row that a question visits for the first time costs ε/m. In a survey with
`lasting_epsilon` the permanent answer passes a second, fresh stage in each report, and a new row costs the lasting ε/m.
Standard library only; docs/over-time.md states what is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hdr4me.channels import Draws, SystemDraws, Take
from hdr4me.client.client import draw_questions, input_of
from hdr4me.client.ledger import Ledger
from hdr4me.client.prf import Stream, Use
from hdr4me.errors import InvalidInput
from hdr4me.io.report import Report
from hdr4me.survey import Survey
from hdr4me.survey.dimension import FRACTION_BITS

Answers = tuple[tuple[int, ...], ...]
MOST_ROWS = 65536
"""A mark is computed for every row at each report."""


class PermanentClient:
    """Turns a record into a report that stays the same while the record does.

    The ledger is needed: it pays ε/m for each new row, keeps the secret beside it and remembers what was paid for. The
    first report costs the survey's ε or raises BudgetExceeded. Later reports are never refused, because a refusal would
    reveal that the value changed. Once the budget is spent, each question repeats the answer of the row that it paid
    for last, whatever the value is.

    Parameters
    ----------
    survey : Survey
        The survey; a survey of the same series gets the same answers.
    ledger : Ledger
        Its `reports_per_survey` allows that many times m rows. With the default, 1, the answers to the first record are
        sent for ever.

    Examples
    --------
    >>> import tempfile
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     client = PermanentClient(survey, Ledger(f"{folder}/ledger.json"))
    ...     same = {client.report({"age": 31}) for _ in range(30)}
    ...     len(same), client.ledger.total
    (1, Fraction(1, 1))
    """

    def __init__(self, survey: Survey, ledger: Ledger) -> None:
        if not isinstance(survey, Survey):
            raise InvalidInput.of("survey", survey, "a Survey")
        if not isinstance(ledger, Ledger):
            raise InvalidInput.of("ledger", ledger, "a Ledger: permanent answers are paid for and remembered")
        if any(channel.n_inputs > MOST_ROWS for channel in survey.channels):
            raise InvalidInput(
                f"permanent answers are for questions of at most {MOST_ROWS} inputs: not for vectors, nor for "
                "blocks of more than 16 numbers"
            )
        self.survey = survey
        self.ledger = ledger

    def report(self, record: Mapping[str, Any]) -> Report:
        """The permanent answers to this record; keys that the survey does not ask for are ignored.

        Raises BudgetExceeded if there is no budget for the first report.
        """
        if not isinstance(record, Mapping):
            raise InvalidInput(f"a record must map names to values, not be a {type(record).__name__}")

        def choose(secret: bytes, known: Sequence[str], affordable: int) -> tuple[Answers, tuple[str, ...]]:
            return decide(self.survey, self.survey.series, secret, record, known, affordable)

        return Report(self.survey.fingerprint, self.ledger.claim(self.survey, choose))


def decide(
    survey: Survey,
    series: str,
    secret: bytes,
    record: Mapping[str, Any],
    known: Sequence[str],
    affordable: int,
    fresh: Draws | None = None,
) -> tuple[Answers, tuple[str, ...]]:
    """The m answers (question, field, …) in increasing order of question, and the marks of the rows to be paid for.

    `known` are the marks of the rows that are paid for, in order of payment; `affordable` is how many more the budget
    allows, at least m if none is known yet. A channel's second stage draws from `fresh`, the system's randomness unless
    given.
    """
    fresh = fresh or SystemDraws()

    def fraction(j: int, take: Take) -> int:
        return Stream(secret, series, Use.FRACTION, j).bits(FRACTION_BITS)

    answers: list[tuple[int, ...]] = []
    new: list[str] = []
    for q in draw_questions(survey, Stream(secret, series, Use.QUESTIONS)):
        question = survey.questions[q]
        channel = question.channel
        row = input_of(survey, question, record, fraction)
        # Every row's mark is computed, whatever the value.
        marks = [Stream(secret, series, Use.MARK, q, x).take(16).hex() for x in range(channel.n_inputs)]
        rows = {mark: x for x, mark in enumerate(marks)}
        paid = [rows[mark] for mark in known if mark in rows]
        if paid and len(new) >= affordable:
            # The budget is spent: from here on the answer must not depend on the value at all.
            row = paid[-1]
        elif row not in paid:
            new.append(marks[row])
        # A stream for each row: if the entries of two categories shared their words, a change from one category to
        # the other would move two entries only and so name both.
        answers.append((q, *channel.repeat(row, Stream(secret, series, Use.ANSWER, q, row), fresh)))
    return tuple(answers), tuple(new)
