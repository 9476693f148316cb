"""What this package needs to know about the channels of a survey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from hdr4me.accounting.blanket import Blanket

__all__ = ["blankets_of", "decoded_rows", "redesigned"]

Decode = Callable[[Sequence[int]], float]


def blankets_of(survey: Survey) -> list[tuple[Blanket, int]]:
    """The blanket of each different channel, and the weights of its questions in the draw, added up.

    A question's weight is 1 unless the survey draws one question (m = 1) with unequal weights.
    """
    weights = dict.fromkeys(map(id, survey.channels), 0)
    for question in survey.questions:
        weights[id(question.channel)] += question.weight if survey.weighted else 1
    return [(_blanket(channel), weights[id(channel)]) for channel in survey.channels]


def _blanket(channel: Channel) -> Blanket:
    from hdr4me.accounting.blanket import entries_blanket, heavy_blanket, response_blanket, table_blanket

    if isinstance(channel, Entries):
        return entries_blanket(channel.weights, channel.size)
    if isinstance(channel, HeavySet):
        if channel.rows is not None:
            return table_blanket(channel.rows, alike=True)
        return heavy_blanket(channel.family.n_outputs, channel.family.n_heavy, channel.weight)
    if channel.rows is not None:
        return table_blanket(channel.rows)
    return response_blanket(float(channel.loss))  # which bounds every channel of that loss


def decoded_rows(survey: Survey, q: int) -> list[tuple[str, str | None, Decode | None]]:
    """For each number that question q estimates: dimension, category, and the decoded value of an answer in own units.

    None stands for a number whose estimate is not a mean over users.
    """
    question = survey.questions[q]
    channel, names = question.channel, survey.schema.names
    found: list[tuple[str, str | None, Decode | None]] = []
    for number, j in enumerate(question.dimensions):
        dimension = survey.schema.dimensions[j]
        if isinstance(channel, Table) and dimension.reads == "number":
            low, high = dimension.bounds
            values = channel.decoders["value" if number == 0 else f"value {number + 1}"]
            found.append((names[j], None, _scaled(values, (high - low) / 2)))
        elif isinstance(channel, Entries):
            found += [(names[j], c, _entry(channel, k)) for k, c in enumerate(dimension.categories)]
        elif isinstance(channel, HeavySet) and channel.n_counters == len(dimension.categories):
            found += [(names[j], c, _heavy(channel, k)) for k, c in enumerate(dimension.categories)]
        else:
            found.append((names[j], None, None))
    return found


def _scaled(values: Sequence[float], scale: float) -> Decode:
    return lambda output: values[output[0]] * scale


def _entry(channel: Entries, k: int) -> Decode:
    return lambda output: channel.decode[output[k]]


def _heavy(channel: HeavySet, k: int) -> Decode:
    inside, outside = channel.decode
    return lambda output: inside if k in channel.counters(output) else outside


def redesigned(survey: Survey, epsilon: float) -> Survey:
    """The same questions asked by the same mechanisms under another total ε."""
    by_reads: dict[str, str] = {}
    pairs = []
    for question in survey.questions:
        reads, names = question.channel.takes[0].reads, [survey.schema.names[j] for j in question.dimensions]
        if len(names) == 2:
            pairs.append((names[0], names[1]))
        elif by_reads.setdefault(reads, question.channel.mechanism) != question.channel.mechanism:
            by_reads[reads] = "auto"
    return Survey(
        survey.schema,
        epsilon,
        mechanism=by_reads.get("number", "duchi"),
        n_sampled=survey.n_sampled,
        categorical=by_reads.get("category", "auto"),
        name=survey.name,
        pairs=pairs,
        weights={survey.schema.names[q.dimensions[0]]: q.weight for q in survey.questions if survey.weighted},
    )
