"""The clients that run on the user's device with the operating system's randomness; standard library only.

The order of the random draws is part of the interface. docs/browser.md specifies it, and `tests/vectors` holds test
vectors that every client must reproduce.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hdr4me.channels import Draws, SystemDraws
from hdr4me.client.ledger import Ledger
from hdr4me.client.prf import Stream, Use
from hdr4me.errors import InvalidInput
from hdr4me.io.report import Report
from hdr4me.survey import Question, Survey
from hdr4me.survey.dimension import FRACTION_BITS

Answers = tuple[tuple[int, ...], ...]
MAX_ROWS = 65536  # each report of memoized responses computes a mark for every row
_UNUSABLE = "\0"  # a value that no dimension can use


class Client:
    """Turns a record into a report: draws m of the survey's questions without replacement and answers them.

    The randomness is the operating system's, and there is no seed. A record with an unknown key, or with an unusable
    value for which the survey declares neither a default nor `optional`, is refused before anything is drawn.
    Otherwise, the number and kind of random draws and the form of the report do not depend on the record: an unusable
    value is replaced by its default and randomized like any other value. A client with a ledger records the budget as
    spent before it returns the report.

    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120), Numeric("height", 0, 250)]), mechanism="duchi")
    >>> report = Client(survey).report({"age": 31, "height": 170})
    >>> len(report.answers), report.survey == survey.fingerprint
    (1, True)
    """

    def __init__(self, survey: Survey, ledger: Ledger | None = None) -> None:
        if not isinstance(survey, Survey):
            raise InvalidInput.of("survey", survey, "a Survey")
        self.survey = survey
        self.ledger = ledger
        self._draws = SystemDraws()
        unusable = dict.fromkeys(
            (column for dimension in survey.schema for column in dimension.columns), _UNUSABLE
        )
        for question in survey.questions:
            # Fills the caches that a dimension needs for unusable values, so that no value takes longer than another.
            input_of(survey, question, unusable, lambda j: 0)

    def report(self, record: Mapping[str, Any]) -> Report:
        """Return the randomized answers to this record.

        Raises InvalidInput, with the name of the dimension and no value, if `Schema.check` refuses the record, and
        BudgetExceeded if the ledger has no budget left. Nothing is drawn or charged then.
        """
        _check_record(self.survey, record)
        sampled = draw_questions(self.survey, self._draws)
        answers = tuple((q, *answer(self.survey, q, record, self._draws)) for q in sampled)
        if self.ledger is not None:
            self.ledger.spend(self.survey)
        return Report(self.survey.fingerprint, answers)

    def __repr__(self) -> str:
        return f"<Client of survey {self.survey.fingerprint[:12]}, {self.ledger or 'no ledger'}>"

    def _repr_html_(self) -> str:
        from hdr4me.pages.html import paragraph

        return paragraph(repr(self)[1:-1]) + self.survey._repr_html_()


class MemoizedClient:
    """Turns a record into a report of memoized responses: an unchanged record gives the identical report at no cost.

    All randomness is derived from the device's secret by HMAC (`prf.py`): which questions are answered, how a number is
    rounded, and what the channel draws for each (question, row), where a row is an input of the channel. In a survey
    with `memoized_epsilon`, the memoized response passes through a second stage with fresh noise in each report, and a
    new row costs memoized_epsilon/m. docs/over-time.md states the privacy bound.

    The ledger charges ε/m for each new row, stores which rows are paid for, and has the secret in a file beside it. The
    first report costs the survey's ε or raises BudgetExceeded. Later reports are never refused, because a refusal would
    reveal that the value changed. Once the budget is spent, each question repeats the response to the row that it paid
    for last, whatever the value is.

    Parameters
    ----------
    survey : Survey
        The survey. All surveys of one series share their memoized responses.
    ledger : Ledger
        Its `reports_per_survey` allows that many times m rows. With the default, 1, every report repeats the responses
        to the first record. If the survey declares a row budget, it must be that number.

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
            raise InvalidInput.of("ledger", ledger, "a Ledger, which stores the memoized rows and their cost")
        if survey.row_budget not in (None, ledger.reports_per_survey):
            raise InvalidInput.of(
                "reports_per_survey",
                ledger.reports_per_survey,
                f"the survey's row_budget, {survey.row_budget}",
            )
        if any(channel.n_inputs > MAX_ROWS for channel in survey.channels):
            raise InvalidInput(
                f"memoized responses support questions of at most {MAX_ROWS} inputs: not vectors, and not "
                "blocks of more than 16 numbers"
            )
        self.survey = survey
        self.ledger = ledger

    def report(self, record: Mapping[str, Any]) -> Report:
        """Return the memoized responses to this record.

        Raises InvalidInput as `Client.report` does, and BudgetExceeded without a budget for the first report.
        """
        _check_record(self.survey, record)

        def choose(secret: bytes, known: Sequence[str], affordable: int) -> tuple[Answers, tuple[str, ...]]:
            return decide(self.survey, secret, record, known, affordable)

        return Report(self.survey.fingerprint, self.ledger.claim(self.survey, choose))


def _check_record(survey: Survey, record: Any) -> None:
    if not isinstance(record, Mapping):
        raise InvalidInput(f"a record must be a mapping from names to values, not a {type(record).__name__}")
    survey.schema.check(record)


def draw_questions(survey: Survey, draws: Draws) -> list[int]:
    """Draw the indices of the questions that one user answers, in increasing order.

    With equal weights, Floyd's algorithm draws m distinct indices: one draw below j + 1 for each j from q − m to q − 1.
    With unequal weights (m = 1), one draw below the sum of the weights is compared with every cumulative sum.
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
    """Return the fields of a randomized answer to question q: 16 bits round each number, then the channel draws."""
    question = survey.questions[q]
    x = input_of(survey, question, record, lambda j: draws.bits(FRACTION_BITS))
    return question.channel.sample(x, draws)


def input_of(
    survey: Survey, question: Question, record: Mapping[str, Any], bits: Callable[[int], int]
) -> int:
    """Return the input of a question's channel; 16 bits for each dimension round a number between two levels."""
    x = 0
    for j, input_ in zip(question.dimensions, question.channel.inputs, strict=True):
        dimension = survey.schema.dimensions[j]
        encoded = dimension.encode(dimension.value_in(record), input_.size)
        fraction = bits(j) if input_.rounds else 0
        x = x * input_.size + (encoded >> FRACTION_BITS) + (fraction < encoded & ((1 << FRACTION_BITS) - 1))
    return x


def decide(
    survey: Survey,
    secret: bytes,
    record: Mapping[str, Any],
    known: Sequence[str],
    affordable: int,
    fresh: Draws | None = None,
) -> tuple[Answers, tuple[str, ...]]:
    """Return m answers (question, field, …) in increasing order of question, and the marks of the rows to pay for.

    `known` has the marks of the rows that are already paid for, in order of payment. `affordable` is the number of
    further rows that the budget allows; it is at least m if no row is paid for yet. A channel's second stage draws from
    `fresh`, by default the system's randomness.
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
            # The budget is spent: the answer must not depend on the value any more.
            row = paid[-1]
        elif row not in paid:
            new.append(marks[row])
        # Each row has its own stream. If two rows of a unary encoding shared random words, a change of category would
        # change only the bits of the two categories and so reveal both.
        answers.append((q, *channel.repeat(row, Stream(secret, series, Use.ANSWER, q, row), fresh)))
    return tuple(answers), tuple(new)
