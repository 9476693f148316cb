"""A round's reports as a file that the rest of the library reads."""

from __future__ import annotations

import os

import numpy as np

from hdr4me.collector.store import OnDamage, Sealed, Store
from hdr4me.io.files import block_rows_of, write_reports

__all__ = ["export_reports"]


def export_reports(
    store: Store, round: int, path: str | os.PathLike[str], *, on_damage: OnDamage | None = None
) -> int:
    """Write a round's reports, without their ids, in the order of blocks and ids; returns how many there are.

    `hdr4me tally` on this file gives the same bytes as `store.tally(round)`.

    Parameters
    ----------
    store, round
        Whose reports.
    path
        A file that ends in .parquet, .arrow or .jsonl; it appears whole or not at all.
    on_damage
        Takes damaged blocks, which are left out; without it they are an error, and no file appears.

    Raises
    ------
    Sealed
        The round's raw reports are gone.
    Damaged
        Blocks are damaged.
    """
    found = store.round(round)
    if found.sealed:
        raise Sealed(f"round {round} is sealed: only its tally is kept")
    survey = store.survey(found.fingerprint)
    most = block_rows_of(survey)
    waiting, n, total = [], 0, 0
    with write_reports(path, survey) as writer:
        for block in store.blocks(round, on_damage=on_damage):
            waiting.append(block.rows(survey))
            n += len(block)
            if n >= most:
                writer.write(np.concatenate(waiting))
                waiting, n, total = [], 0, total + n
        if waiting:
            writer.write(np.concatenate(waiting))
    return total + n
