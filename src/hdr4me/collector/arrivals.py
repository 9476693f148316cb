"""A batch of arrivals sorted out: by round, by id, without twins, checked against the survey of its round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hdr4me.collector.blocks import Block, block_of, check_report, rows_of
from hdr4me.collector.store import Arrival
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

__all__ = ["Sorted", "blocks_of", "check_payloads", "sort_out"]


@dataclass
class Sorted:
    """The arrivals of one round: the places of distinct ids in the batch, in the order of the ids."""

    ids: list[bytes] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


def sort_out(batch: Sequence[Arrival]) -> dict[int, Sorted]:
    """Rounds and their distinct ids, both in increasing order; of twins the first in the batch is kept.

    >>> batch = [Arrival(1, b"b" * 16, b"x", 0), Arrival(1, b"a" * 16, b"y", 0), Arrival(1, b"b" * 16, b"z", 0)]
    >>> sort_out(batch)[1].places
    [1, 0]
    """
    first: dict[tuple[int, bytes], int] = {}
    for place, arrival in enumerate(batch):
        check_report(arrival.id, arrival.payload, arrival.hour, arrival.source)
        if type(arrival.round) is not int:
            raise InvalidInput.of("round", arrival.round, "the number of a round")
        first.setdefault((arrival.round, arrival.id), place)
    found: dict[int, Sorted] = {}
    for (round_, id), place in sorted(first.items()):
        of_round = found.setdefault(round_, Sorted())
        of_round.ids.append(id)
        of_round.places.append(place)
    return found


def blocks_of(batch: Sequence[Arrival], places: Sequence[int]) -> list[Block]:
    """The arrivals at some places as blocks, one for each round, hour and source."""
    groups: dict[tuple[int, int, int], list[tuple[bytes, bytes]]] = {}
    for place in places:
        round_, id, payload, hour, source = batch[place]
        groups.setdefault((round_, hour, source), []).append((id, payload))
    return [block_of(*key, pairs) for key, pairs in groups.items()]


def check_payloads(blocks: Sequence[Block], surveys: Mapping[int, Survey]) -> None:
    """Raise InvalidInput if a payload has not the length of a report of its round's survey."""
    for block in blocks:
        _, good = rows_of(block, surveys[block.round])
        if not good.all():
            payload = block.payloads[int((~good).argmax())]
            raise InvalidInput.of("payload", payload[:64], f"a report of round {block.round}'s survey")
