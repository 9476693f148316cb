"""The clients: on the user's device, with the system's randomness; standard library only.

What is drawn, and in which order, is part of the interface: docs/browser.md specifies it, and `tests/vectors` holds the
answers to given words that every client must give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hdr4me.channels import Draws, SystemDraws
from hdr4me.client.ledger import Ledger
from hdr4me.client.prf import Stream, Use
from hdr4me.errors import InvalidInput
from hdr4me.io.report import Report
from hdr4me.survey import Dimension, Question, Survey
from hdr4me.survey.dimension import FRACTION_BITS

Answers = tuple[tuple[int, ...], ...]
MOST_ROWS = 65536  # a memoized response computes a mark for every row at each report
_ODD = "\0"  # a value that no dimension can use


class Client:
    """Turns a record into a report: m of the survey's questions are drawn without replacement and answered.

    The randomness is the operating system's and there is no seed to give. Which random numbers are drawn and
    what a report looks like do not depend on the record: a missing or unknown value is randomized like any other.
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
            input_of(survey, question, odd, lambda j: 0)

    def report(self, record: Mapping[str, Any]) -> Report:
        """The randomized answers to this record; keys that the survey does not ask for are ignored.

        Raises BudgetExceeded if the client has a ledger and the ledger refuses. A value that cannot be used becomes the
        default.
        """
        _check_record(record)
        sampled = draw_questions(self.survey, self._draws)
        answers = tuple((q, *answer(self.survey, q, record, self._draws)) for q in sampled)
        if self.ledger is not None:
            self.ledger.spend(self.survey)
        return Report(self.survey.fingerprint, answers)


class MemoizedClient:
    """Turns a record into a report that stays the same while the record does, at no further cost.

    Everything random comes from the device's secret by HMAC (`prf.py`): which questions are answered, how a number is
    rounded, and what a channel draws for each (question, row), where a row is an input of the channel. In a survey with
    `memoized_epsilon` the permanent answer passes a second, fresh stage in each report, and a new row costs
    memoized_epsilon/m. docs/over-time.md states what is bounded.

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
    ...     client = MemoizedClient(survey, Ledger(f"{folder}/ledger.json"))
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
        _check_record(record)

        def choose(secret: bytes, known: Sequence[str], affordable: int) -> tuple[Answers, tuple[str, ...]]:
            return decide(self.survey, secret, record, known, affordable)

        return Report(self.survey.fingerprint, self.ledger.claim(self.survey, choose))


def _check_record(record: Any) -> None:
    if not isinstance(record, Mapping):
        raise InvalidInput(f"a record must map names to values, not be a {type(record).__name__}")


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
    for j in range(len(questions) - survey.sampled, len(questions)):
        t = draws.below(j + 1)
        sampled.add(j if t in sampled else t)
    return sorted(sampled)


def answer(survey: Survey, q: int, record: Mapping[str, Any], draws: Draws) -> tuple[int, ...]:
    """The fields of a randomized answer to question q: sixteen bits round each number, then the channel draws."""
    question = survey.questions[q]
    x = input_of(survey, question, record, lambda j: draws.bits(FRACTION_BITS))
    return question.channel.sample(x, draws)


def input_of(
    survey: Survey, question: Question, record: Mapping[str, Any], bits: Callable[[int], int]
) -> int:
    """The input of a question's channel; a number between two levels is rounded by the 16 bits of its dimension."""
    x = 0
    for j, input_ in zip(question.dimensions, question.channel.inputs, strict=True):
        dimension = survey.schema.dimensions[j]
        place = dimension.encode(value_of(record, dimension), input_.size)
        fraction = bits(j) if input_.rounds else 0
        x = x * input_.size + (place >> FRACTION_BITS) + (fraction < place & ((1 << FRACTION_BITS) - 1))
    return x


def value_of(record: Mapping[str, Any], dimension: Dimension) -> Any:
    """What the record holds for a dimension: the value of its column, or those of the columns it is computed from."""
    values: list[Any] = []
    for name in dimension.columns:
        try:
            values.append(record.get(name))
        except Exception:  # a mapping may be an object that raises anything at all
            values.append(None)
    return values[0] if dimension.columns == (dimension.name,) else tuple(values)


def decide(
    survey: Survey,
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
    fresh, series = fresh or SystemDraws(), survey.series

    def fraction(j: int) -> int:
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
