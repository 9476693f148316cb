"""Where accounting reads the channels of a survey; everything else works on integers and blankets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hdr4me.errors import InvalidInput
from hdr4me.survey import Question, Survey

if TYPE_CHECKING:
    from hdr4me.channels.blanket import Blanket
    from hdr4me.channels.response import Response


Decode = Callable[[Any], Any]


def rows_of(survey: Survey, q: int) -> tuple[tuple[int, ...], ...]:
    """The integer rows of what question q's channel does with one input; they sum to 2^32."""
    channel = survey.questions[q].channel
    if channel.rows is None:
        raise InvalidInput(f"channel {channel.mechanism!r} is not a table of integers")
    return channel.rows


def blankets_of(survey: Survey) -> list[tuple[Blanket, int]]:
    """The blanket of each different channel, and the weights of its questions in the draw, added up.

    A question's weight is 1 unless the survey draws one question (m = 1) with unequal weights.
    """
    weights = [question.weight if survey.weighted else 1 for question in survey.questions]
    return [
        (
            channel.response.blanket(),
            sum(
                w
                for w, question in zip(weights, survey.questions, strict=True)
                if question.channel is channel
            ),
        )
        for channel in survey.channels
    ]


def decoded_answers(survey: Survey, q: int) -> Iterator[tuple[str, tuple[str | None, ...], Decode | str]]:
    """For each dimension of question q: its name, its categories, and what answers count for in its own units.

    A text stands for a dimension whose estimate is not a mean over users.
    """
    question = survey.questions[q]
    response = question.channel.response
    for place, j in enumerate(question.dimensions):
        dimension = survey.schema.dimensions[j]
        labels: tuple[str | None, ...] = dimension.categories or (None,)
        if response.marginal(place).optional:
            yield dimension.name, (None,), "an optional number"
        elif response.n_coordinates(place) != len(labels):
            yield dimension.name, (None,), "a vector"
        else:
            low, high = (0.0, 2.0) if dimension.categories else dimension.bounds
            yield dimension.name, labels, _scaled(response, place, (high - low) / 2)


def _scaled(response: Response, place: int, scale: float) -> Decode:
    return lambda outputs: response.decoded(outputs, place) * scale


def redesigned(survey: Survey, epsilon: float) -> Survey:
    """The same questions asked by the same mechanisms under another total ε."""
    by_reads: dict[str, str] = {}
    pairs = []
    for question in survey.questions:
        reads = question.channel.takes[0].reads
        if len(question.dimensions) == 2:
            pairs.append(
                (survey.schema.names[question.dimensions[0]], survey.schema.names[question.dimensions[1]])
            )
        elif by_reads.setdefault(reads, question.channel.mechanism) != question.channel.mechanism:
            by_reads[reads] = "auto"
    made = Survey(
        survey.schema,
        epsilon,
        mechanism=by_reads.get("number", "duchi"),
        n_sampled=survey.n_sampled,
        categorical=by_reads.get("category", "auto"),
        name=survey.name,
        pairs=pairs,
        weights=_weights(survey.questions, survey),
    )
    for old, new in zip(survey.questions, made.questions, strict=True):
        if not old.channel.built_in and type(old.channel) is not type(new.channel):
            raise InvalidInput(f"channel {old.channel.mechanism!r} cannot be designed for another epsilon")
    return made


def _weights(questions: tuple[Question, ...], survey: Survey) -> dict[str, int]:
    if not survey.weighted:
        return {}
    return {survey.schema.names[question.dimensions[0]]: question.weight for question in questions}
