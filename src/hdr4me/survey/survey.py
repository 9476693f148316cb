"""The survey: what is asked, under which budget, through which channels; standard library only to load and use."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from hdr4me.atomic import write_text
from hdr4me.channels import Channel
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.pages.counted import counted
from hdr4me.survey.budget import check_budget, check_channels, check_n_sampled, split_budget
from hdr4me.survey.canonical import identities
from hdr4me.survey.category_file import looking_among, looking_in, write_beside
from hdr4me.survey.document import body_of, read
from hdr4me.survey.question import Question, check_questions
from hdr4me.survey.schema import Schema

_SHOWN = 20
"""How many questions a notebook shows."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Survey:
    """A list of questions: each has one or more dimensions and a channel that randomises them.

    Each user answers m = `n_sampled` questions, each under ε/m. A survey is a JSON document that carries its channels,
    so a client in any language needs nothing else, and its SHA-256 `fingerprint` is on every report and tally.

    Parameters
    ----------
    schema
        The dimensions.
    epsilon
        The budget of a whole report.
    mechanism
        How numbers are randomised: a mechanism's name, or anything with `exact()`.
    n_sampled
        How many questions each user answers.
    categorical
        How categories are randomised: "auto" chooses by the predicted error.
    name
        A name for people; the budget of a renamed survey is the same (`series`).
    pairs
        Pairs of numeric dimensions, by name, that are asked together under the whole budget of a question.
    blocks
        Blocks of 2 to 1,024 numeric dimensions, by name, that are rounded to signs and asked together (agreement
        blocks): for large budgets and values far from the middle of their range.
    weights
        How often each question is drawn, relative to the others, as whole numbers by the name of its first dimension;
        1 where none is given. Only for `n_sampled` = 1.
    purpose
        What the numbers are asked for, instead of `mechanism`: "mean", "distribution" (distributions and quantiles) or
        "both".
    lasting
        The budget of all reports of an unchanged value together, above `epsilon`, for permanent answers that pass a
        second, fresh stage of noise in each report. Chooses the mechanisms, for numbers and for categories.

    Examples
    --------
    >>> from hdr4me.survey import Categorical, Numeric
    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> survey = Survey(schema, epsilon=2.0, mechanism="duchi", n_sampled=2)
    >>> survey.epsilon_per_answer, survey.report_size
    (1.0, 6)
    >>> Survey.from_json(survey.to_json()) == survey
    True
    """

    schema: Schema
    epsilon: float
    n_sampled: int
    questions: tuple[Question, ...]
    name: str

    def __init__(
        self,
        schema: Schema,
        epsilon: float = 1.0,
        mechanism: Any = "optimal",
        n_sampled: int = 1,
        categorical: str = "auto",
        name: str = "",
        *,
        pairs: Sequence[tuple[str, str]] = (),
        blocks: Sequence[Sequence[str]] = (),
        weights: Mapping[str, int] | None = None,
        purpose: str | None = None,
        lasting: float | None = None,
    ) -> None:
        from hdr4me.survey.design import check_lasting, design, mechanism_for

        check_budget(schema, epsilon, n_sampled)
        per_answer = split_budget(float(epsilon), int(n_sampled))
        mechanism = mechanism_for(purpose, mechanism)
        check_lasting(schema, epsilon, lasting, mechanism, categorical)
        questions = design(
            schema,
            per_answer,
            mechanism,
            categorical,
            pairs=pairs,
            blocks=blocks,
            weights=weights or {},
            lasting=None if lasting is None else split_budget(float(lasting), int(n_sampled)),
        )
        self._adopt(schema, float(epsilon), int(n_sampled), questions, name)

    @classmethod
    def from_questions(
        cls,
        schema: Schema,
        *,
        epsilon: float,
        n_sampled: int,
        questions: Sequence[Question],
        name: str = "",
    ) -> Survey:
        """A survey from questions that are there already; everything about them is checked.

        Parameters
        ----------
        schema
            The dimensions.
        epsilon
            The budget of a whole report.
        n_sampled
            How many questions each user answers.
        questions
            The dimensions of each question and its channel; every dimension stands in one question.
        name
            A name for people.

        Examples
        --------
        >>> from hdr4me.survey import Numeric, Schema, Survey
        >>> first = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi")
        >>> again = Survey.from_questions(first.schema, epsilon=1.0, n_sampled=1, questions=first.questions)
        >>> again.fingerprint == first.fingerprint
        True
        """
        check_budget(schema, epsilon, n_sampled)
        survey = cls.__new__(cls)
        survey._adopt(schema, float(epsilon), int(n_sampled), tuple(questions), name)
        return survey

    def _adopt(
        self, schema: Schema, epsilon: float, n_sampled: int, questions: tuple[Question, ...], name: str
    ) -> None:
        if not isinstance(name, str):
            raise InvalidInput.of("name", name, "a string")
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput.of("name", name, "a string that has a UTF-8 form") from None
        check_questions(schema, questions)
        check_n_sampled(n_sampled, len(questions))
        if n_sampled > 1 and len({question.weight for question in questions}) > 1:
            raise InvalidInput("weights that differ need n_sampled = 1: then each question's share is known")
        check_channels(epsilon, n_sampled, {id(q.channel): q.channel for q in questions}.values())
        values = (schema, epsilon, n_sampled, questions, name)
        for field, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, field, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        mechanisms = ", ".join(dict.fromkeys(channel.mechanism for channel in self.channels))
        return (
            f"<Survey {self.fingerprint[:12]}: {counted(len(self.schema), 'dimension')}, epsilon = {self.epsilon}, "
            f"{self.n_sampled} of {counted(len(self.questions), 'question')} answered by each user, by {mechanisms}>"
        )

    def _repr_html_(self) -> str:
        from hdr4me.pages import html

        rows = [
            (
                ", ".join(self.schema.names[j] for j in question.dimensions),
                question.channel.mechanism,
                question.channel.kind,
                question.channel.n_inputs,
                question.channel.epsilon,
                str(question.channel.loss),
            )
            for question in self.questions[:_SHOWN]
        ]
        rest = len(self.questions) - len(rows)
        more = html.paragraph(f"… and {rest:,} more questions") if rest else ""
        columns = ("question", "mechanism", "channel", "inputs", "ε of an answer", "largest ratio, proven")
        return html.paragraph(repr(self)[1:-1]) + html.table(columns, rows) + more

    # -- what follows from the questions -------------------------------------------------------------------------

    @property
    def epsilon_per_answer(self) -> float:
        """ε/m, rounded down: m of them never exceed ε, not even by the last bit."""
        return split_budget(self.epsilon, self.n_sampled)

    @cached_property
    def lasting_epsilon(self) -> float:
        """What any number of permanent answers to an unchanged record lose: ε, or more where they have two stages."""
        stages = max(channel.lasting_epsilon for channel in self.channels)
        if stages <= self.epsilon_per_answer:
            return self.epsilon
        total = self.n_sampled * stages
        return (
            total if Fraction(total) >= self.n_sampled * Fraction(stages) else math.nextafter(total, math.inf)
        )

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Every channel once, in the order of the questions."""
        return tuple({id(question.channel): question.channel for question in self.questions}.values())

    def question_of(self, dimension: int | str) -> int:
        """The number of the question that asks for a dimension, given by number or name."""
        j = self.schema.index(dimension) if isinstance(dimension, str) else dimension
        return self._question_of[j]

    @cached_property
    def _question_of(self) -> dict[int, int]:
        return {j: q for q, question in enumerate(self.questions) for j in question.dimensions}

    @cached_property
    def weighted(self) -> bool:
        """Whether questions are drawn with different probabilities."""
        return len({question.weight for question in self.questions}) > 1

    def inclusion(self, question: int) -> Fraction:
        """The probability that a user answers a question: m/q, or its share of the weights."""
        if not self.weighted:
            return Fraction(self.n_sampled, len(self.questions))
        return Fraction(self.questions[question].weight, sum(q.weight for q in self.questions))

    # -- reports in binary ---------------------------------------------------------------------------------------

    @cached_property
    def slot_size(self) -> int:
        """Bytes of a slot in memory: two for the question's number, then the fields of the widest channel."""
        return 2 + max(channel.wire_size for channel in self.channels)

    @property
    def report_size(self) -> int:
        """Bytes of a report in memory, where every slot has the same size."""
        return self.n_sampled * self.slot_size

    @cached_property
    def fixed_size(self) -> bool:
        """Whether reports on the wire all have `report_size` bytes: no slot is padded."""
        return len({channel.wire_size for channel in self.channels}) == 1

    @cached_property
    def byte_wise(self) -> bool:
        """Whether every answer is single bytes drawn from integer rows, one question for each dimension, as often."""
        plain = all(len(q.dimensions) == 1 and q.channel.rows is not None for q in self.questions)
        return plain and not self.weighted

    # -- the document --------------------------------------------------------------------------------------------

    @cached_property
    def _identities(self) -> tuple[str, str]:
        return identities(body_of(self))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical document: two surveys with the same fingerprint ask the same in the same way."""
        return self._identities[0]

    @property
    def series(self) -> str:
        """The fingerprint of the same survey without its name: a renamed survey shares its budget."""
        return self._identities[1]

    def to_json(self) -> str:
        """The document, channels and fingerprint included."""
        document = {**body_of(self), "fingerprint": self.fingerprint}
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, *, categories: Mapping[str, Iterable[str]] | None = None) -> Survey:
        """Read a document and check all of it: version, schema, channels, privacy, fingerprint.

        Parameters
        ----------
        text
            The document.
        categories
            By the name of a dimension, the list of categories of which the document has only the hash.

        Raises
        ------
        FormatError
            If it is not a valid survey, or a list of categories is missing or another one. If the document was changed,
            it is a FingerprintMismatch.
        """
        lists = categories or {}
        with looking_among(lists.values()):
            arguments, document, found = read(text)
        for name in lists:
            if name not in arguments["schema"].names:
                raise InvalidInput.of("categories", name, "names of dimensions that the survey has")
        try:
            survey = cls.from_questions(**arguments)
        except InvalidInput as error:
            raise FormatError(f"not a valid survey: {error}") from error
        # A document is canonicalised once: what it says is what the survey would write, to the letter or in substance.
        if json.dumps(body_of(survey), sort_keys=True) == json.dumps(document, sort_keys=True):
            survey.__dict__["_identities"] = found
        elif survey.fingerprint != found[0]:
            raise FingerprintMismatch("the survey document", found[0], survey.fingerprint)
        return survey

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document atomically, and beside it the lists of categories of which it has only the hash."""
        for dimension in self.schema:
            if (file := getattr(dimension, "file", None)) is not None:
                # After the list of the file an optional dimension has the category "missing".
                write_beside(Path(path), dimension.name, file, dimension.categories[: file.count])
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Survey:
        """Read a survey's file, and the lists of categories beside it of which it has only the hash."""
        try:
            with looking_in(Path(path).parent):
                return cls.from_json(Path(path).read_bytes())
        except FingerprintMismatch:
            raise
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error
