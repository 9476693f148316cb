"""Questions, and the rules for the questions and the budget of a survey; standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.survey.schema import Schema

MAX_WEIGHT = 1 << 20
# The largest cost of one report: about six seconds in Python. A vector of 4,096 numbers at ε = 8 takes three.
MAX_DEVICE_COST = 1 << 25
MAX_ROWS = 65536  # of all tables together, so that a client can address a row with 16 bits


@dataclass(frozen=True)
class Question:
    """The unit that is sampled and that spends ε/m: one channel for one or more dimensions.

    Parameters
    ----------
    dimensions
        The indices of the dimensions in the schema, in the order in which the channel accepts them.
    channel
        The channel that randomizes their values together.
    weight
        The relative frequency with which this question is sampled.

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
    """Raise InvalidInput unless each dimension is in one question, in order, with a channel that accepts it."""
    if not all(question.dimensions for question in questions):
        raise InvalidInput("a question has no dimension; it needs at least one")
    dims = [j for question in questions for j in question.dimensions]
    if not all(type(j) is int and 0 <= j < len(schema) for j in dims):
        raise InvalidInput("a question names a dimension that the schema does not have")
    if sorted(dims) != list(range(len(schema))):
        raise InvalidInput("every dimension must be in exactly one question")
    if [question.dimensions[0] for question in questions] != sorted(q.dimensions[0] for q in questions):
        raise InvalidInput("questions must be in the order of their first dimensions")
    for question in questions:
        if type(question.weight) is not int or not 1 <= question.weight <= MAX_WEIGHT:
            raise InvalidInput.of("weight", question.weight, f"an integer from 1 to {MAX_WEIGHT}")
        dimensions = [schema.dimensions[j] for j in question.dimensions]
        inputs = question.channel.inputs
        if len(inputs) != len(dimensions) or not all(
            x.fits(input_) for x, input_ in zip(dimensions, inputs, strict=True)
        ):
            names = ", ".join(repr(dimension.name) for dimension in dimensions)
            raise InvalidInput(
                f"dimension {names} cannot use channel {question.channel.mechanism!r}, which accepts "
                + ", ".join(f"a {input_.input_kind} of {_power(input_.size)} inputs" for input_ in inputs)
            )


def _power(number: int) -> str:
    return f"{number:,}" if number < 1 << 53 else f"2^{number.bit_length() - 1}"


def split_budget(epsilon: float, sampled: int) -> float:
    """The largest float x with sampled·x ≤ epsilon in exact arithmetic."""
    share = epsilon / sampled
    while Fraction(share) * sampled > Fraction(epsilon):
        share = math.nextafter(share, 0.0)
    return share


def check_budget(epsilon: Any, sampled: Any, n_questions: int) -> None:
    """Raise InvalidInput unless 0 < ε ≤ 65536 and 1 ≤ m ≤ the number of questions."""
    try:
        positive = not isinstance(epsilon, bool | str) and 0 < float(epsilon) <= 65536
    except (TypeError, ValueError, OverflowError):
        positive = False
    if not positive:
        raise InvalidInput.of("epsilon", epsilon, "it must be positive and at most 65536")
    is_integer = hasattr(sampled, "__index__") and not isinstance(sampled, bool)
    if not is_integer or not 1 <= sampled <= n_questions:
        raise InvalidInput.of(
            "sampled", sampled, f"it must be between 1 and the number of questions, {n_questions}"
        )


def check_device_cost(sampled: int, questions: Iterable[Question]) -> None:
    """The most expensive report is within `MAX_DEVICE_COST`, or InvalidInput: a survey must not block a device."""
    costs = sorted((question.channel.device_cost for question in questions), reverse=True)
    if (cost := sum(costs[:sampled])) > MAX_DEVICE_COST:
        raise InvalidInput(
            f"one report needs {cost:,} operations on a device, and at most {MAX_DEVICE_COST:,} are allowed: "
            "lower sampled, the number of categories, or the length or codewords of a vector"
        )


def check_channels(epsilon: float, sampled: int, channels: Iterable[Channel]) -> None:
    """Raise InvalidInput if m answers of the channel with the largest budget exceed ε."""
    n_rows = 0
    for channel in channels:
        n_rows += len(channel.rows or ())
        if sampled * Fraction(channel.epsilon) > Fraction(epsilon):
            raise InvalidInput(
                f"channel {channel.mechanism!r} spends {channel.epsilon} on each of {sampled} answers, "
                f"more than the survey's epsilon = {epsilon}"
            )
    if n_rows > MAX_ROWS:
        raise InvalidInput(f"the channels have {n_rows} rows in all: at most {MAX_ROWS} are allowed")
