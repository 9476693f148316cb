"""Permanent answers: an unchanged record gives the identical report, for ever and at no further cost.

All that is random is taken from the device's secret by HMAC (`prf.py`): which m questions are answered, on which side a
number between two levels is rounded, and one word for each (dimension, row, entry). A row is what the channel is given:
a level of a number, or a category. As long as a value stays on its row its answer stays the same, so T reports tell no
more than one. Each row that a dimension visits for the first time costs ε/m. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from hdr4me.client.ledger import Ledger
from hdr4me.client.prf import Stream, Use
from hdr4me.client.values import FRACTION_BITS, category, position
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.exactness import BITS
from hdr4me.reports.report import Report
from hdr4me.survey import Categorical, Survey

__all__ = ["PermanentClient", "decide"]

Answers = tuple[tuple[int, ...], ...]


class PermanentClient:
    """Turns a record into a report that stays the same while the record does.

    The ledger is needed: it pays ε/m for each new row, keeps the secret beside it and remembers what was paid for. The
    first report costs the survey's ε or raises BudgetExceeded. Later ones always come: where the budget is spent, a
    value on a new row is answered as the nearest row that was paid for. A refusal would tell that the value changed.

    Parameters
    ----------
    survey : Survey
        What is asked. A survey of the same series gets the same answers.
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
            raise InvalidInput(f"survey = {survey!r} must be a Survey")
        if not isinstance(ledger, Ledger):
            raise InvalidInput(
                f"ledger = {ledger!r} must be a Ledger: permanent answers are paid for and remembered"
            )
        self.survey = survey
        self.ledger = ledger

    def report(self, record: Mapping[str, Any]) -> Report:
        """The permanent answers to this record; keys that the survey does not ask for are ignored."""
        if not isinstance(record, Mapping):
            raise InvalidInput(f"a record must map names to values, not be a {type(record).__name__}")
        decided: list[Answers] = []

        def choose(secret: bytes, known: frozenset[str], affordable: int) -> tuple[str, ...]:
            answers, new = decide(self.survey, self.survey.series, secret, record, known, affordable)
            decided.append(answers)
            return new

        self.ledger.claim(self.survey, choose)
        return Report(self.survey.fingerprint, decided[0])


def decide(
    survey: Survey,
    series: str,
    secret: bytes,
    record: Mapping[str, Any],
    known: Collection[str],
    affordable: int,
) -> tuple[Answers, tuple[str, ...]]:
    """The answers, and the marks of the rows that must be paid for first.

    Parameters
    ----------
    survey : Survey
        What is asked.
    series : str
        The survey's series, 64 hexadecimal digits.
    secret : bytes
        The device's secret, 32 bytes.
    record : Mapping
        Values by name.
    known : collection of str
        The marks of the rows that are paid for.
    affordable : int
        How many more the budget allows; at least m if none is known yet.

    Returns
    -------
    answers, marks
        m answers (dimension, code, …) in increasing order of dimension, and the new marks in the same order.
    """
    answers: list[tuple[int, ...]] = []
    new: list[str] = []
    for j in Stream(secret, series, Use.QUESTIONS).sample(len(survey.schema), survey.n_sampled):
        fraction = Stream(secret, series, Use.FRACTION, j).getrandbits(FRACTION_BITS)
        row = _row_of(survey, j, record, fraction)
        # Every row's mark is computed, whatever the value.
        marks = [Stream(secret, series, Use.MARK, j, r).take(16).hex() for r in range(_n_rows(survey, j))]
        if marks[row] not in known:
            paid = [r for r, mark in enumerate(marks) if mark in known]
            if len(new) < affordable or not paid:
                new.append(marks[row])
            else:
                row = min(paid, key=lambda r: (abs(r - row), r))
        answers.append((j, *_codes(survey, j, row, _words(secret, series, j, row))))
    return tuple(answers), tuple(new)


def _words(secret: bytes, series: str, j: int, row: int) -> Callable[[int], int]:
    return lambda entry: Stream(secret, series, Use.WORD, j, row, entry).getrandbits(BITS)


# -- what is asked of a question's channel: how many rows, which one, and the codes ----------------------------------


def _n_rows(survey: Survey, j: int) -> int:
    dimension = survey.schema.dimensions[j]
    return len(dimension.categories) if isinstance(dimension, Categorical) else survey.randomizer(j).n_levels


def _row_of(survey: Survey, j: int, record: Mapping[str, Any], fraction: int) -> int:
    dimension = survey.schema.dimensions[j]
    value = record.get(dimension.name)
    if isinstance(dimension, Categorical):
        return category(dimension, value)
    place = position(dimension, value, survey.randomizer(j).n_levels)
    return (place >> FRACTION_BITS) + (fraction < place & ((1 << FRACTION_BITS) - 1))


def _codes(survey: Survey, j: int, row: int, word: Callable[[int], int]) -> tuple[int, ...]:
    """One code, or one for each entry. Every entry has a word of its own for every row.

    If an entry's word did not depend on the row, a change from one category to another would move two entries only and
    so name both categories.
    """
    randomizer = survey.randomizer(j)
    if randomizer.kind != "entries":
        return (_cell(randomizer.cumulative[row], word(0)),)
    return tuple(_cell(randomizer.cumulative[int(e == row)], word(e)) for e in range(survey.n_codes(j)))


def _cell(bounds: tuple[int, ...], word: int) -> int:
    return sum([word >= bound for bound in bounds])
