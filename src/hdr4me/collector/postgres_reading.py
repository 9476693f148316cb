"""Blocks and tallies read from the PostgreSQL store, each from one moment of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hdr4me.collector.blocks import Block
from hdr4me.collector.counting import count, minus
from hdr4me.collector.damage import hand_over
from hdr4me.collector.postgres_handle import PostgresHandle
from hdr4me.collector.postgres_link import Connection
from hdr4me.collector.postgres_merging import fold
from hdr4me.collector.postgres_rounds import one_round
from hdr4me.collector.postgres_rows import read_blocks, stored_tally
from hdr4me.collector.rounds import in_quarantine, sealed_kind
from hdr4me.collector.store import Damage, OnDamage, Quarantine
from hdr4me.tally import Tally

__all__ = ["ARRIVALS", "blocks", "blocks_of_round", "tally"]

ARRIVALS = (
    "select hour, source, sum(n)::bigint from blocks where round = ? "
    "group by hour, source order by hour, source"
)
"""Stored reports of a round by hour and source."""

_WAITING = "round = %s and number in (select number from pending where pending.round = blocks.round)"
_COVERED = "round = %s and (%s::integer is null or hour = %s) and (%s::integer is null or source = %s)"


def blocks_of_round(
    handle: PostgresHandle, connection: Connection, round: int, found: list[Damage]
) -> Iterator[Block]:
    """Every whole block of a round; what is damaged is noted, and appended to `found`."""

    def on_damage(damage: Damage) -> None:
        handle.damage.note(damage)
        found.append(damage)

    return read_blocks(connection, on_damage, "round = %s", round)


def blocks(handle: PostgresHandle, round: int, on_damage: OnDamage | None) -> Iterator[Block]:
    """Every whole block of a round, as it was when the first is asked for."""
    found: list[Damage] = []
    with handle.link.reading() as connection:
        one_round(handle, connection, round)
        yield from blocks_of_round(handle, connection, round, found)
    hand_over(handle.link.name, found, on_damage)


def tally(
    handle: PostgresHandle,
    round: int,
    without: Sequence[Quarantine],
    quarantines: Callable[[int], Sequence[Quarantine]],
) -> Tally:
    """The stored tally of a round and what waits (see `Store.tally`).

    `quarantines` is called for a sealed round only.
    """
    with handle.link.reading() as connection:
        found = one_round(handle, connection, round)
        survey = handle.survey(connection, found.fingerprint)
        if found.sealed:
            kind = sealed_kind(round, without, quarantines(round))
            return stored_tally(connection, handle.link.name, round, survey, kind)
        total = stored_tally(connection, handle.link.name, round, survey, "running")
        waiting = count(read_blocks(connection, handle.damage.note, _WAITING, round), survey)
        left_out = Tally(survey)
        for quarantine, before in _with_those_before(without):
            left_out = left_out + count(
                (
                    block
                    for block in _covered(handle, connection, round, quarantine)
                    if not in_quarantine(before, block.hour, block.source)
                ),
                survey,
            )
    if waiting.n_reports >= handle.fold_at:
        fold(handle, round)
    return minus(total + waiting, left_out)


def _with_those_before(
    without: Sequence[Quarantine],
) -> Iterator[tuple[Quarantine, list[Quarantine]]]:
    """Each quarantine once, with those whose blocks were counted before: a block in two of them is counted once."""
    distinct = list(dict.fromkeys(without))
    for place, quarantine in enumerate(distinct):
        yield quarantine, distinct[:place]


def _covered(
    handle: PostgresHandle, connection: Connection, round: int, quarantine: Quarantine
) -> Iterator[Block]:
    """The whole blocks of a quarantine."""
    hour, source = quarantine.hour, quarantine.source
    values = (round, hour, hour, source, source)
    return read_blocks(connection, handle.damage.note, _COVERED, *values)
