"""The survey: questions, budget and channels; needs only the standard library to load and use."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from hdr4me.atomic import write_text
from hdr4me.channels import Channel, channel_from_dict
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput, PrivacyWarning
from hdr4me.pages.text import pluralize
from hdr4me.survey.canonical import identities, parse
from hdr4me.survey.category_file import loaded, looking_among, write_beside
from hdr4me.survey.question import (
    Question,
    check_budget,
    check_channels,
    check_device_cost,
    check_questions,
    split_budget,
)
from hdr4me.survey.schema import Schema, Tolerance
from hdr4me.survey.values import is_unicode

FORMAT, VERSION = "hdr4me-survey", 2
_SETTINGS = ("epsilon", "n_sampled", "name")
_FIELDS = {"format", "version", "dimensions", "questions", "channels", "fingerprint", *_SETTINGS}
_SHOWN = 20  # questions shown in a notebook
_MOST_ROWS = 65_536
_LARGE = 10.0  # a larger budget of one report gives a warning


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Survey:
    """A list of questions: each has one or more dimensions and a channel that randomizes them.

    Each person answers m = `sampled` questions, each under ε/m. A survey is a JSON document that includes its channels,
    so that a client in any language needs nothing else. Every report and tally carries its SHA-256 `fingerprint`.

    Parameters
    ----------
    schema
        The dimensions.
    epsilon
        The privacy budget of a whole report.
    mechanism
        The mechanism for numbers: its name, or an object with a method `exact()`.
    sampled
        The number of questions that each person answers.
    categorical
        The mechanism for categories; "auto" chooses the one with the smallest predicted error.
    name
        A name for people. A renamed survey shares its budget with the original (`series`).
    pair_questions
        Pairs of numeric dimensions, by name, that are asked together under the whole budget of a question.
    block_questions
        Blocks of 2 to 1,024 numeric dimensions, by name, that are rounded to signs and asked together (agreement
        blocks). They are accurate for large budgets and values far from the middle of their range.
    weights
        The relative frequencies of the questions, as positive integers by the name of the first dimension; 1 unless
        given. Requires `sampled` = 1.
    purpose
        Chooses the mechanism for numbers by the intended use: "mean", "distribution" (distributions and quantiles) or
        "both".
    memoized_epsilon
        The budget of all reports of an unchanged value together, larger than `epsilon`. Each report then passes a
        memoized response through a second stage of fresh noise. Chooses the mechanisms for numbers and categories.

    tolerance
        The accuracy that the survey is planned for (`Tolerance`). It is part of the document, so that the collector's
        dashboard compares the results with it; a survey without it has the same document as before.
    row_budget
        For repeated collection with memoized responses: the number of new values that a device may pay for at each
        question. Later rounds then have no intervals of their own, because responses may be stale. It is part of the
        document, as the tolerance is; None for a survey that is answered once.

    Examples
    --------
    >>> from hdr4me.survey import Categorical, Numeric
    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> survey = Survey(schema, epsilon=2.0, mechanism="duchi", sampled=2)
    >>> survey.epsilon_per_answer, survey.report_size
    (1.0, 6)
    >>> Survey.from_json(survey.to_json()) == survey
    True
    """

    schema: Schema
    epsilon: float
    sampled: int
    questions: tuple[Question, ...]
    name: str
    tolerance: Tolerance | None
    row_budget: int | None

    def __init__(
        self,
        schema: Schema,
        epsilon: float = 1.0,
        mechanism: Any = "optimal",
        sampled: int = 1,
        categorical: str = "auto",
        name: str = "",
        *,
        pair_questions: Sequence[tuple[str, str]] = (),
        block_questions: Sequence[Sequence[str]] = (),
        weights: Mapping[str, int] | None = None,
        purpose: str | None = None,
        memoized_epsilon: float | None = None,
        tolerance: Tolerance | None = None,
        row_budget: int | None = None,
    ) -> None:
        from hdr4me.survey.design import check_memoized, design, mechanism_for

        _check(schema, epsilon, sampled, name)
        mechanism = mechanism_for(purpose, mechanism)
        if memoized_epsilon is not None:
            check_memoized(
                schema, epsilon, memoized_epsilon, mechanism, categorical, [*pair_questions, *block_questions]
            )
        questions = design(
            schema,
            split_budget(float(epsilon), int(sampled)),
            mechanism,
            categorical,
            pair_questions=pair_questions,
            block_questions=block_questions,
            weights=weights or {},
            memoized_epsilon=None
            if memoized_epsilon is None
            else split_budget(float(memoized_epsilon), int(sampled)),
        )
        self._adopt(schema, float(epsilon), int(sampled), questions, name, tolerance, row_budget)
        warn_if_large(self.epsilon)

    @classmethod
    def from_questions(
        cls,
        schema: Schema,
        *,
        epsilon: float,
        sampled: int,
        questions: Sequence[Question],
        name: str = "",
        tolerance: Tolerance | None = None,
        row_budget: int | None = None,
    ) -> Survey:
        """A survey from existing questions, which are checked.

        Parameters
        ----------
        schema, epsilon, sampled, name, tolerance, row_budget
            As for a new survey.
        questions
            The questions; every dimension must be in exactly one of them.
        """
        _check(schema, epsilon, sampled, name)
        survey = cls.__new__(cls)
        survey._adopt(schema, float(epsilon), int(sampled), tuple(questions), name, tolerance, row_budget)
        return survey

    def _adopt(
        self,
        schema: Schema,
        epsilon: float,
        sampled: int,
        questions: tuple[Question, ...],
        name: str,
        tolerance: Tolerance | None,
        row_budget: int | None,
    ) -> None:
        check_questions(schema, questions)
        check_budget(epsilon, sampled, len(questions))
        if row_budget is not None and not (type(row_budget) is int and 1 <= row_budget <= _MOST_ROWS):
            raise InvalidInput.of("row_budget", row_budget, f"an integer from 1 to {_MOST_ROWS}")
        values = (schema, epsilon, sampled, questions, name, tolerance, row_budget)
        for field, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, field, value)
        if sampled > 1 and self.weighted:
            raise InvalidInput("different weights require sampled = 1")
        check_channels(epsilon, sampled, self.channels)
        check_device_cost(sampled, questions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        mechanisms = ", ".join(dict.fromkeys(channel.mechanism for channel in self.channels))
        return (
            f"<Survey {self.fingerprint[:12]}: {pluralize(len(self.schema), 'dimension')}, epsilon = {self.epsilon}, "
            f"{self.sampled} of {pluralize(len(self.questions), 'question')} answered by each user, by {mechanisms}>"
        )

    def _repr_html_(self) -> str:
        columns = ("mechanism", "channel", "inputs", "ε of an answer", "proven bound on e^ε")

        def row(q: int) -> tuple[Any, ...]:
            channel = self.questions[q].channel
            return (
                channel.mechanism,
                type(channel).__name__,
                channel.n_inputs,
                channel.epsilon,
                str(channel.likelihood_ratio),
            )

        return questions_html(self, repr(self)[1:-1], columns, row)

    # -- properties derived from the questions -------------------------------------------------------------------------

    @property
    def epsilon_per_answer(self) -> float:
        """ε/m, rounded down so that m answers never exceed ε."""
        return split_budget(self.epsilon, self.sampled)

    @cached_property
    def memoized_epsilon(self) -> float:
        """The total privacy loss of all memoized responses to an unchanged record: ε, or more with two stages."""
        stages = max(channel.memoized_epsilon for channel in self.channels)
        if stages <= self.epsilon_per_answer:
            return self.epsilon
        total = self.sampled * stages
        exceeded = Fraction(total) < self.sampled * Fraction(stages)
        return math.nextafter(total, math.inf) if exceeded else total

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """The distinct channels in the order of the questions."""
        return tuple({id(question.channel): question.channel for question in self.questions}.values())

    def question_of(self, dimension: int | str) -> int:
        """The index of the question that asks for a dimension, which is given by index or name."""
        return self._question_of[self.schema.index(dimension) if isinstance(dimension, str) else dimension]

    @cached_property
    def _question_of(self) -> dict[int, int]:
        return {j: q for q, question in enumerate(self.questions) for j in question.dimensions}

    @cached_property
    def weighted(self) -> bool:
        """Whether questions are sampled with different probabilities."""
        return len({question.weight for question in self.questions}) > 1

    def inclusion(self, question: int) -> Fraction:
        """The probability that a person answers a question: m over the number of questions, or its share of weights."""
        if not self.weighted:
            return Fraction(self.sampled, len(self.questions))
        return Fraction(self.questions[question].weight, sum(q.weight for q in self.questions))

    # -- binary reports ---------------------------------------------------------------------------------------

    @cached_property
    def slot_size(self) -> int:
        """Bytes of a slot in memory: two for the index of the question, then the fields of the widest channel."""
        return 2 + max(channel.wire_size for channel in self.channels)

    @property
    def report_size(self) -> int:
        """Bytes of a report in memory, where all slots have the same size."""
        return self.sampled * self.slot_size

    @cached_property
    def fixed_size(self) -> bool:
        """Whether all reports on the wire have `report_size` bytes, without padding."""
        return len({channel.wire_size for channel in self.channels}) == 1

    @cached_property
    def byte_wise(self) -> bool:
        """Whether every dimension has its own unweighted question whose answer is bytes drawn from integer rows."""
        plain = all(len(q.dimensions) == 1 and q.channel.rows is not None for q in self.questions)
        return plain and not self.weighted

    # -- the document --------------------------------------------------------------------------------------------

    def _body(self) -> dict[str, Any]:
        """The document without its fingerprint: each channel once, and questions with the index of their channel."""
        number = {id(channel): index for index, channel in enumerate(self.channels)}
        questions = [
            {"dimensions": list(question.dimensions), "channel": number[id(question.channel)]}
            | ({"weight": question.weight} if self.weighted else {})
            for question in self.questions
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "epsilon": self.epsilon,
            "n_sampled": self.sampled,
            **self.schema.to_dict(),
            "questions": questions,
            "channels": [channel.to_dict() for channel in self.channels],
            **({} if self.tolerance is None else {"tolerance": self.tolerance.to_dict()}),
            **({} if self.row_budget is None else {"row_budget": self.row_budget}),
        }

    @cached_property
    def _identities(self) -> tuple[str, str]:
        return identities(self._body())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical document; surveys with the same fingerprint are identical."""
        return self._identities[0]

    @property
    def series(self) -> str:
        """The fingerprint of the survey without its name; a renamed survey shares its budget."""
        return self._identities[1]

    def to_json(self) -> str:
        """The document, including channels and fingerprint."""
        document = {**self._body(), "fingerprint": self.fingerprint}
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, *, categories: Mapping[str, Iterable[str]] | None = None) -> Survey:
        """Read a document and check its version, schema, channels, privacy and fingerprint.

        `categories` gives, by the name of a dimension, the lists of which the document holds only the hash. Raises
        FormatError if the document is not a valid survey or a list is missing, and FingerprintMismatch if the document
        was changed.
        """
        document, lists = _parsed(text), categories or {}
        claimed = str(document.pop("fingerprint"))
        try:
            found = identities(document)
            with looking_among(lists.values()):
                schema = Schema.from_dict({"dimensions": document["dimensions"]})
            questions = _questions(document)
            if found[0] != claimed:
                raise FingerprintMismatch("the survey document", claimed, found[0])
            epsilon, sampled, name = (document[key] for key in _SETTINGS)
            given = document.get("tolerance")
            tolerance = None if given is None else Tolerance.from_dict(given, schema)
            survey = cls.from_questions(
                schema,
                questions=questions,
                epsilon=epsilon,
                sampled=sampled,
                name=name,
                tolerance=tolerance,
                row_budget=document.get("row_budget"),
            )
        except InvalidInput as error:
            raise FormatError(f"not a valid survey: {error}") from error
        except UnicodeEncodeError:
            raise FormatError("not a survey: it contains a string that has no UTF-8 form") from None
        for name in lists:
            if name not in schema.names:
                raise InvalidInput.of("categories", name, "names of dimensions of the survey")
        # A document is canonicalized once, unless the survey would write it differently.
        if json.dumps(survey._body(), sort_keys=True) == json.dumps(document, sort_keys=True):
            survey.__dict__["_identities"] = found
        elif survey.fingerprint != claimed:
            raise FingerprintMismatch("the survey document", claimed, survey.fingerprint)
        return survey

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document atomically, and next to it the lists of categories of which it holds only the hash."""
        for dimension in self.schema:
            if (file := getattr(dimension, "file", None)) is not None:
                # After the list of the file an optional dimension has the category "missing".
                write_beside(Path(path), dimension.name, file, dimension.categories[: file.count])
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Survey:
        """Read the file of a survey, and the lists of categories next to it of which it holds only the hash."""
        return loaded(path, cls.from_json)


def questions_html(
    survey: Survey, title: str, columns: Sequence[str], row: Callable[[int], tuple[Any, ...]]
) -> str:
    """A table of the first questions for notebooks; `row` gives the cells that follow the dimensions."""
    from hdr4me.pages import html

    rows = [
        (", ".join(survey.schema.names[j] for j in question.dimensions), *row(q))
        for q, question in enumerate(survey.questions[:_SHOWN])
    ]
    rest = len(survey.questions) - len(rows)
    more = html.paragraph(f"… and {rest:,} more questions") if rest else ""
    return html.paragraph(title) + html.table(("question", *columns), rows) + more


def _check(schema: Any, epsilon: Any, sampled: Any, name: Any) -> None:
    if not isinstance(schema, Schema):
        raise InvalidInput(f"schema = {schema!r} must be a Schema")
    check_budget(epsilon, sampled, len(schema))
    if not isinstance(name, str) or not is_unicode(name):
        raise InvalidInput.of("name", name, "a string with a UTF-8 form")


def _parsed(text: str | bytes) -> dict[str, Any]:
    """The document; FormatError unless it has all fields and this version."""
    try:
        document = parse(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise FormatError("not a survey; hdr4me survey makes one from a schema") from None
    except ValueError as error:
        raise FormatError(f"not a survey: {error}".replace("\n", " ")) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FormatError(f"not a survey: its format is not {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise FormatError(f"survey of version {version!r}: this program supports version {VERSION}")
    if odd := (set(document) - {"tolerance", "row_budget"}) ^ _FIELDS:
        raise FormatError(f"not a survey: fields missing or unknown: {', '.join(sorted(map(repr, odd)))}")
    return document


def _questions(document: Mapping[str, Any]) -> list[Question]:
    items, documents = document["questions"], document["channels"]
    if not isinstance(items, list) or not isinstance(documents, list):
        raise FormatError("the questions and channels of a survey must be lists")
    channels = [channel_from_dict(channel) for channel in documents]
    questions, fields = [], {"dimensions", "channel"}
    for item in items:
        if not isinstance(item, Mapping) or not fields <= set(item) <= fields | {"weight"}:
            raise FormatError("a question must be an object with dimensions, channel and optionally weight")
        dimensions, index = item["dimensions"], item["channel"]
        if not isinstance(dimensions, list) or not dimensions or not all(type(j) is int for j in dimensions):
            raise FormatError("the dimensions of a question must be a list of integers")
        if type(index) is not int or not 0 <= index < len(channels):
            raise FormatError(f"channel = {index!r} of a question does not exist")
        questions.append(Question(tuple(dimensions), channels[index], item.get("weight", 1)))
    if {id(question.channel) for question in questions} != {id(channel) for channel in channels}:
        raise FormatError("no question uses one of the survey's channels")
    return questions


def warn_if_large(epsilon: float) -> None:
    """Warn if a budget gives little privacy."""
    if epsilon > _LARGE:
        odds = math.exp(min(epsilon, 700.0))
        times = f"{odds:,.0f}" if odds < 1e9 else f"{odds:.0e}"
        warnings.warn(
            f"ε = {epsilon:g} is large: one report may change the odds of a guess by a factor of {times}",
            PrivacyWarning,
            stacklevel=3,
        )
