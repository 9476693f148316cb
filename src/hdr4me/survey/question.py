"""The question: dimensions and the channel that answers them; standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.survey.schema import Schema

MAX_WEIGHT = 1 << 20


@dataclass(frozen=True)
class Question:
    """The unit that is drawn and that spends ε/m: one channel for one or more dimensions.

    Parameters
    ----------
    dimensions
        The dimensions' numbers in the schema, in the order in which the channel accepts them.
    channel
        How their values are randomised together.
    weight
        How often this question is drawn, relative to the others.

    Examples
    --------
    >>> from hdr4me.survey import Categorical, Numeric, Survey
    >>> survey = Survey(Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])]), epsilon=1.0)
    >>> [(question.dimensions, question.weight) for question in survey.questions]
    [((0,), 1), ((1,), 1)]
    """

    dimensions: tuple[int, ...]
    channel: Channel
    weight: int = 1


def check_questions(schema: Schema, questions: tuple[Question, ...]) -> None:
    """Every dimension in one question, in the schema's order, with a channel that takes it; or InvalidInput."""
    if not all(question.dimensions for question in questions):
        raise InvalidInput("a question has no dimension: it needs at least one")
    asked = [j for question in questions for j in question.dimensions]
    if not all(type(j) is int and 0 <= j < len(schema) for j in asked):
        raise InvalidInput("a question names a dimension that the schema does not have")
    if sorted(asked) != list(range(len(schema))):
        raise InvalidInput("every dimension must be in one question, and in one only")
    if [question.dimensions[0] for question in questions] != sorted(q.dimensions[0] for q in questions):
        raise InvalidInput("questions must stand in the order of their first dimensions")
    for question in questions:
        if type(question.weight) is not int or not 1 <= question.weight <= MAX_WEIGHT:
            raise InvalidInput.of("weight", question.weight, f"an integer from 1 to {MAX_WEIGHT}")
        _check_channel(schema, question)


def _check_channel(schema: Schema, question: Question) -> None:
    names = ", ".join(repr(schema.names[j]) for j in question.dimensions)
    channel = question.channel
    takes = channel.takes
    if len(takes) != len(question.dimensions) or not all(
        schema.dimensions[j].fits(take) for j, take in zip(question.dimensions, takes, strict=True)
    ):
        raise InvalidInput(
            f"dimension {names} cannot use channel {channel.mechanism!r}, which takes "
            + ", ".join(f"a {take.reads} of {_power(take.size)} inputs" for take in takes)
        )


def _power(number: int) -> str:
    """A number of inputs; of those of a vector or a block only the power of two below it."""
    return f"{number:,}" if number < 1 << 53 else f"2^{number.bit_length() - 1}"
