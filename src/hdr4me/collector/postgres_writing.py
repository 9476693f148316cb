"""New reports into the PostgreSQL store: the database decides which ids are new, and they are one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from hdr4me.collector.arrivals import blocks_of, check_payloads, sort_out
from hdr4me.collector.postgres_handle import PostgresHandle
from hdr4me.collector.postgres_link import Connection, Ids
from hdr4me.collector.postgres_locks import share_state
from hdr4me.collector.postgres_rows import insert_block
from hdr4me.collector.rounds import no_round
from hdr4me.collector.store import Arrival, Written
from hdr4me.survey import Survey

__all__ = ["write"]


def write(handle: PostgresHandle, batch: Sequence[Arrival]) -> Written:
    """Store a batch; when `write` returns, the batch is on the database's disk."""
    rounds = sort_out(batch)

    def work(connection: Connection) -> Written:
        surveys = _open_surveys(handle, connection, list(rounds))
        check_payloads(
            blocks_of(batch, [place for number in surveys for place in rounds[number].places]), surveys
        )
        new: list[int] = []
        for number in surveys:
            places = dict(zip(rounds[number].ids, rounds[number].places, strict=True))
            found = connection.execute(
                "insert into ids (round, id) select %s, one from unnest(%b) one "
                "on conflict do nothing returning uuid_send(id)",
                (number, Ids(rounds[number].ids)),
                binary=True,
            ).fetchall()
            new += [places[id] for (id,) in found]
        for block in blocks_of(batch, new):
            insert_block(connection, block)
        stored = [False] * len(batch)
        for place in new:
            stored[place] = True
        return Written(tuple(stored), tuple(arrival.round not in surveys for arrival in batch))

    if not batch:
        return Written((), ())
    return handle.link.run(work)


def _open_surveys(
    handle: PostgresHandle, connection: Connection, numbers: Sequence[int]
) -> dict[int, Survey]:
    """The surveys of those rounds that are open, and stay open until this transaction ends."""
    with connection.pipeline():
        for number in numbers:
            share_state(connection, number)
        rows = connection.execute(
            "select number, fingerprint, state from rounds where number = any(%s)", (list(numbers),)
        ).fetchall()
    missing = set(numbers) - {number for number, _, _ in rows}
    if missing:
        raise no_round(min(missing))
    return {
        number: handle.survey(connection, fingerprint)
        for number, fingerprint, state in sorted(rows)
        if state == "open"
    }
